#include "sources.h"
#include "dice.h"
#include "support/index_decorators.h"

#include <leat/ext/reader.h>

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_lmdb(const configuration *c)
{
    static unsigned char datum[DATUM_MAX];
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    unlink(soak_path("data.mdb"));
    int code = mdb_env_create(&environment);
    code = code ? code : mdb_env_set_mapsize(environment, 64 << 20);
    code = code ? code
                : mdb_env_open(environment, soak_directory, MDB_NOSYNC, 0600);
    code = code ? code : mdb_txn_begin(environment, NULL, 0, &transaction);
    code = code ? code : mdb_dbi_open(transaction, NULL, 0, &database);
    for (int64_t i = 0; i < c->storage.count && code == 0; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%08lld", (long long)i);
        MDB_val key = {8, name};
        MDB_val value = {record_encode(&c->stored[i], datum), datum};
        code = mdb_put(transaction, database, &key, &value, 0);
    }
    code = code ? code : mdb_txn_commit(transaction);
    if (code)
        soak_fail(c, mdb_strerror(code));
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

/* An image of three dimensions, or of one, or as bytes. */
static leat_field image_field(const configuration *c, const record *record)
{
    size_t n = record_elements(record);
    leat_field field = {
        .dtype = record->values ? LEAT_FLOAT32 : LEAT_UINT8,
        .ndim = 3,
        .shape = {record->channels, record->height, record->width},
        .data = record->pixels,
        .bytes = n};
    if (record->values) {
        field.data = record->values;
        field.bytes = n * sizeof(float);
    }
    if (c->is_flat) {
        field.ndim = 1;
        field.shape[0] = (int64_t)n;
    }
    if (record->file) {
        field.dtype = LEAT_BYTES;
        field.ndim = 1;
        field.shape[0] = (int64_t)record->file_size;
        field.data = record->file;
        field.bytes = record->file_size;
    }
    return field;
}

static int pass_next(void *user, leat_sample *sample)
{
    pass *self = user;
    if (self->next == self->c->storage.count)
        return LEAT_END;
    const record *record = &self->c->stored[self->next++];
    if (record->is_unreadable)
        return leat_error(LEAT_EDATA, "a bad record, on purpose");
    sample->stable = self->c->is_stable;
    sample->nfields = 3;
    sample->field[0] = image_field(self->c, record);
    sample->field[1] =
        (leat_field){LEAT_INT32, 0, &record->label, sizeof(int32_t), {0}};
    sample->field[2] =
        (leat_field){LEAT_INT32, 1, record->more, sizeof(record->more), {2}};
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
    leat_field image = image_field(c, &c->stored[0]);
    leat_field_spec fields[3] = {
        {.name = "data", .dtype = image.dtype, .ndim = image.ndim},
        {.name = "label", .dtype = LEAT_INT32},
        {.name = "more", .dtype = LEAT_INT32, .ndim = 1, .shape = {2}},
    };
    for (int i = 0; i < image.ndim; i++)
        fields[0].shape[i] = -1;
    leat_callbacks callbacks = {.size = sizeof(callbacks),
                                .fields = fields,
                                .nfields = 3,
                                .open = pass_open,
                                .next = pass_next,
                                .reset = c->single_pass ? NULL : pass_reset,
                                .close = pass_close};
    leat_pipeline *pipeline;
    soak_check(c, leat_pipeline_callback(&pipeline, &callbacks, c), "callback");
    return pipeline;
}

/* All records alike and good; one after the other. */
static leat_pipeline *open_memory(const configuration *c, void **keep)
{
    leat_field image = image_field(c, &c->stored[0]);
    size_t n = (size_t)c->storage.count;
    int32_t *labels = malloc(n * (image.bytes + 3 * sizeof(*labels)) + 1);
    if (!labels)
        abort();
    int32_t *more = labels + n;
    char *data = (char *)(more + 2 * n);
    for (size_t i = 0; i < n; i++) {
        labels[i] = c->stored[i].label;
        memcpy(more + 2 * i, c->stored[i].more, 2 * sizeof(*more));
        memcpy(data + i * image.bytes, image_field(c, &c->stored[i]).data,
               image.bytes);
    }
    leat_memory_field fields[3] = {{"data", image.dtype, image.ndim, {0}, data},
                                   {"label", LEAT_INT32, 0, {0}, labels},
                                   {"more", LEAT_INT32, 1, {2}, more}};
    memcpy(fields[0].shape, image.shape, sizeof(image.shape));
    leat_pipeline *pipeline;
    soak_check(c, leat_pipeline_memory(&pipeline, fields, 3, c->storage.count),
               "memory");
    *keep = labels;
    return pipeline;
}

/* What comes after the source, as a pipeline text has it. */
static void write_chain(const configuration *c, char *out, size_t size)
{
    char shuffle[64] = "";
    char slice[96] = "";
    if (c->chain == CHAIN_SHUFFLE || c->chain == CHAIN_BOTH)
        snprintf(shuffle, sizeof(shuffle), " | test_shuffle:seed=%d",
                 c->chain_seed);
    if (c->chain == CHAIN_SLICE || c->chain == CHAIN_BOTH)
        snprintf(slice, sizeof(slice), " | test_slice:skip=%d,take=%d", c->skip,
                 c->take);
    snprintf(out, size, "%s%s", shuffle, slice);
}

static void write_lmdb_text(const configuration *c, char *out, size_t size)
{
    char chain[192];
    write_chain(c, chain, sizeof(chain));
    snprintf(out, size,
             "lmdb:%s,read_ahead=%lld,drop_behind=%d,keep_behind=%lld%s",
             soak_directory, (long long)c->lmdb.read_ahead, c->lmdb.drop_behind,
             (long long)c->lmdb.keep_behind, chain);
}

static void decorate(const configuration *c, const leat_reader_type *type,
                     const char *text, leat_pipeline **pipeline)
{
    leat_pipeline *upstream = *pipeline;
    soak_check(
        c, leat_pipeline_create(pipeline, type, text, NULL, NULL, &upstream, 1),
        "decorate");
    leat_pipeline_unref(upstream);
}

leat_pipeline *sources_open(configuration *c, void **keep)
{
    leat_pipeline *pipeline;
    char text[512];
    *keep = NULL;
    if (c->source == FROM_CALLBACK)
        return open_callback(c);
    if (c->source == FROM_LMDB)
        write_lmdb(c);
    if (c->source == FROM_LMDB && c->is_text) {
        write_lmdb_text(c, text, sizeof(text));
        soak_check(c, leat_pipeline_parse(&pipeline, text), text);
        return pipeline;
    }
    if (c->source == FROM_LMDB)
        soak_check(c, leat_pipeline_lmdb(&pipeline, soak_directory, &c->lmdb),
                   "lmdb");
    else
        pipeline = open_memory(c, keep);
    if (c->chain == CHAIN_SHUFFLE || c->chain == CHAIN_BOTH) {
        snprintf(text, sizeof(text), "seed=%d", c->chain_seed);
        decorate(c, index_decorators_shuffle(), text, &pipeline);
    }
    if (c->chain == CHAIN_SLICE || c->chain == CHAIN_BOTH) {
        snprintf(text, sizeof(text), "skip=%d,take=%d", c->skip, c->take);
        decorate(c, index_decorators_slice(), text, &pipeline);
    }
    return pipeline;
}

static void write_transform(const configuration *c, FILE *out)
{
    const leat_transform_options *t = &c->transform;
    fprintf(out, "  transform_param { scale: %.9g mirror: %d crop_size: %d\n",
            (double)t->scale, t->mirror, t->crop_size);
    fprintf(out, "    force_color: %d force_gray: %d\n", t->force_color,
            t->force_gray);
    if (t->mean_file)
        fprintf(out, "    mean_file: '%s'\n", t->mean_file);
    for (int i = 0; i < t->mean_values; i++)
        fprintf(out, "    mean_value: %.9g\n", (double)t->mean_value[i]);
    fprintf(out, "  }\n");
}

/* Sources, batch and prefetch, where Caffe has them or where leat does. */
static void write_data(const configuration *c, FILE *out)
{
    const leat_data_layer_options *o = &c->options;
    int is_plain = c->chain == CHAIN_NONE && !c->is_text;
    fprintf(out, "  data_param { batch_size: %lld", (long long)o->batch_size);
    if (is_plain)
        fprintf(out, " source: '%s' backend: LMDB", soak_directory);
    if (is_plain && o->prefetch > 0)
        fprintf(out, " prefetch: %d", o->prefetch);
    fprintf(out, " }\n  leat_param {\n");
    if (!is_plain) {
        char text[512];
        write_lmdb_text(c, text, sizeof(text));
        fprintf(out, "    reader: '%s'\n", text);
    }
    if (o->prefetch < 0)
        fprintf(out, "    prefetch: AUTO\n");
    else if (!is_plain)
        fprintf(out, "    prefetch: %d\n", o->prefetch);
    if (o->global_batch_size)
        fprintf(out, "    global_batch_size: %lld\n",
                (long long)o->global_batch_size);
}

static void write_own(const configuration *c, FILE *out)
{
    static const char *const threads[] = {"AUTO", "ON", "OFF"};
    static const char *const modes[] = {"LEND", "COPY"};
    static const char *const policies[] = {"FAIL", "ZERO", "REPLACE"};
    static const char *const places[] = {"CPU", "DEVICE"};
    static const char *const ends[] = {"WRAP", "DROP", "PARTIAL", "PAD"};
    const leat_data_layer_options *o = &c->options;
    write_data(c, out);
    fprintf(out, "    random_seed: %lld rng: %s top_type: %s\n",
            (long long)o->random_seed, o->rng ? "CAFFE" : "LEAT",
            leat_dtype_name(o->top_type));
    if (o->label_type != LEAT_BYTES)
        fprintf(out, "    label_type: %s\n", leat_dtype_name(o->label_type));
    fprintf(out, "    transform_on: %s layout: %s top_mode: %s\n",
            places[o->transform_on], o->layout ? "NHWC" : "NCHW",
            modes[o->top_mode]);
    fprintf(out, "    rank: %d world_size: %d shard_test: %d epoch_end: %s\n",
            o->rank, o->world_size, o->shard_test, ends[o->epoch_end]);
    fprintf(out, "    workers: %d reader_thread: %s caller_helps: %d\n",
            o->workers, threads[o->reader_thread], o->caller_helps);
    fprintf(out, "    max_memory: %zu on_error: %s max_errors: %lld\n",
            o->max_memory, policies[o->on_error], (long long)o->max_errors);
    if (o->bad_record_file)
        fprintf(out, "    bad_record_file: '%s'\n", o->bad_record_file);
    fprintf(out, "  }\n");
}

/* A net of two data layers in the phase, of which the stage leaves ours. */
static void write_net(const configuration *c)
{
    FILE *out = fopen(soak_path("net.prototxt"), "w");
    if (!out)
        soak_fail(c, "no net file");
    const char *phase = c->options.phase ? "TEST" : "TRAIN";
    fprintf(out,
            "name: 'soak'\n"
            "layer { name: 'other' type: 'Data' top: 'x'\n"
            "  include { phase: %s not_stage: 'soak' }\n"
            "  data_param { source: '/nowhere' backend: LMDB batch_size: 1 }\n"
            "}\n"
            "layer { name: 'ours' type: 'Data'\n"
            "  include { phase: %s stage: 'soak' }\n",
            phase, phase);
    for (int i = 0; i < c->ntop; i++)
        fprintf(out, "  top: 'top%d'\n", i);
    write_transform(c, out);
    write_own(c, out);
    fprintf(out,
            "}\n"
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'top0' top: 'ip'\n"
            "  inner_product_param { num_output: 10 } }\n");
    if (fclose(out))
        soak_fail(c, "the net file cannot be written");
}

static int create_from_net(leat_data_layer **out, const configuration *c)
{
    static const char *const stages[] = {"soak", NULL};
    /* What a file has no word for; the stage is one way to choose, the name
       the other. */
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.device = c->options.device;
    options.must_pin = c->options.must_pin;
    options.host_allocator = c->options.host_allocator;
    options.pinned_allocator = c->options.pinned_allocator;
    options.stages = stages;
    if (once_in(2))
        options.layer = "ours";
    write_net(c);
    return leat_data_layer_create_from_net(out, soak_path("net.prototxt"),
                                           c->options.phase, &options);
}

/* The options with names of tops, which are borrowed for good. */
static leat_data_layer_options named_options(const configuration *c)
{
    static const char *const names[] = {"top0", "top1", "top2"};
    static const char *tops[4];
    leat_data_layer_options options = c->options;
    for (int i = 0; i < 4; i++)
        tops[i] = i < c->ntop ? names[i] : NULL;
    if (c->gives_names)
        options.tops = tops;
    return options;
}

int sources_layer(leat_data_layer **out, const configuration *c,
                  const leat_pipeline *pipeline)
{
    leat_data_layer_options options = named_options(c);
    return c->from_net ? create_from_net(out, c)
                       : leat_data_layer_create(out, pipeline, &options);
}

int sources_group(leat_data_layer_group **out, const configuration *c,
                  const leat_pipeline *pipeline, int n)
{
    leat_data_layer_options options = named_options(c);
    const char *devices[MEMBERS_MAX];
    for (int i = 0; i < n; i++)
        devices[i] = c->device[i] ? c->device[i] : "cpu";
    return leat_data_layer_group_create(out, pipeline, &options, devices, n);
}
