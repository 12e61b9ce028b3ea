/* Features of Examples and SequenceExamples as fields; protobuf-c is the
 * oracle. */
#include "base/memory.h"
#include "base/random.h"
#include "data/example_fields.h"
#include "pipeline/pipeline.h"
#include "support/example_oracle.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 4096, RECORDS = 23 };

static leat__example_plan plan;
static leat_sample sample;

/* A message that is being written. */
typedef struct text {
    unsigned char at[MESSAGE_MAX];
    size_t size;
} text;

static text message;

static void put(text *to, const void *from, size_t size)
{
    ck_assert_uint_le(to->size + size, MESSAGE_MAX);
    if (size > 0)
        memcpy(to->at + to->size, from, size);
    to->size += size;
}

static void put_field(text *to, int number, const text *content)
{
    unsigned char head[16];
    unsigned char *end = leat__wire_put_tag(head, number, LEAT__WIRE_BYTES);
    end = leat__wire_put_varint(end, content->size);
    put(to, head, (size_t)(end - head));
    put(to, content->at, content->size);
}

static text string(const char *value)
{
    text out = {.size = 0};
    put(&out, value, strlen(value));
    return out;
}

/* A Feature of one kind: its list in field `kind`. */
static text feature(int kind, const text *list)
{
    text out = {.size = 0};
    put_field(&out, kind, list);
    return out;
}

static text ints(int n, const int64_t values[])
{
    text packed = {.size = 0}, list = {.size = 0};
    for (int i = 0; i < n; i++) {
        unsigned char number[16];
        unsigned char *end = leat__wire_put_varint(number, (uint64_t)values[i]);
        put(&packed, number, (size_t)(end - number));
    }
    put_field(&list, 1, &packed);
    return feature(LEAT__FEATURE_INTS, &list);
}

static text one_int(int64_t value)
{
    return ints(1, &value);
}

static text floats(int n, const float values[])
{
    text packed = {.size = 0}, list = {.size = 0};
    put(&packed, values, (size_t)n * sizeof(float));
    put_field(&list, 1, &packed);
    return feature(LEAT__FEATURE_FLOATS, &list);
}

static text strings(int n, const char *const values[])
{
    text list = {.size = 0};
    for (int i = 0; i < n; i++) {
        text value = string(values[i]);
        put_field(&list, 1, &value);
    }
    return feature(LEAT__FEATURE_BYTES, &list);
}

/* Appends an entry of a map, in a map of its own, as protobuf merges them. */
static void put_entry(text *to, int map, const char *key, text value)
{
    text entry = {.size = 0}, features = {.size = 0}, name = string(key);
    put_field(&entry, 1, &name);
    put_field(&entry, 2, &value);
    put_field(&features, 1, &entry);
    put_field(to, map, &features);
}

static void add(const char *key, text value)
{
    put_entry(&message, LEAT__EXAMPLE_FEATURES, key, value);
}

static void add_steps(const char *key, int n, const text steps[])
{
    text list = {.size = 0};
    for (int i = 0; i < n; i++)
        put_field(&list, 1, &steps[i]);
    put_entry(&message, LEAT__EXAMPLE_LISTS, key, list);
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
    add("label", one_int(300));
    add("x", floats(4, x));
    add("unasked", one_int(1));
    add("words", strings(3, words));
    add("image", strings(1, (const char *[]){"JPEG"}));
    add("raw", strings(1, (const char *[]){"abcdef"}));
    add("ids", ints(3, ids));
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
    add("image", strings(1, (const char *[]){"JPEG"}));
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
    add("ids", ints(200, ids));
    add("image", strings(1, (const char *[]){"JPEG"}));
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
    add("label", one_int(3));
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
    text none = {.size = 0};
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
                   "none in the record");
    add("label", floats(1, (const float[]){1}));
    assert_refused("feature \"label\": expected int64, found "
                   "float");
    add("label", ints(2, (const int64_t[]){1, 2}));
    assert_refused("feature \"label\": expected int64, found "
                   "2 values of kind int64");
    add("label", one_int(1)); /* the last entry of a key counts */
    read_good();
    plan_one("x=float32[-1x2]");
    add("x", floats(3, (const float[]){1, 2, 3}));
    assert_refused("feature \"x\": expected float32[-1x2], "
                   "found 3 values of kind float");
    add("x", floats(2, (const float[]){1, 2}));
    plan_one("raw=uint8[4]");
    add("raw", strings(1, (const char *[]){"abc"}));
    assert_refused("feature \"raw\": expected uint8[4], "
                   "found 3 bytes");
    message.at[message.size - 1] = 0;
    put(&message, "\x0a\x05", 2);
    ck_assert_int_eq(read_message(), LEAT_EDATA);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "malformed protobuf at byte"));
}
END_TEST

START_TEST(steps_of_one_size_add_a_dimension)
{
    const text steps[] = {floats(2, (const float[]){1, 2}),
                          floats(2, (const float[]){3, 4}),
                          floats(2, (const float[]){5, 6})};
    const text labels[] = {one_int(7), one_int(-8)};
    plan_one("x=[float32[2]]");
    plan_one("label=[int64]");
    plan_one("none=[int64]?");
    add_steps("x", 3, steps);
    add_steps("label", 2, labels);
    read_good();
    FIELD(0, LEAT_FLOAT32, 2, DIMS(3, 2), ((const float[]){1, 2, 3, 4, 5, 6}));
    FIELD(1, LEAT_INT64, 1, DIMS(2), ((const int64_t[]){7, -8}));
    assert_field(2, LEAT_INT64, 1, (const int64_t[]){0}, NULL, 0);
}
END_TEST

START_TEST(steps_of_different_sizes_have_offsets)
{
    const text steps[] = {ints(2, (const int64_t[]){1, 2}), ints(0, NULL),
                          ints(1, (const int64_t[]){3})};
    const text frames[] = {strings(1, (const char *[]){"ab"}),
                           strings(1, (const char *[]){"cde"})};
    const text words[] = {strings(2, (const char *[]){"x", "yy"}),
                          strings(0, NULL),
                          strings(1, (const char *[]){"zzz"})};
    plan_one("ids=[int64[-1]]");
    plan_one("frame=[bytes]");
    plan_one("words=[bytes[-1]]");
    add_steps("ids", 3, steps);
    add_steps("frame", 2, frames);
    add_steps("words", 3, words);
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

START_TEST(a_bad_step_is_refused_by_its_number)
{
    const text steps[] = {one_int(1), floats(1, (const float[]){1})};
    plan_one("ids=[int64]");
    assert_refused("feature \"ids\": expected int64, found "
                   "none in the record");
    add_steps("ids", 2, steps);
    assert_refused("feature \"ids\": step 1: expected int64, "
                   "found float");
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

/* ---- protobuf-c --------------------------------------------------------- */

static leat__mt19937 generator;

static uint32_t below(uint32_t n)
{
    return leat__mt19937_next(&generator) % n;
}

static text random_feature(void)
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
    text none = {.size = 0};
    switch (below(10)) {
    case 0:
        return none;
    case 1:
    case 2:
    case 3:
        return strings(n, words + start);
    case 4:
    case 5:
    case 6:
        return floats(n, values);
    default:
        return ints(n, numbers);
    }
}

static void make_random(int is_sequence)
{
    message.size = 0;
    for (uint32_t n = below(8); n > 0; n--) {
        char key[2] = {(char)('a' + below(10)), 0};
        text steps[4];
        if (!is_sequence || below(3) == 0) {
            add(key, random_feature());
            continue;
        }
        int count = (int)below(4);
        for (int i = 0; i < count; i++)
            steps[i] = random_feature();
        add_steps(key, count, steps);
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

/* ---- The decorators ----------------------------------------------------- */

static unsigned char records[RECORDS][64];
static size_t record_size;

/* Records of one size, so that memory can give them: label i, x of 2. */
static leat_pipeline *memory_pipeline(void)
{
    leat_pipeline *pipeline;
    for (int i = 0; i < RECORDS; i++) {
        message.size = 0;
        add("label", one_int(i));
        add("x", floats(2, (const float[]){(float)i, (float)(2 * i)}));
        record_size = message.size;
        ck_assert_uint_le(record_size, sizeof(records[0]));
        memcpy((unsigned char *)records + (size_t)i * record_size, message.at,
               record_size);
    }
    const leat_memory_field fields[] = {
        {"other", LEAT_UINT8, 0, {0}, records},
        {"record", LEAT_UINT8, 1, {(int64_t)record_size}, records},
    };
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, RECORDS),
                     LEAT_OK);
    return pipeline;
}

static int stream_next(void *pass, leat_sample *out)
{
    int *at = pass;
    int64_t shape[] = {(int64_t)record_size};
    if (*at == RECORDS)
        return LEAT_END;
    out->stable = 1;
    return leat_sample_set(out, 0, LEAT_BYTES, 1, shape,
                           (unsigned char *)records +
                               (size_t)(*at)++ * record_size);
}

static int stream_reset(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static leat_pipeline *stream_pipeline(int *pass)
{
    static const leat_field_spec field = {
        .name = "record", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = stream_next,
                                      .reset = stream_reset};
    leat_pipeline *pipeline;
    leat_pipeline_unref(memory_pipeline());
    *pass = 0;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, pass),
                     LEAT_OK);
    return pipeline;
}

static const char *const features[] = {"x=float32[2]", "label=int64"};

static leat_pipeline *over(leat_pipeline *upstream)
{
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    leat_pipeline *pipeline;
    options.field = "record";
    int status =
        leat_pipeline_example(&pipeline, upstream, features, 2, &options);
    leat_pipeline_unref(upstream);
    ck_assert_msg(!status, "%s", leat_last_error());
    return pipeline;
}

static leat_reader *open_pipeline(leat_pipeline *pipeline)
{
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s", leat_last_error());
    return reader;
}

static void check_record(const leat_sample *one, int64_t i)
{
    int64_t label;
    float x[2];
    ck_assert_int_eq(one->nfields, 2);
    memcpy(x, one->field[0].data, sizeof(x));
    memcpy(&label, one->field[1].data, sizeof(label));
    ck_assert_int_eq(label, i);
    ck_assert(x[0] == (float)i && x[1] == (float)(2 * i));
}

/* Reads from position `i` to the end. */
static void read_on(leat_reader *reader, int64_t i)
{
    for (; i < RECORDS; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        check_record(&sample, i);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

START_TEST(random_access_stays)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, RECORDS);
    for (int64_t i = RECORDS - 1; i >= 0; i--) {
        leat_position at = {0, i};
        leat_sample *out[] = {&sample};
        int got;
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        check_record(&sample, i);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        read_on(reader, i);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_stream_resumes_at_every_position)
{
    int pass, other_pass;
    leat_pipeline *pipeline = over(stream_pipeline(&pass));
    leat_pipeline *other = over(stream_pipeline(&other_pass));
    leat_reader *reader = open_pipeline(pipeline);
    leat_reader *resumed = open_pipeline(other);
    leat_token mark;
    leat_token_init(&mark);
    for (int64_t i = 0; i < RECORDS; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(resumed, (leat_position){0, i}, &mark), LEAT_OK);
        read_on(resumed, i);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        check_record(&sample, i);
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_reader_close(resumed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(other);
}
END_TEST

START_TEST(text_and_code_make_equal_pipelines)
{
    leat_pipeline *made = over(memory_pipeline());
    leat_pipeline *upstream = memory_pipeline(), *again;
    const leat_reader_type *type;
    int i = 0;
    do
        type = leat_reader_type_at(i++);
    while (type && strcmp(type->name, "example") != 0);
    ck_assert_ptr_nonnull(type);
    ck_assert_int_eq(leat_pipeline_create(&again, type,
                                          "x=float32[2], label=int64, "
                                          "field=record",
                                          NULL, NULL, &upstream, 1),
                     LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(made), leat_pipeline_text(again));
    ck_assert(leat__pipeline_hash(made) == leat__pipeline_hash(again));
    leat_pipeline_unref(made);
    leat_pipeline_unref(again);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made = over(memory_pipeline())),
               "| example:x=float32[2],label=int64,field=record"));
    leat_pipeline_unref(made);
    const char *steps[] = {"w=[float32[2]]?", "field=bytes"};
    ck_assert_int_eq(
        leat_pipeline_sequence_example(&made, upstream, steps, 2, NULL),
        LEAT_OK);
    ck_assert_ptr_nonnull(
        strstr(leat_pipeline_text(made),
               "| sequence_example:w=[float32[2]]?,field\\=bytes"));
    leat_pipeline_unref(made);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(options_and_fields_are_checked)
{
    leat_pipeline *upstream = memory_pipeline(), *pipeline;
    leat_reader *reader;
    leat_example_options options = {0};
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_example(&pipeline, upstream, NULL, 1, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 0, NULL),
        LEAT_EINVAL);
    /* No field of bytes, and none is named. */
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, NULL), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "of bytes"));
    leat_pipeline_unref(pipeline);
    options.size = sizeof(options);
    ck_assert_int_eq(leat_example_options_init(&options), LEAT_OK);
    const char *const step = "x=[int64]";
    options.field = "record";
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, &step, 1, &options),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "sequence_example"));
    leat_pipeline_unref(pipeline);
    options.field = "nowhere";
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(a_bad_record_is_named_and_passed_by)
{
    leat_pipeline *upstream = memory_pipeline(), *pipeline;
    leat_reader *reader;
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    options.field = "record";
    unsigned char *key = (unsigned char *)records + 2 * record_size + 8;
    *key ^= 1; /* a letter of it */
    ck_assert_int_eq(
        leat_pipeline_example(&pipeline, upstream, features, 2, &options),
        LEAT_OK);
    reader = open_pipeline(pipeline);
    for (int64_t i = 0; i < RECORDS; i++) {
        int status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, i == 2 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(sample.from.record, i);
        if (status)
            ck_assert_str_eq(leat_last_error(),
                             "example: memory: record 2: feature \"label\": "
                             "expected int64, found none in the record");
        else
            check_record(&sample, i);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

/* Opens and reads two samples, with allocation `n` failing. */
static int read_with_fault(leat_pipeline *upstream, int64_t n)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_example_options options = LEAT_EXAMPLE_OPTIONS_INIT;
    const char *const all[] = {"x=float32[2]", "label=int64", "names=bytes[-1]",
                               "y=float32[4]?1"};
    options.field = "record";
    leat_sample_finish(&sample);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_example(&pipeline, upstream, all, 4, &options);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_next(reader, &sample);
    leat__alloc_fail_at(-1);
    ck_assert_msg(!status || status == LEAT_ENOMEM, "%d: %s", status,
                  leat_last_error());
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return leat__alloc_count() > last;
}

START_TEST(every_allocation_may_fail)
{
    leat_pipeline *upstream = memory_pipeline();
    int64_t n = 0;
    while (read_with_fault(upstream, n))
        n++;
    ck_assert_int_gt(n, 12);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    read_on(reader, 1);
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(cancel_ends_it)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_reader *reader = open_pipeline(pipeline);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_layers_workers_parse)
{
    leat_pipeline *pipeline = over(memory_pipeline());
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_top tops[] = {{.size = sizeof(tops[0]), .name = "x"},
                       {.size = sizeof(tops[0]), .name = "label"}};
    leat_data_layer *layer;
    options.batch_size = 4;
    options.workers = 2;
    options.top = tops;
    options.ntop = 2;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    for (int64_t p = 0; p < 60; p += 4) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const float *x = leat_blob_cpu_data(leat_data_layer_top(layer, 0));
        for (int64_t i = 0; i < 4; i++)
            ck_assert(x[2 * i] == (float)((p + i) % RECORDS) &&
                      x[2 * i + 1] == (float)(2 * ((p + i) % RECORDS)));
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* ---- Real files --------------------------------------------------------- */

/* The payload of record `i` in a TFRecord file; of size 0 where the file is
 * absent. */
static text payload(const char *name, int i)
{
    char path[SHARED_PATH];
    text out = {.size = 0};
    uint64_t size;
    FILE *file = shared_path(path, name) ? fopen(path, "rb") : NULL;
    if (!file)
        return out;
    while (fread(&size, sizeof(size), 1, file) == 1) {
        ck_assert_uint_le(size, MESSAGE_MAX);
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

/* Both files of a table, and their parts in any order. */
START_TEST(tfrecord_files_are_parsed)
{
    char path[SHARED_PATH], text[SHARED_PATH + 200];
    leat_pipeline *pipeline;
    leat_reader *reader;
    if (!shared_path(path, "tfrecord/"
                           "toy.nocompress-tfe-tfrecord-00000-of-00002"))
        return;
    path[strlen(path) - strlen("00000-of-00002")] = 0;
    snprintf(text, sizeof(text),
             "tfrecord:%s* | example:Num_1=float32?-1,Cat_set_1=bytes[-1],"
             "Bool_1=int64?-1",
             path);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    reader = open_pipeline(pipeline);
    const leat_field_spec *spec;
    int n, seen = 0;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 4);
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK) {
        ck_assert_int_eq(sample.nfields, 4);
        ck_assert_int_eq(sample.field[0].dtype, LEAT_FLOAT32);
        seen++;
    }
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(seen, 4);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("example");
    TCase *tcase = tcase_create("example");
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
    tcase_add_test(tcase, a_bad_step_is_refused_by_its_number);
    tcase_add_test(tcase, features_that_are_not_described_so_are_refused);
    tcase_add_loop_test(
        tcase, random_examples_are_read_as_protobuf_c_reads_them, 0, 2);
    tcase_add_loop_test(
        tcase, random_sequences_are_read_as_protobuf_c_reads_them, 0, 2);
    tcase_add_test(tcase, random_access_stays);
    tcase_add_test(tcase, a_stream_resumes_at_every_position);
    tcase_add_test(tcase, text_and_code_make_equal_pipelines);
    tcase_add_test(tcase, options_and_fields_are_checked);
    tcase_add_test(tcase, a_bad_record_is_named_and_passed_by);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, nothing_is_allocated_in_the_steady_state);
    tcase_add_test(tcase, cancel_ends_it);
    tcase_add_test(tcase, a_layers_workers_parse);
    tcase_add_test(tcase, real_examples_are_read);
    tcase_add_test(tcase, real_sequence_examples_are_read);
    tcase_add_test(tcase, examples_of_tables_are_read);
    tcase_add_test(tcase, tfrecord_files_are_parsed);
    return suite_run(suite);
}
