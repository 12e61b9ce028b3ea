/*
 * Samples that threads of the user's send.
 *
 * DESIGN
 *
 * A ring of samples under one lock, with a condition for each end. A sample is
 * made self-contained by its sender before the lock is taken; in the lock
 * it only changes places with the one in the ring, so that buffers go round and
 * nothing is allocated once all have grown. Of a buffer far too large for what
 * it has the contents alone move. A reader whose samples have another
 * allocator, or fields of other readers, takes it into one of its own first,
 * and copies it without the lock.
 *
 * Close, kill, reopen and a receiver's cancel change their flags under the lock
 * and wake everybody. No other lock is taken under it. `pass` counts reopens: a
 * receiver takes it over with its first sample, or end, and gives no sample of
 * another one until it seeks.
 */
#include "readers/push.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/shape.h"
#include "base/thread.h"
#include "data/sample.h"

#include <stdio.h>
#include <string.h>

static void copy_fields(leat_push *push, const leat_field_spec fields[], int n)
{
    push->nfields = n;
    for (int i = 0; i < n; i++) {
        push->spec[i] = fields[i];
        snprintf(push->field_name[i], LEAT__PUSH_NAME_SIZE, "%s",
                 fields[i].name ? fields[i].name : "");
        push->spec[i].name = push->field_name[i];
        if (!fields[i].offsets_of)
            continue;
        snprintf(push->offsets_of[i], LEAT__PUSH_NAME_SIZE, "%s",
                 fields[i].offsets_of);
        push->spec[i].offsets_of = push->offsets_of[i];
    }
}

static int check_name(const leat_field_spec fields[], int i)
{
    const char *name = fields[i].name, *offsets_of = fields[i].offsets_of;
    if (!name || !name[0] || strlen(name) >= LEAT__PUSH_NAME_SIZE ||
        (offsets_of && strlen(offsets_of) >= LEAT__PUSH_NAME_SIZE))
        return leat_error(LEAT_EINVAL,
                          "field %d: expected names of 1 to %d letters", i,
                          LEAT__PUSH_NAME_SIZE - 1);
    for (int k = 0; k < i; k++)
        if (!strcmp(fields[k].name, name))
            return leat_error(LEAT_EINVAL, "two fields are \"%s\"", name);
    return LEAT_OK;
}

static int check_specs(const leat_field_spec fields[], int n, int capacity)
{
    if (capacity < 1)
        return leat_error(LEAT_EINVAL,
                          "a queue's capacity is %d: expected 1 sample or more",
                          capacity);
    if (!fields || n < 1 || n > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "expected 1 to %d fields, got %d",
                          LEAT_MAX_FIELDS, fields ? n : 0);
    for (int i = 0; i < n; i++) {
        int status = check_name(fields, i);
        if (status)
            return status;
        if (!leat_dtype_size(fields[i].dtype))
            return leat_error(LEAT_EINVAL, "field %d: unknown dtype %d", i,
                              (int)fields[i].dtype);
        if (fields[i].ndim < -1 || fields[i].ndim > LEAT_MAX_DIMS)
            return leat_error(LEAT_EINVAL, "field %d: ndim is %d", i,
                              fields[i].ndim);
    }
    return LEAT_OK;
}

static int create_locks(leat_push *push)
{
    int status = leat__mutex_init(&push->lock);
    if (status)
        return status;
    status = leat__cond_init(&push->has_room);
    if (status)
        goto fail_lock;
    status = leat__cond_init(&push->has_sample);
    if (!status)
        return LEAT_OK;
    pthread_cond_destroy(&push->has_room);
fail_lock:
    pthread_mutex_destroy(&push->lock);
    return status;
}

int leat_push_create(leat_push **out, const char *name,
                     const leat_field_spec fields[], int nfields, int capacity)
{
    size_t bytes;
    int status = check_specs(fields, nfields, capacity);
    if (status)
        return status;
    if (leat__multiply((size_t)capacity, sizeof(leat_sample), &bytes))
        return leat__error_memory(SIZE_MAX);
    leat_push *push = leat__alloc_zero(1, sizeof(*push) + bytes);
    if (!push)
        return LEAT_ENOMEM;
    status = create_locks(push);
    if (status) {
        leat__free(push);
        return status;
    }
    atomic_init(&push->references, 1);
    push->capacity = capacity;
    push->generation = leat__fork_generation();
    snprintf(push->name, sizeof(push->name), "%s", name ? name : "push");
    copy_fields(push, fields, nfields);
    for (int i = 0; i < capacity; i++)
        leat_sample_init(&push->ring[i]);
    *out = push;
    return LEAT_OK;
}

void leat_push_ref(leat_push *push)
{
    atomic_fetch_add_explicit(&push->references, 1, memory_order_relaxed);
}

/* A forked child frees nothing: threads that it lacks may wait for the
 * conditions there. */
void leat_push_unref(leat_push *push)
{
    if (!push || push->generation != leat__fork_generation() ||
        atomic_fetch_sub(&push->references, 1) > 1)
        return;
    for (int i = 0; i < push->capacity; i++)
        leat_sample_finish(&push->ring[i]);
    pthread_cond_destroy(&push->has_sample);
    pthread_cond_destroy(&push->has_room);
    pthread_mutex_destroy(&push->lock);
    leat__free(push);
}

static int refuse_field(const leat_push *push, int i, const char *what)
{
    return leat_error(LEAT_EINVAL, "%s: field \"%s\" %s", push->name,
                      push->field_name[i], what);
}

static int check_field(const leat_push *push, int i, const leat_field *field)
{
    const leat_field_spec *spec = &push->spec[i];
    size_t bytes;
    if (!leat__shape_bytes(field->ndim, field->shape,
                           leat_dtype_size(field->dtype), &bytes))
        return refuse_field(push, i, "has no type, or a shape that is none");
    if (field->dtype == LEAT_BYTES)
        bytes = field->bytes;
    if (field->bytes < bytes || (!field->data && field->bytes > 0))
        return refuse_field(push, i, "has fewer bytes than its shape needs");
    if (spec->varies)
        return LEAT_OK;
    if (field->dtype != spec->dtype)
        return refuse_field(push, i, "is not of the type that the queue has");
    if (field->dtype == LEAT_BYTES)
        return LEAT_OK;
    bool fits = spec->ndim < 0 || spec->ndim == field->ndim;
    for (int k = 0; fits && k < spec->ndim; k++)
        fits = spec->shape[k] < 0 || spec->shape[k] == field->shape[k];
    return fits ? LEAT_OK
                : refuse_field(push, i,
                               "is not of the shape that the queue "
                               "has");
}

static int check_sample(const leat_push *push, const leat_sample *sample)
{
    int status = LEAT_OK;
    if (sample->deferred)
        return leat_error(LEAT_EINVAL, "%s: a sample is not materialized",
                          push->name);
    if (sample->nfields != push->nfields)
        return leat_error(LEAT_EINVAL,
                          "%s: a sample has %d fields, expected %d", push->name,
                          sample->nfields, push->nfields);
    for (int i = 0; i < push->nfields && !status; i++)
        status = check_field(push, i, &sample->field[i]);
    return status;
}

static int killed(const leat_push *push)
{
    return leat_error(push->killed, "%s", push->line);
}

/* Under the lock. LEAT_AGAIN: it is full, and may not wait. */
static int wait_for_room(leat_push *push, bool waits)
{
    while (push->n == push->capacity && !push->closed && waits) {
        push->waiting_senders++;
        pthread_cond_wait(&push->has_room, &push->lock);
        push->waiting_senders--;
    }
    if (push->killed)
        return killed(push);
    if (push->closed)
        return LEAT_END;
    return push->n < push->capacity ? LEAT_OK : LEAT_AGAIN;
}

/* Exchanges a sample with one of the ring, whose bytes are counted. */
static void exchange(leat_push *push, leat_sample *in_ring, leat_sample *other)
{
    int64_t before = (int64_t)in_ring->buffer_size;
    leat__sample_exchange(in_ring, other);
    atomic_fetch_add_explicit(&push->held,
                              (int64_t)in_ring->buffer_size - before,
                              memory_order_relaxed);
}

static void put(leat_push *push, leat_sample *sample)
{
    sample->from.source = push->name;
    sample->from.record = push->sent++;
    sample->stable = 0;
    exchange(push, &push->ring[(push->first + push->n) % push->capacity],
             sample);
    push->n++;
}

static int send_sample(leat_push *push, leat_sample *sample, bool waits)
{
    int status = check_sample(push, sample);
    if (!status)
        status = leat_sample_own(sample);
    if (status)
        return status;
    int cancel = leat__cancel_disable();
    pthread_mutex_lock(&push->lock);
    status = wait_for_room(push, waits);
    if (!status)
        put(push, sample);
    bool wakes = !status && push->waiting_readers > 0;
    pthread_mutex_unlock(&push->lock);
    if (wakes)
        pthread_cond_signal(&push->has_sample);
    if (!status)
        leat_sample_clear(sample);
    leat__cancel_restore(cancel);
    return status;
}

int leat_push_send(leat_push *push, leat_sample *sample)
{
    return send_sample(push, sample, true);
}

int leat_push_try_send(leat_push *push, leat_sample *sample)
{
    return send_sample(push, sample, false);
}

static void wake_all(leat_push *push)
{
    pthread_cond_broadcast(&push->has_room);
    pthread_cond_broadcast(&push->has_sample);
}

void leat_push_close(leat_push *push)
{
    pthread_mutex_lock(&push->lock);
    push->closed = true;
    wake_all(push);
    pthread_mutex_unlock(&push->lock);
}

void leat_push_reopen(leat_push *push)
{
    pthread_mutex_lock(&push->lock);
    push->first = push->n = 0;
    push->sent = 0;
    push->pass++;
    push->closed = false;
    push->killed = LEAT_OK;
    wake_all(push);
    pthread_mutex_unlock(&push->lock);
}

int leat_push_kill(leat_push *push, int status, const char *line)
{
    if (!leat__status_is_error(status))
        return leat_error(LEAT_EINVAL,
                          "%s: status %d is no error of leat/status.h",
                          push->name, status);
    pthread_mutex_lock(&push->lock);
    push->closed = true;
    push->killed = status;
    snprintf(push->line, sizeof(push->line), "%s",
             line ? line : leat_status_text(status));
    wake_all(push);
    pthread_mutex_unlock(&push->lock);
    return LEAT_OK;
}

int leat_push_capacity(const leat_push *push)
{
    return push->capacity;
}

int leat_push_size(leat_push *push)
{
    pthread_mutex_lock(&push->lock);
    int n = push->n;
    pthread_mutex_unlock(&push->lock);
    return n;
}

int leat_push_is_closed(leat_push *push)
{
    pthread_mutex_lock(&push->lock);
    bool closed = push->closed;
    pthread_mutex_unlock(&push->lock);
    return closed;
}

static void wait_for_sample(leat__push_receiver *receiver)
{
    leat_push *push = receiver->push;
    int64_t begun = leat__clock_now();
    push->waiting_readers++;
    pthread_cond_wait(&push->has_sample, &push->lock);
    push->waiting_readers--;
    leat_reader_add_blocked(receiver->reader, leat__clock_now() - begun);
}

/* Under the lock: LEAT_OK once there is a sample of the reader's pass. */
static int find_sample(leat__push_receiver *receiver)
{
    leat_push *push = receiver->push;
    for (;;) {
        if (atomic_load(&receiver->cancelled))
            return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                              push->name);
        if (push->killed)
            return killed(push);
        if (receiver->has_begun && receiver->pass != push->pass)
            return LEAT_END;
        if (push->n == 0 && !push->closed) {
            wait_for_sample(receiver);
            continue;
        }
        receiver->pass = push->pass;
        receiver->has_begun = true;
        return push->n > 0 ? LEAT_OK : LEAT_END;
    }
}

static void take(leat_push *push, leat_sample *out)
{
    exchange(push, &push->ring[push->first], out);
    push->first = (push->first + 1) % push->capacity;
    push->n--;
}

/* Whether the sample in the ring may change places with that one. */
static bool can_exchange(const leat_push *push, const leat_sample *out)
{
    return out->nfields == 0 &&
           push->ring[push->first].allocator == out->allocator;
}

int leat__push_receive(leat__push_receiver *receiver, leat_sample *const out[],
                       int n, int *got)
{
    leat_push *push = receiver->push;
    size_t bytes = 0;
    pthread_mutex_lock(&push->lock);
    int status = find_sample(receiver);
    while (!status && push->n > 0 && *got < n && bytes < LEAT__CALL_BYTES &&
           can_exchange(push, out[*got])) {
        size_t before = out[*got]->buffer_size;
        take(push, out[*got]);
        bytes += leat__sample_added(out + (*got)++, 1, before);
    }
    if (!status && *got == 0) {
        take(push, &receiver->taken);
        receiver->has_sample = true;
    }
    bool wakes = !status && push->waiting_senders > 0;
    pthread_mutex_unlock(&push->lock);
    if (wakes && *got > 1)
        pthread_cond_broadcast(&push->has_room);
    else if (wakes)
        pthread_cond_signal(&push->has_room);
    return status;
}

int leat__push_restart(leat__push_receiver *receiver)
{
    leat_push *push = receiver->push;
    pthread_mutex_lock(&push->lock);
    bool has_begun = receiver->has_begun && receiver->pass == push->pass;
    pthread_mutex_unlock(&push->lock);
    if (has_begun)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: a queue has a single pass, until it is reopened",
                          push->name);
    receiver->has_begun = receiver->has_sample = false;
    return LEAT_OK;
}

void leat__push_cancel(leat__push_receiver *receiver)
{
    leat_push *push = receiver->push;
    pthread_mutex_lock(&push->lock);
    atomic_store(&receiver->cancelled, true);
    pthread_cond_broadcast(&push->has_sample);
    pthread_mutex_unlock(&push->lock);
}
