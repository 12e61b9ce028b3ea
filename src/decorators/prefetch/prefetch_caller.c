/* What the caller of prefetch does: see prefetch_threads.c. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "decorators/prefetch/prefetch_reader.h"

#define OF_NO_EPOCH INT64_MAX

static bool is_idle(const leat__prefetch *prefetch)
{
    return prefetch->busy == 0;
}

static bool is_upstream_free(const leat__prefetch *prefetch)
{
    return !prefetch->is_pulling;
}

static bool has_front(const leat__prefetch *prefetch)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    const leat__prefetch_slot *front = leat__prefetch_buffer_front(buffer);
    if (!prefetch->is_unordered || (front && front->is_ready))
        return front && front->is_ready;
    for (int64_t i = buffer->head; i < buffer->tail; i++) {
        const leat__prefetch_slot *slot = buffer->ring[i % buffer->size];
        if (slot && slot->is_ready)
            return !slot->status || slot->status == LEAT_EDATA;
    }
    return false;
}

static bool is_mark_known(const leat__prefetch *prefetch)
{
    return !prefetch->is_pulling || prefetch->pulled ||
           leat__prefetch_buffer_front(&prefetch->buffer);
}

static void give_back_locked(leat__prefetch *prefetch)
{
    while (prefetch->nspent > 0)
        leat__prefetch_buffer_give(&prefetch->buffer,
                                   prefetch->spent[--prefetch->nspent]);
    leat__prefetch_fit(prefetch);
}

/*
 * Doubles what is read ahead, as far as its bytes allow, if that was once full
 * and is now found empty.
 */
static void grow_locked(leat__prefetch *prefetch)
{
    if (!prefetch->was_full || prefetch->buffer.nslots < prefetch->usual)
        return;
    leat__prefetch_grow(prefetch, 2 * prefetch->buffer.nslots);
    prefetch->was_full = false;
}

static int wait_for_front(leat__prefetch *prefetch)
{
    if (has_front(prefetch))
        return LEAT_OK;
    grow_locked(prefetch);
    leat__prefetch_unlock(prefetch);
    int64_t begun = leat__clock_now();
    pthread_mutex_lock(&prefetch->lock);
    int status = leat__prefetch_wait(prefetch, has_front);
    leat_reader_add_blocked(&prefetch->decorator.reader,
                            leat__clock_now() - begun);
    return status;
}

/*
 * Takes ready slots, a quarter of the room at most: so many are not read ahead.
 * Without `waits` there may be none.
 */
static int refill(leat__prefetch *prefetch, bool waits)
{
    int status = LEAT_OK;
    leat__prefetch_slot *slot;
    prefetch->ngiven = prefetch->given_at = 0;
    pthread_mutex_lock(&prefetch->lock);
    give_back_locked(prefetch);
    if (waits)
        status = wait_for_front(prefetch);
    int most = (leat__prefetch_room(prefetch) + 3) / 4;
    while (!status && prefetch->ngiven < most &&
           (slot = leat__prefetch_buffer_pop(&prefetch->buffer,
                                             prefetch->is_unordered)) != NULL)
        prefetch->given[prefetch->ngiven++] = slot;
    leat__prefetch_unlock(prefetch);
    return status;
}

/*
 * The slot to be delivered next, in `*out`; NULL: none is ready. An end or an
 * error is returned as such, and stays.
 */
static int look(leat__prefetch *prefetch, bool waits, leat__prefetch_slot **out)
{
    int status = LEAT_OK;
    *out = NULL;
    if (prefetch->given_at == prefetch->ngiven)
        status = refill(prefetch, waits);
    if (status || prefetch->given_at == prefetch->ngiven)
        return status;
    leat__prefetch_slot *slot = prefetch->given[prefetch->given_at];
    if (slot->status == LEAT_END)
        return LEAT_END;
    if (slot->status && slot->status != LEAT_EDATA)
        return leat_error(slot->status, "%s", slot->line);
    *out = slot;
    return LEAT_OK;
}

static void spend(leat__prefetch *prefetch)
{
    prefetch->spent[prefetch->nspent++] = prefetch->given[prefetch->given_at++];
}

/* Moves a slot's sample to the caller's, whose buffer is counted when the slot
 * is given back. */
static int deliver(leat__prefetch *prefetch, leat__prefetch_slot *slot,
                   leat_sample *out)
{
    if (slot->status)
        slot->sample.nfields = slot->sample.deferred = 0;
    leat__sample_count_use(&slot->sample);
    int status = leat_sample_move(out, &slot->sample);
    if (status)
        return status;
    spend(prefetch);
    return slot->status ? leat_error(slot->status, "%s", slot->line) : LEAT_OK;
}

int leat__prefetch_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    leat__prefetch_slot *slot;
    size_t bytes = 0;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (!status && !prefetch->is_started)
        status = leat__prefetch_start(prefetch);
    while (!status && *got < n && bytes < LEAT__CALL_BYTES) {
        status = look(prefetch, *got == 0, &slot);
        if (status || !slot)
            break;
        size_t before = out[*got]->buffer_size;
        status = deliver(prefetch, slot, out[*got]);
        bytes += leat__sample_added(out + *got, 1, before);
        *got += !status;
    }
    return status;
}

/* The upstream reader for the caller alone, between two pulls. */
static int acquire(leat__prefetch *prefetch)
{
    if (!prefetch->is_started)
        return LEAT_OK;
    pthread_mutex_lock(&prefetch->lock);
    int status = leat__prefetch_wait(prefetch, is_upstream_free);
    if (!status)
        prefetch->is_pulling = true;
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

static void release(leat__prefetch *prefetch)
{
    if (!prefetch->is_started)
        return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_pulling = false;
    leat__prefetch_unlock(prefetch);
}

/* No thread works until resume. */
static int pause_threads(leat__prefetch *prefetch)
{
    if (!prefetch->is_started)
        return LEAT_OK;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_paused = true;
    int status = leat__prefetch_wait(prefetch, is_idle);
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

static void resume_threads(leat__prefetch *prefetch)
{
    if (!prefetch->is_started)
        return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_paused = false;
    leat__prefetch_unlock(prefetch);
}

/* All that was read ahead, while the threads pause. */
static void drop_all(leat__prefetch *prefetch)
{
    while (prefetch->given_at < prefetch->ngiven)
        spend(prefetch);
    pthread_mutex_lock(&prefetch->lock);
    give_back_locked(prefetch);
    leat__prefetch_buffer_clear(&prefetch->buffer);
    prefetch->is_stuck = false;
    prefetch->seek_status = LEAT_OK;
    pthread_mutex_unlock(&prefetch->lock);
}

/* After a call that lost the position nothing comes until a seek succeeds. */
static void get_stuck(leat__prefetch *prefetch, int status)
{
    pthread_mutex_lock(&prefetch->lock);
    leat__prefetch_slot *slot = leat__prefetch_buffer_take(&prefetch->buffer);
    slot->status = status;
    slot->is_ready = true;
    slot->epoch = OF_NO_EPOCH; /* LEAT_END, too */
    leat__error_save(slot->line);
    leat__prefetch_buffer_push(&prefetch->buffer, slot);
    prefetch->is_stuck = true;
    pthread_mutex_unlock(&prefetch->lock);
}

static bool has_begun_epoch(const leat__prefetch *prefetch)
{
    const leat__prefetch_slot *end = prefetch->given[prefetch->given_at];
    return prefetch->next.epoch > end->epoch || prefetch->seek_status;
}

/* Whether the end of the epoch before `position` is delivered next. */
static bool is_end_before(leat__prefetch *prefetch, leat_position position)
{
    if (!prefetch->is_started || position.index > 0)
        return false;
    if (prefetch->given_at == prefetch->ngiven)
        (void)refill(prefetch, false);
    if (prefetch->given_at == prefetch->ngiven)
        return false;
    const leat__prefetch_slot *slot = prefetch->given[prefetch->given_at];
    return slot->status == LEAT_END && slot->epoch == position.epoch - 1;
}

/* Into the epoch that the threads have begun. */
static int go_on(leat__prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->lock);
    int status = leat__prefetch_wait(prefetch, has_begun_epoch);
    leat__prefetch_slot *end = prefetch->given[prefetch->given_at];
    if (!status && prefetch->next.epoch <= end->epoch) {
        status = leat_error(prefetch->seek_status, "%s", prefetch->seek_line);
        /* Another seek asks the upstream reader again. */
        if (status != LEAT_EUNSUPPORTED)
            end->epoch = OF_NO_EPOCH;
    }
    pthread_mutex_unlock(&prefetch->lock);
    if (!status)
        spend(prefetch);
    return status;
}

/* Refused before anything that was read ahead is dropped. */
static int check_position(const leat__prefetch *prefetch,
                          leat_position position)
{
    if (prefetch->by_index && position.index > prefetch->count)
        return leat_error(LEAT_EINVAL,
                          "prefetch: sample %lld is out of range: there are "
                          "%lld",
                          (long long)position.index,
                          (long long)prefetch->count);
    if (position.index > 0 &&
        (prefetch->is_unordered ||
         !leat_reader_can_seek(leat__prefetch_upstream(prefetch))))
        return leat_error(LEAT_EUNSUPPORTED,
                          "prefetch: no index but 0 is found again%s",
                          prefetch->is_unordered ? " unordered" : "");
    return LEAT_OK;
}

int leat__prefetch_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (!status && !mark)
        status = check_position(prefetch, position);
    if (status)
        return status;
    if (!mark && is_end_before(prefetch, position))
        return go_on(prefetch);
    status = pause_threads(prefetch);
    if (status)
        return status;
    drop_all(prefetch);
    if (!prefetch->by_index || !prefetch->is_started)
        status =
            leat_reader_seek(leat__prefetch_upstream(prefetch), position, mark);
    prefetch->next = position;
    if (status && prefetch->is_started)
        get_stuck(prefetch, status);
    resume_threads(prefetch);
    return status;
}

/* Passes by up to `n` samples that were read ahead. */
static int skip_ready(leat__prefetch *prefetch, int64_t n, int64_t *skipped,
                      bool waits)
{
    leat__prefetch_slot *slot;
    int status = LEAT_OK;
    while (*skipped < n) {
        status = look(prefetch, waits && *skipped == 0, &slot);
        if (status || !slot)
            break;
        spend(prefetch);
        ++*skipped;
    }
    return status;
}

static int skip_upstream(leat__prefetch *prefetch, int64_t n, int64_t *skipped)
{
    int64_t more = 0;
    int status = LEAT_OK;
    if (prefetch->by_index) {
        int64_t left = prefetch->count - prefetch->next.index;
        more = n < left ? n : left;
        prefetch->next.index += more;
        status = left == 0 ? LEAT_END : LEAT_OK;
    } else {
        status = leat_reader_skip(leat__prefetch_upstream(prefetch), n, &more);
    }
    *skipped += more;
    return status;
}

/* Further than what is read ahead: the rest is not read at all. */
static int skip_far(leat__prefetch *prefetch, int64_t n, int64_t *skipped)
{
    int status = pause_threads(prefetch);
    if (status)
        return status;
    status = skip_ready(prefetch, n, skipped, false);
    bool is_empty = prefetch->given_at == prefetch->ngiven;
    if (!status && is_empty && *skipped < n)
        status = skip_upstream(prefetch, n - *skipped, skipped);
    /* The threads find the end themselves; other errors are theirs to meet. */
    if (status == LEAT_END && *skipped > 0)
        status = LEAT_OK;
    resume_threads(prefetch);
    return status;
}

int leat__prefetch_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (status)
        return status;
    pthread_mutex_lock(&prefetch->lock);
    bool is_far = !prefetch->is_started || n > prefetch->buffer.nslots;
    pthread_mutex_unlock(&prefetch->lock);
    return is_far ? skip_far(prefetch, n, skipped)
                  : skip_ready(prefetch, n, skipped, true);
}

int leat__prefetch_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int status = LEAT_OK;
    if (!prefetch->spec) {
        status = leat__decorator_check_running(&prefetch->decorator);
        if (!status)
            status = acquire(prefetch);
        if (status)
            return status;
        status = leat_reader_fields(leat__prefetch_upstream(prefetch),
                                    &prefetch->spec, &prefetch->nspec);
        release(prefetch);
    }
    if (status) {
        prefetch->spec = NULL;
        return status;
    }
    *out = prefetch->spec;
    *n = prefetch->nspec;
    return LEAT_OK;
}

/* That of the slot to be delivered next, or of the upstream reader itself. */
int leat__prefetch_mark(leat_reader *reader, leat_token *token)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    const leat__prefetch_slot *slot = NULL;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (status)
        return status;
    if (!prefetch->is_started)
        return leat__decorator_mark(reader, token);
    pthread_mutex_lock(&prefetch->lock);
    if (prefetch->given_at < prefetch->ngiven)
        slot = prefetch->given[prefetch->given_at];
    else
        status = leat__prefetch_wait(prefetch, is_mark_known);
    if (!slot)
        slot = leat__prefetch_buffer_front(&prefetch->buffer);
    if (!slot)
        slot = prefetch->pulled;
    bool is_own = !status && !slot;
    if (!status && slot && slot->mark.size == 0)
        status = leat_error(slot->status, "%s", slot->line);
    prefetch->is_pulling |= is_own;
    pthread_mutex_unlock(&prefetch->lock);
    if (is_own) {
        status = leat__decorator_mark(reader, token);
        release(prefetch);
    } else if (!status) {
        status = leat_token_put(token, slot->mark.bytes, slot->mark.size);
    }
    return status;
}

int leat__prefetch_save(leat_reader *reader, leat_token *token)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (!status)
        status = acquire(prefetch);
    if (status)
        return status;
    status = leat__decorator_save(reader, token);
    release(prefetch);
    return status;
}

int leat__prefetch_restore(leat_reader *reader, leat_token *token)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int status = leat__decorator_check_running(&prefetch->decorator);
    if (!status)
        status = pause_threads(prefetch);
    if (status)
        return status;
    drop_all(prefetch);
    status = leat__decorator_restore(reader, token);
    prefetch->next = (leat_position){0, 0};
    if (status && prefetch->is_started)
        get_stuck(prefetch, status);
    resume_threads(prefetch);
    return status;
}

void leat__prefetch_cancel(leat_reader *reader)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    atomic_store(&prefetch->decorator.cancelled, true);
    pthread_mutex_lock(&prefetch->lock);
    pthread_cond_broadcast(&prefetch->changed);
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->lock);
    leat__decorator_cancel(reader);
}

void leat__prefetch_finish(leat__prefetch *prefetch)
{
    leat__prefetch_buffer_finish(&prefetch->buffer);
    leat__free(prefetch->given);
    leat__free(prefetch->spent);
    leat__free(prefetch->thread);
    pthread_cond_destroy(&prefetch->changed);
    pthread_cond_destroy(&prefetch->work);
    pthread_mutex_destroy(&prefetch->lock);
}

void leat__prefetch_close(leat_reader *reader)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    /* A thread may be waiting inside the upstream reader. */
    leat__prefetch_cancel(reader);
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_closing = true;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->lock);
    for (int i = 0; i < prefetch->nthreads; i++)
        leat__thread_join(&prefetch->thread[i]);
    drop_all(prefetch);
    leat__prefetch_finish(prefetch);
    leat__decorator_close(reader);
}
