/* Records of one size: TensorFlow's own cases, fields, and every cut. */
#include "support/record_fixture.h"
#include "support/record_sequence.h"
#include "support/suite.h"

#include <check.h>

static char folder[FIXTURE_PATH];
static char path[2][FIXTURE_PATH + 16];
static char text[2 * FIXTURE_PATH + 512];
static record_bytes file;
static leat_sample sample;

static void set_up(void)
{
    fixture_directory(folder);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof(path[i]), "%s/%c.bin", folder, 'a' + i);
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
    fixture_remove(folder);
}

static void write_file(int i, const void *bytes, size_t size)
{
    file.size = 0;
    record_bytes_add(&file, bytes, size);
    record_bytes_write(&file, path[i]);
}

static void write_tensorflows(void)
{
    write_file(0, "HHHHH111222333FF", 16);
    write_file(1, "HHHHHaaabbbFF", 13);
}

static const char *over(int n, const char *arguments)
{
    snprintf(text, sizeof(text), "fixed:%s%s%s,%s", path[0], n > 1 ? "," : "",
             n > 1 ? path[1] : "", arguments);
    return text;
}

START_TEST(headers_and_footers_are_left_out)
{
    static const char *const data[] = {"111", "222", "333", "aaa", "bbb"};
    int64_t count;
    write_tensorflows();
    leat_reader *reader =
        record_reader_open(over(2, "record=3,header=5,footer=2"));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.field[0].dtype, LEAT_BYTES);
        ck_assert_uint_eq(sample.field[0].bytes, 3);
        ck_assert_int_eq(memcmp(sample.field[0].data, data[i], 3), 0);
        ck_assert_str_eq(sample.from.source, path[i > 2]);
        ck_assert_int_eq(sample.from.record, i > 2 ? i - 3 : i);
        ck_assert(sample.stable);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 5);
    leat_reader_close(reader);
}
END_TEST

START_TEST(compressed_files_have_the_same_records)
{
    static const char first[] = "HHHHH111222333FF", second[] = "HHHHHaaabbbFF";
    static const char *const data[] = {"111", "222", "333", "aaa", "bbb"};
    known_record known[5];
    for (int i = 0; i < 5; i++)
        known[i] = (known_record){data[i], 3};
    record_sequence_begin();
    record_sequence_write("1", first, 16);
    record_sequence_write("2", second, 13);
    record_sequence_pack("1.gz", first, 16, 0);
    record_sequence_pack("2.gz", second, 13, 0);
    record_sequence_pack("1.z", first, 16, 1);
    record_sequence_pack("2.z", second, 13, 1);
    record_sequence_check("fixed:1,2,record=3,header=5,footer=2", known, 5);
    record_sequence_check("fixed:1.gz,2.gz,record=3,header=5,footer=2", known,
                          5);
    record_sequence_check(
        "fixed:1.z,2.z,compression=ZLIB,record=3,header=5,footer=2", known, 5);
    record_sequence_end();
}
END_TEST

/* Whose length is known only at its end. */
START_TEST(every_length_of_a_compressed_file_is_right_or_refused)
{
    static const char bytes[64] = "HHHHH";
    record_sequence_begin();
    for (size_t size = 0; size < 64; size++) {
        int good, bad;
        record_sequence_pack("1.gz", bytes, size, 0);
        int status = record_sequence_read(
            "fixed:1.gz,record=3,header=5,footer=2", &good, &bad);
        int is_whole = size >= 7 && (size - 7) % 3 == 0;
        ck_assert_msg(status == (is_whole ? LEAT_END : LEAT_EFORMAT), "%zu: %s",
                      size, leat_last_error());
        ck_assert_int_eq(good, size < 7 ? 0 : (int)((size - 7) / 3));
        if (status == LEAT_EFORMAT && size >= 5)
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), size < 7 ? "more than the file"
                                                   : "not an exact multiple"));
    }
    record_sequence_end();
}
END_TEST

/* Swapped copies follow the record in a sample's buffer, which moves. */
START_TEST(swapped_fields_of_a_stream_are_right)
{
    static const unsigned char bytes[] = {0x12, 0x34, 0x56, 0x78, 9, 10};
    leat_reader *reader;
    record_sequence_begin();
    record_sequence_pack("1.gz", bytes, sizeof(bytes), 0);
    reader = record_reader_open("fixed:1.gz,fields=(a=uint16be@0,b=uint8@2)");
    for (int i = 0; i < 2; i++) {
        uint16_t a;
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        memcpy(&a, sample.field[0].data, 2);
        ck_assert_uint_eq(a, i ? 0x7809 : 0x1234);
        ck_assert_uint_eq(*(const unsigned char *)sample.field[1].data,
                          i ? 10 : 0x56);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
    record_sequence_end();
}
END_TEST

START_TEST(a_body_that_is_no_multiple_is_refused_in_tensorflows_words)
{
    leat_reader *reader;
    write_file(0, "HHHHHaaabbbcccdddeeefffgggFF", 28);
    ck_assert_int_eq(
        record_reader_try(&reader, over(1, "record=4,header=5,footer=2")),
        LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path[0]));
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(),
               "Excluding the header (5 bytes) and footer (2 bytes), the file "
               "has body length 21 bytes, which is not an exact multiple of "
               "the record length (4 bytes)"));
}
END_TEST

START_TEST(every_length_is_a_number_of_records_or_refused)
{
    static const char bytes[64] = "HHHHH";
    for (size_t size = 0; size < 64; size++) {
        leat_reader *reader;
        int64_t count;
        write_file(0, bytes, size);
        int status =
            record_reader_try(&reader, over(1, "record=3,header=5,footer=2"));
        ck_assert_int_eq(
            status, size >= 7 && (size - 7) % 3 == 0 ? LEAT_OK : LEAT_EFORMAT);
        if (status) {
            ck_assert_ptr_nonnull(strstr(leat_last_error(), path[0]));
            continue;
        }
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, ((int64_t)size - 7) / 3);
        for (int64_t i = 0; i < count; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(fields_have_their_type_shape_and_byte_order)
{
    static const unsigned char record[] = {
        7, 0x12, 0x34, 0x3f, 0x80, 0,    0,    0,    0,    0x80, 0x3f, 1,
        2, 3,    4,    5,    6,    0xfe, 0xff, 0xff, 0xff, 'h',  'i'};
    static record_bytes two;
    two.size = 0;
    record_bytes_add(&two, record, sizeof(record));
    record_bytes_add(&two, record, sizeof(record));
    write_file(0, two.bytes, two.size);
    leat_reader *reader = record_reader_open(
        over(1, "fields=(a=uint8@0,b=uint16be@1,c=float32be@3,d=float32@7,"
                "e=uint8@11:2x3,f=int32le@17,g=bytes@21:2,h=uint16be@1:2)"));
    const leat_field_spec *spec;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 8);
    ck_assert_str_eq(spec[4].name, "e");
    ck_assert_int_eq(spec[4].ndim, 2);
    for (int i = 0; i < 2; i++) {
        uint16_t b, h[2];
        float c, d;
        int32_t f;
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 8);
        ck_assert(!sample.stable);
        memcpy(&b, sample.field[1].data, 2);
        memcpy(&c, sample.field[2].data, 4);
        memcpy(&d, sample.field[3].data, 4);
        memcpy(&f, sample.field[5].data, 4);
        memcpy(h, sample.field[7].data, 4);
        ck_assert_int_eq(*(const unsigned char *)sample.field[0].data, 7);
        ck_assert_uint_eq(b, 0x1234);
        ck_assert_float_eq(c, 1);
        ck_assert_float_eq(d, 1);
        ck_assert_int_eq(sample.field[4].shape[1], 3);
        ck_assert_int_eq(((const unsigned char *)sample.field[4].data)[5], 6);
        ck_assert_int_eq(f, -2);
        ck_assert_int_eq(memcmp(sample.field[6].data, "hi", 2), 0);
        ck_assert_uint_eq(h[0], 0x1234);
        ck_assert_uint_eq(h[1], 0x3f80);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

START_TEST(fields_that_are_none_are_refused)
{
    static const struct {
        const char *arguments;
        const char *words;
    } cases[] = {
        {"header=1", "expected record=BYTES"},
        {"fields=(a)", "no name"},
        {"fields=(=uint8@0)", "no name"},
        {"fields=(a=uint8)", "no such type"},
        {"fields=(a=uint9@0)", "no such type"},
        {"fields=(a=uint16bebe@0)", "no such type"},
        {"fields=(a=uint8@)", "no offset"},
        {"fields=(a=uint8@-1)", "no offset"},
        {"fields=(a=uint8@99999999999999999999)", "the offset is out of range"},
        {"fields=(a=uint8@0:)", "no such shape"},
        {"fields=(a=uint8@0:0)", "no such shape"},
        {"fields=(a=uint8@0:3x)", "no such shape"},
        {"fields=(a=uint8@0 3)", "no such shape"},
        {"fields=(a=uint8@0:1x1x1x1x1x1x1x1x1)", "no such shape"},
        {"fields=(a=uint8@0:1099511627776x1099511627776)", "no such shape"},
        {"fields=(a=uint8@0:1099511627776x2)", "too large"},
        {"fields=(a=bytes@0)", "no shape"},
        {"fields=(a=bytes@0:1x2)", "no such shape"},
        {"fields=(a=uint8@0,a=uint8@1)", "there is one of that name"},
        {"record=3,fields=(a=int32@0)", "the fields end at byte 4"},
        {"record=-1", "record"},
    };
    write_tensorflows();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_reader *reader;
        int status = record_reader_try(&reader, over(1, cases[i].arguments));
        ck_assert_msg(status == LEAT_EINVAL, "%s", cases[i].arguments);
        ck_assert_msg(strstr(leat_last_error(), cases[i].words) != NULL, "%s",
                      leat_last_error());
    }
    size_t used = 0;
    char many[1024];
    used = (size_t)sprintf(many, "fields=(");
    for (int i = 0; i < 33; i++)
        used += (size_t)sprintf(many + used, "%sf%d=uint8@0", i ? "," : "", i);
    sprintf(many + used, ")");
    leat_pipeline *pipeline;
    char whole[2048];
    snprintf(whole, sizeof(whole), "fixed:%s,%s", path[0], many);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, whole), LEAT_OK);
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fixed");
    TCase *tcase = tcase_create("fixed");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, headers_and_footers_are_left_out);
    tcase_add_test(tcase, compressed_files_have_the_same_records);
    tcase_add_test(tcase,
                   every_length_of_a_compressed_file_is_right_or_refused);
    tcase_add_test(tcase, swapped_fields_of_a_stream_are_right);
    tcase_add_test(tcase,
                   a_body_that_is_no_multiple_is_refused_in_tensorflows_words);
    tcase_add_test(tcase, every_length_is_a_number_of_records_or_refused);
    tcase_add_test(tcase, fields_have_their_type_shape_and_byte_order);
    tcase_add_test(tcase, fields_that_are_none_are_refused);
    return suite_run(suite);
}
