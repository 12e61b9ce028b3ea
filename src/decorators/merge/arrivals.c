#include "decorators/merge/arrivals.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/sample.h"
#include "decorators/recent_largest.h"

#include <assert.h>

/* Items that are moved under one lock. */
enum { AT_ONCE = 16 };

struct leat__arrived_item {
    leat_sample sample;
    int input;
    int status;         /* LEAT_OK, or what took the sample's place */
    char *line;         /* its error line; NULL: none was needed yet */
    size_t buffer_size; /* of the sample, as counted in bytes */
    size_t counted;     /* the same of the input's; under lock */
};

typedef leat__arrived_item item;

/* An input, and the thread that reads it. */
struct leat__arrivals_input {
    leat__arrivals *arrivals;
    leat_reader *reader;
    leat__thread thread;
    int at_once; /* samples that its thread asks for */
    /* Under lock: */
    bool is_reading; /* it has not ended in this epoch */
    item **free;     /* of its own, the first nfree */
    int nfree;
    int64_t bytes;               /* of its items' buffers */
    int64_t free_bytes;          /* of the free ones */
    leat__recent_largest recent; /* bytes of a buffer; -1: none was read yet */
};

typedef leat__arrivals_input input;

static int count_items(const leat__arrivals *arrivals)
{
    return arrivals->n * arrivals->buffer;
}

/* Bytes by which an item's buffer grows for one of the largest samples. */
static int64_t growth(const input *input, const item *item)
{
    int64_t bytes = input->recent.largest - (int64_t)item->counted;
    return bytes > 0 ? bytes : 0;
}

/* Free items that max_memory has room for, up to `most`: one of all items, and
   no other while the size of a sample is not known. */
static int count_room(const input *input, int most)
{
    const leat__arrivals *arrivals = input->arrivals;
    int64_t left = arrivals->max_bytes - input->bytes;
    int n = 0, first = input->nfree == arrivals->buffer;
    most = most < input->nfree ? most : input->nfree;
    if (arrivals->max_bytes < 0)
        return most;
    if (input->recent.largest < 0)
        return first;
    while (n < most) {
        left -= growth(input, input->free[input->nfree - 1 - n]);
        if (left < 0)
            break;
        n++;
    }
    return n > first ? n : first;
}

/* How many samples an input may read at once; 0: none now. */
static int count_readable(const input *input)
{
    const leat__arrivals *arrivals = input->arrivals;
    if (!input->is_reading || arrivals->is_pausing || arrivals->is_cancelled)
        return 0;
    return count_room(input, input->at_once);
}

/* Counts what an item's sample has in memory by now. */
static void count_item(input *input, item *item)
{
    input->bytes += (int64_t)item->buffer_size - (int64_t)item->counted;
    item->counted = item->buffer_size;
}

static void put_free(input *input, item *item)
{
    count_item(input, item);
    input->free[input->nfree++] = item;
    input->free_bytes += (int64_t)item->counted;
}

static item *take_free(input *input)
{
    item *item = input->free[--input->nfree];
    input->free_bytes -= (int64_t)item->counted;
    return item;
}

/* Frees the buffer of a free item, which nobody knows by its address. */
static void trim(input *input, item *item)
{
    size_t before = item->counted;
    if (before == 0 || item->sample.idle < 0)
        return;
    leat_sample_clear(&item->sample);
    leat__sample_release(&item->sample);
    item->buffer_size = item->sample.buffer_size;
    leat__counter_add(&input->arrivals->bytes,
                      (int64_t)item->buffer_size - (int64_t)before);
    count_item(input, item);
    input->free_bytes += (int64_t)item->counted - (int64_t)before;
}

/* Frees buffers of free items that take the room of the next sample, those that
   were not used for long first. */
static void fit(input *input)
{
    int64_t most = input->arrivals->max_bytes;
    if (most < 0 || input->free_bytes == 0)
        return;
    const item *next = input->free[input->nfree - 1];
    most -= growth(input, next);
    for (int i = 0; i < input->nfree - 1 && input->bytes > most &&
                    input->free_bytes > (int64_t)next->counted;
         i++)
        trim(input, input->free[i]);
}

/* Reads into items; the status that ended them is in the last one. */
static int read_items(input *input, item *const items[], int n, int *filled)
{
    leat_sample *sample[AT_ONCE];
    int got;
    for (int i = 0; i < n; i++) {
        sample[i] = &items[i]->sample;
        leat__sample_trim_ahead(sample[i]);
        items[i]->status = LEAT_OK;
    }
    int status = leat_reader_next_batch(input->reader, sample, n, &got);
    *filled = got;
    if (status && status != LEAT_END) {
        items[got]->status = status;
        leat__error_save(items[got]->line);
        *filled = got + 1;
    }
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        size_t size = items[i]->sample.buffer_size;
        bytes += (int64_t)size - (int64_t)items[i]->buffer_size;
        items[i]->buffer_size = size;
    }
    leat__counter_add(&input->arrivals->bytes, bytes);
    return status;
}

static void note_size(input *input, int64_t bytes)
{
    leat__arrivals *arrivals = input->arrivals;
    if (atomic_load_explicit(&arrivals->first_bytes, memory_order_relaxed) < 0)
        atomic_store_explicit(&arrivals->first_bytes, bytes,
                              memory_order_relaxed);
    leat__recent_largest_add(&input->recent, bytes);
}

/* Hands on what was read; the rest is free again. An end has no size. */
static void arrive(input *input, item *const items[], int n, int filled,
                   int status)
{
    leat__arrivals *arrivals = input->arrivals;
    int all = count_items(arrivals);
    assert(filled <= n);
    for (int i = 0; i < filled; i++) {
        count_item(input, items[i]);
        if (!items[i]->status || items[i]->counted > 0)
            note_size(input, (int64_t)items[i]->counted);
        arrivals->arrived[(arrivals->first + arrivals->narrived++) % all] =
            items[i];
    }
    for (int i = filled; i < n; i++)
        put_free(input, items[i]);
    fit(input);
    if (status && status != LEAT_EDATA) {
        input->is_reading = false;
        arrivals->nreading--;
    }
    pthread_cond_signal(&arrivals->arrival);
}

/*
 * A turn of a thread that may read, under lock before and after. A reader that
 * may block is asked for one sample, so that none waits for the next one.
 */
static void read_some(input *input, int n)
{
    leat__arrivals *arrivals = input->arrivals;
    item *items[AT_ONCE] = {NULL};
    int filled;
    for (int i = 0; i < n; i++)
        items[i] = take_free(input);
    arrivals->ninside++;
    pthread_mutex_unlock(&arrivals->lock);
    int status = read_items(input, items, n, &filled);
    pthread_mutex_lock(&arrivals->lock);
    arrivals->ninside--;
    arrive(input, items, n, filled, status);
    if (arrivals->is_pausing && arrivals->ninside == 0)
        pthread_cond_signal(&arrivals->idle);
}

static void *read_input(void *argument)
{
    input *input = argument;
    leat__arrivals *arrivals = input->arrivals;
    input->at_once = leat_reader_may_block(input->reader) ? 1 : AT_ONCE;
    pthread_mutex_lock(&arrivals->lock);
    while (!arrivals->is_closing) {
        int n = count_readable(input);
        if (n > 0)
            read_some(input, n);
        else
            pthread_cond_wait(&arrivals->room, &arrivals->lock);
    }
    pthread_mutex_unlock(&arrivals->lock);
    return NULL;
}

/* Where not all threads start, close joins those that did. */
static int start(leat__arrivals *arrivals)
{
    int status = LEAT_OK;
    for (int i = 0; i < arrivals->n && !status; i++) {
        input *input = &arrivals->input[i];
        if (input->thread.running)
            continue;
        input->thread.owner = leat__thread_owner();
        status =
            leat__thread_start(&input->thread, "leat-merge", read_input, input);
    }
    arrivals->is_started = !status;
    return status;
}

/* Waits for a sample, under lock. LEAT_END: all inputs have ended. */
static int await_arrival(leat__arrivals *arrivals)
{
    int64_t begun = 0;
    while (arrivals->narrived == 0 && arrivals->nreading > 0 &&
           !arrivals->is_cancelled) {
        if (begun == 0)
            begun = leat__clock_now();
        pthread_cond_wait(&arrivals->arrival, &arrivals->lock);
    }
    if (begun > 0)
        leat_reader_add_blocked(arrivals->reader, leat__clock_now() - begun);
    if (arrivals->is_cancelled)
        return LEAT_ECANCELLED;
    return arrivals->narrived > 0 ? LEAT_OK : LEAT_END;
}

/* Takes what has arrived for samples of the caller's, up to the first that is
 * no sample. */
static int take_arrived(leat__arrivals *arrivals, leat_sample *const out[],
                        item *items[], int n, int *status)
{
    int taken = 0;
    size_t bytes = 0;
    pthread_mutex_lock(&arrivals->lock);
    *status = await_arrival(arrivals);
    bool is_last = *status != LEAT_OK;
    while (taken < n && arrivals->narrived > 0 && !is_last) {
        items[taken] = arrivals->arrived[arrivals->first];
        leat_sample *const given = &items[taken]->sample;
        bytes += leat__sample_added(&given, 1, out[taken]->buffer_size);
        is_last = items[taken]->status != LEAT_OK || bytes >= LEAT__CALL_BYTES;
        arrivals->first = (arrivals->first + 1) % count_items(arrivals);
        arrivals->narrived--;
        taken++;
    }
    pthread_mutex_unlock(&arrivals->lock);
    return taken;
}

static void free_items(leat__arrivals *arrivals, item *const items[], int n)
{
    pthread_mutex_lock(&arrivals->lock);
    for (int i = 0; i < n; i++) {
        input *input = &arrivals->input[items[i]->input];
        put_free(input, items[i]);
        fit(input);
    }
    pthread_cond_broadcast(&arrivals->room);
    pthread_mutex_unlock(&arrivals->lock);
}

/* The caller's buffer, in exchange, may be of another size. */
static int give(leat__arrivals *arrivals, item *item, leat_sample *out)
{
    leat__sample_count_use(&item->sample);
    int status = leat_sample_move(out, &item->sample);
    leat__counter_add(&arrivals->bytes, (int64_t)item->sample.buffer_size -
                                            (int64_t)item->buffer_size);
    item->buffer_size = item->sample.buffer_size;
    if (!status && item->status)
        status = leat_error(item->status, "%s", item->line);
    return status;
}

int leat__arrivals_next(leat__arrivals *arrivals, leat_sample *const out[],
                        int n, int *got)
{
    item *items[AT_ONCE];
    int status = arrivals->is_started ? LEAT_OK : start(arrivals);
    if (status)
        return status;
    int taken =
        take_arrived(arrivals, out, items, n < AT_ONCE ? n : AT_ONCE, &status);
    if (status == LEAT_ECANCELLED)
        return leat_error(LEAT_ECANCELLED, "merge: reading was cancelled");
    for (int i = 0; i < taken && !status; i++) {
        status = give(arrivals, items[i], out[i]);
        *got += !status;
    }
    if (taken > 0)
        free_items(arrivals, items, taken);
    return status;
}

void leat__arrivals_pause(leat__arrivals *arrivals)
{
    pthread_mutex_lock(&arrivals->lock);
    arrivals->is_pausing = true;
    while (arrivals->ninside > 0)
        pthread_cond_wait(&arrivals->idle, &arrivals->lock);
    for (; arrivals->narrived > 0; arrivals->narrived--) {
        item *item = arrivals->arrived[arrivals->first];
        put_free(&arrivals->input[item->input], item);
        arrivals->first = (arrivals->first + 1) % count_items(arrivals);
    }
    pthread_mutex_unlock(&arrivals->lock);
}

void leat__arrivals_resume(leat__arrivals *arrivals, bool is_reading)
{
    int n = arrivals->n;
    pthread_mutex_lock(&arrivals->lock);
    arrivals->is_pausing = false;
    arrivals->nreading = is_reading ? n : 0;
    for (int i = 0; i < n; i++)
        arrivals->input[i].is_reading = is_reading;
    pthread_cond_broadcast(&arrivals->room);
    pthread_mutex_unlock(&arrivals->lock);
}

void leat__arrivals_cancel(leat__arrivals *arrivals)
{
    pthread_mutex_lock(&arrivals->lock);
    arrivals->is_cancelled = true;
    pthread_cond_broadcast(&arrivals->room);
    pthread_cond_broadcast(&arrivals->arrival);
    pthread_mutex_unlock(&arrivals->lock);
}

static void stop(leat__arrivals *arrivals)
{
    for (int i = 0; i < arrivals->n && arrivals->input; i++)
        if (arrivals->input[i].thread.running)
            leat_reader_cancel(arrivals->input[i].reader);
    pthread_mutex_lock(&arrivals->lock);
    arrivals->is_closing = true;
    pthread_cond_broadcast(&arrivals->room);
    pthread_mutex_unlock(&arrivals->lock);
    for (int i = 0; i < arrivals->n && arrivals->input; i++)
        leat__thread_join(&arrivals->input[i].thread);
    pthread_cond_destroy(&arrivals->idle);
    pthread_cond_destroy(&arrivals->arrival);
    pthread_cond_destroy(&arrivals->room);
    pthread_mutex_destroy(&arrivals->lock);
}

void leat__arrivals_finish(leat__arrivals *arrivals)
{
    stop(arrivals);
    for (int i = 0; i < arrivals->n && arrivals->input; i++)
        leat__free(arrivals->input[i].free);
    for (int i = 0; i < count_items(arrivals) && arrivals->items; i++) {
        leat_sample_finish(&arrivals->items[i].sample);
        leat__free(arrivals->items[i].line);
    }
    leat__free(arrivals->input);
    leat__free(arrivals->items);
    leat__free(arrivals->arrived);
}

static int create_locks(leat__arrivals *arrivals)
{
    int status = leat__mutex_init(&arrivals->lock);
    if (status)
        return status;
    status = leat__cond_init(&arrivals->room);
    if (status)
        goto fail_room;
    status = leat__cond_init(&arrivals->arrival);
    if (status)
        goto fail_arrival;
    status = leat__cond_init(&arrivals->idle);
    if (!status)
        return LEAT_OK;
    pthread_cond_destroy(&arrivals->arrival);
fail_arrival:
    pthread_cond_destroy(&arrivals->room);
fail_room:
    pthread_mutex_destroy(&arrivals->lock);
    return status;
}

static int create_input(leat__arrivals *arrivals, int i, leat_reader *reader,
                        const leat_allocator *allocator)
{
    input *input = &arrivals->input[i];
    input->arrivals = arrivals;
    input->reader = reader;
    input->is_reading = true;
    input->recent.largest = -1;
    input->free = leat__alloc_zero((size_t)arrivals->buffer, sizeof(item *));
    if (!input->free)
        return LEAT_ENOMEM;
    for (int k = 0; k < arrivals->buffer; k++) {
        item *item = &arrivals->items[i * arrivals->buffer + k];
        item->sample.allocator = allocator;
        item->input = i;
        item->line = leat__alloc(LEAT__ERROR_MAX);
        if (!item->line)
            return LEAT_ENOMEM;
        put_free(input, item);
    }
    return LEAT_OK;
}

/* What the items take without their samples. */
static int64_t size_items(const leat__arrivals *arrivals)
{
    return count_items(arrivals) * (int64_t)(sizeof(item) + LEAT__ERROR_MAX);
}

int64_t leat__arrivals_most(const leat__arrivals *arrivals)
{
    int64_t first =
        atomic_load_explicit(&arrivals->first_bytes, memory_order_relaxed);
    int64_t each = first > arrivals->max_bytes ? first : arrivals->max_bytes;
    return size_items(arrivals) + (each > 0 ? arrivals->n * each : 0);
}

/* Beside the items their samples have ahead_bytes, as far as there are. */
static int share_memory(leat__arrivals *arrivals,
                        const leat__arrivals_options *options)
{
    int64_t bytes = size_items(arrivals);
    int64_t left = options->max_memory - bytes, most = options->ahead_bytes;
    arrivals->max_bytes = options->max_memory == 0
                              ? -1
                              : (left < most ? left : most) / options->n;
    if (options->max_memory == 0 || options->max_memory >= bytes) {
        leat__counter_add(&arrivals->bytes, bytes);
        return LEAT_OK;
    }
    return leat_error(LEAT_ELIMIT,
                      "merge: a buffer of %d samples for each of %d readers "
                      "takes %lld bytes or more, but max_memory is %lld: "
                      "expected a smaller buffer",
                      options->buffer, options->n, (long long)bytes,
                      (long long)options->max_memory);
}

int leat__arrivals_init(leat__arrivals *out,
                        const leat__arrivals_options *options)
{
    int n = options->n;
    *out = (leat__arrivals){.reader = options->reader,
                            .n = n,
                            .buffer = options->buffer,
                            .first_bytes = -1,
                            .nreading = n};
    size_t all = (size_t)count_items(out);
    int status = share_memory(out, options);
    if (!status)
        status = create_locks(out);
    if (status)
        return status;
    out->input = leat__alloc_zero((size_t)n, sizeof(*out->input));
    out->items = leat__alloc_zero(all, sizeof(*out->items));
    out->arrived = leat__alloc_zero(all, sizeof(item *));
    if (!out->input || !out->items || !out->arrived)
        status = LEAT_ENOMEM;
    for (int i = 0; i < n && !status; i++)
        status = create_input(out, i, options->upstream[i], options->allocator);
    if (status)
        leat__arrivals_finish(out);
    return status;
}
