/*
 * soak.c: random data layers against a slow reference, sample for sample.
 *
 *   soak [--seed S] [--first K] [--count N] [--seconds T]
 *
 * Configuration K of seed S is the same whenever it is run: a failure names
 * both, and the command that runs it alone. A layer that hangs is a failure,
 * too.
 */
#include "reference.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HANGS_AFTER 60 /* seconds, twice */
#define PIXELS_MAX (4 * 24 * 24)

typedef enum source_kind { FROM_LMDB, FROM_MEMORY, FROM_CALLBACK } source_kind;

typedef struct configuration {
    rules rules;
    source_kind source;
    int single_pass;
    leat_data_layer_options options;
    leat_transform_options transform;
    record *records;
    float *mean_image;
    int64_t batches;
    int resumes;
} configuration;

static uint64_t state;
static long long seed_given;
static long long number;
static char directory[] = "/tmp/leat-soak-XXXXXX";

static uint64_t draw(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

static int below(int n)
{
    return (int)(draw() % (uint64_t)n);
}

static int between(int low, int high)
{
    return low + below(high - low + 1);
}

static void describe(const configuration *c)
{
    const leat_data_layer_options *o = &c->options;
    fprintf(stderr,
            "  source %d of %lld records, single pass %d, batch %lld, prefetch "
            "%d, workers %d, reader_thread %d, help %d, top_mode %d, top %d, "
            "layout %d, phase %d, rank %d of %d (step %d), rng %d, seed %lld, "
            "crop %d, mirror %d, scale %g, mean image %d, mean values %d, "
            "on_error %d\n",
            c->source, (long long)c->rules.count, c->single_pass,
            (long long)o->batch_size, o->prefetch, o->workers, o->reader_thread,
            o->help, o->top_mode, o->top_type, o->layout, o->phase, o->rank,
            o->world_size, c->rules.step, o->rng, (long long)o->random_seed,
            c->rules.crop, c->rules.mirror, (double)c->rules.scale,
            c->mean_image != NULL, c->rules.mean_values, o->on_error);
}

static void fail(const configuration *c, const char *what)
{
    fprintf(stderr, "FAILED: %s\n  last error: %s\n", what, leat_last_error());
    if (c)
        describe(c);
    fprintf(stderr, "  again: soak --seed %lld --first %lld --count 1\n",
            seed_given, number);
    exit(1);
}

static void check(const configuration *c, int status, const char *what)
{
    if (status != LEAT_OK)
        fail(c, what);
}

/*
 * The second alarm in a row tells: a process that was stopped for long finds
 * one when it goes on.
 */
static volatile sig_atomic_t alarms;

static void report_hang(int signal_number)
{
    (void)signal_number;
    if (alarms++ == 0) {
        alarm(HANGS_AFTER);
        return;
    }
    char line[160];
    int n = snprintf(line, sizeof(line),
                     "FAILED: hangs; again: soak --seed %lld --first %lld "
                     "--count 1\n",
                     seed_given, number);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(3);
    abort();
}

static size_t elements(const record *record)
{
    return (size_t)record->channels * (size_t)record->height *
           (size_t)record->width;
}

/* A Datum, as protobuf would write it. */
static size_t put_varint(unsigned char *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        to[n++] = (unsigned char)(value | 128);
    to[n++] = (unsigned char)value;
    return n;
}

static size_t put_field(unsigned char *to, int field, uint64_t value)
{
    size_t n = put_varint(to, (uint64_t)field << 3);
    return n + put_varint(to + n, value);
}

static size_t encode(const record *record, unsigned char *to)
{
    size_t count = elements(record);
    size_t n = put_field(to, 1, (uint64_t)record->channels);
    n += put_field(to + n, 2, (uint64_t)record->height);
    n += put_field(to + n, 3, (uint64_t)record->width);
    if (record->pixels) {
        to[n++] = 4 << 3 | 2;
        n += put_varint(to + n, count);
        memcpy(to + n, record->pixels, count);
        n += count;
    } else {
        to[n++] = 6 << 3 | 2;
        n += put_varint(to + n, count * sizeof(float));
        memcpy(to + n, record->values, count * sizeof(float));
        n += count * sizeof(float);
    }
    if (record->is_bad)
        return n - 1;
    return n + put_field(to + n, 5, (uint64_t)(int64_t)record->label);
}

static void write_lmdb(const configuration *c)
{
    static unsigned char datum[64 + PIXELS_MAX * sizeof(float)];
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    char path[64];
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    unlink(path);
    int code = mdb_env_create(&environment);
    code = code ? code : mdb_env_set_mapsize(environment, 64 << 20);
    code = code ? code : mdb_env_open(environment, directory, MDB_NOSYNC, 0600);
    code = code ? code : mdb_txn_begin(environment, NULL, 0, &transaction);
    code = code ? code : mdb_dbi_open(transaction, NULL, 0, &database);
    for (int64_t i = 0; i < c->rules.count && code == 0; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%08lld", (long long)i);
        MDB_val key = {8, name};
        MDB_val value = {encode(&c->records[i], datum), datum};
        code = mdb_put(transaction, database, &key, &value, 0);
    }
    code = code ? code : mdb_txn_commit(transaction);
    if (code)
        fail(c, mdb_strerror(code));
    mdb_env_close(environment);
}

/* The callbacks' side: one pass over the records. */
typedef struct pass {
    const configuration *c;
    int64_t next;
} pass;

static int pass_open(void *user, void **out)
{
    pass *self = malloc(sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    *self = (pass){user, 0};
    *out = self;
    return LEAT_OK;
}

static int pass_next(void *user, leat_sample *sample)
{
    pass *self = user;
    if (self->next == self->c->rules.count)
        return LEAT_END;
    const record *record = &self->c->records[self->next++];
    if (record->is_bad)
        return leat_error(LEAT_EDATA, "a bad record, on purpose");
    size_t count = elements(record);
    sample->nfields = 2;
    sample->field[0] = (leat_field){
        record->pixels ? LEAT_UINT8 : LEAT_FLOAT32,
        3,
        {record->channels, record->height, record->width},
        record->pixels ? (void *)record->pixels : (void *)record->values,
        record->pixels ? count : count * sizeof(float)};
    sample->field[1] =
        (leat_field){LEAT_INT32, 0, {0}, &record->label, sizeof(int32_t)};
    return LEAT_OK;
}

static int pass_reset(void *user)
{
    ((pass *)user)->next = 0;
    return LEAT_OK;
}

static void pass_close(void *user)
{
    free(user);
}

static leat_pipeline *open_callback(configuration *c)
{
    const record *first = &c->records[0];
    leat_field_spec fields[2] = {
        {.name = "data",
         .dtype = first->pixels ? LEAT_UINT8 : LEAT_FLOAT32,
         .ndim = 3,
         .shape = {first->channels, -1, -1}},
        {.name = "label", .dtype = LEAT_INT32},
    };
    leat_callbacks callbacks = {.size = sizeof(callbacks),
                                .fields = fields,
                                .nfields = 2,
                                .open = pass_open,
                                .next = pass_next,
                                .reset = c->single_pass ? NULL : pass_reset,
                                .close = pass_close};
    leat_pipeline *pipeline;
    check(c, leat_pipeline_callback(&pipeline, &callbacks, c), "callback");
    return pipeline;
}

/* All records alike and good; behind each other. */
static leat_pipeline *open_memory(const configuration *c, void **keep)
{
    const record *first = &c->records[0];
    size_t each = elements(first) * (first->pixels ? 1 : sizeof(float));
    size_t n = (size_t)c->rules.count;
    char *all = malloc(n * each + n * sizeof(int32_t) + 16);
    if (!all)
        abort();
    int32_t *labels = (int32_t *)(void *)all;
    char *data = all + n * sizeof(int32_t);
    for (size_t i = 0; i < n; i++) {
        labels[i] = c->records[i].label;
        memcpy(data + i * each,
               first->pixels ? (void *)c->records[i].pixels
                             : (void *)c->records[i].values,
               each);
    }
    leat_memory_field fields[2] = {
        {"data",
         first->pixels ? LEAT_UINT8 : LEAT_FLOAT32,
         3,
         {first->channels, first->height, first->width},
         data},
        {"label", LEAT_INT32, 0, {0}, labels}};
    leat_pipeline *pipeline;
    check(c, leat_pipeline_memory(&pipeline, fields, 2, c->rules.count),
          "memory");
    *keep = all;
    return pipeline;
}

static leat_pipeline *open_pipeline(configuration *c, void **keep)
{
    *keep = NULL;
    if (c->source == FROM_MEMORY)
        return open_memory(c, keep);
    if (c->source == FROM_CALLBACK)
        return open_callback(c);
    write_lmdb(c);
    leat_pipeline *pipeline;
    check(c, leat_pipeline_lmdb(&pipeline, directory, NULL), "lmdb");
    return pipeline;
}

static void make_records(configuration *c)
{
    int channels = between(1, 4);
    int height = between(1, 20);
    int width = between(1, 20);
    int is_float = below(4) == 0;
    int bad_in = below(3) == 0 && c->source != FROM_MEMORY ? between(2, 12) : 0;
    int varies = c->rules.crop < 0;
    c->records = calloc((size_t)c->rules.count, sizeof(*c->records));
    for (int64_t i = 0; i < c->rules.count; i++) {
        record *record = &c->records[i];
        record->channels = channels;
        record->height = varies && i > 0 ? height + below(4) : height;
        record->width = varies && i > 0 ? width + below(4) : width;
        /* At least one is good, else there is no shape. */
        record->is_bad =
            bad_in && i != c->rules.count / 2 && below(bad_in) == 0;
        record->label = below(5) == 0 ? (int32_t)draw() : below(1000);
        size_t n = elements(record);
        if (is_float)
            record->values = malloc(n * sizeof(float));
        else
            record->pixels = malloc(n);
        for (size_t k = 0; k < n; k++) {
            if (is_float)
                record->values[k] = (float)(int32_t)draw() * 1e-5f;
            else
                record->pixels[k] = (unsigned char)draw();
        }
    }
    int smallest = height < width ? height : width;
    if (c->rules.crop != 0)
        c->rules.crop = between(1, smallest);
}

static void choose_mean(configuration *c, int varies)
{
    const record *first = &c->records[0];
    static char path[64];
    snprintf(path, sizeof(path), "%s/mean.binaryproto", directory);
    int kind = below(4);
    c->rules.scale = below(2) ? 1.0f : 0.00390625f * (float)between(1, 700);
    if (kind == 1 || kind == 2) {
        c->rules.mean_values = kind == 1 ? 1 : first->channels;
        for (int i = 0; i < 4; i++)
            c->rules.mean_value[i] = (float)between(-3000, 30000) * 0.01f;
    } else if (kind == 3 && !varies) {
        size_t n = elements(first);
        c->mean_image = malloc(n * sizeof(float));
        for (size_t i = 0; i < n; i++)
            c->mean_image[i] = (float)between(0, 25500) * 0.01f;
        unlink(path);
        check(c,
              leat_mean_save(path, first->channels, first->height, first->width,
                             c->mean_image),
              "mean file");
        c->transform.mean_file = path;
    }
    c->rules.mean_image = c->mean_image;
}

/* What changes no byte; a resume may choose it anew. */
static void choose_manner(configuration *c)
{
    c->options.prefetch = below(5) ? between(1, 6) : LEAT_PREFETCH_AUTO;
    c->options.workers = between(1, 4);
    c->options.reader_thread = (leat_reader_thread)below(3);
    c->options.help = below(2);
    c->options.top_mode = (leat_top_mode)below(2);
}

static void choose_ranks(configuration *c)
{
    c->options.world_size = below(2) ? 1 : between(1, 4);
    c->options.rank = below(c->options.world_size);
    c->options.shard_test = below(2);
    int divides = c->rules.is_train || c->options.shard_test;
    c->rules.step = divides ? c->options.world_size : 1;
    c->rules.rank = c->options.rank;
}

static void choose_layer(configuration *c)
{
    static const leat_dtype types[] = {LEAT_UINT8, LEAT_FLOAT32, LEAT_FLOAT64};
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    rules *rules = &c->rules;
    c->options = defaults;
    rules->is_train = below(2);
    rules->mirror = below(2);
    rules->is_nhwc = below(3) == 0;
    rules->is_caffe_rng = below(3) == 0;
    rules->seed = (uint64_t)below(1000000000);
    int is_float = c->records[0].values != NULL;
    rules->top = (top_kind)between(is_float, 2);
    if (rules->top == TOP_UINT8) {
        c->transform.mean_file = NULL;
        rules->mean_image = NULL;
        rules->mean_values = 0;
        rules->scale = 1;
    }
    choose_manner(c);
    choose_ranks(c);
    rules->policy = (bad_policy)below(3);
    if (c->source == FROM_CALLBACK && rules->step > 1)
        rules->policy = BAD_FAILS;
    c->options.batch_size = between(1, 17);
    c->options.phase = rules->is_train ? LEAT_TRAIN : LEAT_TEST;
    c->options.top_type = types[rules->top];
    c->options.layout = rules->is_nhwc ? LEAT_NHWC : LEAT_NCHW;
    c->options.rng = rules->is_caffe_rng ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    c->options.random_seed = (int64_t)rules->seed;
    c->options.on_error = (leat_on_error)rules->policy;
    c->transform.crop_size = rules->crop;
    c->transform.mirror = rules->mirror;
    c->transform.scale = rules->scale;
    c->transform.mean_value = rules->mean_values ? rules->mean_value : NULL;
    c->transform.mean_values = rules->mean_values;
    c->options.transform = &c->transform;
}

static void choose(configuration *c)
{
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    memset(c, 0, sizeof(*c));
    c->transform = none;
    c->source = (source_kind)below(3);
    c->rules.count = below(3) ? between(1, 60) : between(1, 400);
    int varies = c->source != FROM_MEMORY && below(4) == 0;
    c->rules.crop = varies ? -1 : below(2);
    make_records(c);
    c->rules.records = c->records;
    choose_mean(c, varies);
    choose_layer(c);
    /* A single pass is for one rank: the others' ends would differ. */
    c->single_pass =
        c->source == FROM_CALLBACK && c->rules.step == 1 && below(3) == 0;
    c->batches = between(1, 40);
    int reads_back = c->source != FROM_CALLBACK || c->rules.policy != BAD_SKIPS;
    c->resumes = !c->single_pass && reads_back && below(2);
}

static void finish(configuration *c)
{
    for (int64_t i = 0; i < c->rules.count; i++) {
        free(c->records[i].pixels);
        free(c->records[i].values);
    }
    free(c->records);
    free(c->mean_image);
}

static double element(const rules *rules, const void *data, int64_t i)
{
    if (rules->top == TOP_UINT8)
        return ((const unsigned char *)data)[i];
    if (rules->top == TOP_FLOAT)
        return ((const float *)data)[i];
    return ((const double *)data)[i];
}

static void compare_sample(const configuration *c, const draws *draws,
                           int64_t position, leat_blob *const top[2], int64_t i,
                           const leat_provenance *from)
{
    static double pixels[PIXELS_MAX];
    const rules *rules = &c->rules;
    double label;
    reference_sample(rules, draws, position, pixels, &label);
    int64_t size = leat_blob_dim(top[0], 1) * leat_blob_dim(top[0], 2) *
                   leat_blob_dim(top[0], 3);
    const void *data = leat_blob_cpu_data(top[0]);
    char what[160];
    for (int64_t k = 0; k < size; k++) {
        double found = element(rules, data, i * size + k);
        if (found == pixels[k])
            continue;
        snprintf(what, sizeof(what),
                 "sample %lld, position %lld, element %lld: expected %.17g, "
                 "found %.17g",
                 (long long)i, (long long)position, (long long)k, pixels[k],
                 found);
        fail(c, what);
    }
    const void *labels = leat_blob_cpu_data(top[1]);
    int is_double = rules->top == TOP_DOUBLE;
    double found_label = is_double ? ((const double *)labels)[i]
                                   : (double)((const float *)labels)[i];
    if (found_label != (is_double ? label : (double)(float)label))
        fail(c, "another label");
    int64_t stands = reference_record(rules, position);
    int64_t own = position % rules->count;
    if (c->source == FROM_LMDB && from->record != (stands < 0 ? own : stands))
        fail(c, "the provenance names another record");
    if ((from->stand_in == LEAT_STAND_IN_NONE) != !rules->records[own].is_bad)
        fail(c, "the provenance is wrong about what stands in");
}

static leat_data_layer *open_layer(const configuration *c,
                                   const leat_pipeline *pipeline,
                                   leat_blob *top[2])
{
    leat_data_layer *layer;
    check(c, leat_data_layer_create(&layer, pipeline, &c->options), "create");
    int status = leat_data_layer_setup(layer, top, 2);
    if (status == LEAT_OK)
        return layer;
    /* Where the first record fails there is no shape to set up with. */
    int64_t first = reference_position(&c->rules, 0, 0) % c->rules.count;
    if (status != LEAT_EDATA || c->rules.policy != BAD_FAILS ||
        !c->records[first].is_bad)
        fail(c, "setup");
    leat_data_layer_destroy(layer);
    return NULL;
}

static int forward(leat_data_layer *layer, leat_blob *const top[2])
{
    if (below(3) > 0)
        return leat_data_layer_forward(layer, top, 2, LEAT_HOST);
    int status;
    do {
        status =
            leat_data_layer_try_forward(layer, top, 2, LEAT_HOST, below(3));
    } while (status == LEAT_AGAIN);
    return status;
}

/* One batch from `place` on, of at most n samples; 0: that was the end. */
static int check_batch(const configuration *c, leat_data_layer *layer,
                       leat_blob *const top[2], int64_t place)
{
    const rules *rules = &c->rules;
    int64_t n = c->options.batch_size;
    if (c->single_pass && place + n > rules->count)
        n = place < rules->count ? rules->count - place : 0;
    int bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad +=
            rules->records[reference_position(rules, place, i) % rules->count]
                .is_bad;
    int status = forward(layer, top);
    if (n == 0) {
        if (status != LEAT_END)
            fail(c, "the end was expected");
        return 0;
    }
    if (bad && rules->policy == BAD_FAILS) {
        if (status != LEAT_EDATA)
            fail(c, "a bad record was expected");
        return 1;
    }
    check(c, status, "forward");
    const leat_batch *batch = leat_data_layer_batch(layer);
    if (batch->n != n || batch->bad != bad || leat_blob_dim(top[0], 0) != n)
        fail(c, "a batch of another size, or with other bad places");
    draws draws =
        reference_draws(rules, reference_position(rules, place, n - 1));
    for (int64_t i = 0; i < n; i++)
        compare_sample(c, &draws, reference_position(rules, place, i), top, i,
                       &batch->from[i]);
    free(draws.word);
    if (below(4) == 0)
        check(c, leat_data_layer_release(layer, NULL, 0), "release");
    return 1;
}

/* Goes on in another layer: other threads, batches, and ranks where it may. */
static leat_data_layer *resume(configuration *c, const leat_pipeline *pipeline,
                               leat_blob *top[2], leat_data_layer *layer,
                               int64_t place)
{
    leat_token token;
    leat_token_init(&token);
    check(c, leat_data_layer_save(layer, &token), "save");
    if (below(2)) {
        leat_data_layer_destroy(layer);
        choose_manner(c);
        c->options.batch_size = between(1, 17);
        if (!c->rules.is_caffe_rng && c->source == FROM_LMDB)
            choose_ranks(c);
        layer = open_layer(c, pipeline, top);
    }
    int status = layer ? leat_data_layer_restore(layer, &token) : LEAT_EDATA;
    leat_token_finish(&token);
    int64_t first = reference_position(&c->rules, place, 0) % c->rules.count;
    if (status == LEAT_EDATA && c->rules.policy == BAD_FAILS &&
        (!layer || c->records[first].is_bad)) {
        leat_data_layer_destroy(layer);
        return NULL;
    }
    check(c, status, "restore");
    return layer;
}

static int64_t run(configuration *c)
{
    void *keep;
    leat_pipeline *pipeline = open_pipeline(c, &keep);
    leat_blob *top[2];
    for (int i = 0; i < 2; i++)
        check(c, leat_blob_create(&top[i], NULL), "blob");
    leat_data_layer *layer = open_layer(c, pipeline, top);
    int64_t place = 0;
    int64_t samples = 0;
    for (int64_t i = 0; layer && i < c->batches; i++) {
        if (!check_batch(c, layer, top, place))
            break;
        place += c->options.batch_size * c->rules.step;
        samples += c->options.batch_size;
        if (c->resumes && below(8) == 0)
            layer = resume(c, pipeline, top, layer, place);
    }
    leat_data_layer_destroy(layer);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(top[i]);
    leat_pipeline_unref(pipeline);
    free(keep);
    return samples;
}

static void clean_up(void)
{
    static const char *const names[] = {"data.mdb", "lock.mdb",
                                        "mean.binaryproto"};
    char path[96];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

int main(int argc, char **argv)
{
    long long count = 1LL << 60;
    long long seconds = 1LL << 40;
    long long first = 0;
    seed_given = (long long)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        long long value = atoll(argv[i + 1]);
        if (strcmp(argv[i], "--seed") == 0)
            seed_given = value;
        else if (strcmp(argv[i], "--first") == 0)
            first = value;
        else if (strcmp(argv[i], "--count") == 0)
            count = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = value;
        else
            argc = 0;
    }
    if (argc % 2 == 0 || !mkdtemp(directory)) {
        fprintf(
            stderr,
            "usage: soak [--seed S] [--first K] [--count N] [--seconds T]\n");
        return 2;
    }
    atexit(clean_up);
    signal(SIGALRM, report_hang);
    time_t begin = time(NULL);
    int64_t samples = 0;
    for (number = first; number - first < count; number++) {
        if (time(NULL) - begin >= seconds)
            break;
        state = (uint64_t)seed_given * 0xD1342543DE82EF95U + (uint64_t)number;
        alarms = 0;
        alarm(HANGS_AFTER);
        configuration c;
        choose(&c);
        samples += run(&c);
        finish(&c);
    }
    alarm(0);
    printf("seed %lld: %lld configurations, %lld samples, all as expected\n",
           seed_given, number - first, (long long)samples);
    return 0;
}
