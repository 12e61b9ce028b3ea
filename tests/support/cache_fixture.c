#include "support/cache_fixture.h"

#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

leat_sample cache_sample;
char cache_root[64];
char cache_path[80];
char cache_log[4096];
cache_source_state cache_source = {.identity = 1, .bad = -1, .kills = -1};

static float pixels[CACHE_SAMPLES][16];
static int32_t labels[CACHE_SAMPLES];

static void note_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(cache_log, sizeof(cache_log), "%s", line);
}

void cache_set_up(void)
{
    leat_sample_init(&cache_sample);
    snprintf(cache_root, sizeof(cache_root), "/tmp/leat-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(cache_root));
    snprintf(cache_path, sizeof(cache_path), "%s/kept", cache_root);
    for (int i = 0; i < CACHE_SAMPLES; i++) {
        labels[i] = i;
        pixels[i][0] = pixels[i][15] = (float)i;
    }
    cache_log[0] = 0;
    leat_log_set(note_line, NULL, LEAT_LOG_WARNING);
}

void cache_remove_all(const char *name)
{
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", name);
    ck_assert_int_eq(system(command), 0);
}

void cache_tear_down(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    leat_sample_finish(&cache_sample);
    cache_remove_all(cache_root);
}

typedef struct source {
    leat_reader reader;
    leat_reader *upstream;
} source;

static int source_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    return leat_reader_fields(((source *)reader)->upstream, out, n);
}

static int check_record(leat_sample *one)
{
    if (one->from.record == cache_source.kills)
        raise(SIGKILL);
    if (one->from.record != cache_source.bad)
        return LEAT_OK;
    return leat_error(LEAT_EDATA, "record %d is bad", (int)cache_source.bad);
}

static int source_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    (void)n;
    int status = leat_reader_pull(((source *)reader)->upstream, out, 1, got);
    if (status)
        return status;
    cache_source.reads++;
    status = check_record(out[0]);
    *got -= status != LEAT_OK;
    return status;
}

static int source_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    (void)n;
    int status =
        leat_reader_pull_at(((source *)reader)->upstream, at, out, 1, got);
    if (!status) {
        __atomic_fetch_add(&cache_source.reads, 1, __ATOMIC_RELAXED);
        status = check_record(out[0]);
        *got -= status != LEAT_OK;
    }
    return status;
}

static int source_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(((source *)reader)->upstream, out);
}

static int source_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    return leat_reader_seek(((source *)reader)->upstream, at, mark);
}

static void source_cancel(leat_reader *reader)
{
    leat_reader_cancel(((source *)reader)->upstream);
}

static void source_close(leat_reader *reader)
{
    leat_reader_close(((source *)reader)->upstream);
    free(reader);
}

static int source_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, &cache_source.identity,
                          sizeof(cache_source.identity));
}

static int source_restore(leat_reader *reader, leat_token *token)
{
    int64_t found;
    (void)reader;
    return leat_token_get(token, &found, sizeof(found));
}

#define SOURCE_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "source",                         \
    .fields = source_fields, .next = source_next, .seek = source_seek,         \
    .cancel = source_cancel, .close = source_close, .save = source_save,       \
    .restore = source_restore

static const leat_reader_ops stream_ops = {SOURCE_OPS};
static const leat_reader_ops index_ops = {SOURCE_OPS, .count = source_count,
                                          .read_at = source_read_at};

static int source_open(const leat_open *open, leat_reader **out)
{
    source *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    self->reader.ops = cache_source.is_stream ? &stream_ops : &index_ops;
    self->upstream = open->upstream[0];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type source_type = {.size = sizeof(leat_reader_type),
                                             .name = "source",
                                             .min_upstream = 1,
                                             .max_upstream = 1,
                                             .open = source_open};

leat_pipeline *cache_pipeline(int64_t count)
{
    const int64_t shape[] = {16};
    leat_memory_field fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .ndim = 1, .data = pixels},
        {.name = "label", .dtype = LEAT_INT32, .data = labels},
    };
    leat_pipeline *memory, *pipeline;
    memcpy(fields[0].shape, shape, sizeof(shape));
    ck_assert_msg(!leat_pipeline_memory(&memory, fields, 2, count), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &source_type, NULL, NULL,
                                          NULL, &memory, 1),
                     LEAT_OK);
    leat_pipeline_unref(memory);
    cache_source.reads = 0;
    return pipeline;
}

int cache_open_cached(leat_pipeline *upstream, leat_reader **out)
{
    leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
    leat_pipeline *pipeline;
    options.dir = cache_path;
    ck_assert_msg(!leat_pipeline_cache(&pipeline, upstream, &options), "%s",
                  leat_last_error());
    leat_pipeline_unref(upstream);
    int status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

leat_reader *cache_open_source(int64_t count)
{
    leat_reader *reader = NULL;
    int status = cache_open_cached(cache_pipeline(count), &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return reader;
}

void cache_put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s", cache_path, name);
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

void cache_expect_text(const char *name, const char *text)
{
    char path[128], found[32] = "";
    snprintf(path, sizeof(path), "%s%s", cache_path, name);
    FILE *file = fopen(path, "r");
    ck_assert(file && fgets(found, sizeof(found), file));
    fclose(file);
    ck_assert_str_eq(found, text);
}

void cache_read_some(leat_reader *reader, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_OK);
}

void cache_expect_epoch(leat_reader *reader, int64_t epoch, int count)
{
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                     LEAT_OK);
    for (int i = 0; i < count; i++) {
        int32_t label;
        int status = leat_reader_next(reader, &cache_sample);
        if (i == cache_source.bad) {
            ck_assert_int_eq(status, LEAT_EDATA);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "is bad"));
            continue;
        }
        ck_assert_msg(status == LEAT_OK, "%d: %s", i, leat_last_error());
        memcpy(&label, cache_sample.field[1].data, sizeof(label));
        ck_assert_int_eq(label, i);
        ck_assert_int_eq(cache_sample.from.record, i);
        ck_assert_str_eq(cache_sample.from.source, "memory");
        ck_assert_mem_eq(cache_sample.field[0].data, pixels[i],
                         sizeof(pixels[i]));
    }
    ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_END);
}

bool cache_is_there(const char *name)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", cache_path, name);
    return access(file, F_OK) == 0;
}

void cache_make(int count)
{
    leat_reader *reader = cache_open_source(count);
    cache_expect_epoch(reader, 0, count);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index") && !cache_is_there(".partial"));
}
