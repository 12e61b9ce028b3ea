/*
 * Every decorator, and every pair of them, over readers of each kind. What a
 * chain gives, read a sample at a time, is the model of every other way to read
 * it: several at a time, by index, after seek, mark and skip, with failing
 * allocations, by a layer of several threads, by ranks, and resumed.
 */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "support/decorator_cases.h"
#include "support/decorator_chain.h"
#include "support/reader_cases.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ck_assert_msg of what is checked often: that writes to a pipe each time. */
#define REQUIRE(condition, ...)                                                \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg(__VA_ARGS__);                                         \
    } while (0)

enum { RECORDS = 24, SAMPLES_MAX = 96, EPOCHS = 3, AT_ONCE = 16 };

/* Each pair over some of the bases; ASan sees every 19th pair, TSan every 37th:
 * each decorator over and under others. */
enum { STRIDE = IS_THREAD_SANITIZED ? 37 : IS_SANITIZED ? 19 : 3 };

static const char *const bases[] = {"memory", "lmdb with bad records",
                                    "callback",
                                    "filtered lmdb with bad records"};
enum {
    BASES = 4,
    CASES = (int)(sizeof(decorator_cases) / sizeof(decorator_cases[0]))
};

/* A sample of a chain, or its failure. */
typedef struct seen {
    uint32_t digest;
    int64_t record;
    int bad;
    int pixel;     /* the first byte of the first field; -1: there is none */
    int64_t bytes; /* of that field */
} seen;

/* What an epoch gives; an endless one is cut at SAMPLES_MAX. */
typedef struct epoch_seen {
    int n;
    seen at[SAMPLES_MAX];
} epoch_seen;

static char chain[1024];
static leat_pipeline *pipeline;
static epoch_seen model[EPOCHS];
static leat_sample buffers[AT_ONCE];
static leat_sample *out[AT_ONCE];

static const reader_case *base_case(const char *name)
{
    int i = 0;
    while (strcmp(reader_cases[i].name, name) != 0)
        ck_assert_int_lt(++i, READER_CASES);
    return &reader_cases[i];
}

static uint32_t digest_of(const leat_sample *sample)
{
    uint32_t digest = 2166136261u;
    for (int i = 0; i < sample->nfields; i++) {
        const leat_field *field = &sample->field[i];
        size_t bytes = leat_dtype_size(field->dtype);
        for (int k = 0; k < field->ndim; k++) {
            bytes *= (size_t)field->shape[k];
            digest = (digest ^ (uint32_t)field->shape[k]) * 16777619u;
        }
        REQUIRE(bytes <= field->bytes, "%s: field %d", chain, i);
        for (size_t k = 0; k < bytes; k++)
            digest =
                (digest ^ ((const unsigned char *)field->data)[k]) * 16777619u;
    }
    return digest;
}

static seen see(const leat_sample *sample, int status)
{
    seen one = {0, sample->from.record, status == LEAT_EDATA, -1, 0};
    if (one.bad)
        return one;
    one.digest = digest_of(sample);
    one.bytes = (int64_t)sample->field[0].bytes;
    if (sample->field[0].bytes > 0)
        one.pixel = *(const unsigned char *)sample->field[0].data;
    return one;
}

static void check_same(const seen *one, int64_t epoch, int64_t index,
                       const char *way)
{
    REQUIRE(index < model[epoch].n, "%s: %s: epoch %d has %d, got %d", chain,
            way, (int)epoch, model[epoch].n, (int)index);
    const seen *expected = &model[epoch].at[index];
    REQUIRE(one->digest == expected->digest &&
                one->record == expected->record && one->bad == expected->bad,
            "%s: %s: sample %d of epoch %d is of record %d%s, expected "
            "%d%s",
            chain, way, (int)index, (int)epoch, (int)one->record,
            one->bad ? " (bad)" : "", (int)expected->record,
            expected->bad ? " (bad)" : "");
}

static leat_reader *open_reader(void)
{
    leat_reader *reader = NULL;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = 5;
    int status = leat_pipeline_open_with(pipeline, &options, &reader);
    REQUIRE(!status, "%s: %s", chain, leat_last_error());
    return reader;
}

/* Goes to a position as a layer does. Whether seek led there by itself. */
static int go_to(leat_reader *reader, int64_t epoch, int64_t index)
{
    int64_t skipped;
    int status = leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
    REQUIRE(!status || (status == LEAT_EUNSUPPORTED && index > 0 &&
                        !leat_reader_can_seek(reader)),
            "%s: seek to %d, %d: %s", chain, (int)epoch, (int)index,
            leat_last_error());
    if (!status)
        return 1;
    status = leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
    REQUIRE(!status, "%s: %s", chain, leat_last_error());
    status = leat_reader_skip(reader, index, &skipped);
    REQUIRE(!status && skipped == index, "%s: skip: %d, %d", chain, status,
            (int)skipped);
    return 0;
}

static void see_epoch(leat_reader *reader, int64_t epoch)
{
    epoch_seen *all = &model[epoch];
    int status = LEAT_OK;
    for (all->n = 0; all->n < SAMPLES_MAX; all->n++) {
        status = leat_reader_next(reader, out[0]);
        if (status && status != LEAT_EDATA)
            break;
        all->at[all->n] = see(out[0], status);
    }
    REQUIRE(all->n == SAMPLES_MAX || status == LEAT_END, "%s: %d: %s", chain,
            status, leat_last_error());
}

/* Reads up to `most` samples, `n` at a time, and compares them. */
static void compare_on(leat_reader *reader, int64_t epoch, int64_t index, int n,
                       int most, const char *way)
{
    int64_t end = index + most;
    if (end > model[epoch].n)
        end = model[epoch].n;
    while (index < end) {
        int got;
        int ask = n < end - index ? n : (int)(end - index);
        int status = leat_reader_next_batch(reader, out, ask, &got);
        for (int i = 0; i < got; i++) {
            seen one = see(out[i], LEAT_OK);
            check_same(&one, epoch, index++, way);
        }
        REQUIRE(!status || status == LEAT_EDATA, "%s: %s: at %d of %d: %s",
                chain, way, (int)index, model[epoch].n, leat_last_error());
        if (status == LEAT_EDATA) {
            seen one = see(out[got], status);
            check_same(&one, epoch, index++, way);
        }
    }
    if (end == model[epoch].n && model[epoch].n < SAMPLES_MAX)
        REQUIRE(leat_reader_next(reader, out[0]) == LEAT_END,
                "%s: %s: goes on after its end", chain, way);
}

static void check_batches(leat_reader *reader)
{
    const int sizes[] = {3, 7, AT_ONCE};
    for (int i = 0; i < 3; i++) {
        go_to(reader, i % EPOCHS, 0);
        compare_on(reader, i % EPOCHS, 0, sizes[i], SAMPLES_MAX, "batches");
    }
}

static void check_random_access(leat_reader *reader)
{
    int64_t count;
    int status = leat_reader_count(reader, &count);
    if (!leat_reader_is_random_access(reader)) {
        REQUIRE(status == LEAT_EUNSUPPORTED || (!status && count >= model[0].n),
                "%s: count", chain);
        return;
    }
    REQUIRE(!status && (model[0].n == SAMPLES_MAX ? count >= SAMPLES_MAX
                                                  : count == model[0].n),
            "%s: count is %lld, but there are %d", chain, (long long)count,
            model[0].n);
    for (int64_t epoch = EPOCHS - 1; epoch >= 0; epoch--)
        for (int64_t last = model[epoch].n - 1; last >= 0;) {
            leat_position at[5];
            int got, n = 0;
            for (; n < 5 && last - 3 * n >= 0; n++)
                at[n] = (leat_position){epoch, last - 3 * n};
            leat_reader_advise(reader, at, n);
            status = leat_reader_read_at(reader, at, out, n, &got);
            REQUIRE(status ? status == LEAT_EDATA : got > 0, "%s: read_at: %s",
                    chain, leat_last_error());
            for (int i = 0; i < got + (status != LEAT_OK); i++) {
                seen one = see(out[i], i < got ? LEAT_OK : status);
                check_same(&one, epoch, at[i].index, "read_at");
            }
            last -= got < 1 ? 1 : 2;
        }
}

static void check_seek(leat_reader *reader)
{
    for (int64_t epoch = EPOCHS - 1; epoch >= 0; epoch--)
        for (int64_t index = model[epoch].n; index >= 0; index -= 5) {
            if (index == SAMPLES_MAX)
                continue;
            go_to(reader, epoch, index);
            compare_on(reader, epoch, index, 4, 9, "seek");
        }
}

static void check_skip(leat_reader *reader)
{
    for (int64_t n = 0; n < model[1].n; n += 4) {
        int64_t skipped;
        go_to(reader, 1, 0);
        compare_on(reader, 1, 0, 2, 3, "before skip");
        int64_t left = model[1].n - 3;
        if (left < 0 || n > left)
            continue;
        int status = leat_reader_skip(reader, n, &skipped);
        REQUIRE(!status && skipped == n, "%s: skip of %d: %d, %d", chain,
                (int)n, status, (int)skipped);
        compare_on(reader, 1, 3 + n, 4, 5, "skip");
    }
}

/* Every position's mark, in another reader. */
static void check_marks(leat_reader *reader)
{
    leat_token mark;
    leat_token_init(&mark);
    leat_reader *other = open_reader();
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        go_to(reader, epoch, 0);
        for (int64_t index = 0; index < model[epoch].n; index++) {
            mark.size = mark.cursor = 0;
            int status = leat_reader_mark(reader, &mark);
            REQUIRE(!status, "%s: mark: %s", chain, leat_last_error());
            REQUIRE(mark.size <= 32 * (size_t)pipeline->readers,
                    "%s: %d readers, a mark of %zu bytes", chain,
                    (int)pipeline->readers, mark.size);
            status =
                leat_reader_seek(other, (leat_position){epoch, index}, &mark);
            REQUIRE(!status && mark.cursor == mark.size,
                    "%s: seek to the mark at %d: %s", chain, (int)index,
                    leat_last_error());
            compare_on(other, epoch, index, 3, 4, "mark");
            compare_on(reader, epoch, index, 1, 1, "after a mark");
        }
    }
    leat_reader_close(other);
    leat_token_finish(&mark);
}

/* Reads some, with allocation `n` failing. Whether it did. */
static int read_with_fault(int64_t n)
{
    leat_reader *reader = NULL;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = 5;
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(out[i]);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_open_with(pipeline, &options, &reader);
    for (int i = 0; i < 12 && (!status || status == LEAT_EDATA); i++) {
        int got;
        status = leat_reader_next_batch(reader, out, 3, &got);
    }
    leat__alloc_fail_at(-1);
    REQUIRE(!status || status == LEAT_EDATA || status == LEAT_ENOMEM ||
                status == LEAT_END,
            "%s: without memory: %d, %s", chain, status, leat_last_error());
    if (reader) {
        go_to(reader, 0, 0);
        compare_on(reader, 0, 0, 3, 6, "after a failed allocation");
    }
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

static void check_faults(void)
{
    for (int64_t n = 0; n < 400 && read_with_fault(n); n++)
        ;
}

static void check_cancel(leat_reader *reader)
{
    go_to(reader, 0, 0);
    if (model[0].n > 1)
        (void)leat_reader_next(reader, out[0]);
    leat_reader_cancel(reader);
    for (int i = 0; i < 3; i++) {
        int status = leat_reader_next(reader, out[0]);
        REQUIRE(status == LEAT_ECANCELLED || status == LEAT_END ||
                    (status == LEAT_EDATA && i == 0),
                "%s: after cancel: %d", chain, status);
    }
}

/* Samples of all batches, and those of one: that of several ranks. */
enum { GLOBAL_BATCH = 4, RANKS_MAX = 2 };

/* How many layers compared their batches with the model. */
static int layers;

/* Whether some samples are good, and all those are pixels of one shape. */
static int has_pixels(void)
{
    int good = 0;
    for (int i = 0; i < model[0].n; i++) {
        if (!model[0].at[i].bad && model[0].at[i].bytes != READER_CASE_PIXELS)
            return 0;
        good += !model[0].at[i].bad;
    }
    return good > 0;
}

/* Whether a layer takes its samples: pixels of one shape, and enough of them
   that each rank has a good one. */
static int is_for_layers(leat_reader *reader)
{
    const leat_field_spec *spec;
    int n;
    return leat_reader_fields(reader, &spec, &n) == LEAT_OK &&
           strcmp(spec[0].name, "data") == 0 && spec[0].dtype == LEAT_UINT8 &&
           !spec[0].is_batch && spec[0].ndim > 0 &&
           (spec[0].shape[0] == READER_CASE_PIXELS || spec[0].shape[0] < 0) &&
           model[0].n >= 2 * GLOBAL_BATCH && has_pixels();
}

/* Where sample `p` of the endless sequence is; whether the model has it. */
static int find(int64_t p, leat_position *at)
{
    int64_t epoch = 0;
    while (epoch < EPOCHS && model[epoch].n < SAMPLES_MAX &&
           p >= model[epoch].n)
        p -= model[epoch++].n;
    *at = (leat_position){epoch, p};
    return epoch < EPOCHS && p < model[epoch].n;
}

typedef struct rank_layer {
    leat_data_layer *layer;
    leat_blob *top;
    int rank, world_size;
} rank_layer;

static rank_layer open_layer(int rank, int world_size, int threads)
{
    rank_layer one = {.rank = rank, .world_size = world_size};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.global_batch_size = GLOBAL_BATCH;
    options.rank = rank;
    options.world_size = world_size;
    options.random_seed = 5;
    options.workers = threads;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.max_errors = -1;
    int status = leat_data_layer_create(&one.layer, pipeline, &options);
    if (!status)
        status = leat_blob_create(&one.top, NULL);
    if (!status)
        status = leat_data_layer_setup(one.layer, &one.top, 1);
    REQUIRE(!status, "%s: rank %d of %d: %s", chain, rank, world_size,
            leat_last_error());
    return one;
}

static void close_layer(rank_layer *one)
{
    leat_data_layer_destroy(one->layer);
    leat_blob_destroy(one->top);
}

/* Whether the model has all samples of the global batch `step`. */
static int has_step(int64_t step)
{
    leat_position at;
    return find((step + 1) * GLOBAL_BATCH - 1, &at);
}

static void compare_forward(rank_layer *one, int64_t step, const char *way)
{
    int status = leat_data_layer_forward(one->layer, &one->top, 1, LEAT_HOST);
    REQUIRE(!status, "%s: %s: batch %d of rank %d of %d: %s", chain, way,
            (int)step, one->rank, one->world_size, leat_last_error());
    const leat_batch *batch = leat_data_layer_batch(one->layer);
    const float *pixels = leat_blob_cpu_data(one->top);
    ck_assert_int_eq(batch->n, GLOBAL_BATCH / one->world_size);
    for (int64_t i = 0; i < batch->n; i++) {
        leat_position at;
        const leat_provenance *from = &batch->from[i];
        int64_t p = step * GLOBAL_BATCH + i * one->world_size + one->rank;
        REQUIRE(find(p, &at), "%s: no sample %d", chain, (int)p);
        const seen *expected = &model[at.epoch].at[at.index];
        REQUIRE(
            from->record == expected->record && from->epoch == at.epoch &&
                from->position == at.index &&
                pixels[i * READER_CASE_PIXELS] ==
                    (float)(expected->bad ? 0 : expected->pixel),
            "%s: %s: batch %d of rank %d of %d has record %d (epoch %d, %d), "
            "expected %d (epoch %d, %d)",
            chain, way, (int)step, one->rank, one->world_size,
            (int)from->record, (int)from->epoch, (int)from->position,
            (int)expected->record, (int)at.epoch, (int)at.index);
    }
}

/* From the token of a batch on, on another number of ranks. */
static void compare_resumed(leat_token *token, int64_t step, int world_size)
{
    for (int rank = 0; rank < world_size; rank++) {
        rank_layer one = open_layer(rank, world_size, 1);
        int status = leat_data_layer_restore(one.layer, token);
        REQUIRE(!status, "%s: restore at %d: %s", chain, (int)step,
                leat_last_error());
        for (int64_t k = step; k < step + 2 && has_step(k); k++)
            compare_forward(&one, k, "resumed");
        close_layer(&one);
    }
}

static void check_layer(int world_size, int is_resumed)
{
    for (int rank = 0; rank < world_size; rank++) {
        leat_token token;
        leat_token_init(&token);
        rank_layer one = open_layer(rank, world_size, 2);
        for (int64_t step = 0; has_step(step); step++) {
            compare_forward(&one, step, "layer");
            token.size = 0;
            if (!is_resumed || rank > 0 || step != 2)
                continue;
            int status = leat_data_layer_save(one.layer, &token);
            REQUIRE(!status, "%s: save: %s", chain, leat_last_error());
            compare_resumed(&token, step + 1, 3 - world_size);
        }
        close_layer(&one);
        leat_token_finish(&token);
    }
    layers++;
}

static void check_chain(const reader_case *base, const char *inner,
                        const char *outer)
{
    int count;
    /* An input without samples cannot be begun again. */
    if (strcmp(inner, "take:0") == 0 && outer && strstr(outer, "on_end=repeat"))
        return;
    snprintf(chain, sizeof(chain), "%s | %s | %s", base->name, inner,
             outer ? outer : "");
    pipeline = decorator_chain_make(inner, base->make(RECORDS, &count));
    if (pipeline && outer)
        pipeline = decorator_chain_make(outer, pipeline);
    if (!pipeline)
        return; /* one that needs other fields */
    leat_reader *reader;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = 5;
    if (!leat_pipeline_open_with(pipeline, &options, &reader)) {
        for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
            if (epoch > 0)
                go_to(reader, epoch, 0);
            see_epoch(reader, epoch);
        }
        check_batches(reader);
        check_random_access(reader);
        check_seek(reader);
        check_skip(reader);
        check_marks(reader);
        int is_fit = is_for_layers(reader);
        check_cancel(reader);
        leat_reader_close(reader);
        if (is_fit)
            check_layer(2, base->has_identity);
        if (is_fit && !outer)
            check_layer(1, base->has_identity);
        if (!outer)
            check_faults();
    } else
        REQUIRE(outer || base->has_mark || !base->is_random_access, "%s: %s",
                chain, leat_last_error());
    leat_pipeline_unref(pipeline);
}

static void begin(void)
{
    reader_cases_begin();
    for (int i = 0; i < AT_ONCE; i++) {
        leat_sample_init(&buffers[i]);
        out[i] = &buffers[i];
    }
}

static void end(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(&buffers[i]);
    reader_cases_end();
}

START_TEST(every_way_to_read_a_decorator_gives_the_same)
{
    begin();
    for (int i = 0; i < CASES; i++)
        check_chain(base_case(bases[_i]), decorator_cases[i], NULL);
    ck_assert_int_gt(layers, 0);
    end();
}
END_TEST

START_TEST(every_way_to_read_a_pair_of_decorators_gives_the_same)
{
    const char *inner = decorator_cases[_i / BASES];
    begin();
    for (int i = (_i + _i / BASES) % STRIDE; i < CASES; i += STRIDE)
        check_chain(base_case(bases[_i % BASES]), inner, decorator_cases[i]);
    end();
}
END_TEST

/* Those that leave some samples, however many of them follow each other. */
static const char *const long_lasting[] = {
    "repeat:2 | take:20",
    "select:data,label",
    "shuffle:6",
    "batch:3 | unbatch",
    "repeat:2 | skip:1",
    "cast:label=int64,label=int32",
    "cache",
};

START_TEST(a_chain_may_be_64_readers_long)
{
    enum { KINDS = sizeof(long_lasting) / sizeof(long_lasting[0]) };
    begin();
    const reader_case *base = base_case(bases[_i % BASES]);
    int count;
    unsigned dice = 77 + (unsigned)_i;
    pipeline = base->make(RECORDS, &count);
    snprintf(chain, sizeof(chain), "%s, 64 readers, %d", base->name, _i);
    while (pipeline->depth < 62) {
        dice = dice * 1103515245 + 12345;
        pipeline =
            decorator_chain_make(long_lasting[(dice >> 16) % KINDS], pipeline);
        ck_assert_ptr_nonnull(pipeline);
    }
    leat_reader *reader = open_reader();
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        go_to(reader, epoch, 0);
        see_epoch(reader, epoch);
    }
    ck_assert_int_gt(model[0].n, 0);
    check_batches(reader);
    check_seek(reader);
    check_skip(reader);
    check_marks(reader);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decorators");
    TCase *tcase = tcase_create("chains");
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, every_way_to_read_a_decorator_gives_the_same, 0,
                        BASES);
    tcase_add_loop_test(tcase,
                        every_way_to_read_a_pair_of_decorators_gives_the_same,
                        0, BASES * CASES);
    tcase_add_loop_test(tcase, a_chain_may_be_64_readers_long, 0, 4 * BASES);
    return suite_run(suite);
}
