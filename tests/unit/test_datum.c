#include "base/memory.h"
#include "base/random.h"
#include "data/wire.h"
#include "datum.pb-c.h"
#include "support/suite.h"

#include <leat/datum.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A copy of exactly its size, so that a sanitizer sees each byte too far. */
static unsigned char *exact(const void *bytes, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static int parse(leat_datum *out, const char *bytes, size_t size)
{
    return leat_datum_parse(out, bytes, size);
}

/* A literal without its NUL. */
#define WIRE(text) (text), sizeof(text) - 1

START_TEST(fields_that_are_missing_are_zero)
{
    leat_datum datum = {.label = 7};
    ck_assert_int_eq(parse(&datum, WIRE("")), LEAT_OK);
    ck_assert_int_eq(datum.label, 0);
    ck_assert_ptr_null(datum.data);
    ck_assert_ptr_null(datum.float_data);
    ck_assert_int_eq(leat_datum_parse(&datum, NULL, 0), LEAT_OK);
}
END_TEST

START_TEST(of_a_repeated_scalar_the_last_one_counts)
{
    leat_datum datum;
    ck_assert_int_eq(parse(&datum, WIRE("\x28\x01\x22\x01"
                                        "a\x28\x02\x22\x02"
                                        "bc")),
                     LEAT_OK);
    ck_assert_int_eq(datum.label, 2);
    ck_assert_uint_eq(datum.data_size, 2);
    ck_assert_mem_eq(datum.data, "bc", 2);
}
END_TEST

START_TEST(an_int_keeps_the_low_half_of_its_varint)
{
    leat_datum datum;
    ck_assert_int_eq(parse(&datum, WIRE("\x28\x81\x80\x80\x80\x70")), LEAT_OK);
    ck_assert_int_eq(datum.label, 1);
    ck_assert_int_eq(
        parse(&datum, WIRE("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
        LEAT_OK);
    ck_assert_int_eq(datum.label, -1);
}
END_TEST

START_TEST(a_varint_of_eleven_bytes_is_an_error)
{
    leat_datum datum = {.label = 7};
    ck_assert_int_eq(
        parse(&datum, WIRE("\x28\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")),
        LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "longer than 10"));
    ck_assert_int_eq(datum.label, 7);
}
END_TEST

START_TEST(unknown_fields_and_other_wire_types_are_skipped)
{
    leat_datum datum;
    /* Field 100 in each wire type; channels as bytes, data as a varint,
     * label as fixed32, float_data as fixed64. */
    ck_assert_int_eq(parse(&datum, WIRE("\xa0\x06\x05"
                                        "\xa1\x06"
                                        "12345678"
                                        "\xa2\x06\x03"
                                        "abc"
                                        "\xa5\x06"
                                        "1234"
                                        "\x0a\x01\x09"
                                        "\x20\x09"
                                        "\x2d\x01\x01\x01\x01"
                                        "\x31"
                                        "12345678"
                                        "\x10\x03")),
                     LEAT_OK);
    ck_assert_int_eq(datum.channels, 0);
    ck_assert_int_eq(datum.height, 3);
    ck_assert_int_eq(datum.label, 0);
    ck_assert_ptr_null(datum.data);
    ck_assert_uint_eq(datum.float_count, 0);
}
END_TEST

START_TEST(groups_are_skipped_whole)
{
    leat_datum datum;
    /* A label and a group inside the group do not count. */
    ck_assert_int_eq(
        parse(&datum, WIRE("\x0b\x28\x09\x13\x22\x01x\x14\x0c\x28\x02")),
        LEAT_OK);
    ck_assert_int_eq(datum.label, 2);
    ck_assert_int_eq(parse(&datum, WIRE("\x0b\x28\x09")), LEAT_EDATA);
    ck_assert_int_eq(parse(&datum, WIRE("\x0b\x14")), LEAT_EDATA);
    ck_assert_int_eq(parse(&datum, WIRE("\x0c")), LEAT_EDATA);
}
END_TEST

START_TEST(groups_nested_without_end_are_an_error)
{
    char deep[100000];
    leat_datum datum;
    memset(deep, 0x0b, sizeof(deep));
    ck_assert_int_eq(leat_datum_parse(&datum, deep, sizeof(deep)), LEAT_EDATA);
    memset(deep + 100, 0x0c, 100);
    ck_assert_int_eq(leat_datum_parse(&datum, deep, 200), LEAT_OK);
    memset(deep + 100, 0x0b, 1);
    memset(deep + 101, 0x0c, 101);
    ck_assert_int_eq(leat_datum_parse(&datum, deep, 202), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "too deeply"));
}
END_TEST

START_TEST(field_numbers_and_wire_types_that_do_not_exist_are_errors)
{
    leat_datum datum;
    ck_assert_int_eq(parse(&datum, WIRE("\x00\x01")), LEAT_EDATA);
    ck_assert_int_eq(parse(&datum, WIRE("\x0e\x01")), LEAT_EDATA);
    ck_assert_int_eq(parse(&datum, WIRE("\x0f\x01")), LEAT_EDATA);
    ck_assert_int_eq(parse(&datum, WIRE("\x88\x80\x80\x80\x10\x01")),
                     LEAT_EDATA);
}
END_TEST

START_TEST(field_numbers_of_29_bits_exist_and_no_larger_ones)
{
    leat_datum datum;
    ck_assert_int_eq(parse(&datum, WIRE("\xf8\xff\xff\xff\x0f\x01\x28\x02")),
                     LEAT_OK);
    ck_assert_int_eq(datum.label, 2);
    ck_assert_int_eq(parse(&datum, WIRE("\x80\x80\x80\x80\x10\x01")),
                     LEAT_EDATA);
}
END_TEST

START_TEST(a_group_is_one_field_without_bytes)
{
    const unsigned char message[] = "\x0b\x22\x01x\x0c";
    leat__wire wire;
    leat__wire_field field = {.bytes = message, .size = 7};
    leat__wire_init(&wire, message, sizeof(message) - 1);
    ck_assert_int_eq(leat__wire_next(&wire, &field), LEAT_OK);
    ck_assert_uint_eq(field.number, 1);
    ck_assert_int_eq((int)field.type, LEAT__WIRE_GROUP);
    ck_assert_ptr_null(field.bytes);
    ck_assert_uint_eq(field.size, 0);
    ck_assert_int_eq(leat__wire_next(&wire, &field), LEAT_END);
}
END_TEST

/* In the order of Caffe's tools, and in another. */
START_TEST(encoded_is_0_or_1)
{
    leat_datum datum;
    ck_assert_int_eq(parse(&datum, WIRE("\x08\x01\x10\x01\x18\x01\x22\x01"
                                        "x\x28\x00\x38\x02")),
                     LEAT_OK);
    ck_assert_int_eq(datum.encoded, 1);
    ck_assert_int_eq(parse(&datum, WIRE("\x38\x02\x08\x01")), LEAT_OK);
    ck_assert_int_eq(datum.encoded, 1);
}
END_TEST

START_TEST(an_empty_piece_of_floats_changes_nothing)
{
    leat_datum datum;
    const char before[] = "\x32\x00\x32\x04\x00\x00\x80\x3f";
    const char after[] = "\x32\x04\x00\x00\x80\x3f\x32\x00";
    ck_assert_int_eq(leat_datum_parse(&datum, before, 8), LEAT_OK);
    ck_assert_ptr_eq(datum.float_data, before + 4);
    ck_assert_uint_eq(datum.float_count, 1);
    ck_assert_int_eq(leat_datum_parse(&datum, after, 8), LEAT_OK);
    ck_assert_ptr_eq(datum.float_data, after + 2);
    ck_assert_uint_eq(datum.float_count, 1);
}
END_TEST

START_TEST(one_packed_piece_of_floats_is_a_view)
{
    leat_datum datum;
    const char wire[] = "\x32\x08\x00\x00\x80\x3f\x00\x00\x00\x40";
    ck_assert_int_eq(leat_datum_parse(&datum, wire, 10), LEAT_OK);
    ck_assert_ptr_eq(datum.float_data, wire + 2);
    ck_assert_uint_eq(datum.float_count, 2);
    ck_assert_int_eq(parse(&datum, WIRE("\x32\x03"
                                        "abc")),
                     LEAT_EDATA);
}
END_TEST

START_TEST(scattered_floats_are_gathered_in_order)
{
    leat_datum datum;
    float got[4] = {0};
    const char wire[] = "\x35\x00\x00\x80\x3f\x32\x08\x00\x00\x00\x40\x00\x00"
                        "\x40\x40\x32\x00\x35\x00\x00\x80\x40";
    size_t size = sizeof(wire) - 1;
    ck_assert_int_eq(leat_datum_parse(&datum, wire, size), LEAT_OK);
    ck_assert_ptr_null(datum.float_data);
    ck_assert_uint_eq(datum.float_count, 4);
    ck_assert_int_eq(leat_datum_floats(got, 4, wire, size), LEAT_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(got[i], (float)(i + 1));
    ck_assert_int_eq(leat_datum_floats(got, 3, wire, size), LEAT_EDATA);
}
END_TEST

/* A random Datum in wire format, some fields twice, floats in pieces. */
static size_t random_message(leat__mt19937 *random, unsigned char *out)
{
    unsigned char *at = out;
    int n = (int)(leat__mt19937_next(random) % 12);
    for (int i = 0; i < n; i++) {
        uint32_t word = leat__mt19937_next(random);
        uint32_t number = word % 9 + (word % 50 == 0 ? 1000 : 0);
        uint32_t type = number == 4   ? 2
                        : number == 6 ? (word & 256 ? 2 : 5)
                        : number > 7  ? (word >> 8) % 3
                                      : 0;
        uint32_t tag = number << 3 | type;
        for (; tag >= 0x80; tag >>= 7)
            *at++ = (unsigned char)(tag | 0x80);
        *at++ = (unsigned char)tag;
        size_t length = type == 1   ? 8
                        : type == 5 ? 4
                        : type == 2 ? (word >> 12) % 10 * 4
                                    : 0;
        if (type == 2)
            *at++ = (unsigned char)length;
        if (type == 0) {
            for (int more = (int)((word >> 12) % 11); more > 1; more--)
                *at++ = (unsigned char)(leat__mt19937_next(random) | 0x80);
            *at++ = (unsigned char)(word >> 25);
        }
        for (size_t j = 0; j < length; j++)
            *at++ = (unsigned char)leat__mt19937_next(random);
    }
    return (size_t)(at - out);
}

static void assert_same(const leat_datum *got, const Caffe__Datum *expected,
                        const unsigned char *bytes, size_t size)
{
    ck_assert_int_eq(got->channels, expected->channels);
    ck_assert_int_eq(got->height, expected->height);
    ck_assert_int_eq(got->width, expected->width);
    ck_assert_int_eq(got->label, expected->label);
    ck_assert_uint_eq(got->data_size, expected->data.len);
    if (got->data_size)
        ck_assert_mem_eq(got->data, expected->data.data, got->data_size);
    ck_assert_uint_eq(got->float_count, expected->n_float_data);
    float *floats = malloc(got->float_count * sizeof(float) + 1);
    ck_assert_int_eq(leat_datum_floats(floats, got->float_count, bytes, size),
                     LEAT_OK);
    if (got->float_count)
        ck_assert_mem_eq(floats, expected->float_data,
                         got->float_count * sizeof(float));
    if (got->float_data)
        ck_assert_mem_eq(got->float_data, floats,
                         got->float_count * sizeof(float));
    free(floats);
}

/*
 * Whatever protobuf-c reads, leat reads as the same. leat also refuses field
 * number 0 and those beyond 29 bits, as protobuf's C++ does, and does not count
 * bits beyond a bool's 64th; it also takes groups and other wire types, which
 * protobuf-c refuses.
 */
static int compare_with_oracle(const unsigned char *bytes, size_t size)
{
    leat_datum datum;
    unsigned char *copy = exact(bytes, size);
    Caffe__Datum *oracle = caffe__datum__unpack(NULL, size, copy);
    int status = leat_datum_parse(&datum, copy, size);
    if (oracle && status)
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "that number"));
    if (oracle && !status)
        assert_same(&datum, oracle, copy, size);
    int both = oracle && !status;
    caffe__datum__free_unpacked(oracle, NULL);
    free(copy);
    return both;
}

START_TEST(random_messages_are_read_as_protobuf_c_reads_them)
{
    static leat__mt19937 random;
    unsigned char wire[1024];
    int agreed = 0;
    leat__mt19937_seed(&random, 1);
    for (int i = 0; i < 20000; i++)
        agreed += compare_with_oracle(wire, random_message(&random, wire));
    ck_assert_int_gt(agreed, 5000);
}
END_TEST

START_TEST(damaged_messages_are_read_as_protobuf_c_reads_them)
{
    static leat__mt19937 random;
    unsigned char wire[1024];
    int agreed = 0;
    leat__mt19937_seed(&random, 2);
    for (int i = 0; i < 20000; i++) {
        size_t size = random_message(&random, wire);
        for (uint32_t n = leat__mt19937_next(&random) % 4; size && n; n--) {
            uint32_t word = leat__mt19937_next(&random);
            wire[word % size] ^= (unsigned char)(1U << (word >> 29));
        }
        if (size && i % 3 == 0)
            size -= leat__mt19937_next(&random) % size;
        agreed += compare_with_oracle(wire, size);
    }
    ck_assert_int_gt(agreed, 1000);
}
END_TEST

/* A field in `n` bytes of varint, padded where the value needs fewer. */
static unsigned char *put_field(unsigned char *at, int tag, uint32_t value,
                                int n)
{
    *at++ = (unsigned char)tag;
    for (; n > 1; n--, value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)(value & 0x7f);
    return at;
}

/* As Caffe's tools write an image, lengths of varints in the digits of n. */
static size_t usual_message(unsigned char *out, int n)
{
    unsigned char *at = out;
    at = put_field(at, 0x08, 3, 1 + n % 4);
    at = put_field(at, 0x10, 0x155, 2 + n / 4 % 3);
    at = put_field(at, 0x18, 0x1fffff, 3 + n / 12 % 2);
    at = put_field(at, 0x22, 5, 1 + n / 24 % 4);
    memcpy(at, "\x08\x22\x28\x38\x01", 5);
    at += 5;
    if (n / 96 % 2)
        at = put_field(at, 0x28, 0x7f, 1 + n / 192 % 4);
    if (n / 768 % 2)
        at = put_field(at, 0x38, 1, 1);
    return (size_t)(at - out);
}

START_TEST(usual_messages_are_read_wherever_they_end_or_are_damaged)
{
    unsigned char wire[64];
    for (int n = 0; n < 1536; n++) {
        size_t size = usual_message(wire, n);
        ck_assert_int_eq(compare_with_oracle(wire, size), 1);
        leat_datum datum;
        ck_assert_int_eq(leat_datum_parse(&datum, wire, size), LEAT_OK);
        ck_assert_int_eq(datum.encoded, n / 768 % 2);
        for (size_t i = 0; i < size; i++) {
            int is_whole = compare_with_oracle(wire, i);
            ck_assert_int_eq(leat_datum_parse(&datum, wire, i) == LEAT_OK,
                             is_whole);
            wire[i] ^= (unsigned char)(1U << n % 8);
            compare_with_oracle(wire, size);
            wire[i] ^= (unsigned char)(1U << n % 8);
        }
    }
}
END_TEST

static void assert_labels(const unsigned char *wire, size_t size,
                          const float *value, int n)
{
    leat_sample sample;
    unsigned char *copy = exact(wire, size);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_datum_fields(&sample, copy, size), LEAT_OK);
    const leat_field *label = &sample.field[1];
    ck_assert_int_eq(sample.nfields, 2);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(label->dtype, LEAT_FLOAT32);
    ck_assert_int_eq(label->ndim, 1);
    ck_assert_int_eq(label->shape[0], n);
    ck_assert_uint_eq(label->bytes, (size_t)n * sizeof(float));
    ck_assert_mem_eq(label->data, value, label->bytes);
    leat_sample_finish(&sample);
    free(copy);
}

START_TEST(floats_beside_pixels_without_a_label_are_labels)
{
    float values[100];
    for (int i = 0; i < 100; i++)
        values[i] = (float)i - 0.5f;
    leat_datum datum = {.channels = 1,
                        .height = 1,
                        .width = 2,
                        .data = (const unsigned char *)"ab",
                        .data_size = 2,
                        .float_data = (const unsigned char *)values};
    static const int counts[] = {1, 2, 16, 17, 100};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        unsigned char wire[1024];
        datum.float_count = (size_t)counts[i];
        size_t size = leat_datum_size(&datum);
        ck_assert_uint_eq(leat_datum_write(&datum, wire), size);
        ck_assert_int_eq(compare_with_oracle(wire, size), 1);
        assert_labels(wire, size, values, counts[i]);
    }
    /* In one packed piece. */
    const float two[] = {1, 0.5f};
    assert_labels((const unsigned char *)"\x08\x01\x10\x01\x18\x02\x22\x02"
                                         "ab\x32\x08\0\0\x80\x3f\0\0\0\x3f",
                  20, two, 2);
}
END_TEST

START_TEST(floats_beside_pixels_with_a_label_are_none)
{
    leat_sample sample;
    int32_t label;
    leat_sample_init(&sample);
    for (int class = 0; class < 2; class ++) {
        char wire[] = "\x08\x01\x10\x01\x18\x02\x22\x02"
                      "ab\x28\x00\x32\x08\0\0\x80\x3f\0\0\0\x3f";
        wire[11] = (char)class;
        leat_sample_clear(&sample);
        ck_assert_int_eq(leat_datum_fields(&sample, wire, 22), LEAT_OK);
        ck_assert_int_eq(sample.field[1].dtype, LEAT_INT32);
        ck_assert_int_eq(sample.field[1].ndim, 0);
        memcpy(&label, sample.field[1].data, sizeof(label));
        ck_assert_int_eq(label, class);
    }
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(a_written_datum_is_what_protobuf_c_reads)
{
    float values[3] = {1.5f, -0.0f, 3e38f};
    leat_datum cases[] = {
        {.channels = 1, .height = 28, .width = 28, .label = 9},
        {.channels = -1, .height = INT32_MIN, .width = 300, .label = -5},
        {.encoded = 1, .data = (const unsigned char *)"jpeg", .data_size = 4},
        {.encoded = 1, .channels = 3},
        {.encoded = 1, .height = 4},
        {.encoded = 1, .width = 5},
        {.channels = 3,
         .float_data = (const unsigned char *)values,
         .float_count = 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = leat_datum_size(&cases[i]);
        unsigned char *wire = malloc(size);
        ck_assert_uint_eq(leat_datum_write(&cases[i], wire), size);
        ck_assert_int_eq(compare_with_oracle(wire, size), 1);
        leat_datum back;
        ck_assert_int_eq(leat_datum_parse(&back, wire, size), LEAT_OK);
        ck_assert_int_eq(back.channels, cases[i].channels);
        ck_assert_int_eq(back.height, cases[i].height);
        ck_assert_int_eq(back.width, cases[i].width);
        ck_assert_int_eq(back.label, cases[i].label);
        ck_assert_int_eq(back.encoded, cases[i].encoded);
        ck_assert_uint_eq(back.float_count, cases[i].float_count);
        free(wire);
    }
}
END_TEST

static size_t write_image(unsigned char *out, int channels, int height,
                          int width, size_t payload)
{
    unsigned char pixels[64] = {1, 2, 3, 4, 5};
    leat_datum datum = {channels, height,  width, 4, 0,
                        pixels,   payload, NULL,  0};
    return leat_datum_write(&datum, out);
}

START_TEST(a_raw_image_becomes_a_view_and_a_label)
{
    unsigned char wire[256];
    size_t size = write_image(wire, 1, 2, 3, 8);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_OK);
    ck_assert_int_eq(sample.nfields, 2);
    const leat_field *data = &sample.field[0], *label = &sample.field[1];
    ck_assert_int_eq(data->dtype, LEAT_UINT8);
    ck_assert_int_eq(data->ndim, 3);
    ck_assert_int_eq(data->shape[2], 3);
    ck_assert_uint_eq(data->bytes, 8);
    ck_assert((const unsigned char *)data->data > wire);
    ck_assert((const unsigned char *)data->data < wire + size);
    ck_assert_int_eq(label->dtype, LEAT_INT32);
    ck_assert_int_eq(label->ndim, 0);
    ck_assert_int_eq(*(const int32_t *)label->data, 4);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(scattered_floats_lie_in_the_box)
{
    float values[6] = {1, 2, 3, 4, 5, 6};
    leat_datum datum = {1, 2, 3, 8, 0, NULL, 0, (const unsigned char *)values,
                        6};
    unsigned char wire[256];
    size_t size = leat_datum_write(&datum, wire);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_OK);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_FLOAT32);
    ck_assert_uint_eq(sample.field[0].bytes, sizeof(values));
    ck_assert_mem_eq(sample.field[0].data, values, sizeof(values));
    ck_assert_int_eq(*(const int32_t *)sample.field[1].data, 8);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(a_sample_used_again_takes_no_memory)
{
    unsigned char wire[256];
    size_t size = write_image(wire, 1, 2, 3, 6);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 100; i++) {
        leat_sample_clear(&sample);
        ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_sample_finish(&sample);
}
END_TEST

/* A pair of fields after another one, each with its own memory. */
START_TEST(fields_are_appended_to_those_of_other_readers)
{
    unsigned char raw[256];
    unsigned char scattered[256];
    float values[6] = {1, 2, 3, 4, 5, 6};
    const leat_datum floats = {
        1, 2, 3, 8, 0, NULL, 0, (const unsigned char *)values, 6};
    size_t raw_size = write_image(raw, 1, 2, 3, 6);
    size_t size = leat_datum_write(&floats, scattered);
    leat_sample sample;
    leat_sample_init(&sample);
    int32_t *id = leat_sample_take(&sample, sizeof(*id));
    *id = 77;
    ck_assert_int_eq(leat_sample_set(&sample, 0, LEAT_INT32, 0, NULL, id),
                     LEAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(i == 1 ? leat_datum_fields(&sample, scattered, size)
                                : leat_datum_fields(&sample, raw, raw_size),
                         LEAT_OK);
    ck_assert_int_eq(sample.nfields, 7);
    ck_assert_int_eq(*(const int32_t *)sample.field[0].data, 77);
    for (int i = 0; i < 3; i++) {
        const leat_field *data = &sample.field[1 + 2 * i];
        ck_assert_int_eq(data->dtype, i == 1 ? LEAT_FLOAT32 : LEAT_UINT8);
        ck_assert_int_eq(data->ndim, 3);
        ck_assert_int_eq(data[1].dtype, LEAT_INT32);
        ck_assert_int_eq(*(const int32_t *)data[1].data, i == 1 ? 8 : 4);
    }
    ck_assert_mem_eq(sample.field[3].data, values, sizeof(values));
    ck_assert_mem_eq(sample.field[5].data, sample.field[1].data, 6);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(a_sample_without_room_for_both_fields_is_refused)
{
    static const uint8_t pixel;
    unsigned char wire[256];
    size_t size = write_image(wire, 1, 2, 3, 6);
    for (int n = LEAT_MAX_FIELDS - 2; n <= LEAT_MAX_FIELDS; n++) {
        leat_sample sample;
        leat_sample_init(&sample);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(
                leat_sample_set(&sample, i, LEAT_UINT8, 0, NULL, &pixel),
                LEAT_OK);
        int fits = n == LEAT_MAX_FIELDS - 2;
        ck_assert_int_eq(leat_datum_fields(&sample, wire, size),
                         fits ? LEAT_OK : LEAT_EINVAL);
        ck_assert_int_eq(sample.nfields, fits ? LEAT_MAX_FIELDS : n);
        leat_sample_finish(&sample);
    }
}
END_TEST

START_TEST(a_datum_that_contradicts_itself_is_refused)
{
    static const struct {
        int channels, height, width;
        size_t payload;
        const char *says;
    } cases[] = {
        {0, 2, 3, 6, "positive"},
        {1, -2, 3, 6, "positive"},
        {1, 2, 3, 5, "needs 6 bytes, data has 5"},
        {1, 2, 3, 0, "neither"},
        {INT32_MAX, INT32_MAX, INT32_MAX, 6, "too large"},
        {INT32_MAX, 65536, 1, 6, "data has 6"},
    };
    unsigned char wire[256];
    leat_sample sample;
    leat_sample_init(&sample);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = write_image(wire, cases[i].channels, cases[i].height,
                                  cases[i].width, cases[i].payload);
        ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_EDATA);
        ck_assert_msg(strstr(leat_last_error(), cases[i].says) != NULL,
                      "case %zu: %s", i, leat_last_error());
        ck_assert_int_eq(sample.nfields, 0);
    }
    leat_sample_finish(&sample);
}
END_TEST

/* The bytes get that line, word for word. */
static void check_refused(const char *bytes, size_t size, const char *line)
{
    leat_sample sample;
    leat_sample_init(&sample);
    unsigned char *wire = exact(bytes, size);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), line);
    free(wire);
    leat_sample_finish(&sample);
}

/* What is left of a record of each kind, and the line it gets. */
START_TEST(records_of_other_programs_are_named)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *line;
    } cases[] = {
        {WIRE("\x0a\x09\x22\x03\xff\xd8\xff\x28\x07\x38\x01\x10\x00\x1a\x04"
              "\x08\x01\x12\x00"),
         "expected a Datum, found SSD's AnnotatedDatum, an image with boxes: "
         "write the Datum within each as the record"},
        {WIRE("\x0a\x0b\x08\x01\x10\x01\x18\x01\x22\x01x\x28\x07"),
         "expected a Datum, found SSD's AnnotatedDatum, an image with boxes: "
         "write the Datum within each as the record"},
        {WIRE("\x0a\x0e\x08\x03\x08\x02\x10\x03\x2a\x06"
              "abcdef\x0a\x07\x08\x01\x10\x02\x22\x01\x07"),
         "expected Caffe's Datum, found Caffe2's TensorProtos: write the image "
         "and label of each as a Datum"},
        {WIRE("\x0a\x07\x10\x04\x32\x03\xff\xd8\xff"),
         "expected Caffe's Datum, found Caffe2's TensorProtos: write the image "
         "and label of each as a Datum"},
        {WIRE("\x22\x04\xff\xd8\xff\xe0\x28\x07"),
         "Datum of 0 x 0 x 0: its data is a JPEG file, but encoded is not set: "
         "write the records with encoded: true"},
        {WIRE("\x08\x03\x10\x04\x18\x05\x22\x08\x89PNG\r\n\x1a\n"),
         "Datum of 3 x 4 x 5: its data is a PNG file, but encoded is not set: "
         "write the records with encoded: true"},
        {WIRE("\xff\xd8\xff\xe0"),
         "expected a Datum, found a JPEG file: make an LMDB of the images with "
         "leat import images"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cases[i].bytes, cases[i].size, cases[i].line);
}
END_TEST

START_TEST(records_that_only_resemble_those_keep_their_line)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *line;
    } cases[] = {
        {WIRE(""), "Datum of 0 x 0 x 0: dimensions must be positive"},
        {WIRE("\x0a\x00"), "Datum of 0 x 0 x 0: dimensions must be positive"},
        {WIRE("\x0a\x02\x22\x05\x10\x00"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        /* A tf.train.Example, and one image more than SSD's have. */
        {WIRE("\x0a\x04\x0a\x02\x0a\x00"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        {WIRE("\x0a\x05\x22\x01x\x28\x07\x22\x01x"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        /* SSD's annotations as a number of 32 bits. */
        {WIRE("\x0a\x05\x22\x01x\x28\x07\x1d\x01\x02\x03\x04"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        /* Elements without dims and type, and these without elements. */
        {WIRE("\x0a\x03\x22\x01x"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        {WIRE("\x0a\x04\x08\x01\x10\x02"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        /* What is a Datum's number, among a tensor's fields. */
        {WIRE("\x0a\x07\x10\x04\x18\x01\x2a\x01x"),
         "Datum of 0 x 0 x 0: dimensions must be positive"},
        {WIRE("\x08\x01\x10\x02\x18\x03\x22\x03\xff\xd8z"),
         "Datum of 1 x 2 x 3 needs 6 bytes, data has 3"},
        {WIRE("\xff\xd8"), "malformed protobuf at byte 0: it ends within a "
                           "varint"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cases[i].bytes, cases[i].size, cases[i].line);
}
END_TEST

START_TEST(floats_fewer_than_the_shape_are_refused)
{
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(
        leat_datum_fields(&sample, WIRE("\x08\x01\x10\x01\x18\x02\x32\x04"
                                        "abcd")),
        LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "2 floats"));
    ck_assert_int_eq(leat_datum_fields(&sample, WIRE("\x38\x01")), LEAT_EDATA);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(memory_that_is_short_is_reported)
{
    unsigned char wire[256];
    size_t size = write_image(wire, 1, 2, 3, 6);
    leat_sample sample;
    leat_sample_init(&sample);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_int_eq(leat_datum_fields(&sample, wire, size), LEAT_OK);
    leat_sample_finish(&sample);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("datum");
    TCase *tcase = tcase_create("datum");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, fields_that_are_missing_are_zero);
    tcase_add_test(tcase, of_a_repeated_scalar_the_last_one_counts);
    tcase_add_test(tcase, an_int_keeps_the_low_half_of_its_varint);
    tcase_add_test(tcase, a_varint_of_eleven_bytes_is_an_error);
    tcase_add_test(tcase, unknown_fields_and_other_wire_types_are_skipped);
    tcase_add_test(tcase, groups_are_skipped_whole);
    tcase_add_test(tcase, groups_nested_without_end_are_an_error);
    tcase_add_test(tcase,
                   field_numbers_and_wire_types_that_do_not_exist_are_errors);
    tcase_add_test(tcase, field_numbers_of_29_bits_exist_and_no_larger_ones);
    tcase_add_test(tcase, a_group_is_one_field_without_bytes);
    tcase_add_test(tcase, encoded_is_0_or_1);
    tcase_add_test(tcase, an_empty_piece_of_floats_changes_nothing);
    tcase_add_test(tcase, one_packed_piece_of_floats_is_a_view);
    tcase_add_test(tcase, scattered_floats_are_gathered_in_order);
    tcase_add_test(tcase, random_messages_are_read_as_protobuf_c_reads_them);
    tcase_add_test(tcase, damaged_messages_are_read_as_protobuf_c_reads_them);
    tcase_add_test(tcase,
                   usual_messages_are_read_wherever_they_end_or_are_damaged);
    tcase_add_test(tcase, floats_beside_pixels_without_a_label_are_labels);
    tcase_add_test(tcase, floats_beside_pixels_with_a_label_are_none);
    tcase_add_test(tcase, a_written_datum_is_what_protobuf_c_reads);
    tcase_add_test(tcase, a_raw_image_becomes_a_view_and_a_label);
    tcase_add_test(tcase, scattered_floats_lie_in_the_box);
    tcase_add_test(tcase, a_sample_used_again_takes_no_memory);
    tcase_add_test(tcase, fields_are_appended_to_those_of_other_readers);
    tcase_add_test(tcase, a_sample_without_room_for_both_fields_is_refused);
    tcase_add_test(tcase, a_datum_that_contradicts_itself_is_refused);
    tcase_add_test(tcase, records_of_other_programs_are_named);
    tcase_add_test(tcase, records_that_only_resemble_those_keep_their_line);
    tcase_add_test(tcase, floats_fewer_than_the_shape_are_refused);
    tcase_add_test(tcase, memory_that_is_short_is_reported);
    return suite_run(suite);
}
