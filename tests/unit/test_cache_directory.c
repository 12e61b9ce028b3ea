/* cache:dir=PATH once it is there: read instead of its upstream, or refused. */
#include "base/memory.h"
#include "support/cache_fixture.h"
#include "support/order_check.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(the_second_reader_reads_nothing_upstream)
{
    const int counts[] = {0, 1, 3, CACHE_SAMPLES};
    for (int i = 0; i < 8; i++) {
        int count = counts[i / 2];
        cache_source.is_stream = i % 2;
        cache_source.bad = count == CACHE_SAMPLES ? 7 : -1;
        cache_remove_all(cache_path);
        leat_reader *reader = cache_open_source(count);
        ck_assert_int_eq(leat_reader_is_random_access(reader),
                         !cache_source.is_stream);
        for (int epoch = 0; epoch < 3; epoch++)
            cache_expect_epoch(reader, epoch, count);
        ck_assert_int_eq(cache_source.reads, count);
        leat_reader_close(reader);
        reader = cache_open_source(count);
        ck_assert(leat_reader_is_random_access(reader));
        int64_t found;
        ck_assert_int_eq(leat_reader_count(reader, &found), LEAT_OK);
        ck_assert_int_eq(found, count);
        for (int epoch = 0; epoch < 2; epoch++)
            cache_expect_epoch(reader, epoch, count);
        ck_assert_int_eq(cache_source.reads, 0);
        ck_assert_int_eq(cache_sample.stable, 1);
        leat_reader_close(reader);
        ck_assert_str_eq(cache_log, "");
    }
}
END_TEST

START_TEST(another_data_set_or_pipeline_is_refused)
{
    leat_reader *reader = NULL;
    cache_make(CACHE_SAMPLES);
    cache_source.identity = 2;
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another data set"));
    cache_source.identity = 1;
    leat_pipeline *taken, *upstream = cache_pipeline(CACHE_SAMPLES);
    ck_assert_int_eq(leat_pipeline_take(&taken, upstream, 5), LEAT_OK);
    leat_pipeline_unref(upstream);
    ck_assert_int_eq(cache_open_cached(taken, &reader), LEAT_EINVAL);
    cache_make(CACHE_SAMPLES);
}
END_TEST

/* The line says so, as neither data nor seed are to blame. */
START_TEST(another_phase_is_refused_by_name)
{
    leat_open_options open = LEAT_OPEN_OPTIONS_INIT;
    leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
    leat_pipeline *pipeline, *upstream = cache_pipeline(CACHE_SAMPLES);
    leat_reader *reader = NULL;
    cache_make(CACHE_SAMPLES);
    open.phase = LEAT_TEST;
    options.dir = cache_path;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &open, &reader),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), ", phase or"));
    leat_pipeline_unref(pipeline);
}
END_TEST

static void set_time(const char *name, int64_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "w");
    ck_assert(file && fwrite(bytes, 1, size, file) == size);
    ck_assert_int_eq(fclose(file), 0);
    set_time(name, 1000000000);
}

/* A chain's samples are kept, unless its data are others than those kept. */
static void keep_or_refuse(const char *text, bool is_other)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(status == (is_other ? LEAT_EINVAL : LEAT_OK), "%s: %s", text,
                  leat_last_error());
    if (status) {
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "before the data were written last"));
        return;
    }
    while (!status)
        status = leat_reader_next(reader, &cache_sample);
    ck_assert_int_eq(status, LEAT_END);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index"));
}

/* In the middle of the file, where no token looks. */
START_TEST(data_that_were_written_since_are_refused)
{
    char lines[CACHE_SAMPLES + 1], name[80], text[200];
    memset(lines, '\n', CACHE_SAMPLES);
    lines[CACHE_SAMPLES] = 0;
    snprintf(name, sizeof(name), "%s/lines", cache_root);
    snprintf(text, sizeof(text), "text:%s | cache:dir=%s", name, cache_path);
    for (int i = 0; i < 3; i++) {
        lines[CACHE_SAMPLES / 2] = i == 1 ? 'x' : '\n';
        write_bytes(name, lines, CACHE_SAMPLES);
        set_time(name, 1000000000 + i % 2);
        keep_or_refuse(text, i == 1);
    }
}
END_TEST

/* Two images of one pixel. */
static void write_images(char name[80])
{
    static const unsigned char images[] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0,
                                           1, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    snprintf(name, 80, "%s/images", cache_root);
    write_bytes(name, images, sizeof(images));
}

START_TEST(other_labels_of_the_same_time_are_refused)
{
    unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 4};
    char images[80], name[80], text[300];
    write_images(images);
    snprintf(name, sizeof(name), "%s/labels", cache_root);
    snprintf(text, sizeof(text), "idx:%s,%s | cache:dir=%s", images, name,
             cache_path);
    for (int i = 0; i < 3; i++) {
        labels[9] = i == 1 ? 7 : 4;
        write_bytes(name, labels, sizeof(labels));
        keep_or_refuse(text, i == 1);
    }
}
END_TEST

START_TEST(another_mean_of_the_same_time_is_refused)
{
    static const char *const types[] = {"FLOAT32", "FLOAT64"};
    char images[80], name[80], text[300];
    write_images(images);
    snprintf(name, sizeof(name), "%s/mean", cache_root);
    for (int i = 0; i < 6; i++) {
        const float mean = i % 3 == 1 ? 2 : 1;
        ck_assert_int_eq(leat_mean_save(name, 1, 1, 1, &mean), LEAT_OK);
        set_time(name, 1000000000);
        snprintf(text, sizeof(text),
                 "idx:%s | transform:mean_file=%s,type=%s | cache:dir=%s",
                 images, name, types[i / 3], cache_path);
        if (i == 3)
            cache_remove_all(cache_path);
        keep_or_refuse(text, i % 3 == 1);
    }
}
END_TEST

static int first_label(void *pass, leat_sample *out)
{
    return leat_sample_set(out, 0, LEAT_INT32, 0, NULL, pass);
}

START_TEST(a_reader_without_identity_is_refused)
{
    int32_t label = 0;
    const leat_field_spec field = {.name = "x", .dtype = LEAT_INT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = first_label};
    leat_pipeline *upstream;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, &label),
                     LEAT_OK);
    ck_assert_int_eq(cache_open_cached(upstream, &reader), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "callback"));
    ck_assert(!cache_is_there(".partial"));
}
END_TEST

static char *read_file(const char *name, size_t *size)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", cache_path, name);
    FILE *in = fopen(file, "rb");
    ck_assert_ptr_nonnull(in);
    char *bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, in);
    fclose(in);
    return bytes;
}

static void write_file(const char *name, const char *bytes, size_t size)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", cache_path, name);
    FILE *out = fopen(file, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

/* Every bit of the index, and every length of it. */
START_TEST(a_damaged_index_is_refused)
{
    size_t size;
    leat_reader *reader = NULL;
    cache_make(3);
    char *bytes = read_file("/index", &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        write_file("/index", bytes, size);
        ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                         LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), cache_path));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        write_file("/index", bytes, cut);
        ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                         LEAT_EFORMAT);
    }
    write_file("/index", bytes, size);
    free(bytes);
    cache_make(3);
}
END_TEST

/* The user's: the advice must not be to remove it. */
START_TEST(an_index_of_another_kind_is_no_damaged_cache)
{
    static const char *const texts[] = {
        "", "mine", "longer than the header of a cache's index, which is 40"};
    leat_reader *reader = NULL;
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    for (int i = 0; i < 3; i++) {
        write_file("/index", texts[i], strlen(texts[i]));
        ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                         LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), cache_path));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "not that of a cache"));
        ck_assert_ptr_null(strstr(leat_last_error(), "remove"));
    }
    ck_assert(cache_is_there("/index") && !cache_is_there(".partial"));
}
END_TEST

/* It is not read: the data's size bounds it. */
START_TEST(an_index_longer_than_the_data_can_have_is_refused)
{
    size_t size;
    leat_reader *reader = NULL;
    cache_make(3);
    char *bytes = read_file("/index", &size);
    size_t longer = (size_t)8 << 20;
    char *padded = calloc(longer, 1);
    ck_assert_ptr_nonnull(padded);
    memcpy(padded, bytes, size);
    write_file("/index", padded, longer);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                     LEAT_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "/index: expected at most"));
    write_file("/index", bytes, size);
    free(padded);
    free(bytes);
    cache_make(3);
}
END_TEST

static void stretch(const char *name, off_t size)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", cache_path, name);
    ck_assert_int_eq(truncate(file, size), 0);
}

/* Holes that no memory has room for: the header alone is looked at. */
START_TEST(a_large_index_is_refused_by_its_header)
{
    static const char *const lines[] = {"has another length than it says",
                                        "the checksum of its index's header",
                                        "not that of a cache"};
    size_t size;
    leat_reader *reader = NULL;
    cache_make(3);
    char *bytes = read_file("/index", &size);
    stretch("/data", (off_t)1 << 43);
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            bytes[i == 1 ? 8 : 0] ^= 1;
        write_file("/index", bytes, size);
        stretch("/index", (off_t)1 << 41);
        ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                         LEAT_EFORMAT);
        ck_assert_msg(strstr(leat_last_error(), lines[i]), "%s",
                      leat_last_error());
    }
    free(bytes);
}
END_TEST

/* A copy elsewhere, to which a link leads, and a pipe. */
START_TEST(a_link_or_a_pipe_in_it_is_refused)
{
    static const char *const names[] = {"/index", "/data"};
    leat_reader *reader = NULL;
    char name[128], target[128];
    cache_make(3);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s%s", cache_path, names[i / 2]);
        snprintf(target, sizeof(target), "%s/elsewhere", cache_root);
        ck_assert_int_eq(rename(name, target), 0);
        ck_assert_int_eq(i % 2 ? mkfifo(name, 0600) : symlink(target, name), 0);
        ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                         LEAT_EIO);
        ck_assert_msg(strstr(leat_last_error(), name) &&
                          strstr(leat_last_error(), "that leat made"),
                      "%s", leat_last_error());
        ck_assert_int_eq(unlink(name), 0);
        ck_assert_int_eq(rename(target, name), 0);
    }
    leat_reader_close(cache_open_source(3));
}
END_TEST

START_TEST(a_cache_without_its_data_is_damaged)
{
    leat_reader *reader = NULL;
    char name[128];
    cache_make(3);
    snprintf(name, sizeof(name), "%s/data", cache_path);
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                     LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "remove the directory"));
    cache_remove_all(cache_path);
}
END_TEST

START_TEST(a_file_in_its_place_is_refused_and_stays)
{
    leat_reader *reader = NULL;
    FILE *file = fopen(cache_path, "w");
    ck_assert(file && fputs("mine", file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "neither a cache nor an empty"),
                  "%s", leat_last_error());
    ck_assert_int_eq(unlink(cache_path), 0);
}
END_TEST

START_TEST(a_damaged_sample_is_a_bad_record)
{
    size_t size;
    cache_make(3);
    char *bytes = read_file("/data", &size);
    for (size_t at = 0; at < size; at += 7) {
        bytes[at] ^= 16;
        write_file("/data", bytes, size);
        leat_reader *reader = cache_open_source(3);
        int failed = 0;
        for (int i = 0; i < 3; i++) {
            int status = leat_reader_next(reader, &cache_sample);
            failed += status == LEAT_EDATA;
            ck_assert(!status || status == LEAT_EDATA);
            if (status)
                ck_assert_ptr_nonnull(strstr(leat_last_error(), "at byte"));
        }
        ck_assert_int_eq(failed, 1);
        leat_reader_close(reader);
        bytes[at] ^= 16;
    }
    write_file("/data", bytes, size - 1);
    leat_reader *reader = NULL;
    ck_assert_int_eq(cache_open_cached(cache_pipeline(3), &reader),
                     LEAT_EFORMAT);
    free(bytes);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (int64_t n = 0; n < 60; n++) {
        leat_reader *reader = NULL;
        cache_source.is_stream = n % 2;
        cache_remove_all(cache_path);
        leat_pipeline *upstream = cache_pipeline(20);
        leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
        leat_pipeline *pipeline = NULL;
        options.dir = cache_path;
        leat__alloc_fail_at(n / 2);
        int status = leat_pipeline_cache(&pipeline, upstream, &options);
        if (!status)
            status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 21 && !status; i++)
            status = leat_reader_next(reader, &cache_sample);
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_END || status == LEAT_ENOMEM, "%d: %s",
                      status, leat_last_error());
        if (reader)
            cache_expect_epoch(reader, 1, 20);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream);
        ck_assert(!cache_is_there(".partial"));
    }
}
END_TEST

enum { BATCH = 7, STEPS = 60 };

/* A layer over a stream with marks, and what is kept of it. */
static leat_data_layer *open_layer(void)
{
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_cache_options cache = LEAT_CACHE_OPTIONS_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    cache_source.is_stream = 1;
    leat_pipeline *marked =
        stream_decorators_take(STREAM_FILTER, cache_pipeline(CACHE_SAMPLES));
    cache.dir = cache_path;
    options.batch_size = BATCH;
    options.random_seed = 1;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, marked, &cache), LEAT_OK);
    leat_pipeline_unref(marked);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
    return layer;
}

static void forward(leat_data_layer *layer, int64_t record[BATCH])
{
    leat_blob *top[] = {leat_data_layer_top(layer, 0),
                        leat_data_layer_top(layer, 1)};
    ck_assert_msg(!leat_data_layer_forward(layer, top, 2, LEAT_HOST), "%s",
                  leat_last_error());
    const leat_batch *batch = leat_data_layer_batch(layer);
    for (int i = 0; i < BATCH; i++)
        record[i] = batch->from[i].record;
}

/* Its tokens have marks while it is made, and it has none once it is there. */
START_TEST(a_layer_resumes_over_the_whole_directory)
{
    int64_t expected[STEPS][BATCH], record[BATCH];
    leat_token token[STEPS];
    leat_data_layer *layer = open_layer();
    for (int i = 0; i < STEPS; i++) {
        leat_token_init(&token[i]);
        ck_assert_int_eq(leat_data_layer_save(layer, &token[i]), LEAT_OK);
        forward(layer, expected[i]);
    }
    leat_data_layer_destroy(layer);
    ck_assert(cache_is_there("/index"));
    layer = open_layer();
    for (int i = 0; i < STEPS; i++) {
        ck_assert_msg(!leat_data_layer_restore(layer, &token[i]), "%s",
                      leat_last_error());
        forward(layer, record);
        ck_assert_mem_eq(record, expected[i], sizeof(record));
        leat_token_finish(&token[i]);
    }
    leat_data_layer_destroy(layer);
}
END_TEST

/* The mark of sample 6 of a chain. */
static void mark_it(const char *text, leat_token *mark)
{
    int64_t skipped;
    leat_reader *reader = order_open(text);
    leat_token_init(mark);
    ck_assert_int_eq(leat_reader_skip(reader, 6, &skipped), LEAT_OK);
    ck_assert_int_eq(leat_reader_mark(reader, mark), LEAT_OK);
    leat_reader_close(reader);
}

static void expect_mark(const char *text, leat_token *mark, int expected)
{
    leat_reader *reader = order_open(text);
    mark->cursor = 0;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 6}, mark),
                     expected);
    leat_reader_close(reader);
}

/*
 * What the readers after a cache mark is of a stream until the directory is
 * there, and of random access then. A mark of the other form would lead to
 * other samples, if it led to any.
 */
START_TEST(a_mark_of_before_the_directory_is_refused_and_of_after)
{
    static const char *const after[] = {"where:value=0..", "take:90",
                                        "shuffle:5 | take:90",
                                        "batch:3 | unbatch"};
    char cached[256], text[512];
    leat_token of_stream, of_cache;
    snprintf(cached, sizeof(cached),
             "range:100 | where:value=0.. | cache:dir=%s", cache_path);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "%s | %s", cached, after[i]);
        mark_it(text, &of_stream);
        leat_reader *reader = order_open(cached);
        while (leat_reader_next(reader, &cache_sample) == LEAT_OK)
            continue;
        leat_reader_close(reader);
        ck_assert(cache_is_there(""));
        mark_it(text, &of_cache);
        expect_mark(text, &of_cache, LEAT_OK);
        expect_mark(text, &of_stream, LEAT_EINVAL);
        cache_remove_all(cache_path);
        expect_mark(text, &of_cache, LEAT_EINVAL);
        expect_mark(text, &of_stream, LEAT_OK);
        leat_token_finish(&of_stream);
        leat_token_finish(&of_cache);
    }
}
END_TEST

START_TEST(paths_are_written_as_text)
{
    leat_cache_options options = {
        .size = sizeof(options), .bytes = 5, .dir = "/a b|c,(d)\\"};
    leat_pipeline *upstream = cache_pipeline(1), *pipeline, *again;
    ck_assert_msg(!leat_pipeline_cache(&pipeline, upstream, &options), "%s",
                  leat_last_error());
    const char *text = strstr(leat_pipeline_text(pipeline), "| cache:");
    char whole[128];
    snprintf(whole, sizeof(whole), "lmdb:x %s", text);
    ck_assert_int_eq(leat_pipeline_parse(&again, whole), LEAT_OK);
    ck_assert_ptr_nonnull(strstr(leat_pipeline_text(again), text));
    leat_pipeline_unref(again);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_directory");
    TCase *tcase = tcase_create("cache_directory");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_second_reader_reads_nothing_upstream);
    tcase_add_test(tcase, another_data_set_or_pipeline_is_refused);
    tcase_add_test(tcase, another_phase_is_refused_by_name);
    tcase_add_test(tcase, data_that_were_written_since_are_refused);
    tcase_add_test(tcase, other_labels_of_the_same_time_are_refused);
    tcase_add_test(tcase, another_mean_of_the_same_time_is_refused);
    tcase_add_test(tcase, a_reader_without_identity_is_refused);
    tcase_add_test(tcase, a_damaged_index_is_refused);
    tcase_add_test(tcase, an_index_of_another_kind_is_no_damaged_cache);
    tcase_add_test(tcase, an_index_longer_than_the_data_can_have_is_refused);
    tcase_add_test(tcase, a_large_index_is_refused_by_its_header);
    tcase_add_test(tcase, a_link_or_a_pipe_in_it_is_refused);
    tcase_add_test(tcase, a_cache_without_its_data_is_damaged);
    tcase_add_test(tcase, a_file_in_its_place_is_refused_and_stays);
    tcase_add_test(tcase, a_damaged_sample_is_a_bad_record);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, a_layer_resumes_over_the_whole_directory);
    tcase_add_test(tcase,
                   a_mark_of_before_the_directory_is_refused_and_of_after);
    tcase_add_test(tcase, paths_are_written_as_text);
    return suite_run(suite);
}
