#include "support/reader_cases.h"
#include "lmdb_fixture.h"
#include "support/index_decorators.h"
#include "support/stream_decorators.h"

#include <leat/datum.h>

#define RECORDS_MAX 256
#define SEED 7

static char directory[FIXTURE_PATH];
static unsigned char pixels[RECORDS_MAX][READER_CASE_PIXELS];
static int32_t labels[RECORDS_MAX];

void reader_cases_begin(void)
{
    fixture_directory(directory);
    index_decorators_register();
    for (int i = 0; i < RECORDS_MAX; i++) {
        memset(pixels[i], i, READER_CASE_PIXELS);
        labels[i] = 1000 + i;
    }
}

void reader_cases_end(void)
{
    fixture_remove(directory);
}

static int same(leat_position at, int records)
{
    (void)records;
    return (int)at.index;
}

static leat_pipeline *make_memory(int records, int *count)
{
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 1, {READER_CASE_PIXELS}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, records),
                     LEAT_OK);
    *count = records;
    return pipeline;
}

static void write_datum(int number, fixture_record *out)
{
    leat_datum datum = {.channels = READER_CASE_PIXELS,
                        .height = 1,
                        .width = 1,
                        .label = labels[number],
                        .data = pixels[number],
                        .data_size = READER_CASE_PIXELS};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void write_some_bad(int number, fixture_record *out)
{
    write_datum(number, out);
    if (number % 10 == 3)
        out->value_size = 4;
}

/* A pipeline of `rest` over a database, which is made at the first use. */
static leat_pipeline *over_lmdb(int records, int bad, const char *rest)
{
    char path[FIXTURE_PATH + 32];
    char text[FIXTURE_PATH + 100];
    leat_pipeline *pipeline;
    snprintf(path, sizeof(path), "%s/%d-%d", directory, records, bad);
    if (mkdir(path, 0755) == 0)
        fixture_write(path, bad ? write_some_bad : write_datum, records);
    snprintf(text, sizeof(text), "lmdb:%s%s", path, rest);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return pipeline;
}

static leat_pipeline *make_lmdb(int records, int *count)
{
    *count = records;
    return over_lmdb(records, 0, "");
}

static leat_pipeline *make_bad_lmdb(int records, int *count)
{
    *count = records;
    return over_lmdb(records, 1, "");
}

/* A file of such records, which is made at the first use. */
static leat_pipeline *make_fixed(int records, int *count)
{
    char path[FIXTURE_PATH + 32];
    char text[FIXTURE_PATH + 100];
    leat_pipeline *pipeline;
    snprintf(path, sizeof(path), "%s/%d.bin", directory, records);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs("head", file);
    for (int i = 0; i < records; i++) {
        fwrite(&labels[i], sizeof(labels[i]), 1, file);
        fwrite(pixels[i], 1, READER_CASE_PIXELS, file);
    }
    fclose(file);
    snprintf(text, sizeof(text),
             "fixed:%s,header=4,fields=(data=uint8@4:3,label=int32@0)", path);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    *count = records;
    return pipeline;
}

static leat_pipeline *make_shuffled(int records, int *count)
{
    *count = records;
    return over_lmdb(records, 0, " | test_shuffle:seed=7");
}

static leat_pipeline *make_bad_shuffled(int records, int *count)
{
    *count = records;
    return over_lmdb(records, 1, " | test_shuffle:seed=7");
}

static int shuffled(leat_position at, int records)
{
    return (int)index_decorators_shuffled(at.index, records, SEED);
}

static leat_pipeline *make_turned(int records, int *count)
{
    *count = records;
    return over_lmdb(records, 1, " | test_turn:seed=7");
}

static int turned(leat_position at, int records)
{
    return (int)index_decorators_turned(at, records, SEED);
}

static leat_pipeline *make_slice(int records, int *count)
{
    *count = records - 5 < 20 ? records - 5 : 20;
    return over_lmdb(records, 0,
                     "|test_shuffle:seed=7|test_slice:skip=5,take=20");
}

static int sliced(leat_position at, int records)
{
    return shuffled((leat_position){at.epoch, at.index + 5}, records);
}

static leat_pipeline *make_taken(int records, int *count)
{
    *count = records < 20 ? records : 20;
    return over_lmdb(records, 1, " | take:20");
}

static leat_pipeline *make_filtered(int records, int *count)
{
    *count = (int)stream_decorators_left(records);
    return stream_decorators_take(STREAM_FILTER, over_lmdb(records, 0, ""));
}

static leat_pipeline *make_bad_filtered(int records, int *count)
{
    *count = (int)stream_decorators_left(records);
    return stream_decorators_take(STREAM_FILTER, over_lmdb(records, 1, ""));
}

static int filtered(leat_position at, int records)
{
    (void)records;
    return (int)stream_decorators_filtered(at.index);
}

static leat_pipeline *make_bad_rotated(int records, int *count)
{
    *count = records;
    return stream_decorators_take(STREAM_ROTATE, over_lmdb(records, 1, ""));
}

static int rotated(leat_position at, int records)
{
    return (int)stream_decorators_rotated(at, records);
}

/* A pass of callbacks, and how many samples it has. */
typedef struct callback_pass {
    int records;
    int bad;
    int next;
} callback_pass;

/* The user's pointer says both: records times two, and whether some are bad. */
static int pass_open(void *user, void **out)
{
    callback_pass *pass = calloc(1, sizeof(*pass));
    ck_assert_ptr_nonnull(pass);
    pass->records = (int)((uintptr_t)user / 2);
    pass->bad = (int)((uintptr_t)user % 2);
    *out = pass;
    return LEAT_OK;
}

static int pass_next(void *opened, leat_sample *sample)
{
    callback_pass *pass = opened;
    if (pass->next == pass->records)
        return LEAT_END;
    int i = pass->next++;
    if (pass->bad && i % 10 == 3)
        return leat_error(LEAT_EDATA, "the callback does not like %d", i);
    int32_t *label = leat_sample_take(sample, sizeof(*label));
    if (!label) {
        pass->next--;
        return LEAT_ENOMEM;
    }
    *label = labels[i];
    sample->nfields = 2;
    sample->field[0] = (leat_field){.dtype = LEAT_UINT8,
                                    .ndim = 1,
                                    .shape = {READER_CASE_PIXELS},
                                    .data = pixels[i],
                                    .bytes = READER_CASE_PIXELS};
    sample->field[1] = (leat_field){
        .dtype = LEAT_INT32, .data = label, .bytes = sizeof(labels[0])};
    return LEAT_OK;
}

static int pass_reset(void *opened)
{
    ((callback_pass *)opened)->next = 0;
    return LEAT_OK;
}

static leat_pipeline *over_callback(int records, int bad)
{
    const leat_field_spec fields[] = {
        {.name = "data",
         .dtype = LEAT_UINT8,
         .ndim = 1,
         .shape = {READER_CASE_PIXELS}},
        {.name = "label", .dtype = LEAT_INT32},
    };
    const leat_callbacks callbacks = {
        .size = sizeof(callbacks),
        .name = "calls",
        .fields = fields,
        .nfields = 2,
        .open = pass_open,
        .next = pass_next,
        .reset = pass_reset,
        .close = free,
    };
    leat_pipeline *pipeline;
    void *user = (void *)(uintptr_t)(2 * records + bad);
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, user),
                     LEAT_OK);
    return pipeline;
}

static leat_pipeline *make_callback(int records, int *count)
{
    *count = records;
    return over_callback(records, 0);
}

static leat_pipeline *make_bad_callback(int records, int *count)
{
    *count = records;
    return over_callback(records, 1);
}

/* A stream that no index finds again, in a window, without each third. */
static leat_pipeline *make_chain(int records, int *count)
{
    *count = (int)stream_decorators_left(records);
    return stream_decorators_take(
        STREAM_FILTER,
        stream_decorators_take(STREAM_ROTATE, over_callback(records, 1)));
}

static int chained(leat_position at, int records)
{
    return rotated((leat_position){at.epoch, filtered(at, records)}, records);
}

/* The other way around: the window's upstream has a mark of its own. */
static leat_pipeline *make_other_chain(int records, int *count)
{
    *count = (int)stream_decorators_left(records);
    return stream_decorators_take(
        STREAM_ROTATE,
        stream_decorators_take(STREAM_FILTER, over_lmdb(records, 1, "")));
}

static int other_chained(leat_position at, int records)
{
    int64_t index =
        stream_decorators_rotated(at, stream_decorators_left(records));
    return (int)stream_decorators_filtered(index);
}

const reader_case reader_cases[READER_CASES] = {
    {"memory", 1, 0, 0, 1, make_memory, same},
    {"lmdb", 1, 0, 0, 1, make_lmdb, same},
    {"records of one size", 1, 0, 0, 1, make_fixed, same},
    {"shuffled lmdb", 1, 0, 0, 1, make_shuffled, shuffled},
    {"slice of a shuffled lmdb", 1, 0, 0, 1, make_slice, sliced},
    {"callback", 0, 0, 0, 0, make_callback, same},
    {"lmdb with bad records", 1, 1, 0, 1, make_bad_lmdb, same},
    {"shuffled lmdb with bad records", 1, 1, 0, 1, make_bad_shuffled, shuffled},
    {"callback with bad records", 0, 1, 0, 0, make_bad_callback, same},
    {"lmdb in an order of each epoch", 1, 1, 0, 1, make_turned, turned},
    {"filtered lmdb", 0, 0, 1, 1, make_filtered, filtered},
    {"filtered lmdb with bad records", 0, 1, 1, 1, make_bad_filtered, filtered},
    {"lmdb in windows", 0, 1, 1, 1, make_bad_rotated, rotated},
    {"filter of windows of a callback", 0, 1, 1, 0, make_chain, chained},
    {"windows of a filtered lmdb", 0, 1, 1, 1, make_other_chain, other_chained},
    {"the first of an lmdb", 1, 1, 0, 1, make_taken, same},
};
