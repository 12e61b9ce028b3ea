/* max_memory holds for batches that grow after setup, too, and for readers
   before they take what they are asked to take. */
#include "support/empty_reader.h"
#include "support/late_device.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4, SIDE = 64 };

/* Samples of 3 x 1 x 1, and from one of them on of 3 x SIDE x SIDE. */
static struct {
    int larger;
    atomic_int next; /* of several threads, over merge */
} script;

static leat_pipeline *pipeline;
static leat_data_layer *layer;
static leat_data_layer_options options;

static int script_next(void *pass, leat_sample *sample)
{
    static const unsigned char pixels[3 * SIDE * SIDE];
    int64_t side = script.next++ >= script.larger ? SIDE : 1;
    const int64_t shape[] = {3, side, side};
    (void)pass;
    sample->stable = 1;
    return leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, pixels);
}

static int script_open(void *user, void **pass)
{
    (void)user;
    *pass = NULL;
    script.next = 0;
    return LEAT_OK;
}

static int script_reset(void *pass)
{
    (void)pass;
    script.next = 0;
    return LEAT_OK;
}

static const size_t large = sizeof(float) * BATCH * 3 * SIDE * SIDE;

static void set_up(void)
{
    static const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = -1};
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = &field,
                                             .nfields = 1,
                                             .open = script_open,
                                             .next = script_next,
                                             .reset = script_reset};
    script.larger = 2 * BATCH;
    options = (leat_data_layer_options){.size = sizeof(options),
                                        .name = "train",
                                        .batch_size = BATCH,
                                        .prefetch = 2,
                                        .caller_helps = LEAT_CALLER_HELPS_OFF,
                                        .workers = 1};
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL),
                     LEAT_OK);
}

static void tear_down(void)
{
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}

static void open_layer(void)
{
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
}

/* Forwards until one fails, at most `n`; what batches took in all at a time. */
static int64_t run(int n, int *status, int *done)
{
    leat_stats stats = {.size = sizeof(stats)};
    int64_t most = 0;
    *status = LEAT_OK;
    for (*done = 0; *done < n && !*status; *done += !*status) {
        *status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
        ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
        int64_t bytes = stats.memory.host;
        most = bytes > most ? bytes : most;
    }
    return most;
}

START_TEST(a_batch_that_does_not_fit_is_an_error)
{
    int status, done;
    options.max_memory = large / 2;
    options.on_error = _i ? LEAT_ON_ERROR_ZERO : LEAT_ON_ERROR_FAIL;
    open_layer();
    int64_t most = run(10, &status, &done);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_int_eq(done, 2);
    ck_assert_int_le(most, (int64_t)options.max_memory);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "train: max_memory leaves "));
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_ELIMIT);
}
END_TEST

/* One of the three has room, or two. */
START_TEST(all_batches_count)
{
    int status, done;
    options.max_memory = large / 2 + large * (size_t)_i;
    open_layer();
    /* The worker, who is slower, takes the third soon. */
    int64_t most = run(10000, &status, &done);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_int_ge(done, 2 + _i);
    ck_assert_int_le(most, (int64_t)options.max_memory);
    ck_assert_int_ge(most, (int64_t)large * _i);
}
END_TEST

START_TEST(what_fits_goes_on_for_ever)
{
    int status, done;
    options.max_memory = large / 2 + large * 3;
    open_layer();
    int64_t most = run(100, &status, &done);
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_le(most, (int64_t)options.max_memory);
    ck_assert_int_ge(most, (int64_t)large);
}
END_TEST

START_TEST(without_a_limit_there_is_none)
{
    int status, done;
    open_layer();
    run(20, &status, &done);
    ck_assert_int_eq(status, LEAT_OK);
}
END_TEST

/* A restore begins with memory of the first sample's size. */
START_TEST(a_restore_begins_again)
{
    int status, done;
    leat_token token;
    leat_token_init(&token);
    options.max_memory = large / 2;
    open_layer();
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    run(10, &status, &done);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    run(10, &status, &done);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_int_eq(done, 2);
    leat_token_finish(&token);
}
END_TEST

enum { PERIOD = 51, GIANT = 1 << 20 };

/* The last of each PERIOD records is GIANT, the others are `usual`. */
static int64_t usual;

static int giant_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    int64_t size = number % PERIOD < PERIOD - 1 ? usual : GIANT;
    unsigned char *bytes = leat_sample_take(sample, (size_t)size);
    if (!bytes)
        return LEAT_ENOMEM;
    memset(bytes, number % 251, (size_t)size);
    return leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
}

/* From the second one on records are large. */
static int settled_next(void *pass, leat_sample *sample)
{
    static const unsigned char bytes[GIANT];
    (void)pass;
    int64_t size = script.next++ == 0 ? usual : GIANT;
    sample->stable = 1;
    return leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
}

static bool fails(int number)
{
    return (uint32_t)number * 2654435761u >> 16 & 1;
}

/* Every seventh is GIANT, and half of them are bad. */
static int failing_next(void *pass, leat_sample *sample)
{
    static const unsigned char bytes[GIANT];
    (void)pass;
    int number = script.next++;
    int64_t size = number % 7 < 6 ? usual : GIANT;
    sample->stable = 1;
    int status = leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
    return status || !fails(number) ? status : LEAT_EDATA;
}

enum { ROWS = 50 };

/* Those of each fifth batch of ROWS are long. */
static int long_batch_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int64_t size = script.next++ / ROWS % 5 < 4 ? usual : GIANT / ROWS;
    unsigned char *bytes = leat_sample_take(sample, (size_t)size);
    if (!bytes)
        return LEAT_ENOMEM;
    memset(bytes, 7, (size_t)size);
    return leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
}

/* From half of a GIANT to all of it, after the first one. */
static int varied_next(void *pass, leat_sample *sample)
{
    static const unsigned char bytes[GIANT];
    (void)pass;
    uint32_t number = (uint32_t)script.next++;
    int64_t size =
        number == 0 ? usual : GIANT - number * 2654435761u % (GIANT / 2);
    sample->stable = 1;
    return leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
}

static int rows_of_batch = 1;

static const leat_field_spec row = {
    .name = "row", .dtype = LEAT_UINT8, .ndim = 1, .shape = {-1}};

static void open_layer_over(leat_pipeline *rows, leat_top_form form)
{
    static leat_top top;
    top = (leat_top){.size = sizeof(top), .name = "row", .form = form};
    options.top = &top;
    options.ntop = 1;
    options.batch_size = rows_of_batch;
    ck_assert_msg(!leat_data_layer_create(&layer, rows, &options), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
}

/* A layer of batches of so many records, each as long as that. */
static leat_pipeline *open_rows(int (*next)(void *, leat_sample *),
                                leat_top_form form)
{
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &row,
                                      .nfields = 1,
                                      .open = script_open,
                                      .next = next,
                                      .reset = script_reset};
    leat_pipeline *rows;
    ck_assert_int_eq(leat_pipeline_callback(&rows, &callbacks, NULL), LEAT_OK);
    open_layer_over(rows, form);
    return rows;
}

static int64_t growths(void)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.batches_in_use, options.prefetch + 1);
    return stats.grown_batches;
}

static void expect_giants(int number)
{
    const leat_blob *blob = leat_data_layer_top(layer, 0);
    int64_t size = number % PERIOD < PERIOD - 1 ? usual : GIANT;
    const unsigned char *bytes = leat_blob_cpu_data((leat_blob *)blob);
    ck_assert_int_eq((int64_t)leat_blob_bytes(blob), size);
    ck_assert_int_eq(bytes[0], number % 251);
    ck_assert_int_eq(bytes[size - 1], number % 251);
}

/* Two large ones have room, and there are five batches. */
START_TEST(rare_large_batches_go_on_for_ever)
{
    enum { N = 20 * PERIOD };
    static const leat_top_form form[] = {LEAT_TOP_RAGGED, LEAT_TOP_PAD,
                                         LEAT_TOP_DENSE};
    static const int64_t small[] = {100, GIANT / 5};
    bool is_device = _i >= 6;
    late_device_register();
    usual = small[_i / 3 % 2];
    options.prefetch = 4;
    options.workers = 2;
    options.device = is_device ? "late:0" : NULL;
    size_t batches = 5 * (size_t)usual + GIANT * 26 / 10;
    options.max_memory = batches * (is_device ? 2 : 1) + (1 << 18);
    leat_pipeline *rows = open_rows(giant_next, form[_i % 3]);
    for (int i = 0; i < N; i++) {
        int status, done;
        int64_t most = run(1, &status, &done);
        ck_assert_msg(!status, "batch %d: %s", i, leat_last_error());
        ck_assert_int_le(most, (int64_t)options.max_memory);
        expect_giants(i);
    }
    /* What one gives back is the next one's, in most cases. */
    ck_assert_int_ge(growths(), 1);
    ck_assert_int_le(growths(), N / PERIOD / 2);
    leat_pipeline_unref(rows);
}
END_TEST

/* Though no other would have room for a quarter more. */
START_TEST(batches_that_are_alike_grow_once)
{
    int status, done;
    usual = 100;
    options.max_memory = (GIANT * 7 / 2) + (1 << 18);
    leat_pipeline *rows =
        open_rows(settled_next, _i ? LEAT_TOP_RAGGED : LEAT_TOP_DENSE);
    run(300, &status, &done);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_le(growths(), options.prefetch + 1);
    leat_pipeline_unref(rows);
}
END_TEST

/* All batches at their largest have room, and one more of the first one's size,
 * but not for a quarter more of each. */
START_TEST(batches_that_fit_go_on_for_ever)
{
    static const leat_top_form form[] = {LEAT_TOP_DENSE, LEAT_TOP_PAD,
                                         LEAT_TOP_RAGGED};
    const int prefetch[] = {2, 5, LEAT_PREFETCH_AUTO};
    int status, done;
    options.prefetch = prefetch[_i / 3 % 3];
    usual = options.prefetch > 0 ? 16 : GIANT / 2;
    int64_t room =
        options.prefetch > 0 ? (options.prefetch + 1) * GIANT : 30 * GIANT;
    options.max_memory = (size_t)room + (1 << 16);
    leat_pipeline *rows =
        open_rows(_i < 9 ? varied_next : settled_next, form[_i % 3]);
    int64_t most = run(500, &status, &done);
    ck_assert_msg(!status, "batch %d: %s", done, leat_last_error());
    ck_assert_int_le(most, (int64_t)options.max_memory);
    leat_pipeline_unref(rows);
}
END_TEST

START_TEST(failed_batches_keep_nothing_from_others)
{
    static const leat_top_form form[] = {LEAT_TOP_DENSE, LEAT_TOP_PAD,
                                         LEAT_TOP_RAGGED};
    late_device_register();
    usual = 100;
    options.prefetch = 4;
    options.device = _i < 3 ? NULL : "late:0";
    options.max_memory = (GIANT * 3 / 2 + (1 << 16)) * (_i < 3 ? 1 : 2);
    leat_pipeline *rows = open_rows(failing_next, form[_i % 3]);
    for (int i = 0; i < 1000; i++) {
        int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
        ck_assert_msg(status == (fails(i) ? LEAT_EDATA : LEAT_OK),
                      "batch %d: %s", i, leat_last_error());
    }
    leat_pipeline_unref(rows);
}
END_TEST

/* Other threads prepare the batches before and after a large one. */
START_TEST(a_large_batch_waits_for_what_others_give_back)
{
    int status, done;
    usual = 40;
    options.prefetch = 2;
    options.workers = 4;
    rows_of_batch = ROWS;
    options.max_memory = GIANT * 7 / 5 + (1 << 16);
    leat_pipeline *rows =
        open_rows(long_batch_next, _i % 2 ? LEAT_TOP_RAGGED : LEAT_TOP_PAD);
    run(3000, &status, &done);
    ck_assert_msg(!status, "batch %d: %s", done, leat_last_error());
    leat_pipeline_unref(rows);
}
END_TEST

/* Of six records one is GIANT and read last, and the next one is bad. */
static int map_late_giant(void *user, leat_sample *sample)
{
    static const unsigned char bytes[GIANT];
    (void)user;
    int64_t number = sample->from.record % 6;
    int64_t size = number == 3 ? GIANT : usual;
    if (number == 3)
        usleep(20000);
    sample->stable = 1;
    int status = leat_sample_set(sample, 0, LEAT_UINT8, 1, &size, bytes);
    return status || number != 4 ? status : LEAT_EDATA;
}

/* A worker that prepares the bad one's batch needs the record before. */
START_TEST(a_large_batch_waits_for_none_that_waits_for_it)
{
    static const leat_map_options map = {
        .size = sizeof(map), .fields = &row, .nfields = 1};
    int status, done;
    leat_pipeline *numbers, *rows;
    usual = 40;
    ck_assert_int_eq(leat_pipeline_parse(&numbers, "range:600"), LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_map(&rows, numbers, map_late_giant, NULL, 1, &map),
        LEAT_OK);
    leat_pipeline_unref(numbers);
    options.prefetch = 4;
    options.workers = 3;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.max_memory = GIANT * 7 / 5 + (1 << 16);
    open_layer_over(rows, _i ? LEAT_TOP_RAGGED : LEAT_TOP_PAD);
    run(120, &status, &done);
    ck_assert_msg(!status, "batch %d: %s", done, leat_last_error());
    leat_pipeline_unref(rows);
}
END_TEST

/* The status of the first sample, by a reader that may take 1 MiB. */
static int read_one(const char *text)
{
    leat_open_options limit = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *chain;
    leat_reader *reader = NULL;
    leat_sample sample;
    limit.max_memory = 1 << 20;
    leat_sample_init(&sample);
    ck_assert_msg(!leat_pipeline_parse(&chain, text), "%s", leat_last_error());
    int status = leat_pipeline_open_with(chain, &limit, &reader);
    int64_t count;
    if (!status)
        status = leat_reader_count(reader, &count);
    if (status == LEAT_OK || status == LEAT_EUNSUPPORTED)
        status = leat_reader_next(reader, &sample);
    leat_reader_close(reader);
    leat_pipeline_unref(chain);
    leat_sample_finish(&sample);
    return status;
}

START_TEST(a_reader_refuses_a_size_that_is_too_large_for_it)
{
    static const char *const texts[] = {
        "range:9999 | prefetch:%d",
        "(range:9999) (range:9999) | merge:buffer=%d",
        "range:9999 | batch:%d",
        "(range:9999) (range:9999) | merge | batch:%d",
        "range:9999 | window:%d,1",
        "(range:9999) (range:9999) | merge | window:%d,1",
        "random:9999,shape=2,dtype=uint8,seed=1 | bucket:data,(9),batch=%d",
    };
    char text[128];
    snprintf(text, sizeof(text), texts[_i], 8);
    int status = read_one(text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    snprintf(text, sizeof(text), texts[_i], 4000);
    status = read_one(text);
    ck_assert_msg(status == LEAT_ELIMIT, "%s: %d", text, status);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1048576"));
}
END_TEST

/* The status after at most `n` samples. */
static int read_some(const char *text, int n)
{
    leat_open_options few = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *chain = NULL;
    leat_reader *reader = NULL;
    leat_sample sample;
    few.max_memory = 1 << 20;
    leat_sample_init(&sample);
    int status = leat_pipeline_parse(&chain, text);
    if (!status)
        status = leat_pipeline_open_with(chain, &few, &reader);
    for (int i = 0; i < n && !status; i++)
        status = leat_reader_next(reader, &sample);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(chain);
    return status;
}

/* What samples take is known once they are complete, what a group takes once
   its shape is, and groups that wait in a buffer take their samples' memory. */
START_TEST(groups_count_with_all_that_they_hold)
{
    static const char *const texts[] = {
        "random:200,shape=1024,seed=1 | batch:%d",
        "random:999,shape=1024,seed=1 | window:%d,1",
        "random:999,shape=4,seed=1 | batch:4,pad=0,pad_to=(data=%d000)",
        "random:9999,shape=512,seed=1 | batch:10 | shuffle:%d",
        "random:9999,shape=512,seed=1 | batch:10 | select:data | shuffle:%d",
        "random:190,shape=1024,seed=1 | batch:10 | shuffle:%d",
    };
    static const int most[] = {200, 200, 99, 20, 20, 20};
    char text[128];
    snprintf(text, sizeof(text), texts[_i], 4);
    int status = read_some(text, 18);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    snprintf(text, sizeof(text), texts[_i], most[_i]);
    status = read_some(text, 100);
    ck_assert_msg(status == LEAT_ELIMIT, "%s: %d", text, status);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1048576"));
}
END_TEST

START_TEST(buckets_count_together)
{
    enum { LENGTHS = 50, LINES = 1000 };
    char name[] = "/tmp/leat-lines-XXXXXX", text[512], bounds[256] = "1";
    int fd = mkstemp(name);
    FILE *file = fdopen(fd, "w");
    for (int i = 0; i < LINES; i++)
        fprintf(file, "%*s\n", i % LENGTHS, "");
    fclose(file);
    for (int i = 2; i < LENGTHS; i++)
        sprintf(bounds + strlen(bounds), ",%d", i);
    for (int size = 4; size <= 12; size += 8) {
        snprintf(text, sizeof(text), "text:%s | bucket:line,(%s),batch=%d",
                 name, bounds, size);
        int status = read_some(text, 100);
        ck_assert_int_eq(status, size == 4 ? LEAT_OK : LEAT_ELIMIT);
    }
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "its 50 buckets take"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1048576"));
    remove(name);
}
END_TEST

START_TEST(so_it_does_an_index)
{
    static char lines[300000];
    char name[] = "/tmp/leat-lines-XXXXXX", text[64];
    int fd = mkstemp(name);
    memset(lines, '\n', sizeof(lines));
    for (size_t size = 1000; size <= sizeof(lines); size += 299000) {
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(pwrite(fd, lines, size, 0), (ssize_t)size);
        snprintf(text, sizeof(text), "text:%s", name);
        int status = read_one(text);
        ck_assert_int_eq(status, size == 1000 ? LEAT_OK : LEAT_ELIMIT);
    }
    ck_assert_ptr_nonnull(strstr(leat_last_error(), name));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1048576"));
    close(fd);
    remove(name);
}
END_TEST

/* An allocator that counts what it has given, and the most at a time. */
static atomic_long given, most_given;

static void *count_alloc(void *user, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    (void)user;
    if (posix_memalign(&memory, alignment, bytes))
        return NULL;
    long now = atomic_fetch_add(&given, (long)bytes) + (long)bytes;
    long most = atomic_load(&most_given);
    while (now > most && !atomic_compare_exchange_weak(&most_given, &most, now))
        continue;
    return memory;
}

static void count_free(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user, (void)alignment;
    atomic_fetch_sub(&given, (long)bytes);
    free(memory);
}

static const leat_allocator counting = {sizeof(counting), count_alloc,
                                        count_free, NULL};

/* An allocator's memory is taken when it is asked for. */
START_TEST(an_automatic_prefetch_of_an_allocators_memory_counts)
{
    int status, done;
    usual = 120000;
    options.prefetch = LEAT_PREFETCH_AUTO;
    options.host_allocator = &counting;
    options.max_memory = 8 * GIANT;
    leat_pipeline *rows = open_rows(giant_next, LEAT_TOP_RAGGED);
    run(200, &status, &done);
    ck_assert_msg(!status, "batch %d: %s", done, leat_last_error());
    ck_assert_int_le(atomic_load(&most_given), 12 * GIANT);
    leat_pipeline_unref(rows);
}
END_TEST

/* A group is refused before its samples take many times the limit. */
START_TEST(groups_that_do_not_fit_are_not_read_first)
{
    static const char *const texts[] = {
        "random:200,shape=65536,seed=1 | batch:200",
        "random:200,shape=65536,seed=1 | window:200,1",
        "(random:99,shape=65536) (random:99,shape=65536) | chain | batch:190",
        "random:200,shape=65536,seed=1 | shuffle:1 | window:190,1",
        "random:200,shape=65536,seed=1 | bucket:data,(9),batch=190",
    };
    leat_open_options limit = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *chain;
    leat_reader *reader;
    leat_sample sample;
    limit.max_memory = 1 << 20;
    limit.allocator = &counting;
    leat_sample_init(&sample);
    ck_assert_msg(!leat_pipeline_parse(&chain, texts[_i]), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_pipeline_open_with(chain, &limit, &reader), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ELIMIT);
    ck_assert_int_le(atomic_load(&most_given), 2 << 20);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(chain);
    ck_assert_int_eq(atomic_load(&given), 0);
}
END_TEST

enum { RECORD = 1 << 19 };

/* No image, though one was promised. */
static int shapeless_next(void *pass, leat_sample *sample)
{
    static const int64_t shape[] = {RECORD};
    (void)pass;
    unsigned char *bytes = leat_sample_take(sample, RECORD);
    if (!bytes)
        return LEAT_ENOMEM;
    memset(bytes, 0, RECORD);
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, shape, bytes);
}

/* Records without a shape, of which setup looks at 256. */
START_TEST(records_that_setup_passes_over_count)
{
    static const leat_field_spec field = {.name = "data",
                                          .dtype = LEAT_BYTES,
                                          .ndim = 1,
                                          .shape = {RECORD},
                                          .content = LEAT_CONTENT_IMAGE};
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = &field,
                                             .nfields = 1,
                                             .open = script_open,
                                             .next = shapeless_next,
                                             .reset = script_reset};
    leat_pipeline *records;
    ck_assert_int_eq(leat_pipeline_callback(&records, &callbacks, NULL),
                     LEAT_OK);
    options.max_memory = (4 << 20) * (size_t)_i;
    options.host_allocator = &counting;
    ck_assert_int_eq(leat_data_layer_create(&layer, records, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "no record near it"));
    long most = atomic_load(&most_given);
    if (_i)
        ck_assert_int_le(most, (long)options.max_memory + (2 << 20));
    else
        ck_assert_int_ge(most, 256L * RECORD);
    leat_pipeline_unref(records);
}
END_TEST

/* Sets a field of three bytes at the beginning of so many. */
static int set_pixels(leat_sample *sample, size_t bytes, int64_t number)
{
    static const int64_t shape[] = {3, 1, 1};
    unsigned char *pixels = leat_sample_take(sample, bytes);
    if (!pixels)
        return LEAT_ENOMEM;
    memset(pixels, (int)(number % 251), 3);
    return leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, pixels);
}

static const leat_field_spec pixels = {
    .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {3, 1, 1}};

enum { SHORT = 3, LONG = 1 << 20 };

/* From number `larger` on samples are long. */
static int long_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    return set_pixels(sample, number < script.larger ? SHORT : LONG, number);
}

static size_t rare_size(int64_t number)
{
    return number % 101 < 100 ? SHORT : LONG;
}

static int rare_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    return set_pixels(sample, rare_size(number), number);
}

static int map_rare(void *user, leat_sample *sample)
{
    (void)user;
    int64_t number = sample->from.record;
    return set_pixels(sample, rare_size(number), number);
}

/* The first record is bad, and has 8 MiB. */
static int long_first_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    if (number > 0)
        return set_pixels(sample, SHORT, number);
    return leat_sample_take(sample, 8 << 20) ? LEAT_EDATA : LEAT_ENOMEM;
}

static leat_pipeline *called_back(int (*next)(void *, leat_sample *))
{
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &pixels,
                                      .nfields = 1,
                                      .open = script_open,
                                      .next = next,
                                      .reset = script_reset};
    leat_pipeline *records;
    ck_assert_int_eq(leat_pipeline_callback(&records, &callbacks, NULL),
                     LEAT_OK);
    return records;
}

/* A layer over these records, or over `records`, with 16 MiB if not less. */
static leat_pipeline *set_up_long(int (*next)(void *, leat_sample *),
                                  leat_pipeline *records)
{
    if (!records)
        records = called_back(next);
    if (!options.max_memory)
        options.max_memory = 16 << 20;
    options.host_allocator = &counting;
    ck_assert_int_eq(leat_data_layer_create(&layer, records, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    return records;
}

/* Takes batches, and compares each sample with its number. */
static void take_batches(int n, bool in_order)
{
    int size = options.batch_size;
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const float *data = leat_blob_cpu_data(leat_data_layer_top(layer, 0));
        const leat_provenance *from = leat_data_layer_batch(layer)->from;
        for (int k = 0; k < size; k++) {
            int64_t number = in_order ? i * size + k : from[k].record;
            ck_assert_float_eq(data[3 * k], (float)(number % 251));
        }
    }
}

START_TEST(long_records_of_small_tops_end_a_chunk)
{
    script.larger = BATCH;
    options.batch_size = 500;
    options.max_memory = 8 << 20;
    options.reader_thread = _i ? LEAT_READER_ON : LEAT_READER_OFF;
    leat_pipeline *records = set_up_long(long_next, NULL);
    take_batches(6, true);
    ck_assert_int_le(atomic_load(&most_given), 256 << 20);
    leat_pipeline_unref(records);
}
END_TEST

/* All are long; or the first ones are not, by which the thread has a chunk for
 * each batch. */
START_TEST(many_batches_ahead_hold_no_more_long_records)
{
    script.larger = _i >= 2 ? BATCH : 0;
    options.batch_size = 16;
    options.prefetch = _i % 2 ? LEAT_PREFETCH_AUTO : 1000;
    options.reader_thread = LEAT_READER_ON;
    leat_pipeline *records = set_up_long(long_next, NULL);
    take_batches(100, true);
    ck_assert_int_le(atomic_load(&most_given), 20 << 20);
    leat_pipeline_unref(records);
}
END_TEST

static int keep_as_it_is(void *user, leat_sample *sample)
{
    (void)user, (void)sample;
    return LEAT_OK;
}

static int zip_numbers(leat_pipeline **out, leat_pipeline *records)
{
    static const leat_zip_options shortest = {.size = sizeof(shortest),
                                              .align = LEAT_ALIGN_SHORTEST};
    leat_pipeline *inputs[] = {records, NULL};
    int status = leat_pipeline_parse(&inputs[1], "range:100000");
    if (!status)
        status = leat_pipeline_zip(out, inputs, 2, &shortest);
    leat_pipeline_unref(inputs[1]);
    return status;
}

/* One call of theirs is several of their inputs', or of what they hold. */
static int decorate(leat_pipeline **out, leat_pipeline *records, int kind)
{
    static const leat_map_options map = {
        .size = sizeof(map), .fields = &pixels, .nfields = 1, .in_order = 1};
    static const leat_prefetch_options ahead = {.size = sizeof(ahead),
                                                .samples = 500};
    leat_pipeline *inputs[] = {records, records};
    switch (kind) {
    case 0:
        return leat_pipeline_shard(out, records, 2, 0, 0);
    case 1:
        return leat_pipeline_mix(out, inputs, 2, NULL);
    case 2:
        return leat_pipeline_interleave(out, inputs, 2, NULL);
    case 3:
        return leat_pipeline_map(out, records, keep_as_it_is, NULL, 1, &map);
    case 4:
        return leat_pipeline_prefetch(out, records, &ahead);
    case 5:
        return leat_pipeline_merge(out, inputs, 2, 4);
    default:
        return zip_numbers(out, records);
    }
}

START_TEST(long_records_of_several_calls_end_a_chunk)
{
    leat_pipeline *records = called_back(long_next), *decorated;
    script.larger = BATCH;
    options.batch_size = 500;
    options.reader_thread = _i % 2 ? LEAT_READER_ON : LEAT_READER_OFF;
    ck_assert_int_eq(decorate(&decorated, records, _i / 2), LEAT_OK);
    leat_pipeline_unref(records);
    set_up_long(NULL, decorated);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
    /* Prefetch and merge hold some themselves, and zip begins with 8 rows. */
    ck_assert_int_le(atomic_load(&most_given), (_i < 8 ? 24 : 40) << 20);
    leat_pipeline_unref(decorated);
}
END_TEST

/* Rows are copied, here of 400 kB. */
START_TEST(a_call_of_long_rows_ends_early)
{
    enum { MANY = 64 };
    static leat_sample sample[MANY];
    leat_sample *out[MANY];
    leat_pipeline *rows;
    leat_reader *reader;
    int got, n = 0;
    ck_assert_int_eq(
        leat_pipeline_parse(
            &rows, "random:200,shape=100000,seed=1 | batch:2 | unbatch"),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(rows, &reader), LEAT_OK);
    for (int i = 0; i < MANY; i++)
        out[i] = &sample[i];
    for (; n < 200; n += got) {
        ck_assert_int_eq(leat_reader_next_batch(reader, out, MANY, &got),
                         LEAT_OK);
        ck_assert_int_le(got, 2);
    }
    for (int i = 0; i < MANY; i++)
        leat_sample_finish(&sample[i]);
    leat_reader_close(reader);
    leat_pipeline_unref(rows);
}
END_TEST

/* A rare record leaves its buffer at another place of a chunk each time. */
START_TEST(rare_long_records_leave_no_buffers)
{
    options.batch_size = 256;
    options.prefetch = 64;
    options.reader_thread = LEAT_READER_ON;
    leat_pipeline *records = set_up_long(rare_next, NULL);
    take_batches(500, true);
    ck_assert_int_le(atomic_load(&most_given), 2 * 64 << 20);
    leat_pipeline_unref(records);
}
END_TEST

/* What workers make, of deferred samples or by index. */
START_TEST(rare_long_samples_of_workers_leave_no_buffers)
{
    static const leat_map_options map = {
        .size = sizeof(map), .fields = &pixels, .nfields = 1};
    leat_pipeline *numbers, *records;
    ck_assert_int_eq(leat_pipeline_parse(&numbers, _i ? "range:100003 | shuffle"
                                                      : "range:100003"),
                     LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_map(&records, numbers, map_rare, NULL, 1, &map), LEAT_OK);
    leat_pipeline_unref(numbers);
    options.batch_size = 256;
    options.prefetch = 64;
    options.workers = 2;
    options.random_seed = 1;
    options.reader_thread = LEAT_READER_ON;
    set_up_long(NULL, records);
    take_batches(800, false);
    ck_assert_int_le(atomic_load(&most_given), 4 * 64 << 20);
    leat_pipeline_unref(records);
}
END_TEST

/* One sample at a time, whose buffer is large at last. What is read ahead has
 * large buffers for a while after large samples only. */
START_TEST(rare_long_samples_read_ahead_leave_no_buffers)
{
    enum { SAMPLES = 60000, HELD = 500 };
    static const leat_prefetch_options fixed = {.size = sizeof(fixed),
                                                .samples = HELD};
    leat_open_options open = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *records = called_back(rare_next), *ahead;
    leat_reader *reader;
    leat_sample sample;
    int status = _i == 0 ? leat_pipeline_prefetch(&ahead, records, &fixed)
                         : leat_pipeline_merge(&ahead, &records, 1, HELD);
    ck_assert_int_eq(status, LEAT_OK);
    leat_pipeline_unref(records);
    open.allocator = &counting;
    ck_assert_int_eq(leat_pipeline_open_with(ahead, &open, &reader), LEAT_OK);
    leat_sample_init(&sample);
    sample.allocator = &counting;
    for (int i = 0; i < SAMPLES; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(*(const unsigned char *)sample.field[0].data, i % 251);
    }
    ck_assert_int_le(atomic_load(&most_given), 150L * LONG);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    leat_pipeline_unref(ahead);
}
END_TEST

/* Only this one is long. */
enum { ALONE = 40 };

static int alone_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    return set_pixels(sample, number == ALONE ? LONG : SHORT, number);
}

/* Spells of short ones and of long ones. */
static int spells_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    return set_pixels(sample, number % 400 < 300 ? SHORT : LONG, number);
}

/* A reader of which one call gives many samples, long ones from `larger` on. */
static int burst_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    (void)reader;
    *out = &pixels;
    *n = 1;
    return LEAT_OK;
}

static int burst_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    int status = LEAT_OK;
    (void)reader;
    for (; *got < n && !status; *got += !status) {
        int number = script.next++;
        status = set_pixels(out[*got], number < script.larger ? SHORT : LONG,
                            number);
    }
    return status;
}

static void burst_close(leat_reader *reader)
{
    (void)reader;
}

static int burst_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "burst",
                                        .fields = burst_fields,
                                        .next = burst_next,
                                        .seek = empty_reader_seek,
                                        .cancel = empty_reader_cancel,
                                        .close = burst_close};
    static leat_reader burst;
    (void)open;
    burst = (leat_reader){.ops = &ops};
    script.next = 0;
    *out = &burst;
    return LEAT_OK;
}

static leat_pipeline *burst(void)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "burst", .open = burst_open};
    leat_pipeline *records;
    ck_assert_int_eq(
        leat_pipeline_create(&records, &type, "", NULL, NULL, NULL, 0),
        LEAT_OK);
    return records;
}

/* A reader that reads ahead of `records`, and takes the given memory. */
static leat_reader *open_ahead(int form, int samples, int64_t memory,
                               leat_pipeline *records)
{
    const leat_prefetch_options values = {.size = sizeof(values),
                                          .samples = form == 1 ? 0 : samples,
                                          .threads = form == 3 ? 2 : 1};
    leat_open_options open = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *ahead;
    leat_reader *reader;
    int status = form == 0 ? leat_pipeline_merge(&ahead, &records, 1, samples)
                           : leat_pipeline_prefetch(&ahead, records, &values);
    ck_assert_int_eq(status, LEAT_OK);
    open.allocator = &counting;
    open.max_memory = memory;
    ck_assert_int_eq(leat_pipeline_open_with(ahead, &open, &reader), LEAT_OK);
    leat_pipeline_unref(records);
    leat_pipeline_unref(ahead);
    return reader;
}

static void expect_number(leat_reader *reader, leat_sample *sample, int number)
{
    ck_assert_int_eq(leat_reader_next(reader, sample), LEAT_OK);
    ck_assert_int_eq(*(const unsigned char *)sample->field[0].data,
                     number % 251);
}

/* All but the first are bad, once they were read. */
static int bad_next(void *pass, leat_sample *sample)
{
    (void)pass;
    int number = script.next++;
    int status = set_pixels(sample, LONG, number);
    return status || number == 0 ? status : LEAT_EDATA;
}

START_TEST(bad_samples_read_ahead_keep_to_the_memory)
{
    enum { HELD = 256, SAMPLES = 400 };
    const int64_t memory = 8 << 20;
    leat_reader *reader = open_ahead(_i, HELD, memory, called_back(bad_next));
    leat_sample sample;
    leat_sample_init(&sample);
    expect_number(reader, &sample, 0);
    for (int i = 1; i < SAMPLES; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
        if (i % 4 == 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    ck_assert_int_le(atomic_load(&most_given), memory + 4L * LONG);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

/* Fewer samples are read ahead for a while only. prefetch holds a quarter of
 * its room for its caller. */
START_TEST(a_long_record_leaves_room_for_many_short_ones)
{
    enum { HELD = 64, AUTO = 16, LATER = 300 };
    static const int least[] = {HELD, AUTO * 3 / 4, HELD * 3 / 4, HELD * 3 / 4};
    leat_reader *reader =
        open_ahead(_i, HELD, 2 << 20, called_back(alone_next));
    leat_sample sample;
    int n = 0, wait = 0;
    leat_sample_init(&sample);
    while (n < LATER)
        expect_number(reader, &sample, n++);
    for (; atomic_load(&script.next) < n + least[_i] && wait < 2000; wait++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    ck_assert_int_ge(atomic_load(&script.next), n + least[_i]);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

/* Also where long ones come again after many short ones. */
START_TEST(long_records_that_come_again_keep_to_the_memory)
{
    enum { HELD = 64, SAMPLES = 4000 };
    const int64_t part = 8 << 20; /* a quarter */
    leat_reader *reader =
        open_ahead(_i, HELD, 4 * part, called_back(spells_next));
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < SAMPLES; i++) {
        expect_number(reader, &sample, i);
        /* In the midst of the long ones it has time to read ahead. */
        for (int wait = 0; i % 400 == 350 && wait < 2000 &&
                           (atomic_load(&script.next) < i + 5 ||
                            atomic_load(&most_given) < 2L * LONG);
             wait++)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    ck_assert_int_le(atomic_load(&most_given), part + 3L * LONG);
    ck_assert_int_ge(atomic_load(&most_given), 2L * LONG);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    ck_assert_int_eq(atomic_load(&given), 0);
}
END_TEST

/* What one call took too much is given back: that of merge is its second. */
START_TEST(buffers_that_nothing_uses_leave_their_room)
{
    enum { HELD = 64, SAMPLES = 600 };
    const int64_t memory = 8 << 20;
    leat_reader *reader = open_ahead(_i, HELD, memory, burst());
    leat_sample sample;
    script.larger = _i == 0 ? 4 : 300;
    leat_sample_init(&sample);
    for (int i = 0; i < SAMPLES; i++) {
        expect_number(reader, &sample, i);
        if (i >= script.larger + 2 * HELD)
            ck_assert_int_le(atomic_load(&given), memory + 3L * LONG);
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

static int map_rare_or_bad(void *user, leat_sample *sample)
{
    int status = map_rare(user, sample);
    return sample->from.record % 37 == 36 ? LEAT_EDATA : status;
}

static int keep_unless_bad(void *user, const leat_sample *sample, int *keep)
{
    (void)user;
    *keep = 1;
    return sample->from.record % 37 == 36 ? LEAT_EDATA : LEAT_OK;
}

/* Of records that a map or a filter refuses. */
static leat_pipeline *refused_records(bool filters)
{
    static const leat_map_options map = {
        .size = sizeof(map), .fields = &pixels, .nfields = 1};
    leat_pipeline *numbers, *records, *kept;
    ck_assert_int_eq(leat_pipeline_parse(&numbers, "range:100003"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_map(&records, numbers,
                                       filters ? map_rare : map_rare_or_bad,
                                       NULL, 1, &map),
                     LEAT_OK);
    leat_pipeline_unref(numbers);
    if (!filters)
        return records;
    ck_assert_int_eq(
        leat_pipeline_filter(&kept, records, keep_unless_bad, NULL, 1, NULL),
        LEAT_OK);
    leat_pipeline_unref(records);
    return kept;
}

/* The caller's samples have large buffers at last, those held for it do not. */
START_TEST(samples_held_after_a_bad_record_leave_no_buffers)
{
    enum { N = 64 };
    leat_open_options open = LEAT_OPEN_OPTIONS_INIT;
    leat_sample buffers[N], *out[N];
    leat_reader *reader;
    leat_pipeline *records = refused_records(_i == 1);
    int got;
    open.allocator = &counting;
    ck_assert_int_eq(leat_pipeline_open_with(records, &open, &reader), LEAT_OK);
    for (int i = 0; i < N; i++) {
        leat_sample_init(out[i] = &buffers[i]);
        out[i]->allocator = &counting;
    }
    for (int64_t number = 0; number < 50000;) {
        int status = leat_reader_next_batch(reader, out, N, &got);
        for (int i = 0; i < got; i++, number++)
            ck_assert_int_eq(*(const unsigned char *)out[i]->field[0].data,
                             number % 251);
        if (!status)
            continue;
        ck_assert_int_eq(status, LEAT_EDATA);
        ck_assert_int_eq(number++ % 37, 36);
    }
    ck_assert_int_ge(atomic_load(&given), 16 << 20);
    for (int i = 0; i < N; i++)
        leat_sample_finish(out[i]);
    ck_assert_int_le(atomic_load(&given), 4 << 20);
    leat_reader_close(reader);
    ck_assert_int_eq(atomic_load(&given), 0);
    leat_pipeline_unref(records);
}
END_TEST

START_TEST(a_bad_first_record_is_no_measure_of_buffers)
{
    options.prefetch = 64;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.reader_thread = LEAT_READER_ON;
    leat_pipeline *records = set_up_long(long_first_next, NULL);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    ck_assert_int_le(atomic_load(&most_given), 16 << 20);
    leat_pipeline_unref(records);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("max_memory");
    TCase *tcase = tcase_create("max_memory");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_batch_that_does_not_fit_is_an_error, 0, 2);
    tcase_add_loop_test(tcase, all_batches_count, 1, 3);
    tcase_add_test(tcase, what_fits_goes_on_for_ever);
    tcase_add_test(tcase, without_a_limit_there_is_none);
    tcase_add_test(tcase, a_restore_begins_again);
    tcase_add_loop_test(tcase, rare_large_batches_go_on_for_ever, 0, 12);
    tcase_add_loop_test(tcase, batches_that_are_alike_grow_once, 0, 2);
    tcase_add_loop_test(tcase, batches_that_fit_go_on_for_ever, 0, 18);
    tcase_add_loop_test(tcase, failed_batches_keep_nothing_from_others, 0, 6);
    tcase_add_loop_test(tcase, a_large_batch_waits_for_what_others_give_back, 0,
                        8);
    tcase_add_loop_test(tcase, a_large_batch_waits_for_none_that_waits_for_it,
                        0, 2);
    tcase_add_test(tcase, an_automatic_prefetch_of_an_allocators_memory_counts);
    tcase_add_loop_test(tcase, a_reader_refuses_a_size_that_is_too_large_for_it,
                        0, 7);
    tcase_add_loop_test(tcase, groups_count_with_all_that_they_hold, 0, 6);
    tcase_add_test(tcase, buckets_count_together);
    tcase_add_test(tcase, so_it_does_an_index);
    tcase_add_loop_test(tcase, groups_that_do_not_fit_are_not_read_first, 0, 5);
    tcase_add_loop_test(tcase, records_that_setup_passes_over_count, 0, 2);
    tcase_add_loop_test(tcase, long_records_of_small_tops_end_a_chunk, 0, 2);
    tcase_add_loop_test(tcase, long_records_of_several_calls_end_a_chunk, 0,
                        14);
    tcase_add_test(tcase, a_call_of_long_rows_ends_early);
    tcase_add_loop_test(tcase, many_batches_ahead_hold_no_more_long_records, 0,
                        4);
    tcase_add_test(tcase, rare_long_records_leave_no_buffers);
    tcase_add_loop_test(tcase, rare_long_samples_of_workers_leave_no_buffers, 0,
                        2);
    tcase_add_loop_test(tcase, rare_long_samples_read_ahead_leave_no_buffers, 0,
                        2);
    tcase_add_loop_test(tcase, bad_samples_read_ahead_keep_to_the_memory, 0, 4);
    tcase_add_loop_test(tcase, a_long_record_leaves_room_for_many_short_ones, 0,
                        4);
    tcase_add_loop_test(tcase, buffers_that_nothing_uses_leave_their_room, 0,
                        4);
    tcase_add_loop_test(tcase, long_records_that_come_again_keep_to_the_memory,
                        0, 4);
    tcase_add_loop_test(tcase, samples_held_after_a_bad_record_leave_no_buffers,
                        0, 2);
    tcase_add_test(tcase, a_bad_first_record_is_no_measure_of_buffers);
    return suite_run(suite);
}
