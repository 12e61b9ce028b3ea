/* cache in memory: what is read how often, budgets, and bad records. */
#include "base/memory.h"
#include "support/empty_reader.h"
#include "support/index_decorators.h"
#include "support/process_memory.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 10, MANY = 200, THREADS = 4 };

static leat_sample sample;
static char logged[4096];

static void note_line(void *user, leat_log_level level, const char *line)
{
    (void)level;
    (void)user;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
}

static void begin(void)
{
    leat_sample_init(&sample);
    logged[0] = 0;
    leat_log_set(note_line, NULL, LEAT_LOG_WARNING);
}

static void end(void)
{
    leat_sample_finish(&sample);
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
}

static leat_pipeline *cached(leat_pipeline *upstream, int64_t bytes)
{
    leat_pipeline *pipeline;
    leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
    options.bytes = bytes;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

static leat_reader *open_and_unref(leat_pipeline *pipeline)
{
    leat_reader *reader;
    ck_assert_msg(leat_pipeline_open(pipeline, &reader) == LEAT_OK, "%s",
                  leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static leat_reader *open_source(scripted_source *source, int64_t bytes)
{
    return open_and_unref(cached(scripted_source_pipeline(source), bytes));
}

static int label(void)
{
    int32_t value;
    memcpy(&value, sample.field[sample.nfields - 1].data, sizeof(value));
    return value;
}

static int seek(leat_reader *reader, int64_t epoch, int64_t index)
{
    return leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
}

static void expect_epoch(leat_reader *reader, int64_t epoch, int count, int bad)
{
    if (epoch > 0)
        ck_assert_msg(seek(reader, epoch, 0) == LEAT_OK, "%s",
                      leat_last_error());
    for (int i = 0; i < count; i++) {
        int status = leat_reader_next(reader, &sample);
        if (i == bad) {
            ck_assert_int_eq(status, LEAT_EDATA);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "is bad"));
            ck_assert_int_eq(sample.from.record, i);
            continue;
        }
        ck_assert_msg(status == LEAT_OK, "%d: %s", i, leat_last_error());
        ck_assert_int_eq(label(), i);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

START_TEST(every_epoch_after_the_first_comes_from_memory)
{
    for (int single_pass = 0; single_pass < 2; single_pass++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        source.single_pass = single_pass;
        source.bad = 4;
        leat_reader *reader = open_source(&source, 0);
        for (int epoch = 0; epoch < 4; epoch++)
            expect_epoch(reader, epoch, COUNT, 4);
        ck_assert_int_eq(source.given, COUNT - 1);
        ck_assert_int_eq(seek(reader, 0, 7), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(label(), 7);
        ck_assert_int_eq(seek(reader, 0, COUNT + 1), LEAT_EINVAL);
        leat_reader_close(reader);
    }
    ck_assert_str_eq(logged, "");
}
END_TEST

/* As a resume goes there, and one of several ranks: by seek and skip. */
START_TEST(what_is_passed_by_of_a_single_pass_is_kept)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    int64_t skipped;
    source.single_pass = 1;
    source.bad = 2;
    leat_reader *reader = open_source(&source, 0);
    ck_assert_int_eq(seek(reader, 3, 4), LEAT_EUNSUPPORTED);
    ck_assert_int_eq(seek(reader, 3, 0), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 4, &skipped), LEAT_OK);
    ck_assert_int_eq(skipped, 4);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(label(), 4);
    ck_assert_int_eq(leat_reader_skip(reader, COUNT, &skipped), LEAT_END);
    ck_assert_int_eq(skipped, COUNT - 5);
    for (int epoch = 4; epoch < 6; epoch++)
        expect_epoch(reader, epoch, COUNT, 2);
    ck_assert_int_eq(source.given, COUNT - 1);
    leat_reader_close(reader);
}
END_TEST

static void check_batches(leat_data_layer *layer, int first, int rank,
                          int ranks)
{
    for (int i = first; i < first + 20; i++) {
        ck_assert_msg(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST) ==
                          LEAT_OK,
                      "%d: %s", i, leat_last_error());
        const leat_provenance *from = leat_data_layer_batch(layer)->from;
        ck_assert_int_eq(from->record, (i * ranks + rank) % COUNT);
    }
}

START_TEST(a_layer_over_a_single_pass_resumes_in_a_later_epoch)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_token token;
    source.single_pass = 1;
    options.batch_size = 1;
    options.world_size = 3;
    leat_pipeline *pipeline = cached(scripted_source_pipeline(&source), 0);
    leat_token_init(&token);
    for (int rank = 0; rank < 3; rank++)
        for (int life = 0; life < 2; life++) {
            leat_data_layer *layer;
            options.rank = rank;
            ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                             LEAT_OK);
            ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
            if (life)
                ck_assert_int_eq(leat_data_layer_restore(layer, &token),
                                 LEAT_OK);
            check_batches(layer, 20 * life, rank, 3);
            ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
            leat_data_layer_destroy(layer);
        }
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(an_empty_epoch_stays_empty)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.count = 0;
    leat_reader *reader = open_source(&source, 0);
    for (int epoch = 0; epoch < 3; epoch++)
        expect_epoch(reader, epoch, 0, -1);
    leat_reader_close(reader);
}
END_TEST

/* tf.data: cache().take(5).repeat(2). */
START_TEST(a_part_is_read_once)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_pipeline *pipeline;
    leat_pipeline *upstream = cached(scripted_source_pipeline(&source), 0);
    ck_assert_int_eq(leat_pipeline_take(&pipeline, upstream, 5), LEAT_OK);
    leat_pipeline_unref(upstream);
    leat_reader *reader = open_and_unref(pipeline);
    for (int epoch = 0; epoch < 2; epoch++)
        expect_epoch(reader, epoch, 5, -1);
    ck_assert_int_eq(source.given, 5);
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_does_not_fit_is_read_again)
{
    for (int64_t bytes = 64; bytes < 6000; bytes += 64) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        logged[0] = 0;
        leat_reader *reader = open_source(&source, bytes);
        expect_epoch(reader, 0, COUNT, -1);
        ck_assert_int_le(reader->ops->memory(reader), bytes);
        for (int epoch = 1; epoch < 3; epoch++)
            expect_epoch(reader, epoch, COUNT, -1);
        if (reader->ops->memory(reader) == 0)
            ck_assert_ptr_nonnull(strstr(logged, "too few for one sample"));
        else if (logged[0])
            ck_assert_ptr_nonnull(strstr(logged, "samples are kept"));
        else
            ck_assert_int_eq(source.given, COUNT);
        /* It is said once. */
        ck_assert(!logged[0] || strchr(logged, '\n')[1] == 0);
        leat_reader_close(reader);
    }
    ck_assert_str_eq(logged, "");
}
END_TEST

/* Whatever was read before and after it. */
START_TEST(a_refused_seek_moves_nothing)
{
    for (int64_t bytes = 64; bytes < 1500; bytes += 64)
        for (int n = 0; n < COUNT; n++) {
            scripted_source source = SCRIPTED_SOURCE_INIT;
            source.count = 3 * COUNT;
            leat_reader *reader = open_source(&source, bytes);
            for (int i = 0; i < COUNT; i++)
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_int_eq(seek(reader, 0, 2 * COUNT), LEAT_EUNSUPPORTED);
            for (int i = 0; i < n; i++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert_int_eq(label(), COUNT + i);
            }
            expect_epoch(reader, 1, 3 * COUNT, -1);
            leat_reader_close(reader);
        }
}
END_TEST

/* COUNT labels, in another order each time that it begins. */
typedef struct turning_reader {
    leat_reader reader;
    int begun, next;
} turning_reader;

static turning_reader turning;

static int turning_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec label = {.name = "label", .dtype = LEAT_INT32};
    (void)reader;
    *out = &label;
    *n = 1;
    return LEAT_OK;
}

static int turning_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    static int32_t labels[COUNT];
    turning_reader *self = (turning_reader *)reader;
    (void)n;
    if (self->next == COUNT)
        return LEAT_END;
    int i = (self->next++ + 3 * self->begun) % COUNT;
    labels[i] = i;
    *got = 1;
    return leat_sample_set(out[0], 0, LEAT_INT32, 0, NULL, &labels[i]);
}

static int turning_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    turning_reader *self = (turning_reader *)reader;
    (void)mark;
    if (at.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "turning: has no order");
    self->begun++;
    self->next = 0;
    return LEAT_OK;
}

static int turning_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return leat_error(LEAT_ESTATE, "turning: has no order");
}

static void turning_close(leat_reader *reader)
{
    (void)reader;
}

static int turning_can_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static const leat_reader_ops turning_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "turning",
    .fields = turning_fields,
    .next = turning_next,
    .seek = turning_seek,
    .cancel = empty_reader_cancel,
    .close = turning_close,
    .can_seek = turning_can_seek,
    .save = turning_save,
    .restore = turning_save,
};

static int turning_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    turning = (turning_reader){.reader.ops = &turning_ops};
    *out = &turning.reader;
    return LEAT_OK;
}

static leat_reader *open_turning(int64_t bytes)
{
    static const leat_reader_type type = {.size = sizeof(leat_reader_type),
                                          .name = "turning",
                                          .open = turning_open};
    leat_pipeline *pipeline;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    return open_and_unref(cached(pipeline, bytes));
}

/* Each label once, whatever the order. */
static void expect_all(leat_reader *reader)
{
    int seen[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(seen[label()]++, 0);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

/* The first epoch is left after `first` samples; COUNT: it is read whole. */
START_TEST(an_order_that_does_not_come_again_is_kept_whole_or_not)
{
    int first = _i;
    int whole = 0;
    for (int64_t bytes = 64; bytes < 6000; bytes += 64) {
        logged[0] = 0;
        leat_reader *reader = open_turning(bytes);
        for (int i = 0; i < first; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        for (int epoch = 1; epoch < 4; epoch++) {
            ck_assert_int_eq(seek(reader, epoch, 0), LEAT_OK);
            expect_all(reader);
        }
        ck_assert_int_le(reader->ops->memory(reader), bytes);
        whole += turning.begun <= 1 && !logged[0];
        if (logged[0])
            ck_assert(strstr(logged, "nothing is kept"));
        if (first == COUNT && logged[0])
            ck_assert_int_eq(reader->ops->memory(reader), 0);
        leat_reader_close(reader);
    }
    ck_assert_int_gt(whole, 0);
}
END_TEST

START_TEST(a_broken_storage_is_met_again_where_nothing_is_kept)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.broken = 6;
    leat_reader *reader = open_source(&source, 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        ck_assert_int_eq(seek(reader, epoch, 0), LEAT_OK);
        for (int i = 0; i < 6; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    }
    source.broken = -1;
    expect_epoch(reader, 2, COUNT, -1);
    leat_reader_close(reader);
}
END_TEST

/* Counts the reads of random access below the cache. */
typedef struct counter {
    leat_reader reader;
    leat_reader *upstream;
} counter;

static atomic_int reads;

static int counter_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    return leat_reader_fields(((counter *)reader)->upstream, out, n);
}

static int counter_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    return leat_reader_pull(((counter *)reader)->upstream, out, n, got);
}

static int counter_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    return leat_reader_seek(((counter *)reader)->upstream, at, mark);
}

static void counter_cancel(leat_reader *reader)
{
    leat_reader_cancel(((counter *)reader)->upstream);
}

static void counter_close(leat_reader *reader)
{
    leat_reader_close(((counter *)reader)->upstream);
}

static int64_t endless;

static int counter_count(leat_reader *reader, int64_t *out)
{
    if (!endless)
        return leat_reader_count(((counter *)reader)->upstream, out);
    *out = LEAT_ENDLESS;
    return LEAT_OK;
}

static int counter_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    int status =
        leat_reader_pull_at(((counter *)reader)->upstream, at, out, n, got);
    atomic_fetch_add(&reads, *got);
    return status;
}

static const leat_reader_ops counter_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "counter",
    .fields = counter_fields,
    .next = counter_next,
    .seek = counter_seek,
    .cancel = counter_cancel,
    .close = counter_close,
    .count = counter_count,
    .read_at = counter_read_at,
};

static counter the_counter = {.reader = {.ops = &counter_ops}};

static int counter_open(const leat_open *open, leat_reader **out)
{
    the_counter.upstream = open->upstream[0];
    atomic_store(&reads, 0);
    *out = &the_counter.reader;
    return LEAT_OK;
}

static const leat_reader_type counter_type = {.size = sizeof(leat_reader_type),
                                              .name = "counter",
                                              .min_upstream = 1,
                                              .max_upstream = 1,
                                              .open = counter_open};

static leat_pipeline *over(const leat_reader_type *type,
                           leat_pipeline *upstream)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, type, NULL, NULL, NULL, &upstream, 1),
        LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

static leat_pipeline *memory_pipeline(void)
{
    static float data[MANY];
    static int32_t labels[MANY];
    for (int i = 0; i < MANY; i++)
        labels[i] = i;
    const leat_memory_field fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .data = data},
        {.name = "label", .dtype = LEAT_INT32, .data = labels},
    };
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, MANY), LEAT_OK);
    return pipeline;
}

static leat_pipeline *counted(void)
{
    return over(&counter_type, memory_pipeline());
}

static void *read_all(void *reader)
{
    leat_sample own[7];
    leat_sample *out[7];
    leat_position at[7];
    for (int i = 0; i < 7; i++)
        leat_sample_init(out[i] = &own[i]);
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < MANY; i++) {
            int got;
            for (int k = 0; k < 7; k++)
                at[k] = (leat_position){round, (i * 31 + k) % MANY};
            int status = leat_reader_read_at(reader, at, out, 7, &got);
            for (int k = 0; k < got; k++) {
                int32_t value;
                memcpy(&value, out[k]->field[1].data, sizeof(value));
                if (status || value != at[k].index || !out[k]->stable)
                    return reader;
            }
        }
    for (int i = 0; i < 7; i++)
        leat_sample_finish(out[i]);
    return NULL;
}

START_TEST(threads_fill_it_over_random_access)
{
    pthread_t thread[THREADS];
    leat_reader *reader = open_and_unref(cached(counted(), 0));
    ck_assert(leat_reader_is_random_access(reader));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, reader), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    int before = atomic_load(&reads);
    int64_t held = reader->ops->memory(reader);
    ck_assert_int_ge(before, MANY);
    expect_epoch(reader, 3, MANY, -1);
    ck_assert_int_eq(atomic_load(&reads), before);
    ck_assert_int_eq(reader->ops->memory(reader), held);
    ck_assert_int_gt(held, MANY * 8);
    leat_reader_close(reader);
}
END_TEST

START_TEST(samples_are_views_until_close)
{
    leat_reader *reader = open_and_unref(cached(memory_pipeline(), 0));
    for (int epoch = 0; epoch < 2; epoch++)
        expect_epoch(reader, epoch, MANY, -1);
    ck_assert_int_eq(seek(reader, 0, 5), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    const void *data = sample.field[0].data;
    ck_assert_int_eq(sample.stable, 1);
    ck_assert_uint_eq(sample.taken, 0);
    int64_t allocations = leat__alloc_count();
    expect_epoch(reader, 2, MANY, -1);
    ck_assert_int_eq(seek(reader, 3, 5), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_ptr_eq(sample.field[0].data, data);
    ck_assert_int_eq(leat__alloc_count(), allocations);
    leat_reader_close(reader);
}
END_TEST

/* Whatever was kept, every epoch is the first. */
START_TEST(an_order_of_epochs_is_that_of_the_first)
{
    const int64_t budgets[] = {0, 1, 9000};
    for (int i = 0; i < 3; i++) {
        leat_pipeline *turned =
            over(index_decorators_turn(), memory_pipeline());
        leat_reader *reader = open_and_unref(cached(turned, budgets[i]));
        for (int epoch = 2; epoch >= 0; epoch--) {
            ck_assert_int_eq(seek(reader, epoch, 0), LEAT_OK);
            for (int k = 0; k < MANY; k++) {
                const leat_position at = {0, k};
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert_int_eq(label(), index_decorators_turned(at, MANY, 0));
            }
        }
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(limits_are_checked_at_open)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_reader *reader;
    options.max_memory = 1000;
    leat_pipeline *pipeline = cached(memory_pipeline(), 1001);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1000"));
    leat_pipeline_unref(pipeline);

    options.max_memory = 8000;
    pipeline = cached(memory_pipeline(), 0);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    expect_epoch(reader, 0, MANY, -1);
    ck_assert_int_le(reader->ops->memory(reader), 2000);
    ck_assert_int_gt(reader->ops->memory(reader), 1000);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);

    endless = 1;
    pipeline = cached(counted(), 0);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "before repeat"));
    leat_pipeline_unref(pipeline);
    endless = 0;
}
END_TEST

/* By index and as a stream. */
START_TEST(samples_of_a_few_bytes_keep_to_the_budget)
{
    const int64_t budget = (int64_t)16 << 20;
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.count = 200000;
    leat_pipeline *pipeline =
        _i == 0 ? NULL : scripted_source_pipeline(&source);
    if (!pipeline)
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, "range:200000"),
                         LEAT_OK);
    int64_t before = process_memory_heap();
    leat_reader *reader = open_and_unref(cached(pipeline, budget));
    int status = LEAT_OK;
    while (!status)
        status = leat_reader_next(reader, &sample);
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_ptr_nonnull(strstr(logged, "samples are kept"));
    ck_assert_int_gt(reader->ops->memory(reader), budget - 1000);
    ck_assert_int_le(process_memory_heap() - before, budget + budget / 20);
    leat_reader_close(reader);
}
END_TEST

/* Three lines of that letter, under an old time if they are the first. */
static void write_lines(const char *path, char letter, bool is_first)
{
    const struct timespec times[] = {{1000000000, 0}, {1000000000, 0}};
    FILE *file = fopen(path, is_first ? "w" : "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fprintf(file, "%c1\n%c2\n%c3\n", letter, letter, letter),
                     9);
    ck_assert_int_eq(fclose(file), 0);
    if (is_first)
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Reads an epoch of six lines, in whose midst `path` is written, if not NULL.
 * What it ends with. */
static int read_lines(leat_reader *reader, int64_t epoch, const char *path)
{
    const leat_position first = {epoch, 0};
    int status = epoch ? leat_reader_seek(reader, first, NULL) : LEAT_OK;
    for (int i = 0; !status; i++) {
        if (i == 2 && path)
            write_lines(path, 'b', false);
        status = leat_reader_next(reader, &sample);
        ck_assert(status || i < 6);
    }
    return status;
}

/* At random and in order. */
START_TEST(data_that_are_written_while_all_are_kept_are_an_error_afterwards)
{
    static const char *const forms[] = {
        "text:%1$s/x,%1$s/y | cache",
        "files:%1$s/x,%1$s/y | interleave:(text:{}),cycle=1 | cache"};
    char folder[] = "/tmp/leat-cache-XXXXXX", path[2][64], text[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path[0], sizeof(path[0]), "%s/x", folder);
    snprintf(path[1], sizeof(path[1]), "%s/y", folder);
    for (int written = 0; written < 3; written++) {
        leat_pipeline *pipeline;
        for (int i = 0; i < 2; i++)
            write_lines(path[i], 'a', true);
        snprintf(text, sizeof(text), forms[_i], folder);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
        leat_reader *reader = open_and_unref(pipeline);
        /* Of its files interleave says so as each ends. */
        ck_assert_int_eq(read_lines(reader, 0, written == 0 ? path[0] : NULL),
                         written == 0 && _i == 1 ? LEAT_EIO : LEAT_END);
        if (written == 1) /* too late to matter */
            write_lines(path[0], 'b', false);
        for (int64_t epoch = 1; epoch < 4; epoch++)
            ck_assert_int_eq(read_lines(reader, epoch, NULL),
                             written == 0 ? LEAT_EIO : LEAT_END);
        leat_reader_close(reader);
    }
    ck_assert(!unlink(path[0]) && !unlink(path[1]) && !rmdir(folder));
}
END_TEST

START_TEST(options_and_text_are_checked_and_equal)
{
    leat_cache_options options = {.size = sizeof(options), .bytes = 9};
    leat_pipeline *upstream = memory_pipeline(), *pipeline;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, NULL), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline), "memory | cache");
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                     LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline), "memory | cache:9");
    leat_pipeline_unref(pipeline);
    options.bytes = -1;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                     LEAT_EINVAL);
    options.size = 0;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                     LEAT_EINVAL);
    leat_pipeline_unref(upstream);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "lmdb:x | cache:1G"),
                     LEAT_OK);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *tcase = tcase_create("cache");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_epoch_after_the_first_comes_from_memory);
    tcase_add_test(tcase, what_is_passed_by_of_a_single_pass_is_kept);
    tcase_add_test(tcase, a_layer_over_a_single_pass_resumes_in_a_later_epoch);
    tcase_add_test(tcase, an_empty_epoch_stays_empty);
    tcase_add_test(tcase, a_part_is_read_once);
    tcase_add_test(tcase, what_does_not_fit_is_read_again);
    tcase_add_test(tcase, a_refused_seek_moves_nothing);
    tcase_add_loop_test(tcase,
                        an_order_that_does_not_come_again_is_kept_whole_or_not,
                        0, COUNT + 1);
    tcase_add_test(tcase, a_broken_storage_is_met_again_where_nothing_is_kept);
    tcase_add_test(tcase, threads_fill_it_over_random_access);
    tcase_add_test(tcase, samples_are_views_until_close);
    tcase_add_test(tcase, an_order_of_epochs_is_that_of_the_first);
    tcase_add_test(tcase, limits_are_checked_at_open);
    tcase_add_loop_test(tcase, samples_of_a_few_bytes_keep_to_the_budget, 0, 2);
    tcase_add_loop_test(
        tcase, data_that_are_written_while_all_are_kept_are_an_error_afterwards,
        0, 2);
    tcase_add_test(tcase, options_and_text_are_checked_and_equal);
    return suite_run(suite);
}
