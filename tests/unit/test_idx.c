#include "pipeline/reader_form.h"
#include "support/record_sequence.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

static void setup(void)
{
    record_sequence_begin();
}

static void teardown(void)
{
    record_sequence_end();
}

/* A header of one-byte dimensions; returns its size. */
static size_t header(unsigned char *out, int type, int n, const int dims[])
{
    memset(out, 0, 4 + 4 * (size_t)n);
    out[2] = (unsigned char)type;
    out[3] = (unsigned char)n;
    for (int i = 0; i < n; i++)
        out[4 + 4 * i + 3] = (unsigned char)dims[i];
    return 4 + 4 * (size_t)n;
}

/* 5 images of 2 x 3 bytes that count on, and labels of 9 down. */
static size_t make_images(unsigned char *out)
{
    size_t size = header(out, 8, 3, (const int[]){5, 2, 3});
    for (int i = 0; i < 30; i++)
        out[size++] = (unsigned char)i;
    return size;
}

static size_t make_labels(unsigned char *out, int n)
{
    size_t size = header(out, 8, 1, (const int[]){n});
    for (int i = 0; i < n; i++)
        out[size++] = (unsigned char)(9 - i);
    return size;
}

static void write_pair(void)
{
    unsigned char bytes[64];
    size_t size = make_images(bytes);
    record_sequence_write("images", bytes, size);
    record_sequence_pack("images.gz", bytes, size, 0);
    size = make_labels(bytes, 5);
    record_sequence_write("labels", bytes, size);
    record_sequence_pack("labels.gz", bytes, size, 0);
}

static void fill_known(known_record *known, const unsigned char *bytes, int n,
                       size_t size)
{
    for (int i = 0; i < n; i++)
        known[i] = (known_record){bytes + (size_t)i * size, size};
}

START_TEST(images_come_as_they_are)
{
    unsigned char bytes[64];
    known_record known[10];
    size_t size = make_images(bytes);
    write_pair();
    fill_known(known, bytes + size - 30, 5, 6);
    record_sequence_check("idx:images", known, 5);
    record_sequence_check("idx:images,labels", known, 5);
    record_sequence_check("idx:images,labels.gz", known, 5);
    record_sequence_check("idx:images.gz,labels", known, 5);
    record_sequence_write("list", "images\nimages.gz\n", 17);
    record_sequence_write("labels_list", "labels\nlabels.gz\n", 17);
    fill_known(known + 5, bytes + size - 30, 5, 6);
    record_sequence_check("idx:@list,@labels_list", known, 10);
    record_sequence_write("list", "images\nimages\n", 14);
    record_sequence_check("idx:@list,@labels_list", known, 10);
}
END_TEST

/* Opens, and reads all samples into `samples`. */
static leat_reader *read_samples(const char *text, leat_sample *samples, int n)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    ck_assert_msg(!leat_pipeline_parse(&pipeline, text), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_pipeline_open(pipeline, &reader), "%s",
                  leat_last_error());
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < n; i++) {
        leat_sample_init(&samples[i]);
        ck_assert_msg(!leat_reader_next(reader, &samples[i]), "%s",
                      leat_last_error());
    }
    return reader;
}

static void drop_samples(leat_reader *reader, leat_sample *samples, int n)
{
    for (int i = 0; i < n; i++)
        leat_sample_finish(&samples[i]);
    leat_reader_close(reader);
}

static int32_t label_of(const leat_sample *sample)
{
    int32_t label;
    ck_assert_int_eq(sample->nfields, 2);
    ck_assert_int_eq(sample->field[1].dtype, LEAT_INT32);
    ck_assert_int_eq(sample->field[1].ndim, 0);
    memcpy(&label, sample->field[1].data, sizeof(label));
    return label;
}

START_TEST(labels_go_with_their_images)
{
    static const char *const texts[] = {"idx:images,labels",
                                        "idx:images.gz,labels.gz"};
    write_pair();
    for (int i = 0; i < 2; i++) {
        leat_sample samples[5];
        const leat_field_spec *spec;
        int n;
        leat_reader *reader = read_samples(texts[i], samples, 5);
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(n, 2);
        ck_assert_int_eq(spec[0].ndim, 3);
        ck_assert_int_eq(spec[0].shape[0], 1);
        ck_assert_int_eq(spec[0].shape[1], 2);
        ck_assert_int_eq(spec[0].shape[2], 3);
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(label_of(&samples[k]), 9 - k);
        drop_samples(reader, samples, 5);
    }
}
END_TEST

/* As another program may write it into a token. */
static int seek_to(leat_reader *reader, int64_t offset, int64_t record)
{
    const int64_t mark[] = {0, offset, record};
    const leat_position at = {0, record};
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat__reader_put_form(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_token_put(&token, mark, sizeof(mark)), LEAT_OK);
    int status = leat_reader_seek(reader, at, &token);
    leat_token_finish(&token);
    return status;
}

/* Neither images before or between records, nor those that the header does not
 * promise, have labels. */
START_TEST(a_mark_is_of_a_record_where_it_begins)
{
    static const int64_t wrong[][2] = {{1, 2},  {15, 1},       {16, 1},
                                       {22, 2}, {29, 2},       {27, 2},
                                       {52, 6}, {16 + 600, 2}, {16 + 600, 100}};
    unsigned char bytes[1024] = {0};
    leat_sample sample;
    write_pair();
    (void)make_images(bytes);
    record_sequence_pack("images.gz", bytes, sizeof(bytes), 0);
    leat_reader *reader = read_samples("idx:images.gz,labels.gz", &sample, 1);
    for (int i = 0; i < LENGTH(wrong); i++) {
        ck_assert_int_eq(seek_to(reader, wrong[i][0], wrong[i][1]),
                         LEAT_EINVAL);
        ck_assert_str_eq(leat_last_error(),
                         "images.gz: the mark is none of these files");
        ck_assert_int_eq(seek_to(reader, 16 + 12, 2), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(label_of(&sample), 7);
    }
    ck_assert_int_eq(seek_to(reader, 16 + 30, 5), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EFORMAT);
    drop_samples(reader, &sample, 1);
}
END_TEST

/* By a mark of the end nothing is read, yet a batch above has to know what its
 * samples are. */
START_TEST(a_new_reader_at_the_end_has_its_fields)
{
    static const char *const texts[] = {"idx:images.gz,labels",
                                        "idx:@list,@labels_list",
                                        "idx:images.gz,labels | batch:4"};
    write_pair();
    record_sequence_write("list", "images\nimages.gz\n", 17);
    record_sequence_write("labels_list", "labels\nlabels\n", 14);
    for (int i = 0; i < LENGTH(texts); i++) {
        static const int count[] = {5, 10, 2};
        leat_sample samples[10];
        leat_token mark;
        const leat_field_spec *spec;
        int n;
        leat_token_init(&mark);
        leat_reader *ended = read_samples(texts[i], samples, count[i]);
        drop_samples(NULL, samples, count[i]);
        leat_sample_init(&samples[0]);
        ck_assert_int_eq(leat_reader_next(ended, &samples[0]), LEAT_END);
        ck_assert_int_eq(leat_reader_mark(ended, &mark), LEAT_OK);
        drop_samples(ended, samples, 1);
        leat_reader *reader = read_samples(texts[i], samples, 0);
        const leat_position end = {0, count[i]};
        ck_assert_int_eq(leat_reader_seek(reader, end, &mark), LEAT_OK);
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(n, 2);
        const leat_position first = {0, 0};
        ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_OK);
        leat_sample_init(&samples[0]);
        ck_assert_int_eq(leat_reader_next(reader, &samples[0]), LEAT_OK);
        ck_assert_int_eq(samples[0].nfields, 2);
        drop_samples(reader, samples, 1);
        leat_token_finish(&mark);
    }
}
END_TEST

START_TEST(several_files_have_several_of_labels)
{
    unsigned char bytes[64];
    leat_sample samples[10];
    write_pair();
    record_sequence_write("images2", bytes, make_images(bytes));
    size_t size = make_labels(bytes, 5);
    memset(bytes + size - 5, 100, 5);
    record_sequence_write("labels2", bytes, size);
    remove("images.gz");
    remove("labels.gz");
    leat_reader *reader = read_samples("idx:images*,labels*", samples, 10);
    ck_assert_int_eq(label_of(&samples[4]), 5);
    ck_assert_int_eq(label_of(&samples[5]), 100);
    ck_assert_str_eq(samples[5].from.source, "images2");
    ck_assert_int_eq(samples[5].from.record, 0);
    drop_samples(reader, samples, 10);
}
END_TEST

START_TEST(all_types_are_read_in_the_machines_order)
{
    static const struct {
        int type;
        size_t size;
        const char *big_endian;
        leat_dtype dtype;
        union {
            uint8_t u8;
            int8_t i8;
            int16_t i16;
            int32_t i32;
            float f32;
            double f64;
        } value;
    } cases[] = {
        {8, 1, "\xfe", LEAT_UINT8, {.u8 = 254}},
        {9, 1, "\xfe", LEAT_INT8, {.i8 = -2}},
        {11, 2, "\xff\x01", LEAT_INT16, {.i16 = -255}},
        {12, 4, "\x01\x02\x03\x04", LEAT_INT32, {.i32 = 0x01020304}},
        {13, 4, "\x3f\xc0\x00\x00", LEAT_FLOAT32, {.f32 = 1.5f}},
        {14, 8, "\xbf\xf8\0\0\0\0\0\0", LEAT_FLOAT64, {.f64 = -1.5}},
    };
    unsigned char bytes[64];
    for (int i = 0; i < 2 * LENGTH(cases); i++) {
        int k = i / 2;
        leat_sample sample[2];
        size_t size = header(bytes, cases[k].type, 2, (const int[]){2, 1});
        memset(bytes + size, 0, cases[k].size);
        memcpy(bytes + size + cases[k].size, cases[k].big_endian,
               cases[k].size);
        size += 2 * cases[k].size;
        if (i % 2)
            record_sequence_pack("array", bytes, size, 0);
        else
            record_sequence_write("array", bytes, size);
        leat_reader *reader = read_samples("idx:array", sample, 2);
        const leat_field *field = &sample[1].field[0];
        ck_assert_int_eq(sample[1].nfields, 1);
        ck_assert_int_eq(field->dtype, cases[k].dtype);
        ck_assert_int_eq(field->ndim, 1);
        ck_assert_uint_eq(field->bytes, cases[k].size);
        ck_assert_int_eq(memcmp(field->data, &cases[k].value, cases[k].size),
                         0);
        drop_samples(reader, sample, 2);
    }
}
END_TEST

START_TEST(labels_may_have_any_type_of_whole_numbers)
{
    static const struct {
        int type;
        size_t size;
        const char *bytes;
        int32_t label;
    } cases[] = {{8, 1, "\xff", 255},
                 {9, 1, "\xff", -1},
                 {11, 2, "\xff\xfe", -2},
                 {12, 4, "\x00\x01\x00\x00", 65536}};
    unsigned char bytes[64];
    size_t size = header(bytes, 8, 3, (const int[]){1, 1, 1});
    bytes[size++] = 7;
    record_sequence_write("images", bytes, size);
    for (int i = 0; i < LENGTH(cases); i++) {
        leat_sample sample;
        size = header(bytes, cases[i].type, 1, (const int[]){1});
        memcpy(bytes + size, cases[i].bytes, cases[i].size);
        record_sequence_write("labels", bytes, size + cases[i].size);
        leat_reader *reader = read_samples("idx:images,labels", &sample, 1);
        ck_assert_int_eq(label_of(&sample), cases[i].label);
        drop_samples(reader, &sample, 1);
    }
}
END_TEST

static void check_refused(const char *text, int status, const char *says)
{
    int good, bad;
    ck_assert_int_eq(record_sequence_read(text, &good, &bad), status);
    ck_assert_msg(strstr(leat_last_error(), says), "%s", leat_last_error());
}

START_TEST(files_that_do_not_fit_are_refused)
{
    unsigned char bytes[64];
    write_pair();
    record_sequence_write("four", bytes, make_labels(bytes, 4));
    check_refused("idx:images,four", LEAT_EFORMAT, "four has 4 labels");
    check_refused("idx:images,images", LEAT_EFORMAT, "no labels");
    record_sequence_write("ends", bytes, make_labels(bytes, 4) - 1);
    check_refused("idx:images,ends", LEAT_EFORMAT, "ends: ends before its");
    check_refused("idx:images,missing", LEAT_EIO, "missing");
    size_t many = header(bytes, 8, 1, (const int[]){0});
    bytes[4] = 0x10;
    bytes[7] = 1;
    record_sequence_pack("many", bytes, many, 0);
    check_refused("idx:images,many", LEAT_ELIMIT,
                  "many: has 268435457 labels, more than fit into 1073741824");
    check_refused("idx:images*,labels", LEAT_EINVAL, "1 files of labels for 2");
    record_sequence_write("list", "images\nlabels\n", 14);
    check_refused("idx:@list", LEAT_EFORMAT, "another type or shape");
    record_sequence_write("text", "hello, world", 12);
    check_refused("idx:text", LEAT_EFORMAT, "not an IDX file");
    size_t size = header(bytes, 8, 2, (const int[]){1, 0});
    record_sequence_write("none", bytes, size);
    check_refused("idx:none", LEAT_EFORMAT, "no shape");
    memset(bytes + 4, 0xff, 8);
    record_sequence_write("huge", bytes, size);
    check_refused("idx:huge", LEAT_EFORMAT, "promises");
    size = header(bytes, 14, 8, (const int[]){255, 0, 0, 0, 0, 0, 0, 0});
    memset(bytes + 4, 0xff, size - 4);
    record_sequence_write("huge", bytes, size);
    check_refused("idx:huge", LEAT_EFORMAT, "no shape");
    record_sequence_pack("huge", bytes, size, 0);
    check_refused("idx:huge", LEAT_EFORMAT, "no shape");
}
END_TEST

START_TEST(a_file_without_records_has_none)
{
    unsigned char bytes[64];
    size_t size = header(bytes, 8, 3, (const int[]){0, 28, 28});
    record_sequence_write("empty", bytes, size);
    record_sequence_check("idx:empty", NULL, 0);
    record_sequence_pack("empty", bytes, size, 0);
    record_sequence_check("idx:empty", NULL, 0);
}
END_TEST

START_TEST(files_cut_or_continued_are_refused)
{
    unsigned char bytes[128];
    int good, bad;
    write_pair();
    for (int what = 0; what < 3; what++) {
        size_t size = what == 1 ? make_labels(bytes, 5) : make_images(bytes);
        const char *text = what == 1   ? "idx:images,cut"
                           : what == 0 ? "idx:cut"
                                       : "idx:cut.gz";
        bytes[size] = 0;
        for (size_t cut = 0; cut <= size + 1; cut++) {
            if (what == 2)
                record_sequence_pack("cut.gz", bytes, cut, 0);
            else
                record_sequence_write("cut", bytes, cut);
            int status = record_sequence_read(text, &good, &bad);
            ck_assert_int_eq(status, cut == size ? LEAT_END : LEAT_EFORMAT);
            ck_assert_int_eq(bad, 0);
            if (cut != size)
                ck_assert_msg(strstr(leat_last_error(), "cut"), "%s",
                              leat_last_error());
        }
    }
}
END_TEST

START_TEST(a_flipped_bit_of_a_header_is_an_error)
{
    unsigned char bytes[128];
    int good, bad;
    for (int packed = 0; packed < 2; packed++) {
        size_t size = make_images(bytes);
        for (int bit = 0; bit < 16 * 8; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (packed)
                record_sequence_pack("flipped", bytes, size, 0);
            else
                record_sequence_write("flipped", bytes, size);
            int status = record_sequence_read("idx:flipped", &good, &bad);
            /* The one byte more is another type of the same size. */
            ck_assert_int_eq(status, bit == 16 ? LEAT_END : LEAT_EFORMAT);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}
END_TEST

static const char *written; /* as it is read beyond its first bytes */

ssize_t __real_pread(int fd, void *out, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t at);

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t at)
{
    if (written && at > 0) {
        FILE *file = fopen(written, "r+");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fputc(0, file), 0);
        ck_assert_int_eq(fclose(file), 0);
        written = NULL;
    }
    return __real_pread(fd, out, size, at);
}

/* More than are read at once: one part is of before, the other of after. */
START_TEST(labels_that_are_written_while_they_are_read_are_an_error)
{
    enum { MANY = 0x080000, HEADER = 8 };
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    static unsigned char labels[HEADER + MANY], images[2 * HEADER + MANY];
    int good, bad;
    memcpy(labels, "\0\0\10\1\0\10\0\0", HEADER);
    memcpy(images, "\0\0\10\3\0\10\0\0\0\0\0\1\0\0\0\1", 2 * HEADER);
    record_sequence_write("images", images, sizeof(images));
    record_sequence_write("labels", labels, sizeof(labels));
    ck_assert_int_eq(utimensat(AT_FDCWD, "labels", long_ago, 0), 0);
    ck_assert_int_eq(record_sequence_read("idx:images,labels", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, MANY);
    written = "labels";
    check_refused("idx:images,labels", LEAT_EIO, "changed while it was read");
    ck_assert_ptr_null(written);
}
END_TEST

START_TEST(mnists_own_files)
{
    static const int known[10] = {980, 1135, 1032, 1010, 982,
                                  892, 958,  1028, 974,  1009};
    char images[SHARED_PATH], labels[SHARED_PATH], text[3 * SHARED_PATH];
    if (!shared_path(images, "idx/t10k-images-idx3-ubyte.gz") ||
        !shared_path(labels, "idx/t10k-labels-idx1-ubyte.gz"))
        return;
    snprintf(text, sizeof(text), "idx:%s,%s", images, labels);
    leat_sample sample;
    int histogram[10] = {0};
    leat_reader *reader = read_samples(text, &sample, 1);
    ck_assert_int_eq(label_of(&sample), 7);
    ck_assert_uint_eq(sample.field[0].bytes, 784);
    do {
        histogram[label_of(&sample)]++;
    } while (!leat_reader_next(reader, &sample));
    ck_assert_int_eq(memcmp(histogram, known, sizeof(known)), 0);
    drop_samples(reader, &sample, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idx");
    TCase *tests = tcase_create("idx");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, images_come_as_they_are);
    tcase_add_test(tests, labels_go_with_their_images);
    tcase_add_test(tests, a_mark_is_of_a_record_where_it_begins);
    tcase_add_test(tests, a_new_reader_at_the_end_has_its_fields);
    tcase_add_test(tests, several_files_have_several_of_labels);
    tcase_add_test(tests, all_types_are_read_in_the_machines_order);
    tcase_add_test(tests, labels_may_have_any_type_of_whole_numbers);
    tcase_add_test(tests, files_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_file_without_records_has_none);
    tcase_add_test(tests, files_cut_or_continued_are_refused);
    tcase_add_test(tests, a_flipped_bit_of_a_header_is_an_error);
    tcase_add_test(tests,
                   labels_that_are_written_while_they_are_read_are_an_error);
    tcase_add_test(tests, mnists_own_files);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
