/*
 * One layer of the soak, or a group of them, whose members take batches in
 * turn. Whoever takes them is the CPU or a stream of the device: then the tops
 * are copied to the host on that stream, the batch is given back after the
 * copy, and only then is the stream waited for.
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
    const char *replacement;
} bad_line;

/* Numbers of records, each once. */
typedef struct numbers {
    int64_t *number;
    int64_t n;
} numbers;

/* A layer with what takes its batches. */
typedef struct member {
    leat_device *device;
    leat_data_layer *layer;
    leat_blob *tops[2][TOPS]; /* taken in turn, or not */
    leat_blob **top;          /* of the latest forward */
    leat_stream stream;       /* of the device's own, or LEAT_HOST */
    void **copy;              /* pinned, for what the stream reads */
    int64_t bad;              /* records, since setup or restore */
    numbers known;            /* bad ones, since setup */
} member;

typedef struct trial {
    configuration *c;
    leat_pipeline *pipeline;
    member member[MEMBERS_MAX];
    int members;                  /* that take batches now; 0: none */
    leat_data_layer_group *group; /* of them; NULL: a layer by itself */
    int64_t batches;              /* since setup or restore */
    pool host;
    pool pinned;
    leat_allocator host_hooks;
    leat_allocator pinned_hooks;
    int was_set_up;
    int64_t place;  /* where the next batch begins, or a gap before it */
    bad_line *line; /* of the file, in order */
    int64_t nlines;
    numbers listed; /* in the file */
} trial;

static int is_unified(const member *m)
{
    return m->device->ops->unified;
}

/* Once a process: test devices do not use an address again. */
static void **take_copies(const trial *t, leat_device *wanted)
{
    static leat_device *device[4];
    static void *copy[4][TOPS];
    int at = 0;
    while (device[at] && device[at] != wanted)
        at++;
    for (int i = 0; i < TOPS && !device[at]; i++)
        soak_check(t->c,
                   wanted->ops->host_alloc(wanted, COPY_MAX, &copy[at][i]),
                   "pinned memory");
    device[at] = wanted;
    return copy[at];
}

static void open_member(const trial *t, member *m, const char *name)
{
    soak_check(t->c, leat_device_find(&m->device, name ? name : "cpu"),
               "device");
    for (int i = 0; i < 2 * TOPS; i++)
        soak_check(t->c,
                   leat_blob_create(&m->tops[i / TOPS][i % TOPS], m->device),
                   "blob");
    m->top = m->tops[0];
    m->stream = LEAT_HOST;
    if (is_unified(m))
        return;
    m->copy = take_copies(t, m->device);
    soak_check(t->c, m->device->ops->stream_create(m->device, &m->stream),
               "stream");
}

static void close_member(member *m)
{
    for (int i = 0; i < 2 * TOPS; i++)
        leat_blob_destroy(m->tops[i / TOPS][i % TOPS]);
    if (!is_unified(m))
        m->device->ops->stream_destroy(m->device, m->stream);
}

static void open_pools(trial *t)
{
    const member *m = &t->member[0];
    t->pinned.device = is_unified(m) ? NULL : m->device;
    t->host_hooks = pool_hooks(&t->host);
    t->pinned_hooks = pool_hooks(&t->pinned);
    if (once_in(3))
        t->c->options.host_allocator = &t->host_hooks;
    /* Another device may not reach what is one's own. */
    if (once_in(3) && t->c->members == 1)
        t->c->options.pinned_allocator = &t->pinned_hooks;
}

static void check_pools(const trial *t)
{
    const leat_data_layer_options *options = &t->c->options;
    if (atomic_load(&t->host.out) || atomic_load(&t->pinned.out))
        soak_fail(t->c, "memory of the caller's was not given back");
    if (atomic_load(&t->host.is_wrong) || atomic_load(&t->pinned.is_wrong))
        soak_fail(t->c, "memory of the caller's came back as another's");
    int is_host = is_unified(&t->member[0]);
    const pool *slabs = is_host ? &t->host : &t->pinned;
    int is_asked = is_host ? options->host_allocator != NULL
                           : options->pinned_allocator != NULL;
    if (is_asked && t->was_set_up && !atomic_load(&slabs->given))
        soak_fail(t->c, "the caller's memory was not asked for");
}

static const record *record_at(const trial *t, int64_t position)
{
    return &t->c->rules.records[position % t->c->rules.count];
}

static void close_layer(trial *t)
{
    if (t->group)
        leat_data_layer_group_destroy(t->group);
    else if (t->members)
        leat_data_layer_destroy(t->member[0].layer);
    t->group = NULL;
    t->members = 0;
}

/* 1: it was not there. */
static int add_number(numbers *all, int64_t number)
{
    for (int64_t i = 0; i < all->n; i++)
        if (all->number[i] == number)
            return 0;
    all->number =
        realloc(all->number, (size_t)(all->n + 1) * sizeof(*all->number));
    if (!all->number)
        abort();
    all->number[all->n++] = number;
    return 1;
}

static void begin_counts(trial *t)
{
    t->batches = 0;
    for (int i = 0; i < t->members; i++)
        t->member[i].bad = 0;
}

static int open_single(trial *t)
{
    configuration *c = t->c;
    member *m = &t->member[0];
    t->members = 1;
    soak_check(c, sources_layer(&m->layer, c, t->pipeline), "create");
    if (c->gives_names && leat_data_layer_top_count(m->layer) != c->ntop)
        soak_fail(c, "another number of tops");
    return leat_data_layer_setup(m->layer, m->tops[0], c->ntop);
}

static int open_group(trial *t, int n)
{
    configuration *c = t->c;
    leat_blob *top[MEMBERS_MAX * TOPS];
    t->members = n;
    soak_check(c, sources_group(&t->group, c, t->pipeline, n), "create");
    for (int i = 0; i < n; i++) {
        t->member[i].layer = leat_data_layer_group_member(t->group, i);
        for (int k = 0; k < c->ntop; k++)
            top[i * c->ntop + k] = t->member[i].tops[0][k];
    }
    return leat_data_layer_group_setup(t->group, top, c->ntop);
}

/* What the configuration asks for, ready for its first forward; or nothing. */
static void open_layer(trial *t)
{
    configuration *c = t->c;
    int n = c->members > 1 ? between(1, c->members) : 1;
    int status = n > 1 ? open_group(t, n) : open_single(t);
    if (c->options.random_seed < 0)
        c->rules.seed = leat_data_layer_seed(t->member[0].layer);
    begin_counts(t);
    for (int i = 0; i < t->members; i++)
        t->member[i].known.n = 0;
    t->was_set_up |= status == LEAT_OK;
    if (status == LEAT_OK)
        return;
    /* Where the first record fails there is no shape to set up with. */
    int64_t first = reference_position(&c->rules, 0, 0);
    if (status != LEAT_EDATA || c->rules.policy != BAD_FAILS ||
        !record_at(t, first)->is_bad)
        soak_fail(c, "setup");
    close_layer(t);
}

static int forward(const trial *t, member *m, leat_stream stream)
{
    int n = t->c->ntop;
    if (once_in(4))
        m->top = m->tops[below(2)];
    if (below(3) > 0)
        return leat_data_layer_forward(m->layer, m->top, n, stream);
    int status;
    do {
        status =
            leat_data_layer_try_forward(m->layer, m->top, n, stream, below(3));
    } while (status == LEAT_AGAIN);
    return status;
}

static void sleep_briefly(void)
{
    const struct timespec time = {0, 100000};
    nanosleep(&time, NULL);
}

/*
 * What the stream sees: it is told to copy, and the batch is given back, before
 * anybody waits for it.
 */
static void read_on_stream(const trial *t, const member *m,
                           const void *data[TOPS])
{
    const leat_device_ops *ops = m->device->ops;
    for (int i = 0; i < t->c->ntop; i++) {
        const void *from = leat_blob_gpu_data(m->top[i]);
        if (!from)
            soak_fail(t->c, "no device side");
        soak_check(t->c,
                   ops->copy(m->device, m->copy[i], from,
                             leat_blob_bytes(m->top[i]), LEAT_COPY_TO_HOST,
                             m->stream),
                   "copy");
        data[i] = m->copy[i];
    }
    if (once_in(3))
        soak_check(t->c, leat_data_layer_release(m->layer, &m->stream, 1),
                   "release");
    if (once_in(8))
        sleep_briefly();
    soak_check(t->c, ops->stream_synchronize(m->device, m->stream), "stream");
}

static void read_on_host(const trial *t, const member *m,
                         const void *data[TOPS])
{
    for (int i = 0; i < t->c->ntop; i++) {
        data[i] = leat_blob_cpu_data(m->top[i]);
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

static void compare_sample(const trial *t, const member *m, const draws *draws,
                           int64_t i, int64_t position,
                           const void *const data[TOPS])
{
    static double pixels[PIXELS_MAX];
    const configuration *c = t->c;
    const rules *rules = &c->rules;
    double label[3];
    int64_t size = leat_blob_count(m->top[0]) / leat_blob_dim(m->top[0], 0);
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
    leat_replacement kind = !own->is_bad ? LEAT_REPLACEMENT_NONE
                            : stands < 0 ? LEAT_REPLACEMENT_ZEROS
                                         : LEAT_REPLACEMENT_RECORD;
    if (from->replacement != kind)
        soak_fail(t->c, "the provenance is wrong about what stands in");
}

static void check_shape(const trial *t, const member *m, int64_t n)
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
    if (leat_blob_ndim(m->top[0]) != ndim ||
        memcmp(leat_blob_shape(m->top[0]), shape,
               (size_t)ndim * sizeof(*shape)) != 0)
        soak_fail(c, "the data have another shape");
    if (c->ntop > 1 && leat_blob_count(m->top[1]) != n)
        soak_fail(c, "another number of labels");
    if (c->ntop > 2 && leat_blob_count(m->top[2]) != 2 * n)
        soak_fail(c, "the further field has another shape");
}

/* What the layer says of itself. */
static void check_stats(const trial *t, const member *m)
{
    leat_stats stats = {.size = sizeof(stats)};
    soak_check(t->c, leat_data_layer_stats(m->layer, &stats), "stats");
    if (stats.bad_records != m->bad)
        soak_fail(t->c, "another number of bad records");
    if (stats.distinct_bad != m->known.n)
        soak_fail(t->c, "another number of different bad records");
    if (stats.unwritten)
        soak_fail(t->c, "bad records were not written");
    const leat_memory_stats *memory = &stats.memory;
    size_t taken = (size_t)(memory->pinned + memory->pageable + memory->device +
                            memory->host);
    if (t->c->limits_memory &&
        taken > t->c->options.max_memory / (size_t)t->members)
        soak_fail(t->c, "more memory than max_memory");
    if (t->c->options.must_pin && memory->pageable)
        soak_fail(t->c, "memory that is not pinned");
}

/* Bad places among the next n, which the layer will tell of. */
static int64_t expect_bad(trial *t, member *m, int64_t begin, int64_t n)
{
    const rules *rules = &t->c->rules;
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t position = reference_position(rules, begin, i);
        const record *record = record_at(t, position);
        if (!record->is_bad)
            continue;
        bad++;
        /* Where it fails its batch, it is the first one that does. */
        if (bad > 1 && rules->policy == BAD_FAILS)
            continue;
        m->bad++;
        add_number(&m->known, record->number);
        if (!add_number(&t->listed, record->number))
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
    }
    return bad;
}

/* Rows from `n` on are zeros and name no record. */
static void check_padding(const trial *t, const member *m, int64_t n,
                          const leat_provenance from[],
                          const void *const data[TOPS])
{
    const configuration *c = t->c;
    for (int i = 0; i < c->ntop; i++) {
        top_kind kind = i == 0 ? c->rules.top : c->rules.label;
        int64_t rows = leat_blob_dim(m->top[i], 0);
        int64_t all = leat_blob_count(m->top[i]);
        for (int64_t k = rows > 0 ? all / rows * n : 0; k < all; k++)
            if (reference_load(data[i], kind, k) != 0)
                soak_fail(c, "the padding is not zeros");
    }
    for (int64_t i = n; i < leat_blob_dim(m->top[0], 0); i++)
        if (from[i].replacement != LEAT_REPLACEMENT_PADDING ||
            from[i].record != -1 || from[i].source || from[i].key)
            soak_fail(c, "the padding has a provenance");
}

static void compare_batch(const trial *t, const member *m, int64_t begin,
                          int64_t n, int64_t bad, leat_stream stream)
{
    configuration *c = t->c;
    const rules *rules = &c->rules;
    const void *data[TOPS] = {NULL};
    leat_provenance from[BATCH_MAX];
    const leat_batch *batch = leat_data_layer_batch(m->layer);
    int64_t first = n > 0 ? reference_position(rules, begin, 0) : begin;
    int64_t rows = rules->epoch_end == ENDS_PAD ? rules->batch_size : n;
    if (!batch || batch->n != rows || batch->valid != n || batch->bad != bad ||
        batch->epoch != first / rules->count)
        soak_fail(c, "a batch of another size, or with other bad places");
    check_shape(t, m, rows);
    for (int64_t i = 0; i < rows; i++)
        from[i] = batch->from[i];
    if (stream == LEAT_HOST)
        read_on_host(t, m, data);
    else
        read_on_stream(t, m, data);
    draws draws = reference_draws(rules, reference_position(rules, begin, n));
    for (int64_t i = 0; i < n; i++) {
        int64_t position = reference_position(rules, begin, i);
        compare_sample(t, m, &draws, i, position, data);
        check_provenance(t, &from[i], position);
    }
    check_padding(t, m, n, from, data);
    free(draws.word);
    if (stream == LEAT_HOST && once_in(4))
        soak_check(c, leat_data_layer_release(m->layer, NULL, 0), "release");
}

/* Of a batch, how many samples are this rank's. */
static int64_t count_own(const rules *rules, const extent *batch)
{
    int64_t n = 0;
    while (reference_position(rules, batch->begin, n) < batch->end)
        n++;
    return n;
}

/* One batch, which ends at `t->place` then; 0: no more come. */
static int check_batch(trial *t, member *m)
{
    configuration *c = t->c;
    const rules *rules = &c->rules;
    const extent batch = reference_batch(rules, t->place);
    int64_t n = count_own(rules, &batch);
    leat_stream stream = once_in(4) ? LEAT_HOST : m->stream;
    int status = forward(t, m, stream);
    t->place = batch.end;
    if (batch.begin == batch.end) {
        if (status != LEAT_END)
            soak_fail(c, "the end was expected");
        return 0;
    }
    int64_t bad = expect_bad(t, m, batch.begin, n);
    if (bad && rules->policy == BAD_FAILS) {
        if (status != LEAT_EDATA)
            soak_fail(c, "a bad record was expected");
        return 1;
    }
    if (c->options.max_errors >= 0 && m->known.n > c->options.max_errors) {
        if (status != LEAT_ELIMIT || forward(t, m, stream) != LEAT_ELIMIT)
            soak_fail(c, "an end by max_errors was expected");
        return 0;
    }
    soak_check(c, status, "forward");
    compare_batch(t, m, batch.begin, n, bad, stream);
    return 1;
}

/* The first position that this rank gets from here on. */
static int64_t first_position(const trial *t)
{
    const rules *rules = &t->c->rules;
    return reference_position(rules, reference_batch(rules, t->place).begin, 0);
}

/* Goes on in another layer or group: other threads, batches, and ranks where it
   may. */
static void resume(trial *t)
{
    configuration *c = t->c;
    leat_token token;
    leat_token_init(&token);
    soak_check(c,
               t->group ? leat_data_layer_group_save(t->group, &token)
                        : leat_data_layer_save(t->member[0].layer, &token),
               "save");
    if (below(2)) {
        close_layer(t);
        configuration_choose_manner(c);
        if (!c->rules.is_caffe_rng && c->source != FROM_CALLBACK &&
            c->options.random_seed >= 0)
            configuration_choose_ranks(c);
        uint64_t seed = c->rules.seed;
        open_layer(t);
        c->rules.seed = seed;
    }
    int status = LEAT_EDATA;
    if (t->group)
        status = leat_data_layer_group_restore(t->group, &token);
    else if (t->members)
        status = leat_data_layer_restore(t->member[0].layer, &token);
    begin_counts(t);
    leat_token_finish(&token);
    int64_t first = first_position(t);
    if (status == LEAT_EDATA && c->rules.policy == BAD_FAILS &&
        (!t->members || record_at(t, first)->is_bad)) {
        close_layer(t);
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
        strcmp(field[5], expected->replacement) != 0 ||
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
    for (int64_t i = 0; t->members && i < c->batches; i++) {
        member *m = &t->member[t->batches++ % t->members];
        int goes_on = check_batch(t, m);
        if (once_in(4) || !goes_on)
            check_stats(t, m);
        if (!goes_on)
            break;
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
    for (int i = 0; i < c->members; i++)
        open_member(&t, &t.member[i], c->device[i]);
    open_pools(&t);
    unlink(soak_path("bad"));
    t.pipeline = sources_open(c, &keep);
    open_layer(&t);
    int64_t samples = take_batches(&t);
    close_layer(&t);
    for (int i = 0; i < c->members; i++)
        close_member(&t.member[i]);
    leat_pipeline_unref(t.pipeline);
    free(keep);
    check_pools(&t);
    if (c->has_bad_record_file && t.was_set_up)
        check_ledger(&t);
    for (int i = 0; i < MEMBERS_MAX; i++)
        free(t.member[i].known.number);
    free(t.listed.number);
    free(t.line);
    return samples;
}
