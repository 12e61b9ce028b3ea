/*
 * One layer of the soak. Whoever takes its batches is the CPU or a stream of
 * the device: then the tops are copied to the host on that stream, the batch is
 * given back behind the copy, and only then is the stream waited for.
 */
#include "trial.h"
#include "dice.h"
#include "pool.h"
#include "sources.h"

#include <leat/ext/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOPS 3
#define BATCH_MAX 17
#define COPY_MAX ((size_t)BATCH_MAX * PIXELS_MAX * 8)

/* A bad record that the layer must have told of. */
typedef struct bad_line {
    int64_t record;
    int64_t epoch;
    int64_t index;
    const char *stand_in;
} bad_line;

typedef struct trial {
    configuration *c;
    leat_pipeline *pipeline;
    leat_device *device;
    leat_data_layer *layer;
    leat_blob *tops[2][TOPS]; /* taken in turn, or not */
    leat_blob **top;          /* of the latest forward */
    leat_stream stream;       /* of the device's own, or LEAT_HOST */
    void **copy;              /* pinned, for what the stream reads */
    pool host;
    pool pinned;
    leat_allocator host_hooks;
    leat_allocator pinned_hooks;
    int was_set_up;
    int64_t place;  /* of the next batch */
    int64_t bad;    /* since setup or restore */
    bad_line *line; /* of the file, in order */
    int64_t nlines;
} trial;

static int is_unified(const trial *t)
{
    return t->device->ops->unified;
}

/* Once a process: test devices do not use an address again. */
static void **take_copies(const trial *t)
{
    static leat_device *device[4];
    static void *copy[4][TOPS];
    int at = 0;
    while (device[at] && device[at] != t->device)
        at++;
    for (int i = 0; i < TOPS && !device[at]; i++)
        soak_check(
            t->c, t->device->ops->host_alloc(t->device, COPY_MAX, &copy[at][i]),
            "pinned memory");
    device[at] = t->device;
    return copy[at];
}

static void open_device(trial *t)
{
    const char *name = t->c->options.device;
    soak_check(t->c, leat_device_find(&t->device, name ? name : "cpu"),
               "device");
    t->stream = LEAT_HOST;
    if (is_unified(t))
        return;
    t->copy = take_copies(t);
    soak_check(t->c, t->device->ops->stream_create(t->device, &t->stream),
               "stream");
}

static void close_device(const trial *t)
{
    if (!is_unified(t))
        t->device->ops->stream_destroy(t->device, t->stream);
}

static void open_pools(trial *t)
{
    t->pinned.device = is_unified(t) ? NULL : t->device;
    t->host_hooks = pool_hooks(&t->host);
    t->pinned_hooks = pool_hooks(&t->pinned);
    if (once_in(3))
        t->c->options.host_allocator = &t->host_hooks;
    if (once_in(3))
        t->c->options.pinned_allocator = &t->pinned_hooks;
}

static void check_pools(const trial *t)
{
    const leat_data_layer_options *options = &t->c->options;
    if (atomic_load(&t->host.out) || atomic_load(&t->pinned.out))
        soak_fail(t->c, "memory of the caller's was not given back");
    if (atomic_load(&t->host.is_wrong) || atomic_load(&t->pinned.is_wrong))
        soak_fail(t->c, "memory of the caller's came back as another's");
    const pool *slabs = is_unified(t) ? &t->host : &t->pinned;
    int is_asked = is_unified(t) ? options->host_allocator != NULL
                                 : options->pinned_allocator != NULL;
    if (is_asked && t->was_set_up && !atomic_load(&slabs->given))
        soak_fail(t->c, "the caller's memory was not asked for");
}

static const record *record_at(const trial *t, int64_t position)
{
    return &t->c->rules.records[position % t->c->rules.count];
}

/* The layer that the configuration asks for, ready for its first forward. */
static void open_layer(trial *t)
{
    configuration *c = t->c;
    t->bad = 0;
    soak_check(c, sources_layer(&t->layer, c, t->pipeline), "create");
    if (c->options.random_seed < 0)
        c->rules.seed = leat_data_layer_seed(t->layer);
    if (c->gives_names && leat_data_layer_top_count(t->layer) != c->ntop)
        soak_fail(c, "another number of tops");
    int status = leat_data_layer_setup(t->layer, t->tops[0], c->ntop);
    t->was_set_up |= status == LEAT_OK;
    if (status == LEAT_OK)
        return;
    /* Where the first record fails there is no shape to set up with. */
    int64_t first = reference_position(&c->rules, 0, 0);
    if (status != LEAT_EDATA || c->rules.policy != BAD_FAILS ||
        !record_at(t, first)->is_bad)
        soak_fail(c, "setup");
    leat_data_layer_destroy(t->layer);
    t->layer = NULL;
}

static int forward(trial *t, leat_stream stream)
{
    int n = t->c->ntop;
    if (once_in(4))
        t->top = t->tops[below(2)];
    if (below(3) > 0)
        return leat_data_layer_forward(t->layer, t->top, n, stream);
    int status;
    do {
        status =
            leat_data_layer_try_forward(t->layer, t->top, n, stream, below(3));
    } while (status == LEAT_AGAIN);
    return status;
}

static void nap(void)
{
    const struct timespec time = {0, 100000};
    nanosleep(&time, NULL);
}

/*
 * What the stream sees: it is told to copy, and the batch is given back, before
 * anybody waits for it.
 */
static void read_on_stream(trial *t, const void *data[TOPS])
{
    const leat_device_ops *ops = t->device->ops;
    for (int i = 0; i < t->c->ntop; i++) {
        const void *from = leat_blob_gpu_data(t->top[i]);
        if (!from)
            soak_fail(t->c, "no device side");
        soak_check(t->c,
                   ops->copy(t->device, t->copy[i], from,
                             leat_blob_bytes(t->top[i]), LEAT_COPY_TO_HOST,
                             t->stream),
                   "copy");
        data[i] = t->copy[i];
    }
    if (once_in(3))
        soak_check(t->c, leat_data_layer_release(t->layer, &t->stream, 1),
                   "release");
    if (once_in(8))
        nap();
    soak_check(t->c, ops->stream_synchronize(t->device, t->stream), "stream");
}

static void read_on_host(trial *t, const void *data[TOPS])
{
    for (int i = 0; i < t->c->ntop; i++) {
        data[i] = leat_blob_cpu_data(t->top[i]);
        if (!data[i])
            soak_fail(t->c, "no host side");
    }
}

static void differs(const trial *t, const char *what, int64_t position,
                    int64_t i, double expected, double found)
{
    char line[200];
    snprintf(line, sizeof(line),
             "%s, position %lld, element %lld: expected %.17g, found %.17g",
             what, (long long)position, (long long)i, expected, found);
    soak_fail(t->c, line);
}

static void compare_sample(const trial *t, const draws *draws, int64_t i,
                           int64_t position, const void *const data[TOPS])
{
    static double pixels[PIXELS_MAX];
    const configuration *c = t->c;
    const rules *rules = &c->rules;
    double label[3];
    int64_t size = leat_blob_count(t->top[0]) / leat_blob_dim(t->top[0], 0);
    reference_pixels(rules, draws, position, pixels);
    for (int64_t k = 0; k < size; k++) {
        double found = reference_load(data[0], rules->top, i * size + k);
        if (found != pixels[k])
            differs(t, "pixels", position, k, pixels[k], found);
    }
    reference_labels(rules, position, label);
    for (int k = 0; k < 3 && c->ntop > 1 + (k > 0); k++) {
        int64_t at = k == 0 ? i : i * 2 + k - 1;
        double found = reference_load(data[1 + (k > 0)], rules->label, at);
        if (found != label[k])
            differs(t, "labels", position, k, label[k], found);
    }
}

static void check_provenance(const trial *t, const leat_provenance *from,
                             int64_t position)
{
    const rules *rules = &t->c->rules;
    int64_t stands = reference_record(rules, position);
    const record *own = record_at(t, position);
    const record *told = stands < 0 ? own : &rules->records[stands];
    if (t->c->source != FROM_CALLBACK && from->record != told->number)
        soak_fail(t->c, "the provenance names another record");
    if (from->epoch != position / rules->count ||
        from->position != position % rules->count)
        soak_fail(t->c, "the provenance names another place");
    leat_stand_in kind = !own->is_bad ? LEAT_STAND_IN_NONE
                         : stands < 0 ? LEAT_STAND_IN_ZEROS
                                      : LEAT_STAND_IN_RECORD;
    if (from->stand_in != kind)
        soak_fail(t->c, "the provenance is wrong about what stands in");
}

static void check_shape(const trial *t, int64_t n)
{
    const configuration *c = t->c;
    const record *first = &c->records[0];
    int height = c->rules.crop ? c->rules.crop : first->height;
    int width = c->rules.crop ? c->rules.crop : first->width;
    int64_t planar[4] = {n, first->channels, height, width};
    int64_t packed[4] = {n, height, width, first->channels};
    int64_t flat[2] = {n, width};
    int ndim = c->is_flat ? 2 : 4;
    const int64_t *shape = c->is_flat         ? flat
                           : c->rules.is_nhwc ? packed
                                              : planar;
    if (leat_blob_ndim(t->top[0]) != ndim ||
        memcmp(leat_blob_shape(t->top[0]), shape,
               (size_t)ndim * sizeof(*shape)) != 0)
        soak_fail(c, "the data have another shape");
    if (c->ntop > 1 && leat_blob_count(t->top[1]) != n)
        soak_fail(c, "another number of labels");
    if (c->ntop > 2 && leat_blob_count(t->top[2]) != 2 * n)
        soak_fail(c, "the further field has another shape");
}

/* Batches, and what they and the layer say of themselves. */
static void check_stats(const trial *t)
{
    leat_stats stats = {.size = sizeof(stats)};
    soak_check(t->c, leat_data_layer_stats(t->layer, &stats), "stats");
    if (stats.bad_records != t->bad)
        soak_fail(t->c, "another number of bad records");
    if (stats.unwritten)
        soak_fail(t->c, "bad records were not written");
    const leat_memory_stats *memory = &stats.memory;
    size_t taken = (size_t)(memory->pinned + memory->pageable + memory->device +
                            memory->host);
    if (t->c->limits_memory && taken > t->c->options.max_memory)
        soak_fail(t->c, "more memory than max_memory");
    if (t->c->options.must_pin && memory->pageable)
        soak_fail(t->c, "memory that is not pinned");
}

/* Bad places among the next n, which the layer will tell of. */
static int64_t expect_bad(trial *t, int64_t n)
{
    const rules *rules = &t->c->rules;
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t position = reference_position(rules, t->place, i);
        const record *record = record_at(t, position);
        if (!record->is_bad)
            continue;
        bad++;
        /* Where it fails its batch, it is the first one that does. */
        if (bad > 1 && rules->policy == BAD_FAILS)
            continue;
        int has_record = reference_record(rules, position) >= 0;
        t->line = realloc(t->line, (size_t)(t->nlines + 1) * sizeof(*t->line));
        if (!t->line)
            abort();
        t->line[t->nlines++] = (bad_line){
            record->number, position / rules->count, position % rules->count,
            rules->policy == BAD_FAILS ? "none"
            : has_record               ? "record"
                                       : "zeros"};
        t->bad++;
    }
    return bad;
}

static void compare_batch(trial *t, int64_t n, int64_t bad, leat_stream stream)
{
    configuration *c = t->c;
    const rules *rules = &c->rules;
    const void *data[TOPS] = {NULL};
    leat_provenance from[BATCH_MAX];
    const leat_batch *batch = leat_data_layer_batch(t->layer);
    int64_t first = reference_position(rules, t->place, 0);
    if (!batch || batch->n != n || batch->valid != n || batch->bad != bad ||
        batch->epoch != first / rules->count)
        soak_fail(c, "a batch of another size, or with other bad places");
    check_shape(t, n);
    for (int64_t i = 0; i < n; i++)
        from[i] = batch->from[i];
    if (stream == LEAT_HOST)
        read_on_host(t, data);
    else
        read_on_stream(t, data);
    draws draws =
        reference_draws(rules, reference_position(rules, t->place, n - 1));
    for (int64_t i = 0; i < n; i++) {
        int64_t position = reference_position(rules, t->place, i);
        compare_sample(t, &draws, i, position, data);
        check_provenance(t, &from[i], position);
    }
    free(draws.word);
    if (stream == LEAT_HOST && once_in(4))
        soak_check(c, leat_data_layer_release(t->layer, NULL, 0), "release");
}

/* One batch; 0: no more come. */
static int check_batch(trial *t)
{
    configuration *c = t->c;
    const rules *rules = &c->rules;
    int64_t n = c->options.batch_size;
    if (c->single_pass && t->place + n > rules->count)
        n = t->place < rules->count ? rules->count - t->place : 0;
    leat_stream stream = once_in(4) ? LEAT_HOST : t->stream;
    int status = forward(t, stream);
    if (n == 0) {
        if (status != LEAT_END)
            soak_fail(c, "the end was expected");
        return 0;
    }
    int64_t bad = expect_bad(t, n);
    if (bad && rules->policy == BAD_FAILS) {
        if (status != LEAT_EDATA)
            soak_fail(c, "a bad record was expected");
        return 1;
    }
    if (c->options.max_errors >= 0 && t->bad > c->options.max_errors) {
        if (status != LEAT_ELIMIT || forward(t, stream) != LEAT_ELIMIT)
            soak_fail(c, "an end by max_errors was expected");
        return 0;
    }
    soak_check(c, status, "forward");
    compare_batch(t, n, bad, stream);
    return 1;
}

/* Goes on in another layer: other threads, batches, and ranks where it may. */
static void resume(trial *t)
{
    configuration *c = t->c;
    leat_token token;
    leat_token_init(&token);
    soak_check(c, leat_data_layer_save(t->layer, &token), "save");
    if (below(2)) {
        leat_data_layer_destroy(t->layer);
        configuration_choose_manner(c);
        if (!c->rules.is_caffe_rng && c->source != FROM_CALLBACK &&
            c->options.random_seed >= 0)
            configuration_choose_ranks(c);
        uint64_t seed = c->rules.seed;
        open_layer(t);
        c->rules.seed = seed;
    }
    int status =
        t->layer ? leat_data_layer_restore(t->layer, &token) : LEAT_EDATA;
    t->bad = 0;
    leat_token_finish(&token);
    int64_t first = reference_position(&c->rules, t->place, 0);
    if (status == LEAT_EDATA && c->rules.policy == BAD_FAILS &&
        (!t->layer || record_at(t, first)->is_bad)) {
        leat_data_layer_destroy(t->layer);
        t->layer = NULL;
        return;
    }
    soak_check(c, status, "restore");
}

static void check_line(const trial *t, char *line, const bad_line *expected)
{
    const char *field[7] = {NULL};
    int n = 0;
    for (char *at = line; at && n < 7; n++) {
        field[n] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = 0;
    }
    if (n != 7 || atoll(field[3]) != expected->epoch ||
        atoll(field[4]) != expected->index ||
        strcmp(field[5], expected->stand_in) != 0 ||
        (t->c->source != FROM_CALLBACK && atoll(field[1]) != expected->record))
        soak_fail(t->c, "the file of bad records has another line");
}

static void check_ledger(const trial *t)
{
    char line[8192];
    int64_t n = 0;
    FILE *in = fopen(t->c->options.bad_record_file, "r");
    if (!in)
        soak_fail(t->c, "no file of bad records");
    for (; fgets(line, sizeof(line), in); n++) {
        if (n == t->nlines)
            soak_fail(t->c, "the file of bad records is too long");
        check_line(t, line, &t->line[n]);
    }
    fclose(in);
    if (n < t->nlines)
        soak_fail(t->c, "the file of bad records is too short");
}

static int64_t take_batches(trial *t)
{
    configuration *c = t->c;
    int64_t samples = 0;
    for (int64_t i = 0; t->layer && i < c->batches; i++) {
        int goes_on = check_batch(t);
        if (once_in(4) || !goes_on)
            check_stats(t);
        if (!goes_on)
            break;
        t->place += c->options.batch_size * c->rules.step;
        samples += c->options.batch_size;
        if (c->resumes && once_in(8))
            resume(t);
    }
    return samples;
}

int64_t trial_run(configuration *c)
{
    trial t = {.c = c};
    void *keep;
    open_device(&t);
    open_pools(&t);
    unlink(soak_path("bad"));
    t.pipeline = sources_open(c, &keep);
    t.top = t.tops[0];
    for (int i = 0; i < 2 * TOPS; i++)
        soak_check(c, leat_blob_create(&t.tops[i / TOPS][i % TOPS], t.device),
                   "blob");
    open_layer(&t);
    int64_t samples = take_batches(&t);
    leat_data_layer_destroy(t.layer);
    for (int i = 0; i < 2 * TOPS; i++)
        leat_blob_destroy(t.tops[i / TOPS][i % TOPS]);
    leat_pipeline_unref(t.pipeline);
    free(keep);
    check_pools(&t);
    if (c->has_ledger && t.was_set_up)
        check_ledger(&t);
    free(t.line);
    close_device(&t);
    return samples;
}
