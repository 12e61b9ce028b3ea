/* The data layer's life: create, set up, cancel, destroy. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "data/transformer.h"
#include "layer/layer_state.h"
#include "readers/pipeline.h"

#include <stdio.h>
#include <string.h>

/* A run of samples touches about this much memory: it costs tens of
   microseconds, many times what handing it over does. */
#define RUN_BYTES ((size_t)512 << 10)

/* LEAT_PREFETCH_AUTO: from so many batches to so many, or so many bytes. */
#define AUTO_SLOTS_MIN 3
#define AUTO_SLOTS_MAX 64
#define AUTO_BYTES_MAX ((size_t)256 << 20)

static int may_block(const leat_data_layer *self)
{
    return leat__pipeline_may_block(self->pipeline);
}

static int is_threaded(const leat_data_layer *self)
{
    leat_reader_thread choice = self->options.values.reader_thread;
    return choice == LEAT_READER_ON ||
           (choice == LEAT_READER_AUTO && may_block(self));
}

/* Forward never runs what may block for ever, such as a user's callback. */
static int may_help(const leat_data_layer *self)
{
    return self->options.values.help && (is_threaded(self) || !may_block(self));
}

static int set_seed(leat_data_layer *self)
{
    const leat_data_layer_options *options = &self->options.values;
    if (options->random_seed >= 0) {
        self->seed = (uint64_t)options->random_seed;
        return LEAT_OK;
    }
    if (leat__transformer_draws(self->transformer) == 0)
        return LEAT_OK;
    if (self->step > 1)
        return leat_error(LEAT_EINVAL,
                          "%s: with %d ranks random crops and mirrors need a "
                          "random_seed, the same for all",
                          options->name, options->world_size);
    int status = leat__random_seed(&self->seed);
    /* Kept below 2^53, so that JSON and random_seed carry it whole. */
    self->seed >>= 11;
    if (status == LEAT_OK)
        leat__log(LEAT_LOG_INFO, "%s: random_seed drawn: %llu", options->name,
                  (unsigned long long)self->seed);
    return status;
}

int leat_data_layer_create(leat_data_layer **out, const leat_pipeline *pipeline,
                           const leat_data_layer_options *options)
{
    if (!pipeline || !options)
        return leat_error(LEAT_EINVAL,
                          "a data layer needs a pipeline and options");
    leat_data_layer *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    leat_token_init(&self->identity);
    int status = leat__mutex_init(&self->lock);
    if (status)
        goto fail_self;
    status = leat__layer_options_init(&self->options, options);
    if (status)
        goto fail_lock;
    const leat_data_layer_options *values = &self->options.values;
    self->step = leat__layer_options_step(values);
    status = leat_device_find(&self->device, values->device);
    if (status)
        goto fail_options;
    status = leat_transformer_create(&self->transformer, values->transform,
                                     values->phase, values->top_type,
                                     values->layout);
    if (status)
        goto fail_options;
    status = set_seed(self);
    if (status)
        goto fail_transformer;
    /* The count is atomic; all else of a pipeline never changes. */
    self->pipeline = (leat_pipeline *)(uintptr_t)pipeline;
    leat_pipeline_ref(self->pipeline);
    self->may_help = may_help(self);
    self->cores = leat__thread_cores();
    self->solo.is_possible = self->may_help && self->cores == 1;
    leat__ledger_init(&self->ledger, values);
    *out = self;
    return LEAT_OK;

fail_transformer:
    leat_transformer_destroy(self->transformer);
fail_options:
    leat__layer_options_finish(&self->options);
fail_lock:
    pthread_mutex_destroy(&self->lock);
fail_self:
    leat__free(self);
    return status;
}

void leat__data_layer_stop(leat_data_layer *self)
{
    pthread_mutex_lock(&self->lock);
    leat__prefetcher *prefetcher = self->prefetcher;
    leat__data_reader *reader = self->reader;
    self->prefetcher = NULL;
    self->reader = NULL;
    pthread_mutex_unlock(&self->lock);
    /* A failed device cannot be waited for: the stop goes on all the same. */
    if (self->current)
        (void)leat__prefetcher_mark(prefetcher, self->current, &self->stream,
                                    1);
    self->current = NULL;
    leat__prefetcher_destroy(prefetcher);
    leat__data_reader_destroy(reader);
}

void leat_data_layer_destroy(leat_data_layer *self)
{
    if (!self)
        return;
    leat__data_layer_stop(self);
    leat__ledger_finish(&self->ledger);
    leat_token_finish(&self->identity);
    leat_pipeline_unref(self->pipeline);
    leat_transformer_destroy(self->transformer);
    leat__layer_options_finish(&self->options);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

void leat_data_layer_cancel(leat_data_layer *self)
{
    pthread_mutex_lock(&self->lock);
    self->cancelled = 1;
    if (self->prefetcher)
        leat__prefetcher_cancel(self->prefetcher);
    else if (self->reader)
        leat__data_reader_cancel(self->reader);
    pthread_mutex_unlock(&self->lock);
}

/* Shows the new reader to cancel, which may have come before it. */
static int adopt_reader(leat_data_layer *self, leat__data_reader *reader)
{
    pthread_mutex_lock(&self->lock);
    self->reader = reader;
    int cancelled = self->cancelled;
    pthread_mutex_unlock(&self->lock);
    return cancelled
               ? leat_error(LEAT_ECANCELLED, "%s: the layer was cancelled",
                            self->options.name)
               : LEAT_OK;
}

static int adopt_prefetcher(leat_data_layer *self, leat__prefetcher *prefetcher)
{
    pthread_mutex_lock(&self->lock);
    self->prefetcher = prefetcher;
    if (self->cancelled)
        leat__prefetcher_cancel(prefetcher);
    pthread_mutex_unlock(&self->lock);
    return LEAT_OK;
}

static int open_reader(leat_data_layer *self, leat_token *identity)
{
    const leat_data_layer_options *values = &self->options.values;
    int draws = values->rng == LEAT_RNG_CAFFE
                    ? leat__transformer_draws(self->transformer)
                    : 0;
    leat__data_reader_options options = {
        .pipeline = self->pipeline,
        .boxes = values->host_allocator,
        .batch_size = (int)values->batch_size,
        .rank = self->step > 1 ? values->rank : 0,
        .step = self->step,
        .threaded = is_threaded(self),
        .probe = values->reader_thread == LEAT_READER_AUTO,
        .collects = values->on_error != LEAT_ON_ERROR_FAIL,
        .draws = draws,
        .seed = (uint32_t)self->seed + (uint32_t)values->rank,
    };
    leat__data_reader *reader;
    int status =
        leat__data_reader_create(&reader, &options, &self->place, identity);
    return status ? status : adopt_reader(self, reader);
}

static int count_workers(const leat_data_layer *self)
{
    if (self->options.values.workers > 0)
        return self->options.values.workers;
    int cores = self->cores;
    /* The caller is one more that works, when it would wait otherwise. */
    if (self->may_help && cores > 1)
        cores--;
    return cores;
}

static int size_run(const leat_data_layer *self, const leat_sample *sample,
                    const leat__batch_shape *shape)
{
    const leat_field *field = &sample->field[0];
    if (field->dtype == LEAT_BYTES)
        return 1;
    int batch_size = (int)self->options.values.batch_size;
    size_t touched = field->bytes + shape->top[0].bytes + 1;
    size_t n = RUN_BYTES / touched;
    if (n < 1)
        return 1;
    return n < (size_t)batch_size ? (int)n : batch_size;
}

/*
 * As many slots as prefetch and max_memory allow, one of them the caller's; and
 * how many of them go round from the start.
 */
static int count_slots(const leat_data_layer *self,
                       const leat__batch_shape *shape, int *slots,
                       int *circulating)
{
    const leat_data_layer_options *values = &self->options.values;
    int is_auto = values->prefetch == LEAT_PREFETCH_AUTO;
    size_t slot_bytes = shape->bytes;
    size_t each =
        slot_bytes * (self->device->ops->unified ? 1 : 2) + shape->top_bytes;
    size_t limit = values->max_memory;
    *slots = is_auto ? AUTO_SLOTS_MAX : values->prefetch + 1;
    if (limit > 0 && each > limit / 2)
        return leat_error(LEAT_ELIMIT,
                          "%s: max_memory is %zu bytes, but the smallest "
                          "prefetch takes two batches of %zu",
                          values->name, limit, each);
    if (is_auto && limit == 0)
        limit = each > AUTO_BYTES_MAX / AUTO_SLOTS_MIN ? each * AUTO_SLOTS_MIN
                                                       : AUTO_BYTES_MAX;
    if (limit > 0 && each > 0 && limit / each < (size_t)*slots) {
        *slots = (int)(limit / each);
        if (!is_auto)
            leat__log(LEAT_LOG_INFO,
                      "%s: prefetch %d shrinks to %d for max_memory",
                      values->name, values->prefetch, *slots - 1);
    }
    *circulating = is_auto && *slots > AUTO_SLOTS_MIN ? AUTO_SLOTS_MIN : *slots;
    leat__log(
        LEAT_LOG_INFO, "%s: %d batches of %zu bytes on %s, %d of them in use",
        values->name, *slots, slot_bytes, self->device->name, *circulating);
    return LEAT_OK;
}

/* What identifies the data set, for resume tokens; where readers can tell. */
static int identify(leat_data_layer *self)
{
    if (self->identity.size > 0)
        return LEAT_OK;
    int status = leat_reader_save(leat__data_reader_reader(self->reader),
                                  &self->identity);
    return status == LEAT_EUNSUPPORTED ? LEAT_OK : status;
}

static int check_fields(leat_data_layer *self, int ntop)
{
    const leat_field_spec *fields;
    int n;
    leat_reader *reader = leat__data_reader_reader(self->reader);
    int status = leat_reader_fields(reader, &fields, &n);
    if (status)
        return status;
    if (ntop > n)
        return leat_error(LEAT_EINVAL,
                          "%s: %d tops, but the samples have %d fields",
                          self->options.name, ntop, n);
    for (int i = 0; i < ntop; i++)
        snprintf(self->top_name[i], sizeof(self->top_name[i]), "%s",
                 i < self->options.ntop ? self->options.top[i]
                                        : fields[i].name);
    return LEAT_OK;
}

/* With several ranks the record before is often another's: it must be had. */
static int check_policy(const leat_data_layer *self)
{
    if (self->options.values.on_error != LEAT_ON_ERROR_SKIP ||
        self->step == 1 || leat__data_reader_looks_back(self->reader))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: on_error SKIP with %d ranks needs records that can "
                      "be read in any order, and those of %s cannot; expected "
                      "ZERO or FAIL",
                      self->options.name, self->step,
                      leat_pipeline_text(self->pipeline));
}

/*
 * The shape that a record before the place tells (`way` -1), through the epoch
 * before, or one from it on (1), through the next. LEAT_END: none does.
 */
static int look_around(leat_data_layer *self, int way,
                       const leat__assembly *assembly, leat_sample *sample,
                       leat__batch_shape *shape)
{
    int64_t count;
    int status =
        leat_reader_count(leat__data_reader_reader(self->reader), &count);
    if (status)
        return status;
    int64_t epoch = self->place.position / count;
    int64_t index = self->place.position % count - (way > 0);
    for (int64_t n = 0; n < 2 * count; n++) {
        status = leat__data_reader_read_beside(self->reader, way, &epoch,
                                               &index, sample);
        if (status == LEAT_OK)
            status = leat__assembly_shape(assembly, self->transformer, sample,
                                          shape);
        if (status != LEAT_EDATA && status != LEAT_EINVAL)
            return status;
    }
    return LEAT_END;
}

static int look_ahead(leat_data_layer *self, const leat__assembly *assembly,
                      const leat_sample **out, leat__batch_shape *shape)
{
    int status = leat__data_reader_peek(self->reader, out);
    return status
               ? status
               : leat__assembly_shape(assembly, self->transformer, *out, shape);
}

/* The same in order: what comes next, a few records far. */
static int look_on(leat_data_layer *self, const leat__assembly *assembly,
                   const leat_sample **out, leat__batch_shape *shape)
{
    for (int n = 1; n < LEAT__PEEKS_MAX; n++) {
        int status = look_ahead(self, assembly, out, shape);
        if (status != LEAT_EDATA && status != LEAT_EINVAL)
            return status;
    }
    return LEAT_END;
}

/*
 * The shape of the first record; where that is bad, and may be, of another that
 * is near, which `*out` then is. `spare` holds one that is read out of turn.
 */
static int find_shape(leat_data_layer *self, const leat__assembly *assembly,
                      leat_sample *spare, const leat_sample **out,
                      leat__batch_shape *shape)
{
    int first = look_ahead(self, assembly, out, shape);
    if (self->options.values.on_error == LEAT_ON_ERROR_FAIL ||
        (first != LEAT_EDATA && first != LEAT_EINVAL))
        return first;
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = LEAT_END;
    if (leat__data_reader_looks_back(self->reader)) {
        *out = spare;
        for (int way = -1; way <= 1 && status == LEAT_END; way += 2)
            status = look_around(self, way, assembly, spare, shape);
    } else {
        status = look_on(self, assembly, out, shape);
    }
    return status == LEAT_END
               ? leat_error(first, "%s; no record near it tells a shape", line)
               : status;
}

static int start_prefetcher(leat_data_layer *self,
                            const leat__assembly *assembly,
                            const leat_sample *sample,
                            const leat__batch_shape *shape)
{
    const leat_data_layer_options *values = &self->options.values;
    leat__prefetcher_options options = {
        .reader = self->reader,
        .transformer = self->transformer,
        .device = self->device,
        .slabs = self->device->ops->unified ? values->host_allocator
                                            : values->pinned_allocator,
        .boxes = values->host_allocator,
        .assembly = *assembly,
        .shape = *shape,
        .on_error = values->on_error,
        .step = self->step,
        .at_start = self->place.position == 0,
        .must_pin = self->options.values.must_pin,
        .decodes = sample->field[0].dtype == LEAT_BYTES,
        .workers = count_workers(self),
        .run_size = size_run(self, sample, shape),
    };
    int status = count_slots(self, shape, &options.slots, &options.circulating);
    leat__prefetcher *prefetcher;
    if (status == LEAT_OK)
        status = leat__prefetcher_create(&prefetcher, &options);
    if (status)
        return status;
    self->begun = leat__clock_now();
    self->waited = 0;
    self->batches = 0;
    self->samples = 0;
    leat__ledger_clear(&self->ledger);
    memset(&self->waiting, 0, sizeof(self->waiting));
    return adopt_prefetcher(self, prefetcher);
}

int leat__data_layer_start(leat_data_layer *self, int ntop,
                           leat_token *identity, leat__batch_shape *shape)
{
    const leat_data_layer_options *values = &self->options.values;
    int status = open_reader(self, identity);
    if (status == LEAT_OK)
        status = check_policy(self);
    if (status == LEAT_OK)
        status = identify(self);
    if (status == LEAT_OK)
        status = check_fields(self, ntop);
    if (status)
        return status;
    const leat__assembly assembly = {
        .batch_size = (int)values->batch_size,
        .ntop = ntop,
        .layout = values->layout,
        .top_type = values->top_type,
        .label_type = values->label_type,
        .rng = values->rng,
        .seed = self->seed,
        .crops = values->transform_on == LEAT_TRANSFORM_ON_DEVICE &&
                 !self->device->ops->unified,
    };
    leat_sample spare;
    leat_sample_init(&spare);
    spare.allocator = values->host_allocator;
    const leat_sample *sample;
    status = find_shape(self, &assembly, &spare, &sample, shape);
    if (status == LEAT_OK)
        status = start_prefetcher(self, &assembly, sample, shape);
    leat_sample_finish(&spare);
    return status;
}

static int check_tops(const leat_data_layer *self, leat_blob *const top[],
                      int ntop)
{
    const char *name = self->options.name;
    if (!top || ntop < 1 || ntop > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "%s: expected 1 to %d tops, got %d",
                          name, LEAT_MAX_FIELDS, ntop);
    if (self->ntop > 0 && ntop != self->ntop)
        return leat_error(LEAT_EINVAL, "%s: set up with %d tops, got %d", name,
                          self->ntop, ntop);
    for (int i = 0; i < ntop; i++) {
        if (!top[i])
            return leat_error(LEAT_EINVAL, "%s: top %d is NULL", name, i);
        for (int k = 0; k < i; k++) {
            if (top[k] == top[i])
                return leat_error(LEAT_EINVAL,
                                  "%s: tops %d and %d are the same blob", name,
                                  k, i);
        }
        leat_device *device = leat_blob_device(top[i]);
        if (device != self->device)
            return leat_error(LEAT_EINVAL,
                              "%s: top %d is on %s, the layer on %s", name, i,
                              device->name, self->device->name);
    }
    return LEAT_OK;
}

static int reshape_top(leat_blob *blob, const leat__top *top, int64_t n)
{
    int64_t shape[LEAT_MAX_DIMS];
    if (top->ndim >= LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL, "a field has too many dimensions");
    shape[0] = n;
    memcpy(shape + 1, top->shape, (size_t)top->ndim * sizeof(shape[0]));
    return leat_blob_reshape(blob, top->dtype, top->ndim + 1, shape);
}

static int set_up(leat_data_layer *self, leat_blob *const top[], int ntop)
{
    leat__batch_shape shape;
    int status = leat__ledger_open(&self->ledger);
    if (status == LEAT_OK)
        status = leat__data_layer_start(self, ntop, NULL, &shape);
    for (int i = 0; i < ntop && status == LEAT_OK; i++)
        status =
            reshape_top(top[i], &shape.top[i], self->options.values.batch_size);
    return status;
}

int leat_data_layer_setup(leat_data_layer *self, leat_blob *const top[],
                          int ntop)
{
    int status = check_tops(self, top, ntop);
    if (status)
        return status;
    if (self->ntop > 0)
        return leat_error(LEAT_ESTATE, "%s: setup was called before",
                          self->options.name);
    status = set_up(self, top, ntop);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__data_layer_stop(self);
        return leat_error(status, "%s", line);
    }
    self->ntop = ntop;
    return LEAT_OK;
}

const leat_pipeline *leat_data_layer_pipeline(const leat_data_layer *self)
{
    return self->pipeline;
}

const leat_data_layer_options *
leat_data_layer_get_options(const leat_data_layer *self)
{
    return &self->options.values;
}

uint64_t leat_data_layer_seed(const leat_data_layer *self)
{
    return self->seed;
}

int leat_data_layer_top_count(const leat_data_layer *self)
{
    if (self->ntop > 0)
        return self->ntop;
    if (self->options.ntop > 0)
        return self->options.ntop;
    leat_reader *reader;
    int status = leat_pipeline_open(self->pipeline, &reader);
    if (status)
        return status;
    const leat_field_spec *fields;
    int n;
    status = leat_reader_fields(reader, &fields, &n);
    leat_reader_close(reader);
    return status ? status : n;
}

const char *leat_data_layer_top_name(const leat_data_layer *self, int i)
{
    static const char *const usual[] = {"data", "label"};
    if (i < 0 || i >= LEAT_MAX_FIELDS)
        return NULL;
    if (i < self->options.ntop)
        return self->options.top[i];
    if (self->ntop > 0)
        return i < self->ntop ? self->top_name[i] : NULL;
    return i < 2 ? usual[i] : NULL;
}
