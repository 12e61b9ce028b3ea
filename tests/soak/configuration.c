#include "configuration.h"
#include "dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char soak_directory[32];
const char *soak_devices[4] = {"cpu"};
int soak_ndevices = 1;

const char *soak_path(const char *name)
{
    static char path[96];
    snprintf(path, sizeof(path), "%s/%s", soak_directory, name);
    return path;
}

top_kind configuration_kind(leat_dtype type)
{
    switch (type) {
    case LEAT_UINT8:
        return TOP_UINT8;
    case LEAT_FLOAT32:
        return TOP_FLOAT;
    case LEAT_FLOAT64:
        return TOP_DOUBLE;
    case LEAT_FLOAT16:
        return TOP_HALF;
    case LEAT_BFLOAT16:
        return TOP_BFLOAT;
    case LEAT_INT32:
        return TOP_INT32;
    default:
        return TOP_INT64;
    }
}

size_t configuration_batch_bytes(const configuration *c)
{
    /* Two sides and a top of the device's own; each array is aligned. */
    size_t sample = PIXELS_MAX * 8 + 128;
    return 3 * ((size_t)c->options.batch_size * sample + 65536);
}

/* The order and the part of the stored records that an epoch has. */
static void choose_chain(configuration *c)
{
    int64_t n = c->storage.count;
    c->rules.count = n;
    if (c->source == FROM_CALLBACK || !once_in(3))
        return;
    c->chain = (chain)between(1, 3);
    c->chain_seed = below(1000);
    if (c->chain == CHAIN_SHUFFLE)
        return;
    c->skip = below((int)n);
    c->take = between(1, 2 * (int)n);
    int64_t left = n - c->skip;
    c->rules.count = left < c->take ? left : c->take;
}

/* As index_decorators.h has it: i -> i m + seed, m prime to the count. */
static int64_t shuffled(int64_t i, int64_t n, int64_t seed)
{
    int64_t m = 2 * seed + 3;
    for (;; m++) {
        int64_t a = m;
        int64_t b = n;
        while (b > 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return (i * m + seed) % n;
    }
}

static void order_records(configuration *c)
{
    int64_t n = c->storage.count;
    int is_shuffled = c->chain == CHAIN_SHUFFLE || c->chain == CHAIN_BOTH;
    c->records = calloc((size_t)c->rules.count, sizeof(*c->records));
    if (!c->records)
        abort();
    for (int64_t i = 0; i < c->rules.count; i++) {
        int64_t from = i + c->skip;
        if (is_shuffled)
            from = shuffled(from, n, c->chain_seed);
        c->records[i] = c->stored[from];
    }
    c->rules.records = c->records;
}

static int has_good(const configuration *c)
{
    for (int64_t i = 0; i < c->rules.count; i++)
        if (!c->records[i].is_bad)
            return 1;
    return 0;
}

/* The shape comes from a good record: there must be one. */
static void choose_records(configuration *c)
{
    c->storage.count = once_in(3) ? between(1, 400) : between(1, 60);
    int most = c->source == FROM_MEMORY ? 2 : 4;
    int kind = below(most);
    c->storage.storage = kind == 1  ? STORED_FLOATS
                         : kind > 1 ? STORED_PNG
                                    : STORED_RAW;
    if (c->source == FROM_MEMORY)
        c->storage.storage = once_in(4) ? STORED_FLOATS : STORED_RAW;
    c->storage.varies = c->source != FROM_MEMORY && once_in(4);
    c->storage.bad_in =
        c->source != FROM_MEMORY && once_in(3) ? between(2, 12) : 0;
    if (c->storage.storage == STORED_PNG && once_in(2))
        c->storage.force = (force)between(1, 2);
    choose_chain(c);
    c->stored = records_make(&c->storage);
    order_records(c);
    while (!has_good(c)) {
        free(c->records);
        records_free(c->stored, c->storage.count);
        c->stored = records_make(&c->storage);
        order_records(c);
    }
}

static void choose_crop(configuration *c)
{
    const record *first = &c->records[0];
    int smallest = first->height < first->width ? first->height : first->width;
    for (int64_t i = 0; i < c->rules.count; i++) {
        const record *record = &c->records[i];
        int side =
            record->height < record->width ? record->height : record->width;
        smallest = side < smallest ? side : smallest;
    }
    /* Where sides differ only a crop makes them alike. */
    if (c->storage.varies || once_in(2))
        c->rules.crop = between(1, smallest);
    c->is_flat = c->source != FROM_LMDB && !c->storage.varies &&
                 c->storage.storage != STORED_PNG && !c->rules.crop &&
                 once_in(3);
}

/* A flat image is one channel of one row. */
static void flatten(configuration *c)
{
    if (!c->is_flat)
        return;
    for (int64_t i = 0; i < c->storage.count; i++) {
        c->stored[i].width = (int)record_elements(&c->stored[i]);
        c->stored[i].height = c->stored[i].channels = 1;
    }
    free(c->records);
    order_records(c);
}

static void choose_mean(configuration *c)
{
    const record *first = &c->records[0];
    static char path[96];
    int kind = below(4);
    c->rules.scale = below(2) ? 1.0f : 0.00390625f * (float)between(1, 700);
    if (kind == 1 || kind == 2) {
        c->rules.mean_values = kind == 1 ? 1 : first->channels;
        for (int i = 0; i < 4; i++)
            c->rules.mean_value[i] = (float)between(-3000, 30000) * 0.01f;
    } else if (kind == 3 && !c->storage.varies) {
        size_t n = record_elements(first);
        c->mean_image = malloc(n * sizeof(float));
        if (!c->mean_image)
            abort();
        for (size_t i = 0; i < n; i++)
            c->mean_image[i] = (float)between(0, 25500) * 0.01f;
        snprintf(path, sizeof(path), "%s", soak_path("mean.binaryproto"));
        unlink(path);
        if (leat_mean_save(path, first->channels, first->height, first->width,
                           c->mean_image) != LEAT_OK)
            abort();
        c->transform.mean_file = path;
    }
    c->rules.mean_image = c->mean_image;
}

static void choose_batch_size(configuration *c)
{
    leat_data_layer_options *options = &c->options;
    options->batch_size = between(1, 17);
    options->global_batch_size =
        once_in(3) ? options->batch_size * options->world_size : 0;
    options->epoch_end = (leat_epoch_end)(below(2) ? below(4) : 0);
    if (c->rules.count < options->batch_size * c->rules.step &&
        options->epoch_end == LEAT_EPOCH_END_DROP)
        options->epoch_end = LEAT_EPOCH_END_PAD;
    c->rules.batch_size = options->batch_size;
    c->rules.epoch_end = (epoch_end)options->epoch_end;
}

void configuration_choose_manner(configuration *c)
{
    leat_data_layer_options *options = &c->options;
    options->prefetch = below(5) ? between(1, 6) : LEAT_PREFETCH_AUTO;
    options->workers = below(5);
    options->reader_thread = (leat_reader_thread)below(3);
    options->caller_helps =
        below(2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options->top_mode = (leat_top_mode)below(2);
    options->must_pin = once_in(4);
    choose_batch_size(c);
    c->limits_memory = once_in(4);
    size_t least = configuration_batch_bytes(c) * (size_t)c->members;
    options->max_memory = c->limits_memory ? least * (size_t)between(2, 9) : 0;
}

void configuration_choose_ranks(configuration *c)
{
    leat_data_layer_options *options = &c->options;
    options->world_size = below(2) ? 1 : between(1, 4);
    options->rank = below(options->world_size);
    options->shard_test = below(2);
    int divides = c->rules.is_train || options->shard_test;
    c->rules.step = divides ? options->world_size : 1;
    c->rules.rank = options->rank;
    choose_batch_size(c);
}

static void choose_devices(configuration *c)
{
    c->members = once_in(4) ? between(2, MEMBERS_MAX) : 1;
    for (int i = 0; i < c->members; i++)
        if (soak_ndevices > 1 && once_in(c->members > 1 ? 2 : 3))
            c->device[i] = soak_devices[between(1, soak_ndevices - 1)];
    c->options.device = c->device[0];
}

/* Types of tops, where the transform is done, and what goes with them. */
static void choose_types(configuration *c)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT64, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    static const leat_dtype labels[] = {LEAT_FLOAT32, LEAT_FLOAT64, LEAT_INT32,
                                        LEAT_INT64, LEAT_UINT8};
    rules *rules = &c->rules;
    int is_float = c->storage.storage == STORED_FLOATS;
    leat_dtype top = types[below(is_float ? 4 : 5)];
    rules->top = configuration_kind(top);
    rules->label = top == LEAT_FLOAT64 ? TOP_DOUBLE : TOP_FLOAT;
    c->options.top_type = top;
    if (once_in(2)) {
        c->options.label_type = labels[below(5)];
        rules->label = configuration_kind(c->options.label_type);
    }
    if (top == LEAT_UINT8) {
        c->transform.mean_file = NULL;
        rules->mean_image = NULL;
        rules->mean_values = 0;
        rules->scale = 1;
    }
    choose_devices(c);
    /* "late" has no kernels, and a group is of one kind for them. */
    int has_kernel = !c->device[0] || c->device[0][0] != 'l';
    for (int i = 1; i < c->members; i++)
        has_kernel &= !c->device[i] == !c->device[0];
    if (has_kernel && !is_float && top != LEAT_FLOAT64 && once_in(2))
        c->options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
}

static void choose_transform(configuration *c)
{
    rules *rules = &c->rules;
    c->transform.crop_size = rules->crop;
    c->transform.mirror = rules->mirror;
    c->transform.scale = rules->scale;
    c->transform.mean_value = rules->mean_values ? rules->mean_value : NULL;
    c->transform.mean_values = rules->mean_values;
    /* What is not encoded is not decoded: it has no say there. */
    force force = c->storage.storage == STORED_PNG ? c->storage.force
                                                   : (enum force)below(3);
    c->transform.force_color = force == FORCE_COLOR;
    c->transform.force_gray = force == FORCE_GRAY;
    c->options.transform = &c->transform;
}

static void choose_errors(configuration *c)
{
    static char path[96];
    rules *rules = &c->rules;
    rules->policy = (bad_policy)below(3);
    if (c->source == FROM_CALLBACK && rules->step > 1)
        rules->policy = BAD_FAILS;
    c->options.on_error = (leat_on_error)rules->policy;
    if (rules->policy != BAD_FAILS && once_in(3)) {
        c->options.max_errors = below(30);
        c->options.has_max_errors = true;
    }
    c->has_bad_record_file = once_in(3);
    snprintf(path, sizeof(path), "%s", soak_path("bad"));
    if (c->has_bad_record_file)
        c->options.bad_record_file = path;
}

static void choose_layer(configuration *c)
{
    rules *rules = &c->rules;
    c->options.size = sizeof(c->options);
    (void)leat_data_layer_options_init(&c->options);
    rules->is_train = below(2);
    rules->mirror = below(2);
    rules->is_nhwc = !c->is_flat && once_in(3);
    rules->is_caffe_rng = once_in(3);
    rules->seed = (uint64_t)below(1000000000);
    choose_types(c);
    choose_transform(c);
    configuration_choose_ranks(c);
    configuration_choose_manner(c);
    choose_errors(c);
    c->options.phase = rules->is_train ? LEAT_TRAIN : LEAT_TEST;
    c->options.layout = rules->is_nhwc ? LEAT_NHWC : LEAT_NCHW;
    c->options.rng = rules->is_caffe_rng ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    c->options.random_seed = (int64_t)rules->seed;
    /* Drawn by the layer, which says it. */
    if (rules->step == 1 && once_in(4))
        c->options.random_seed = -1;
    c->options.has_random_seed = true;
    c->ntop = c->source == FROM_LMDB ? between(1, 2) : between(1, 3);
    c->from_net = c->source == FROM_LMDB && c->members == 1 && once_in(3);
    c->gives_names = c->from_net || once_in(3);
}

void configuration_choose(configuration *c)
{
    const leat_lmdb_options plain = LEAT_LMDB_OPTIONS_INIT;
    memset(c, 0, sizeof(*c));
    c->transform.size = sizeof(c->transform);
    (void)leat_transform_options_init(&c->transform);
    c->lmdb = plain;
    c->source = (source_kind)below(3);
    choose_records(c);
    choose_crop(c);
    flatten(c);
    choose_mean(c);
    choose_layer(c);
    if (once_in(3))
        c->lmdb.read_ahead = below(2) ? 65536 : -1;
    if (once_in(3)) {
        c->lmdb.drop_behind = 1;
        c->lmdb.keep_behind = below(2) ? 65536 : -1;
    }
    c->is_text = c->source == FROM_LMDB && once_in(2);
    c->is_stable = below(2);
    /* A single pass is for one rank: the others' ends would differ. */
    c->single_pass =
        c->source == FROM_CALLBACK && c->rules.step == 1 && once_in(3);
    c->rules.single_pass = c->single_pass;
    c->rules.reads_back = c->source != FROM_CALLBACK;
    c->batches = between(1, 40);
    int replays = c->rules.reads_back || c->rules.policy != BAD_SKIPS;
    c->resumes = !c->single_pass && replays && below(2);
}

void configuration_finish(configuration *c)
{
    records_free(c->stored, c->storage.count);
    free(c->records);
    free(c->mean_image);
}

void configuration_describe(const configuration *c)
{
    const leat_data_layer_options *o = &c->options;
    const rules *r = &c->rules;
    fprintf(stderr,
            "  source %d, chain %d (seed %d, skip %d, take %d), %lld records "
            "of %lld, storage %d, force %d, varies %d, bad in %d, single pass "
            "%d, flat %d, stable %d, text %d, read_ahead %lld, drop_behind %d, "
            "keep_behind %lld\n",
            c->source, c->chain, c->chain_seed, c->skip, c->take,
            (long long)r->count, (long long)c->storage.count,
            c->storage.storage, c->storage.force, c->storage.varies,
            c->storage.bad_in, c->single_pass, c->is_flat, c->is_stable,
            c->is_text, (long long)c->lmdb.read_ahead, c->lmdb.drop_behind,
            (long long)c->lmdb.keep_behind);
    fprintf(
        stderr,
        "  net %d, tops %d, members %d, devices %s %s %s, batch %lld "
        "(global %lld), prefetch "
        "%d, workers %d, reader_thread %d, caller_helps %d, top_mode %d, top "
        "%d, "
        "label %d, layout %d, transform_on %d, must_pin %d, max_memory "
        "%zu\n",
        c->from_net, c->ntop, c->members, c->device[0] ? c->device[0] : "cpu",
        c->device[1] ? c->device[1] : "cpu",
        c->device[2] ? c->device[2] : "cpu", (long long)o->batch_size,
        (long long)o->global_batch_size, o->prefetch, o->workers,
        o->reader_thread, o->caller_helps, o->top_mode, o->top_type,
        o->label_type, o->layout, o->transform_on, o->must_pin, o->max_memory);
    fprintf(stderr,
            "  phase %d, rank %d of %d (step %d), epoch_end %d, rng %d, seed "
            "%lld, crop %d, "
            "mirror %d, scale %g, mean image %d, mean values %d, on_error %d, "
            "max_errors %lld, bad_record_file %d, resumes %d, batches %lld\n",
            o->phase, o->rank, o->world_size, r->step, o->epoch_end, o->rng,
            (long long)o->random_seed, r->crop, r->mirror, (double)r->scale,
            c->transform.mean_file != NULL, r->mean_values, o->on_error,
            (long long)o->max_errors, c->has_bad_record_file, c->resumes,
            (long long)c->batches);
}
