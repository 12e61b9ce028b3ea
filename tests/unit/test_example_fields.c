/* Features of Examples and SequenceExamples as fields; protobuf-c is the
 * oracle. */
#include "base/random.h"
#include "data/example_fields.h"
#include "support/example_message.h"
#include "support/example_oracle.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/status.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat__example_plan plan;
static leat_sample sample;

static example_text message;

static void add(const char *key, example_text value)
{
    example_put_entry(&message, LEAT__EXAMPLE_FEATURES, key, value);
}

static void set_up(void)
{
    leat_sample_init(&sample);
    message.size = 0;
}

static void tear_down(void)
{
    leat__example_plan_finish(&plan);
    leat_sample_finish(&sample);
}

static void plan_one(const char *described)
{
    int status = leat__example_plan_add(&plan, described);
    ck_assert_msg(!status, "%s: %s", described, leat_last_error());
}

static int read_message(void)
{
    int64_t shape[] = {(int64_t)message.size};
    leat_sample_clear(&sample);
    sample.from.source = "source";
    sample.from.record = 7;
    ck_assert_int_eq(
        leat_sample_set(&sample, 0, LEAT_BYTES, 1, shape, message.at), LEAT_OK);
    return leat__example_fields_read(&plan, &sample, 0, 0);
}

static void read_good(void)
{
    int status = read_message();
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_eq(sample.nfields, plan.nfields);
}

static void assert_refused(const char *line)
{
    ck_assert_int_eq(read_message(), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(sample.nfields, 1);
}

static void assert_field(int i, leat_dtype dtype, int ndim,
                         const int64_t shape[], const void *data, size_t bytes)
{
    const leat_field *field = &sample.field[i];
    ck_assert_int_eq(field->dtype, dtype);
    ck_assert_int_eq(field->ndim, ndim);
    for (int k = 0; k < ndim; k++)
        ck_assert_int_eq(field->shape[k], shape[k]);
    ck_assert_uint_eq(field->bytes, bytes);
    if (bytes > 0)
        ck_assert_mem_eq(field->data, data, bytes);
}

#define FIELD(i, dtype, ndim, dims, values)                                    \
    assert_field(i, dtype, ndim, (const int64_t[])dims, values, sizeof(values))
#define DIMS(...)                                                              \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static int is_in_message(const void *at)
{
    const unsigned char *byte = at;
    return byte >= message.at && byte < message.at + message.size;
}

START_TEST(features_of_every_form_become_fields)
{
    const int64_t ids[] = {1, -2, (int64_t)1 << 40};
    const float x[] = {1, 2, 3, 4};
    const char *words[] = {"one", "", "three"};
    plan_one("image=bytes");
    plan_one("label = int64");
    plan_one("x=float32[2x2]");
    plan_one("ids=int64[-1]");
    plan_one("words=bytes[-1]");
    plan_one("raw=uint8[2x3]");
    add("label", example_one_int(300));
    add("x", example_floats(4, x));
    add("unasked", example_one_int(1));
    add("words", example_strings(3, words));
    add("image", example_strings(1, (const char *[]){"JPEG"}));
    add("raw", example_strings(1, (const char *[]){"abcdef"}));
    add("ids", example_ints(3, ids));
    read_good();
    assert_field(0, LEAT_BYTES, 1, (const int64_t[]){4}, "JPEG", 4);
    FIELD(1, LEAT_INT64, 0, DIMS(0), ((const int64_t[]){300}));
    FIELD(2, LEAT_FLOAT32, 2, DIMS(2, 2), x);
    FIELD(3, LEAT_INT64, 1, DIMS(3), ids);
    assert_field(4, LEAT_UINT8, 1, (const int64_t[]){8}, "onethree", 8);
    FIELD(5, LEAT_INT64, 1, DIMS(4), ((const int64_t[]){0, 3, 3, 8}));
    assert_field(6, LEAT_UINT8, 2, (const int64_t[]){2, 3}, "abcdef", 6);
    ck_assert_str_eq(plan.spec[5].name, "words.offsets");
    ck_assert_str_eq(plan.spec[5].offsets_of, "words");
    /* Strings and packed floats are not copied. */
    ck_assert(is_in_message(sample.field[0].data));
    ck_assert(is_in_message(sample.field[2].data));
    ck_assert(is_in_message(sample.field[6].data));
    ck_assert_int_eq(sample.stable, 0);
}
END_TEST

START_TEST(a_message_of_views_takes_no_memory)
{
    plan_one("image=bytes");
    add("image", example_strings(1, (const char *[]){"JPEG"}));
    read_good();
    ck_assert_uint_eq(sample.taken, 0);
    ck_assert_int_eq(sample.stable, 1);
}
END_TEST

START_TEST(a_message_in_the_samples_buffer_may_move)
{
    int64_t ids[200], shape[] = {0};
    for (int i = 0; i < 200; i++)
        ids[i] = i - 100;
    plan_one("ids=int64[-1]");
    plan_one("image=bytes");
    add("ids", example_ints(200, ids));
    add("image", example_strings(1, (const char *[]){"JPEG"}));
    shape[0] = (int64_t)message.size;
    leat_sample_clear(&sample);
    void *copy = leat_sample_take(&sample, message.size);
    memcpy(copy, message.at, message.size);
    leat_sample_set(&sample, 0, LEAT_UINT8, 1, shape, copy);
    ck_assert_int_eq(leat__example_fields_read(&plan, &sample, 0, 0), LEAT_OK);
    FIELD(0, LEAT_INT64, 1, DIMS(200), ids);
    assert_field(1, LEAT_BYTES, 1, (const int64_t[]){4}, "JPEG", 4);
}
END_TEST

START_TEST(fields_of_other_readers_stay_before_them)
{
    const float before = 5;
    plan_one("label=int64");
    add("label", example_one_int(3));
    int64_t shape[] = {(int64_t)message.size};
    leat_sample_clear(&sample);
    leat_sample_set(&sample, 0, LEAT_FLOAT32, 0, NULL, &before);
    leat_sample_set(&sample, 1, LEAT_FLOAT32, 0, NULL, &before);
    leat_sample_set(&sample, 2, LEAT_BYTES, 1, shape, message.at);
    ck_assert_int_eq(leat__example_fields_read(&plan, &sample, 1, 2), LEAT_OK);
    ck_assert_int_eq(sample.nfields, 2);
    FIELD(1, LEAT_INT64, 0, DIMS(0), ((const int64_t[]){3}));
    ck_assert_ptr_eq(sample.field[0].data, &before);
}
END_TEST

START_TEST(missing_features_take_their_defaults)
{
    plan_one("a=bytes? some text");
    plan_one("b=int64?-5");
    plan_one("c=float32[3]?0.5");
    plan_one("d=int64[2]? 1 2");
    plan_one("e=float32[-1]");
    plan_one("f=bytes[-1]");
    plan_one("g=int64[-1x2]?1 2 3 4");
    plan_one("h=uint8[2]?255");
    example_text none = {.size = 0};
    add("b", none); /* without a kind */
    read_good();
    assert_field(0, LEAT_BYTES, 1, (const int64_t[]){10}, " some text", 10);
    FIELD(1, LEAT_INT64, 0, DIMS(0), ((const int64_t[]){-5}));
    FIELD(2, LEAT_FLOAT32, 1, DIMS(3), ((const float[]){.5f, .5f, .5f}));
    FIELD(3, LEAT_INT64, 1, DIMS(2), ((const int64_t[]){1, 2}));
    assert_field(4, LEAT_FLOAT32, 1, (const int64_t[]){0}, NULL, 0);
    assert_field(5, LEAT_UINT8, 1, (const int64_t[]){0}, NULL, 0);
    FIELD(6, LEAT_INT64, 1, DIMS(1), ((const int64_t[]){0}));
    FIELD(7, LEAT_INT64, 2, DIMS(2, 2), ((const int64_t[]){1, 2, 3, 4}));
    FIELD(8, LEAT_UINT8, 1, DIMS(2), ((const unsigned char[]){255, 255}));
}
END_TEST

START_TEST(what_is_not_as_planned_is_refused_by_name)
{
    plan_one("label=int64");
    assert_refused("feature \"label\": expected int64, found "
                   "none in the record, which has no features");
    add("label", example_floats(1, (const float[]){1}));
    assert_refused("feature \"label\": expected int64, found "
                   "float");
    add("label", example_ints(2, (const int64_t[]){1, 2}));
    assert_refused("feature \"label\": expected int64, found "
                   "2 values of kind int64");
    add("label", example_one_int(1)); /* the last entry of a key counts */
    read_good();
    plan_one("x=float32[-1x2]");
    add("x", example_floats(3, (const float[]){1, 2, 3}));
    assert_refused("feature \"x\": expected float32[-1x2], "
                   "found 3 values of kind float");
    add("x", example_floats(2, (const float[]){1, 2}));
    plan_one("raw=uint8[4]");
    add("raw", example_strings(1, (const char *[]){"abc"}));
    assert_refused("feature \"raw\": expected uint8[4], "
                   "found 3 bytes");
    message.at[message.size - 1] = 0;
    example_put(&message, "\x0a\x05", 2);
    ck_assert_int_eq(read_message(), LEAT_EDATA);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "malformed protobuf at byte"));
}
END_TEST

START_TEST(steps_of_one_size_add_a_dimension)
{
    const example_text steps[] = {example_floats(2, (const float[]){1, 2}),
                                  example_floats(2, (const float[]){3, 4}),
                                  example_floats(2, (const float[]){5, 6})};
    const example_text labels[] = {example_one_int(7), example_one_int(-8)};
    plan_one("x=[float32[2]]");
    plan_one("label=[int64]");
    plan_one("none=[int64]?");
    example_put_steps(&message, "x", 3, steps);
    example_put_steps(&message, "label", 2, labels);
    read_good();
    FIELD(0, LEAT_FLOAT32, 2, DIMS(3, 2), ((const float[]){1, 2, 3, 4, 5, 6}));
    FIELD(1, LEAT_INT64, 1, DIMS(2), ((const int64_t[]){7, -8}));
    assert_field(2, LEAT_INT64, 1, (const int64_t[]){0}, NULL, 0);
}
END_TEST

START_TEST(steps_of_different_sizes_have_offsets)
{
    const example_text steps[] = {example_ints(2, (const int64_t[]){1, 2}),
                                  example_ints(0, NULL),
                                  example_ints(1, (const int64_t[]){3})};
    const example_text frames[] = {example_strings(1, (const char *[]){"ab"}),
                                   example_strings(1, (const char *[]){"cde"})};
    const example_text words[] = {
        example_strings(2, (const char *[]){"x", "yy"}),
        example_strings(0, NULL), example_strings(1, (const char *[]){"zzz"})};
    plan_one("ids=[int64[-1]]");
    plan_one("frame=[bytes]");
    plan_one("words=[bytes[-1]]");
    example_put_steps(&message, "ids", 3, steps);
    example_put_steps(&message, "frame", 2, frames);
    example_put_steps(&message, "words", 3, words);
    read_good();
    FIELD(0, LEAT_INT64, 1, DIMS(3), ((const int64_t[]){1, 2, 3}));
    FIELD(1, LEAT_INT64, 1, DIMS(4), ((const int64_t[]){0, 2, 2, 3}));
    assert_field(2, LEAT_UINT8, 1, (const int64_t[]){5}, "abcde", 5);
    FIELD(3, LEAT_INT64, 1, DIMS(3), ((const int64_t[]){0, 2, 5}));
    assert_field(4, LEAT_UINT8, 1, (const int64_t[]){6}, "xyyzzz", 6);
    FIELD(5, LEAT_INT64, 1, DIMS(4), ((const int64_t[]){0, 1, 3, 6}));
    FIELD(6, LEAT_INT64, 1, DIMS(4), ((const int64_t[]){0, 2, 2, 3}));
    ck_assert_str_eq(plan.spec[6].name, "words.offsets.1");
    ck_assert_str_eq(plan.spec[6].offsets_of, "words.offsets");
}
END_TEST

START_TEST(a_missing_feature_is_told_from_those_that_are_there)
{
    char line[400];
    plan_one("label=int64");
    add("a\nb\x7f", example_one_int(1));
    add("0123456789abcdef0123456789abcdef+", example_one_int(1));
    add("0123456789abcdef0123456789abcdef", example_one_int(1));
    snprintf(line, sizeof(line),
             "feature \"label\": expected int64, found none in the record, "
             "which has \"a?b?\", \"%s...\", \"%s\"",
             "0123456789abcdef0123456789abcdef",
             "0123456789abcdef0123456789abcdef");
    assert_refused(line);
    for (int i = 0; i < 100; i++)
        add("more", example_one_int(1));
    ck_assert_int_eq(read_message(), LEAT_EDATA);
    const char *end = strstr(leat_last_error(), "\"more\", ...");
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(strlen(end), strlen("\"more\", ..."));
}
END_TEST

START_TEST(a_bad_step_is_refused_by_its_number)
{
    const example_text steps[] = {example_one_int(1),
                                  example_floats(1, (const float[]){1})};
    plan_one("ids=[int64]");
    assert_refused("feature \"ids\": expected int64, found "
                   "none in the record, which has no features");
    example_put_steps(&message, "ids", 2, steps);
    assert_refused("feature \"ids\": step 1: expected int64, "
                   "found float");
}
END_TEST

static _Atomic int is_over;

/* As another process that writes to a mapped file: the tag of a piece is that
 * of an unknown field, and its own again. */
__attribute__((no_sanitize("thread"))) static void *toggle(void *tag)
{
    while (!is_over)
        *(volatile unsigned char *)tag ^= 0x12 ^ 0x1a;
    return NULL;
}

/* Its steps are measured, and then written: there may be more by then. */
START_TEST(steps_that_come_and_go_are_written_in_their_place)
{
    static const char *const types[] = {"k=[int64]", "k=[int64[-1]]"};
    enum { MORE = 60 };
    const example_text one = example_one_int(5), key = {"k", 1};
    example_text first = {.size = 0}, second = {.size = 0};
    example_text entry = {.size = 0}, map = {.size = 0};
    pthread_t thread;
    plan_one(types[_i]);
    example_put_field(&first, 1, &one);
    for (int i = 0; i < MORE; i++)
        example_put_field(&second, 1, &one);
    example_put_field(&entry, 1, &key);
    example_put_field(&entry, 2, &first);
    size_t before = entry.size;
    example_put_field(&entry, 2, &second);
    example_put_field(&map, 1, &entry);
    example_put_field(&message, LEAT__EXAMPLE_LISTS, &map);
    unsigned char *tag = message.at + message.size - (entry.size - before);
    ck_assert_int_eq(*tag, 0x12);
    ck_assert_int_eq(pthread_create(&thread, NULL, toggle, tag), 0);
    for (int i = 0; i < 20000; i++) {
        /* Memory of its own each time, whose end a sanitizer knows. */
        int status = read_message();
        if (status == LEAT_OK)
            ck_assert(sample.field[0].shape[0] == 1 ||
                      sample.field[0].shape[0] == MORE + 1);
        else
            ck_assert_int_eq(status, LEAT_EDATA);
        leat_sample_finish(&sample);
        leat_sample_init(&sample);
    }
    is_over = 1;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(features_that_are_not_described_so_are_refused)
{
    static const char *const bad[] = {
        "",
        "label",
        "=int64",
        "x=int32",
        "x=float",
        "x=float32[]",
        "x=float32[0]",
        "x=float32[3",
        "x=uint8",
        "x=int64[2x-1]",
        "x=int64[-2]",
        "x=bytes[2x2]",
        "x=int64?",
        "x=int64?a",
        "x=int64?1 2",
        "x=int64[2]?1 2 3",
        "x=uint8[1]?256",
        "x=bytes[-1]?a",
        "x=float32[3]x?1",
        "x=int64[99999999999x99999999999]",
        "x=float32[1x1x1x1x1x1x1x1]",
        "x=float32?0.5,",
        "x=float32[-1x2]?1 2 3",
        "x=[int64",
        "x=[]",
        "x=[int64]?1",
        "x=[int64[2]",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int status = leat__example_plan_add(&plan, bad[i]);
        ck_assert_msg(status == LEAT_EINVAL, "%s: %d", bad[i], status);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), bad[i]));
        leat__example_plan_finish(&plan);
    }
    plan_one("x=bytes[-1]");
    ck_assert_int_eq(leat__example_plan_add(&plan, "x.offsets=int64"),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "there are two fields \"x.offsets\"");
}
END_TEST

static leat__mt19937 generator;

static uint32_t below(uint32_t n)
{
    return leat__mt19937_next(&generator) % n;
}

static example_text random_feature(void)
{
    int64_t numbers[6];
    float values[6];
    const char *const words[] = {"abc", "", "x", "abcd", "abcdef", "ab"};
    int n = (int)below(5), start = (int)below(2);
    for (int i = 0; i < 6; i++) {
        numbers[i] =
            (int64_t)leat__mt19937_next(&generator) << below(32) >> below(40);
        values[i] = (float)below(1000);
    }
    example_text none = {.size = 0};
    switch (below(10)) {
    case 0:
        return none;
    case 1:
    case 2:
    case 3:
        return example_strings(n, words + start);
    case 4:
    case 5:
    case 6:
        return example_floats(n, values);
    default:
        return example_ints(n, numbers);
    }
}

static void make_random(int is_sequence)
{
    message.size = 0;
    for (uint32_t n = below(8); n > 0; n--) {
        char key[2] = {(char)('a' + below(10)), 0};
        example_text steps[4];
        if (!is_sequence || below(3) == 0) {
            add(key, random_feature());
            continue;
        }
        int count = (int)below(4);
        for (int i = 0; i < count; i++)
            steps[i] = random_feature();
        example_put_steps(&message, key, count, steps);
    }
}

static int compare_randomly(int is_sequence, int is_damaged)
{
    int verdicts[4] = {0};
    const char *what;
    leat__mt19937_seed(&generator, 1 + (uint32_t)is_damaged);
    for (int i = 0; i < 20000; i++) {
        make_random(is_sequence);
        size_t size = message.size;
        for (uint32_t n = is_damaged ? below(4) : 0; n > 0 && size; n--)
            message.at[below((uint32_t)size)] ^= (unsigned char)(1 << below(8));
        if (size && is_damaged && i % 3 == 0)
            size -= below((uint32_t)size);
        unsigned char *exact = malloc(size + !size);
        memcpy(exact, message.at, size);
        oracle_verdict verdict =
            example_oracle_compare(&plan, is_sequence, exact, size, &what);
        ck_assert_msg(verdict != ORACLE_DISAGREES, "message %d: %s", i, what);
        verdicts[verdict]++;
        free(exact);
    }
    ck_assert_int_gt(verdicts[ORACLE_BOTH_REFUSE], 1000);
    return verdicts[ORACLE_BOTH_READ];
}

START_TEST(random_examples_are_read_as_protobuf_c_reads_them)
{
    plan_one("a=bytes?x");
    plan_one("b=int64[-1]");
    plan_one("c=float32[2]?1");
    plan_one("d=bytes[-1]");
    plan_one("e=uint8[-1x2]?1 2");
    plan_one("f=float32[-1]");
    ck_assert_int_gt(compare_randomly(0, _i), 2000);
}
END_TEST

START_TEST(random_sequences_are_read_as_protobuf_c_reads_them)
{
    plan_one("a=bytes?x");
    plan_one("b=int64[-1]");
    plan_one("c=[float32[-1]]?");
    plan_one("d=[bytes[-1]]?");
    plan_one("e=[bytes]?");
    plan_one("f=[int64[-1x2]]?");
    plan_one("g=[int64]?");
    ck_assert_int_gt(compare_randomly(1, _i), 2000);
}
END_TEST

/* The payload of record `i` in a TFRecord file; of size 0 where the file is
 * absent. */
static example_text payload(const char *name, int i)
{
    char path[SHARED_PATH];
    example_text out = {.size = 0};
    uint64_t size;
    FILE *file = shared_path(path, name) ? fopen(path, "rb") : NULL;
    if (!file)
        return out;
    while (fread(&size, sizeof(size), 1, file) == 1) {
        ck_assert_uint_le(size, EXAMPLE_MESSAGE_MAX);
        ck_assert_int_eq(fseek(file, 4, SEEK_CUR), 0);
        ck_assert_uint_eq(fread(out.at, 1, (size_t)size, file), size);
        ck_assert_int_eq(fseek(file, 4, SEEK_CUR), 0);
        if (i-- == 0) {
            out.size = (size_t)size;
            break;
        }
    }
    fclose(file);
    return out;
}

START_TEST(real_examples_are_read)
{
    int64_t tens[10];
    float ones[10];
    for (int i = 0; i < 10; i++) {
        tens[i] = 10 * i;
        ones[i] = (float)i;
    }
    plan_one("x_int=int64[10]");
    plan_one("x_float=float32[-1]");
    plan_one("x_byte=bytes");
    message = payload("tfrecord/example.tfrecord", 0);
    if (message.size == 0)
        return;
    read_good();
    FIELD(0, LEAT_INT64, 1, DIMS(10), tens);
    FIELD(1, LEAT_FLOAT32, 1, DIMS(10), ones);
    assert_field(2, LEAT_BYTES, 1, (const int64_t[]){8}, "test str", 8);
}
END_TEST

START_TEST(real_sequence_examples_are_read)
{
    plan_one("x_byte=bytes");
    plan_one("x_byte_seq=[bytes]");
    plan_one("x_float_seq=[float32[10]]");
    message = payload("tfrecord/sequence_example.tfrecord", 0);
    if (message.size == 0)
        return;
    read_good();
    assert_field(0, LEAT_BYTES, 1, (const int64_t[]){8}, "test str", 8);
    assert_field(1, LEAT_UINT8, 1, (const int64_t[]){24},
                 "test strtest strtest str", 24);
    FIELD(2, LEAT_INT64, 1, DIMS(4), ((const int64_t[]){0, 8, 16, 24}));
    ck_assert_int_eq(sample.field[3].shape[0], 3);
    ck_assert_int_eq(sample.field[3].shape[1], 10);
}
END_TEST

/* Num_2 has no kind. */
START_TEST(examples_of_tables_are_read)
{
    plan_one("Num_1=float32");
    plan_one("Num_2=float32?-1");
    plan_one("Cat_set_1=bytes[-1]");
    plan_one("Bool_1=int64");
    message = payload("tfrecord/toy.nocompress-tfe-tfrecord-00000-of-00002", 0);
    if (message.size == 0)
        return;
    read_good();
    FIELD(0, LEAT_FLOAT32, 0, DIMS(0), ((const float[]){1}));
    FIELD(1, LEAT_FLOAT32, 0, DIMS(0), ((const float[]){-1}));
    assert_field(2, LEAT_UINT8, 1, (const int64_t[]){1}, "x", 1);
    FIELD(4, LEAT_INT64, 0, DIMS(0), ((const int64_t[]){0}));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example_fields");
    TCase *tcase = tcase_create("example_fields");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, features_of_every_form_become_fields);
    tcase_add_test(tcase, a_message_of_views_takes_no_memory);
    tcase_add_test(tcase, a_message_in_the_samples_buffer_may_move);
    tcase_add_test(tcase, fields_of_other_readers_stay_before_them);
    tcase_add_test(tcase, missing_features_take_their_defaults);
    tcase_add_test(tcase, what_is_not_as_planned_is_refused_by_name);
    tcase_add_test(tcase, steps_of_one_size_add_a_dimension);
    tcase_add_test(tcase, steps_of_different_sizes_have_offsets);
    tcase_add_test(tcase, a_missing_feature_is_told_from_those_that_are_there);
    tcase_add_test(tcase, a_bad_step_is_refused_by_its_number);
    tcase_add_loop_test(
        tcase, steps_that_come_and_go_are_written_in_their_place, 0, 2);
    tcase_add_test(tcase, features_that_are_not_described_so_are_refused);
    tcase_add_loop_test(
        tcase, random_examples_are_read_as_protobuf_c_reads_them, 0, 2);
    tcase_add_loop_test(
        tcase, random_sequences_are_read_as_protobuf_c_reads_them, 0, 2);
    tcase_add_test(tcase, real_examples_are_read);
    tcase_add_test(tcase, real_sequence_examples_are_read);
    tcase_add_test(tcase, examples_of_tables_are_read);
    return suite_run(suite);
}
