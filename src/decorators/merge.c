/*
 * merge: samples of several readers in the order of their arrival.
 *
 * DESIGN. Each input has a thread, which the first next starts, and `buffer`
 * items, each a sample with its status. `lock` protects the items' lists, the
 * counts and the flags; an item in no list belongs to whoever took it: to its
 * input's thread, from the free ones until it has arrived, or to next, from its
 * arrival until it is free. Under the lock no reader reads.
 *
 * A thread waits on `room` while it has nothing to do: at the end of the epoch,
 * while seek has all of them pause, or without a free item. next waits on
 * `arrival`, and seek on `idle` until no thread is inside its reader. cancel
 * cancels the readers, and wakes all; close does the same before it joins.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"
#include "decorators/field_list.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The most inputs; and items that are moved under one lock. */
enum { INPUTS_MAX = 256, AT_ONCE = 16 };

typedef struct item {
    leat_sample sample;
    int input;
    int status;         /* LEAT_OK, or what took the sample's place */
    char *line;         /* its error line; NULL: none was needed yet */
    size_t buffer_size; /* of the sample, as counted in bytes */
} item;

typedef struct merge_reader merge_reader;

/* An input, and the thread that reads it. */
typedef struct input {
    merge_reader *merge;
    leat_reader *reader;
    leat__thread thread;
    int at_once; /* samples that its thread asks for */
    /* Under lock: */
    bool is_reading; /* it has not ended in this epoch */
    item **free;     /* of its own, the first nfree */
    int nfree;
} input;

struct merge_reader {
    leat__decorator decorator; /* first */
    leat__field_list fields;
    int buffer;
    input *input;
    item *items;
    atomic_int_fast64_t bytes;
    unsigned generation; /* of the process whose threads these are */
    bool is_started;     /* all threads are; one caller's */
    bool has_threads;    /* some may be; likewise */
    pthread_mutex_t lock;
    pthread_cond_t room, arrival, idle;
    /* Under lock: */
    item **arrived; /* a ring of all items */
    int first, narrived;
    int nreading; /* inputs that have not ended */
    int ninside;  /* threads that are inside their reader */
    bool is_pausing, is_cancelled, is_closing;
};

static merge_reader *merge_of(leat_reader *reader)
{
    return (merge_reader *)reader;
}

static int items_of(const merge_reader *merge)
{
    return merge->decorator.nupstream * merge->buffer;
}

static int merge_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    *out = merge_of(reader)->fields.spec;
    *n = merge_of(reader)->fields.n;
    return LEAT_OK;
}

static bool may_read(const input *input)
{
    const merge_reader *merge = input->merge;
    return input->is_reading && input->nfree > 0 && !merge->is_pausing &&
           !merge->is_cancelled;
}

/* Reads into items; the status that ended them is in the last one. */
static int read_items(input *input, item *const items[], int n, int *filled)
{
    leat_sample *sample[AT_ONCE];
    int got;
    for (int i = 0; i < n; i++) {
        sample[i] = &items[i]->sample;
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
    leat__counter_add(&input->merge->bytes, bytes);
    return status;
}

/* Hands on what was read; the rest is free again. */
static void arrive(input *input, item *const items[], int n, int filled,
                   int status)
{
    merge_reader *merge = input->merge;
    int all = items_of(merge);
    for (int i = 0; i < filled; i++)
        merge->arrived[(merge->first + merge->narrived++) % all] = items[i];
    for (int i = filled; i < n; i++)
        input->free[input->nfree++] = items[i];
    if (status && status != LEAT_EDATA) {
        input->is_reading = false;
        merge->nreading--;
    }
    pthread_cond_signal(&merge->arrival);
}

/*
 * A turn of a thread that may read, under lock before and after. A reader that
 * may block is asked for one sample, so that none waits for the next one.
 */
static void read_some(input *input)
{
    merge_reader *merge = input->merge;
    item *items[AT_ONCE] = {NULL};
    int n = 0, filled;
    while (n < input->at_once && input->nfree > 0)
        items[n++] = input->free[--input->nfree];
    merge->ninside++;
    pthread_mutex_unlock(&merge->lock);
    int status = read_items(input, items, n, &filled);
    pthread_mutex_lock(&merge->lock);
    merge->ninside--;
    arrive(input, items, n, filled, status);
    if (merge->is_pausing && merge->ninside == 0)
        pthread_cond_signal(&merge->idle);
}

static void *read_input(void *argument)
{
    input *input = argument;
    merge_reader *merge = input->merge;
    input->at_once = leat_reader_may_block(input->reader) ? 1 : AT_ONCE;
    pthread_mutex_lock(&merge->lock);
    while (!merge->is_closing) {
        if (may_read(input))
            read_some(input);
        else
            pthread_cond_wait(&merge->room, &merge->lock);
    }
    pthread_mutex_unlock(&merge->lock);
    return NULL;
}

/* Where not all threads start, close joins those that did. */
static int start(merge_reader *merge)
{
    int status = LEAT_OK;
    merge->has_threads = true;
    for (int i = 0; i < merge->decorator.nupstream && !status; i++) {
        input *input = &merge->input[i];
        if (input->thread.running)
            continue;
        input->thread.owner = leat__thread_owner();
        status =
            leat__thread_start(&input->thread, "leat-merge", read_input, input);
    }
    merge->is_started = !status;
    return status;
}

/* Waits for a sample, under lock. LEAT_END: all inputs have ended. */
static int await_arrival(merge_reader *merge)
{
    int64_t begun = 0;
    while (merge->narrived == 0 && merge->nreading > 0 &&
           !merge->is_cancelled) {
        if (begun == 0)
            begun = leat__clock_now();
        pthread_cond_wait(&merge->arrival, &merge->lock);
    }
    if (begun > 0)
        leat_reader_add_blocked(&merge->decorator.reader,
                                leat__clock_now() - begun);
    if (merge->is_cancelled)
        return LEAT_ECANCELLED;
    return merge->narrived > 0 ? LEAT_OK : LEAT_END;
}

/* Takes what has arrived, up to the first that is no sample. */
static int take_arrived(merge_reader *merge, item *items[], int n, int *status)
{
    int taken = 0;
    pthread_mutex_lock(&merge->lock);
    *status = await_arrival(merge);
    bool is_last = *status != LEAT_OK;
    while (taken < n && merge->narrived > 0 && !is_last) {
        items[taken] = merge->arrived[merge->first];
        is_last = items[taken]->status != LEAT_OK;
        merge->first = (merge->first + 1) % items_of(merge);
        merge->narrived--;
        taken++;
    }
    pthread_mutex_unlock(&merge->lock);
    return taken;
}

static void free_items(merge_reader *merge, item *const items[], int n)
{
    pthread_mutex_lock(&merge->lock);
    for (int i = 0; i < n; i++) {
        input *input = &merge->input[items[i]->input];
        input->free[input->nfree++] = items[i];
    }
    pthread_cond_broadcast(&merge->room);
    pthread_mutex_unlock(&merge->lock);
}

/* The caller's buffer, in exchange, may be of another size. */
static int give(merge_reader *merge, item *item, leat_sample *out)
{
    int status = leat_sample_move(out, &item->sample);
    leat__counter_add(&merge->bytes, (int64_t)item->sample.buffer_size -
                                         (int64_t)item->buffer_size);
    item->buffer_size = item->sample.buffer_size;
    if (!status && item->status)
        status = leat_error(item->status, "%s", item->line);
    return status;
}

static bool is_of_parent(const merge_reader *merge)
{
    return merge->generation != leat__fork_generation();
}

/* A forked child has neither the threads nor a lock that it may take. */
static int check_usable(const merge_reader *merge)
{
    return is_of_parent(merge)
               ? leat_error(LEAT_ESTATE,
                            "merge: was opened in another process; "
                            "open the pipeline after fork()")
               : LEAT_OK;
}

static int merge_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    merge_reader *merge = merge_of(reader);
    item *items[AT_ONCE];
    int status = check_usable(merge);
    if (!status && !merge->is_started)
        status = start(merge);
    if (status)
        return status;
    int taken = take_arrived(merge, items, n < AT_ONCE ? n : AT_ONCE, &status);
    if (status == LEAT_ECANCELLED)
        return leat__decorator_check_running(&merge->decorator);
    for (int i = 0; i < taken && !status; i++) {
        status = give(merge, items[i], out[i]);
        *got += !status;
    }
    if (taken > 0)
        free_items(merge, items, taken);
    return status;
}

/* Has all threads wait outside of their readers, and drops what arrived. */
static void pause_all(merge_reader *merge)
{
    pthread_mutex_lock(&merge->lock);
    merge->is_pausing = true;
    while (merge->ninside > 0)
        pthread_cond_wait(&merge->idle, &merge->lock);
    for (; merge->narrived > 0; merge->narrived--) {
        item *item = merge->arrived[merge->first];
        input *input = &merge->input[item->input];
        input->free[input->nfree++] = item;
        merge->first = (merge->first + 1) % items_of(merge);
    }
    pthread_mutex_unlock(&merge->lock);
}

static void resume_all(merge_reader *merge, bool is_reading)
{
    int n = merge->decorator.nupstream;
    pthread_mutex_lock(&merge->lock);
    merge->is_pausing = false;
    merge->nreading = is_reading ? n : 0;
    for (int i = 0; i < n; i++)
        merge->input[i].is_reading = is_reading;
    pthread_cond_broadcast(&merge->room);
    pthread_mutex_unlock(&merge->lock);
}

static int merge_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    merge_reader *merge = merge_of(reader);
    int status = check_usable(merge);
    (void)mark;
    if (status)
        return status;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "merge: no index finds a sample again that comes in "
                          "the order of its arrival");
    pause_all(merge);
    for (int i = 0; i < merge->decorator.nupstream && !status; i++)
        status = leat_reader_seek(merge->decorator.upstream[i], position, NULL);
    resume_all(merge, status == LEAT_OK);
    return status;
}

static void merge_cancel(leat_reader *reader)
{
    merge_reader *merge = merge_of(reader);
    leat__decorator_cancel(reader);
    if (is_of_parent(merge))
        return;
    pthread_mutex_lock(&merge->lock);
    merge->is_cancelled = true;
    pthread_cond_broadcast(&merge->room);
    pthread_cond_broadcast(&merge->arrival);
    pthread_mutex_unlock(&merge->lock);
}

/* In a forked child the threads do not run, and the lock is as it was. */
static void stop(merge_reader *merge)
{
    if (is_of_parent(merge))
        return;
    for (int i = 0; i < merge->decorator.nupstream && merge->input; i++)
        if (merge->input[i].thread.running)
            leat_reader_cancel(merge->decorator.upstream[i]);
    pthread_mutex_lock(&merge->lock);
    merge->is_closing = true;
    pthread_cond_broadcast(&merge->room);
    pthread_mutex_unlock(&merge->lock);
    for (int i = 0; i < merge->decorator.nupstream && merge->input; i++)
        leat__thread_join(&merge->input[i].thread);
    pthread_cond_destroy(&merge->idle);
    pthread_cond_destroy(&merge->arrival);
    pthread_cond_destroy(&merge->room);
    pthread_mutex_destroy(&merge->lock);
}

/* What an open that failed half-way has made. */
static void finish(merge_reader *merge)
{
    stop(merge);
    for (int i = 0; i < merge->decorator.nupstream && merge->input; i++)
        leat__free(merge->input[i].free);
    for (int i = 0; i < items_of(merge) && merge->items; i++) {
        leat_sample_finish(&merge->items[i].sample);
        leat__free(merge->items[i].line);
    }
    leat__field_list_finish(&merge->fields);
    leat__free(merge->input);
    leat__free(merge->items);
    leat__free(merge->arrived);
}

static void merge_close(leat_reader *reader)
{
    merge_reader *merge = merge_of(reader);
    /* What threads may have been changing stays where it is. */
    if (merge->has_threads && is_of_parent(merge))
        return;
    finish(merge);
    leat__decorator_close(reader);
}

static int merge_count(leat_reader *reader, int64_t *out)
{
    const leat__decorator *decorator = &merge_of(reader)->decorator;
    int64_t sum = 0;
    int status = LEAT_OK;
    for (int i = 0; i < decorator->nupstream && !status; i++) {
        int64_t count;
        status = leat_reader_count(decorator->upstream[i], &count);
        if (!status && __builtin_add_overflow(sum, count, &sum))
            sum = LEAT_ENDLESS - count;
    }
    if (!status)
        *out = sum;
    return status;
}

static int cannot_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static int merge_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return leat_error(LEAT_ESTATE,
                      "merge: the order of arrival cannot be saved; expected "
                      "interleave or mix, whose order comes again");
}

static int64_t merge_memory(leat_reader *reader)
{
    return leat__counter_get(&merge_of(reader)->bytes);
}

static const leat_reader_ops merge_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "merge",
    .fields = merge_fields,
    .next = merge_next,
    .seek = merge_seek,
    .cancel = merge_cancel,
    .close = merge_close,
    .count = merge_count,
    .can_seek = cannot_seek,
    .save = merge_save,
    .restore = merge_save,
    .memory = merge_memory,
};

static int create_locks(merge_reader *merge)
{
    int status = leat__mutex_init(&merge->lock);
    if (status)
        return status;
    status = leat__cond_init(&merge->room);
    if (status)
        goto fail_room;
    status = leat__cond_init(&merge->arrival);
    if (status)
        goto fail_arrival;
    status = leat__cond_init(&merge->idle);
    if (!status)
        return LEAT_OK;
    pthread_cond_destroy(&merge->arrival);
fail_arrival:
    pthread_cond_destroy(&merge->room);
fail_room:
    pthread_mutex_destroy(&merge->lock);
    return status;
}

static int create_input(merge_reader *merge, int i,
                        const leat_allocator *allocator)
{
    input *input = &merge->input[i];
    input->merge = merge;
    input->reader = merge->decorator.upstream[i];
    input->is_reading = true;
    input->free = leat__alloc_zero((size_t)merge->buffer, sizeof(item *));
    if (!input->free)
        return LEAT_ENOMEM;
    for (int k = 0; k < merge->buffer; k++) {
        item *item = &merge->items[i * merge->buffer + k];
        item->sample.allocator = allocator;
        item->input = i;
        item->line = leat__alloc(LEAT__ERROR_MAX);
        if (!item->line)
            return LEAT_ENOMEM;
        input->free[input->nfree++] = item;
    }
    return LEAT_OK;
}

static int create(merge_reader *merge, const leat_allocator *allocator)
{
    int n = merge->decorator.nupstream;
    size_t all = (size_t)items_of(merge);
    merge->nreading = n;
    merge->input = leat__alloc_zero((size_t)n, sizeof(*merge->input));
    merge->items = leat__alloc_zero(all, sizeof(*merge->items));
    merge->arrived = leat__alloc_zero(all, sizeof(item *));
    int status =
        merge->input && merge->items && merge->arrived ? LEAT_OK : LEAT_ENOMEM;
    for (int i = 0; i < n && !status; i++)
        status = create_input(merge, i, allocator);
    leat__counter_add(&merge->bytes,
                      (int64_t)(all * (sizeof(item) + LEAT__ERROR_MAX)));
    return status ? status
                  : leat__field_list_merge_all(&merge->fields, "merge",
                                               merge->decorator.upstream, n);
}

static int merge_open(const leat_open *open, leat_reader **out)
{
    if (open->world_size > 1)
        return leat_error(LEAT_EUNSUPPORTED,
                          "merge: with %d ranks each would have another order "
                          "of arrival; expected interleave or mix",
                          open->world_size);
    merge_reader *merge = leat__decorator_new(open, &merge_ops, sizeof(*merge));
    if (!merge)
        return LEAT_ENOMEM;
    merge->buffer = (int)leat_args_number(open->args, "buffer");
    merge->generation = leat__fork_generation();
    int status = create_locks(merge);
    if (status) {
        leat__free(merge);
        return status;
    }
    status = create(merge, open->allocator);
    if (status) {
        finish(merge);
        leat__free(merge);
        return status;
    }
    *out = &merge->decorator.reader;
    return LEAT_OK;
}

static const leat_argument merge_arguments[] = {
    {.name = "buffer",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "8",
     .min = 1,
     .max = 65536,
     .help = "samples that are read ahead of each input"},
    {0},
};

const leat_reader_type leat__merge_type = {
    .size = sizeof(leat_reader_type),
    .name = "merge",
    .help = "samples of several readers in the order of their arrival",
    .arguments = merge_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = INPUTS_MAX,
    .may_block = 1,
    .open = merge_open,
};

int leat_pipeline_merge(leat_pipeline **out, leat_pipeline *const upstream[],
                        int n, int buffer)
{
    char text[32] = "";
    if (buffer != 0)
        snprintf(text, sizeof(text), "buffer=%d", buffer);
    return leat_pipeline_create(out, &leat__merge_type, text, NULL, NULL,
                                upstream, n);
}
