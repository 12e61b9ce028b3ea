/*
 * prefetch:N,threads=T reads up to N samples ahead on threads of its own.
 *
 * DESIGN. The first next starts the threads, close joins them. Each takes empty
 * slots, fills them and marks them ready; the caller pops ready slots, moves
 * their samples out and gives them back.
 *
 * Over a reader that is best read in order, one thread at a time is inside
 * upstream's next (`is_pulling`), pushes what it got, and then completes it
 * beside the others. Over random access a thread pushes slots for the next
 * positions and reads them by read_at. Slots are pushed in the order of
 * delivery, so completing them in any order keeps it.
 *
 * The end of an epoch is a slot like any other. The thread that met it seeks
 * the upstream reader to the next epoch at once and goes on; the end stays in
 * front until the caller seeks there, which drops nothing. Any other seek
 * pauses: it waits until no thread is busy, empties the buffer and then has the
 * upstream reader for itself.
 *
 * `lock` guards all that threads share, and is held for bookkeeping alone:
 * nothing of another reader is called under it. Threads wait on `work` until
 * they can claim slots, the caller on `changed` until what it awaits is there.
 * cancel wakes both; threads inside the upstream reader return as that is
 * cancelled. tests/models/prefetch.pml checks all this.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"
#include "decorators/prefetch/prefetch_buffer.h"
#include "pipeline/pipeline.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

enum {
    CHUNK_MAX = 64,     /* slots that a thread claims at a time */
    CHUNK_NS = 200000,  /* the time that it should take for them */
    AUTO_FIRST = 16,    /* slots for each thread, at first */
    AUTO_MAX = 1024,    /* slots in all */
    UNORDERED_SPAN = 4, /* how far the oldest sample may be overtaken */
    THREADS_MAX = 256
};

/* The memory up to which AUTO doubles, where the caller sets no limit. */
#define AUTO_BYTES ((int64_t)256 << 20)

typedef struct prefetch_reader prefetch_reader;

/* What the caller waits for, under the lock. */
typedef bool prefetch_condition(const prefetch_reader *prefetch);

struct prefetch_reader {
    leat__decorator decorator; /* first */

    /* Immutable. */
    bool by_index;
    bool is_unordered;
    bool has_mark;
    bool is_auto;
    int nthreads;
    int64_t count;       /* with by_index */
    int64_t max_bytes;   /* up to which AUTO grows */
    unsigned generation; /* of the process */

    /* The caller's, one at a time. */
    bool is_started;
    int nrunning; /* threads that started */
    leat__thread *thread;
    leat__prefetch_slot **given; /* popped, not yet delivered */
    int ngiven, given_at;
    leat__prefetch_slot **spent; /* delivered, not yet given back */
    int nspent;
    const leat_field_spec *spec; /* once known */
    int nspec;

    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t changed;
    /* Protected by lock. */
    leat__prefetch_buffer buffer;
    bool is_paused;  /* the caller wants the upstream reader alone */
    bool is_pulling; /* a thread, or the caller, has it */
    bool is_stuck;   /* there is nothing to read until seek */
    bool is_closing;
    bool was_full;               /* a thread found no empty slot */
    int busy;                    /* threads that work */
    int idle;                    /* threads that wait */
    int chunk;                   /* slots to claim at a time */
    leat__prefetch_slot *pulled; /* being pulled, with its mark; or NULL */
    leat_position next;          /* to be claimed; in order, its epoch alone */
    int seek_status;             /* of seeking ahead of the caller, */
    char seek_line[LEAT__ERROR_MAX];
    prefetch_condition *awaited; /* by the caller; NULL: it does not wait */
};

/* What one thread has claimed. */
typedef struct prefetch_job {
    leat__prefetch_slot *slot[CHUNK_MAX];
    leat_sample *sample[CHUNK_MAX];
    int status[CHUNK_MAX];
    leat_position first; /* with by_index */
    int n;
} prefetch_job;

static leat_reader *upstream_of(const prefetch_reader *prefetch)
{
    return prefetch->decorator.upstream[0];
}

static bool is_cancelled(const prefetch_reader *prefetch)
{
    return atomic_load(&prefetch->decorator.cancelled);
}

/* ---- The lock and its conditions ---------------------------------------- */

static bool can_claim(const prefetch_reader *prefetch)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    return !prefetch->is_paused && !prefetch->is_stuck &&
           !is_cancelled(prefetch) &&
           (prefetch->by_index || !prefetch->is_pulling) &&
           buffer->nempty > 0 && buffer->tail - buffer->head < buffer->size;
}

/* Wakes the caller, and one thread; that wakes the next once it has claimed. */
static void unlock_and_wake(prefetch_reader *prefetch)
{
    bool wakes_caller = prefetch->awaited && prefetch->awaited(prefetch);
    bool wakes_thread = prefetch->idle > 0 && can_claim(prefetch);
    if (wakes_caller)
        prefetch->awaited = NULL;
    pthread_mutex_unlock(&prefetch->lock);
    if (wakes_caller)
        pthread_cond_signal(&prefetch->changed);
    if (wakes_thread)
        pthread_cond_signal(&prefetch->work);
}

/* Waits under the lock. LEAT_ECANCELLED after cancel. */
static int wait_for(prefetch_reader *prefetch, prefetch_condition *condition)
{
    while (!condition(prefetch) && !is_cancelled(prefetch)) {
        prefetch->awaited = condition;
        pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    }
    prefetch->awaited = NULL;
    return leat__decorator_check_running(&prefetch->decorator);
}

static bool is_idle(const prefetch_reader *prefetch)
{
    return prefetch->busy == 0;
}

static bool is_upstream_free(const prefetch_reader *prefetch)
{
    return !prefetch->is_pulling;
}

static bool has_front(const prefetch_reader *prefetch)
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

static bool is_mark_known(const prefetch_reader *prefetch)
{
    return !prefetch->is_pulling || prefetch->pulled ||
           leat__prefetch_buffer_front(&prefetch->buffer);
}

/* ---- Threads ------------------------------------------------------------ */

static void fail_slot(leat__prefetch_slot *slot, int *status, int failure)
{
    *status = failure;
    if (failure != LEAT_END)
        leat__error_save(slot->line);
}

/* Completes samples `first` to `end` of a job, bad ones in their place. */
static void complete(prefetch_reader *prefetch, prefetch_job *job, int end)
{
    leat_reader *upstream = upstream_of(prefetch);
    leat_position at[CHUNK_MAX];
    for (int i = 0; i < end && prefetch->by_index; i++)
        at[i] = (leat_position){job->first.epoch, job->first.index + i};
    for (int done = 0, got; done < end; done += got) {
        int status =
            prefetch->by_index
                ? leat_reader_pull_at(upstream, at + done, job->sample + done,
                                      end - done, &got)
                : leat_reader_materialize(upstream, job->sample + done,
                                          end - done, &got);
        if (status)
            fail_slot(job->slot[done + got], &job->status[done + got], status);
        got += status != LEAT_OK;
    }
}

/* Pulls one sample, or several where no mark is needed, after those pulled. */
static int pull_some(prefetch_reader *prefetch, prefetch_job *job, int wanted)
{
    int got, at = job->n;
    int n = prefetch->has_mark ? 1 : wanted - at;
    int status = LEAT_OK;
    if (prefetch->has_mark)
        status = leat_reader_mark(upstream_of(prefetch), &job->slot[at]->mark);
    if (!status && prefetch->has_mark && at == 0) {
        pthread_mutex_lock(&prefetch->lock);
        prefetch->pulled = job->slot[0];
        unlock_and_wake(prefetch);
    }
    if (!status)
        status =
            leat_reader_pull(upstream_of(prefetch), job->sample + at, n, &got);
    if (status) {
        fail_slot(job->slot[at], &job->status[at], status);
        got = 1;
    }
    job->n += got;
    return status;
}

/*
 * Fills up to `wanted` slots in order. Samples that are there are not kept
 * waiting for others where that may take for ever.
 */
static int pull(prefetch_reader *prefetch, prefetch_job *job, int wanted)
{
    int status = pull_some(prefetch, job, wanted);
    if (status || job->n == wanted ||
        leat_reader_may_block(upstream_of(prefetch)))
        return status;
    while (!status && job->n < wanted)
        status = pull_some(prefetch, job, wanted);
    return status;
}

/* Pushes what was pulled; a status at the end of it is ready at once. */
static void push_pulled(prefetch_reader *prefetch, prefetch_job *job,
                        int status, int wanted)
{
    for (int i = 0; i < job->n; i++)
        leat__prefetch_buffer_push(&prefetch->buffer, job->slot[i]);
    for (int i = wanted; i > job->n; i--)
        leat__prefetch_buffer_give(&prefetch->buffer, job->slot[i - 1]);
    prefetch->pulled = NULL;
    if (!status)
        return;
    leat__prefetch_slot *last = job->slot[--job->n];
    last->status = status;
    last->is_ready = true;
    last->epoch = prefetch->next.epoch;
    prefetch->is_stuck = status != LEAT_END && status != LEAT_EDATA;
}

/* From the end of an epoch to the next one, ahead of the caller. */
static void begin_next_epoch(prefetch_reader *prefetch)
{
    leat_position begin = {prefetch->next.epoch + 1, 0};
    unlock_and_wake(prefetch);
    int status = leat_reader_seek(upstream_of(prefetch), begin, NULL);
    pthread_mutex_lock(&prefetch->lock);
    prefetch->seek_status = status;
    if (status)
        leat__error_save(prefetch->seek_line);
    else
        prefetch->next = begin;
    prefetch->is_stuck |= status != LEAT_OK;
}

/* Under the lock, which it releases while it reads. */
static void claim_in_order(prefetch_reader *prefetch, prefetch_job *job)
{
    int wanted = job->n;
    job->n = 0;
    prefetch->is_pulling = true;
    pthread_mutex_unlock(&prefetch->lock);
    int status = pull(prefetch, job, wanted);
    pthread_mutex_lock(&prefetch->lock);
    push_pulled(prefetch, job, status, wanted);
    if (status == LEAT_END)
        begin_next_epoch(prefetch);
    prefetch->is_pulling = false;
}

static void claim_by_index(prefetch_reader *prefetch, prefetch_job *job)
{
    leat_position *next = &prefetch->next;
    int64_t left = prefetch->count - next->index;
    int wanted = job->n;
    job->n = wanted < left ? wanted : (int)left;
    job->first = *next;
    next->index += job->n;
    if (left > 0) {
        push_pulled(prefetch, job, LEAT_OK, wanted);
        return;
    }
    job->n = 1;
    push_pulled(prefetch, job, LEAT_END, wanted);
    *next = (leat_position){next->epoch + 1, 0};
}

/* The slots for a thread: the caller gives back many at a time. */
static int claim_size(const prefetch_reader *prefetch)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    int64_t n = buffer->size - (buffer->tail - buffer->head);
    n = n < buffer->nempty ? n : buffer->nempty;
    return n < prefetch->chunk ? (int)n : prefetch->chunk;
}

/* How many slots take a thread CHUNK_NS, if one took `each`. */
static int chunk_for(const prefetch_reader *prefetch, int64_t each)
{
    int most = prefetch->buffer.nslots / (2 * prefetch->nrunning);
    int64_t chunk = CHUNK_NS / (each + 1);
    most = most < CHUNK_MAX ? most : CHUNK_MAX;
    chunk = chunk < most ? chunk : most;
    return chunk > 1 ? (int)chunk : 1;
}

/* Under the lock: takes slots, fills them, and reports them. */
static void work(prefetch_reader *prefetch)
{
    prefetch_job job = {.n = claim_size(prefetch)};
    for (int i = 0; i < job.n; i++) {
        job.slot[i] = leat__prefetch_buffer_take(&prefetch->buffer);
        job.sample[i] = &job.slot[i]->sample;
        job.status[i] = LEAT_OK;
    }
    int64_t begun = leat__clock_now();
    prefetch->busy++;
    if (prefetch->by_index)
        claim_by_index(prefetch, &job);
    else
        claim_in_order(prefetch, &job);
    unlock_and_wake(prefetch);
    complete(prefetch, &job, job.n);
    int64_t each = (leat__clock_now() - begun) / (job.n + 1);
    pthread_mutex_lock(&prefetch->lock);
    for (int i = 0; i < job.n; i++) {
        job.slot[i]->status = job.status[i];
        job.slot[i]->is_ready = true;
        leat__prefetch_buffer_count(&prefetch->buffer, job.slot[i]);
        prefetch->is_stuck |= job.status[i] && job.status[i] != LEAT_EDATA;
    }
    prefetch->chunk = chunk_for(prefetch, each);
    prefetch->busy--;
}

static void *run(void *argument)
{
    prefetch_reader *prefetch = argument;
    leat__thread_use_batch_scheduling();
    pthread_mutex_lock(&prefetch->lock);
    while (!prefetch->is_closing) {
        if (can_claim(prefetch)) {
            work(prefetch);
            unlock_and_wake(prefetch);
            pthread_mutex_lock(&prefetch->lock);
            continue;
        }
        prefetch->was_full |= prefetch->buffer.nempty == 0;
        prefetch->idle++;
        pthread_cond_wait(&prefetch->work, &prefetch->lock);
        prefetch->idle--;
    }
    pthread_mutex_unlock(&prefetch->lock);
    return NULL;
}

/* One thread is enough to go on. */
static int start(prefetch_reader *prefetch)
{
    int status = LEAT_OK;
    pthread_mutex_lock(&prefetch->lock);
    for (int i = 0; i < prefetch->nthreads && !status; i++) {
        leat__thread *thread = &prefetch->thread[i];
        thread->owner = leat__thread_owner();
        status = leat__thread_start(thread, "leat_prefetch", run, prefetch);
        prefetch->nrunning += !status;
    }
    pthread_mutex_unlock(&prefetch->lock);
    prefetch->is_started = prefetch->nrunning > 0;
    return prefetch->is_started ? LEAT_OK : status;
}

/* A forked child has neither the threads nor a lock that it may take. */
static int check_usable(prefetch_reader *prefetch)
{
    if (prefetch->is_started && prefetch->generation != leat__fork_generation())
        return leat_error(LEAT_ESTATE,
                          "prefetch: its threads run in another process; open "
                          "the pipeline after fork()");
    return leat__decorator_check_running(&prefetch->decorator);
}

/* ---- The caller --------------------------------------------------------- */

static void give_back_locked(prefetch_reader *prefetch)
{
    while (prefetch->nspent > 0)
        leat__prefetch_buffer_give(&prefetch->buffer,
                                   prefetch->spent[--prefetch->nspent]);
}

/* Doubles what is read ahead, if that was once full and is now found empty. */
static void grow_locked(prefetch_reader *prefetch)
{
    leat__prefetch_buffer *buffer = &prefetch->buffer;
    if (!prefetch->is_auto || !prefetch->was_full ||
        2 * leat__counter_get(&buffer->memory) > prefetch->max_bytes)
        return;
    int n = 2 * buffer->nslots;
    /* Without memory it stays as it is. */
    (void)leat__prefetch_buffer_grow(buffer, n < AUTO_MAX ? n : AUTO_MAX);
    prefetch->was_full = false;
}

static int wait_for_front(prefetch_reader *prefetch)
{
    if (has_front(prefetch))
        return LEAT_OK;
    grow_locked(prefetch);
    unlock_and_wake(prefetch);
    int64_t begun = leat__clock_now();
    pthread_mutex_lock(&prefetch->lock);
    int status = wait_for(prefetch, has_front);
    leat_reader_add_blocked(&prefetch->decorator.reader,
                            leat__clock_now() - begun);
    return status;
}

/*
 * Takes ready slots, a quarter of all at most: so many are not read ahead.
 * Without `waits` there may be none.
 */
static int refill(prefetch_reader *prefetch, bool waits)
{
    int status = LEAT_OK;
    leat__prefetch_slot *slot;
    prefetch->ngiven = prefetch->given_at = 0;
    pthread_mutex_lock(&prefetch->lock);
    give_back_locked(prefetch);
    if (waits)
        status = wait_for_front(prefetch);
    int most = (prefetch->buffer.nslots + 3) / 4;
    while (!status && prefetch->ngiven < most &&
           (slot = leat__prefetch_buffer_pop(&prefetch->buffer,
                                             prefetch->is_unordered)) != NULL)
        prefetch->given[prefetch->ngiven++] = slot;
    unlock_and_wake(prefetch);
    return status;
}

/*
 * The slot to be delivered next, in `*out`; NULL: none is ready. An end or an
 * error is returned as such, and stays.
 */
static int look(prefetch_reader *prefetch, bool waits,
                leat__prefetch_slot **out)
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

static void spend(prefetch_reader *prefetch)
{
    prefetch->spent[prefetch->nspent++] = prefetch->given[prefetch->given_at++];
}

/* Moves a slot's sample to the caller's. */
static int deliver(prefetch_reader *prefetch, leat__prefetch_slot *slot,
                   leat_sample *out)
{
    if (slot->status)
        slot->sample.nfields = slot->sample.deferred = 0;
    int status = leat_sample_move(out, &slot->sample);
    if (status)
        return status;
    leat__prefetch_buffer_count(&prefetch->buffer, slot);
    spend(prefetch);
    return slot->status ? leat_error(slot->status, "%s", slot->line) : LEAT_OK;
}

static int prefetch_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    leat__prefetch_slot *slot;
    int status = check_usable(prefetch);
    if (!status && !prefetch->is_started)
        status = start(prefetch);
    while (!status && *got < n) {
        status = look(prefetch, *got == 0, &slot);
        if (status || !slot)
            break;
        status = deliver(prefetch, slot, out[*got]);
        *got += !status;
    }
    return status;
}

/* The upstream reader for the caller alone, between two pulls. */
static int acquire(prefetch_reader *prefetch)
{
    if (!prefetch->is_started)
        return LEAT_OK;
    pthread_mutex_lock(&prefetch->lock);
    int status = wait_for(prefetch, is_upstream_free);
    if (!status)
        prefetch->is_pulling = true;
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

static void release(prefetch_reader *prefetch)
{
    if (!prefetch->is_started)
        return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_pulling = false;
    unlock_and_wake(prefetch);
}

/* No thread works until resume. */
static int pause_threads(prefetch_reader *prefetch)
{
    if (!prefetch->is_started)
        return LEAT_OK;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_paused = true;
    int status = wait_for(prefetch, is_idle);
    pthread_mutex_unlock(&prefetch->lock);
    return status;
}

static void resume_threads(prefetch_reader *prefetch)
{
    if (!prefetch->is_started)
        return;
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_paused = false;
    unlock_and_wake(prefetch);
}

/* All that was read ahead, while the threads pause. */
static void drop_all(prefetch_reader *prefetch)
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
static void get_stuck(prefetch_reader *prefetch, int status)
{
    pthread_mutex_lock(&prefetch->lock);
    leat__prefetch_slot *slot = leat__prefetch_buffer_take(&prefetch->buffer);
    slot->status = status;
    slot->is_ready = true;
    leat__error_save(slot->line);
    leat__prefetch_buffer_push(&prefetch->buffer, slot);
    prefetch->is_stuck = true;
    pthread_mutex_unlock(&prefetch->lock);
}

static bool has_begun_epoch(const prefetch_reader *prefetch)
{
    const leat__prefetch_slot *end = prefetch->given[prefetch->given_at];
    return prefetch->next.epoch > end->epoch || prefetch->seek_status;
}

/* Whether the end of the epoch before `position` is delivered next. */
static bool is_end_before(prefetch_reader *prefetch, leat_position position)
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
static int go_on(prefetch_reader *prefetch)
{
    pthread_mutex_lock(&prefetch->lock);
    int status = wait_for(prefetch, has_begun_epoch);
    if (!status &&
        prefetch->next.epoch <= prefetch->given[prefetch->given_at]->epoch)
        status = leat_error(prefetch->seek_status, "%s", prefetch->seek_line);
    pthread_mutex_unlock(&prefetch->lock);
    if (!status)
        spend(prefetch);
    return status;
}

/* Refused before anything that was read ahead is dropped. */
static int check_position(const prefetch_reader *prefetch,
                          leat_position position)
{
    if (prefetch->by_index && position.index > prefetch->count)
        return leat_error(LEAT_EINVAL,
                          "prefetch: sample %lld is out of range: there are "
                          "%lld",
                          (long long)position.index,
                          (long long)prefetch->count);
    if (position.index > 0 && (prefetch->is_unordered ||
                               !leat_reader_can_seek(upstream_of(prefetch))))
        return leat_error(LEAT_EUNSUPPORTED,
                          "prefetch: no index but 0 is found again%s",
                          prefetch->is_unordered ? " unordered" : "");
    return LEAT_OK;
}

static int prefetch_seek(leat_reader *reader, leat_position position,
                         leat_token *mark)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    int status = check_usable(prefetch);
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
        status = leat_reader_seek(upstream_of(prefetch), position, mark);
    prefetch->next = position;
    if (status && prefetch->is_started)
        get_stuck(prefetch, status);
    resume_threads(prefetch);
    return status;
}

/* Passes by up to `n` samples that were read ahead. */
static int skip_ready(prefetch_reader *prefetch, int64_t n, int64_t *skipped,
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

static int skip_upstream(prefetch_reader *prefetch, int64_t n, int64_t *skipped)
{
    int64_t more = 0;
    int status = LEAT_OK;
    if (prefetch->by_index) {
        int64_t left = prefetch->count - prefetch->next.index;
        more = n < left ? n : left;
        prefetch->next.index += more;
        status = left == 0 ? LEAT_END : LEAT_OK;
    } else {
        status = leat_reader_skip(upstream_of(prefetch), n, &more);
    }
    *skipped += more;
    return status;
}

/* Further than what is read ahead: the rest is not read at all. */
static int skip_far(prefetch_reader *prefetch, int64_t n, int64_t *skipped)
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

static int prefetch_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    int status = check_usable(prefetch);
    if (status)
        return status;
    if (!prefetch->is_started || n > prefetch->buffer.nslots)
        return skip_far(prefetch, n, skipped);
    return skip_ready(prefetch, n, skipped, true);
}

static int prefetch_fields(leat_reader *reader, const leat_field_spec **out,
                           int *n)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    int status = LEAT_OK;
    if (!prefetch->spec) {
        status = check_usable(prefetch);
        if (!status)
            status = acquire(prefetch);
        if (status)
            return status;
        status = leat_reader_fields(upstream_of(prefetch), &prefetch->spec,
                                    &prefetch->nspec);
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
static int prefetch_mark(leat_reader *reader, leat_token *token)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    const leat__prefetch_slot *slot = NULL;
    int status = check_usable(prefetch);
    if (status)
        return status;
    if (!prefetch->is_started)
        return leat__decorator_mark(reader, token);
    pthread_mutex_lock(&prefetch->lock);
    if (prefetch->given_at < prefetch->ngiven)
        slot = prefetch->given[prefetch->given_at];
    else
        status = wait_for(prefetch, is_mark_known);
    if (!slot)
        slot = leat__prefetch_buffer_front(&prefetch->buffer);
    if (!slot)
        slot = prefetch->pulled;
    bool is_own = !status && !slot;
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

static int prefetch_save(leat_reader *reader, leat_token *token)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    int status = check_usable(prefetch);
    if (!status)
        status = acquire(prefetch);
    if (status)
        return status;
    status = leat__decorator_save(reader, token);
    release(prefetch);
    return status;
}

static int prefetch_restore(leat_reader *reader, leat_token *token)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    int status = check_usable(prefetch);
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

static void prefetch_cancel(leat_reader *reader)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    atomic_store(&prefetch->decorator.cancelled, true);
    /* In a forked child the lock may be held for ever, and nobody waits. */
    if (prefetch->generation == leat__fork_generation()) {
        pthread_mutex_lock(&prefetch->lock);
        pthread_cond_broadcast(&prefetch->changed);
        pthread_cond_broadcast(&prefetch->work);
        pthread_mutex_unlock(&prefetch->lock);
    }
    leat__decorator_cancel(reader);
}

static void free_own(prefetch_reader *prefetch)
{
    leat__prefetch_buffer_finish(&prefetch->buffer);
    leat__free(prefetch->given);
    leat__free(prefetch->spent);
    leat__free(prefetch->thread);
    pthread_cond_destroy(&prefetch->changed);
    pthread_cond_destroy(&prefetch->work);
    pthread_mutex_destroy(&prefetch->lock);
}

static void prefetch_close(leat_reader *reader)
{
    prefetch_reader *prefetch = (prefetch_reader *)reader;
    /* What threads may have been changing stays where it is. */
    if (prefetch->is_started && prefetch->generation != leat__fork_generation())
        return;
    /* A thread may be waiting inside the upstream reader. */
    prefetch_cancel(reader);
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_closing = true;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->lock);
    for (int i = 0; i < prefetch->nthreads; i++)
        leat__thread_join(&prefetch->thread[i]);
    drop_all(prefetch);
    free_own(prefetch);
    leat__decorator_close(reader);
}

static int prefetch_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(((prefetch_reader *)reader)->decorator.upstream[0],
                             out);
}

static int prefetch_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got)
{
    return leat_reader_pull_at(
        ((prefetch_reader *)reader)->decorator.upstream[0], at, out, n, got);
}

static void prefetch_advise(leat_reader *reader, const leat_position at[],
                            int n)
{
    leat_reader_advise(((prefetch_reader *)reader)->decorator.upstream[0], at,
                       n);
}

static int cannot_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static int64_t prefetch_memory(leat_reader *reader)
{
    return leat__counter_get(&((prefetch_reader *)reader)->buffer.memory);
}

/* ---- Its forms ---------------------------------------------------------- */

#define PREFETCH_OPS                                                           \
    .size = sizeof(leat_reader_ops), .name = "prefetch",                       \
    .fields = prefetch_fields, .next = prefetch_next, .seek = prefetch_seek,   \
    .cancel = prefetch_cancel, .close = prefetch_close,                        \
    .count = prefetch_count, .skip = prefetch_skip,                            \
    .may_block = leat__decorator_may_block, .memory = prefetch_memory
#define PREFETCH_RESUMES                                                       \
    .can_seek = leat__decorator_can_seek, .save = prefetch_save,               \
    .restore = prefetch_restore

/* A layer that reads by index does so on its workers, through read_at. */
static const leat_reader_ops random_access_ops = {
    PREFETCH_OPS,
    PREFETCH_RESUMES,
    .read_at = prefetch_read_at,
    .advise = prefetch_advise,
};

static const leat_reader_ops stream_ops = {PREFETCH_OPS, PREFETCH_RESUMES};

static const leat_reader_ops marked_ops = {
    PREFETCH_OPS,
    PREFETCH_RESUMES,
    .mark = prefetch_mark,
};

static const leat_reader_ops unordered_ops = {PREFETCH_OPS,
                                              .can_seek = cannot_seek};

static const leat_reader_ops *choose_ops(leat_reader *upstream,
                                         bool is_unordered)
{
    if (is_unordered)
        return &unordered_ops;
    if (leat_reader_has_mark(upstream))
        return &marked_ops;
    return leat_reader_is_random_access(upstream) ? &random_access_ops
                                                  : &stream_ops;
}

static int init_shared(prefetch_reader *prefetch)
{
    int status = leat__mutex_init(&prefetch->lock);
    if (status)
        return status;
    status = leat__cond_init(&prefetch->work);
    if (status)
        goto fail_lock;
    status = leat__cond_init(&prefetch->changed);
    if (!status)
        return LEAT_OK;
    pthread_cond_destroy(&prefetch->work);
fail_lock:
    pthread_mutex_destroy(&prefetch->lock);
    return status;
}

/* Room for `size` slots, `n` of them at first. */
static int init_buffers(prefetch_reader *prefetch, int size, int n,
                        const leat_allocator *allocator)
{
    size_t window =
        (size_t)size * (prefetch->is_unordered ? UNORDERED_SPAN : 1);
    prefetch->given = leat__alloc_zero((size_t)size, sizeof(void *));
    prefetch->spent = leat__alloc_zero((size_t)size, sizeof(void *));
    prefetch->thread =
        leat__alloc_zero((size_t)prefetch->nthreads, sizeof(leat__thread));
    if (!prefetch->given || !prefetch->spent || !prefetch->thread)
        return LEAT_ENOMEM;
    return leat__prefetch_buffer_init(&prefetch->buffer, (int)window, n,
                                      allocator);
}

static int init(prefetch_reader *prefetch, const leat_open *open)
{
    leat_reader *upstream = open->upstream[0];
    int64_t samples = leat_args_number(open->args, "samples");
    prefetch->nthreads = (int)leat_args_number(open->args, "threads");
    prefetch->is_unordered = leat_args_number(open->args, "unordered") > 0;
    prefetch->has_mark =
        !prefetch->is_unordered && leat_reader_has_mark(upstream);
    prefetch->by_index = leat_reader_is_random_access(upstream) &&
                         !leat_reader_has_mark(upstream) &&
                         !leat__pipeline_keeps_order(open->pipeline[0]);
    prefetch->is_auto = samples <= 0;
    prefetch->chunk = 1;
    prefetch->max_bytes = leat_args_number(open->args, "max_bytes");
    if (prefetch->max_bytes == 0)
        prefetch->max_bytes =
            open->max_memory > 0 ? open->max_memory / 4 : AUTO_BYTES;
    prefetch->generation = leat__fork_generation();
    int status = prefetch->by_index
                     ? leat_reader_count(upstream, &prefetch->count)
                     : LEAT_OK;
    int first = AUTO_FIRST * prefetch->nthreads;
    first = first < AUTO_MAX ? first : AUTO_MAX;
    if (!status && prefetch->is_auto)
        status = init_buffers(prefetch, AUTO_MAX, first, open->allocator);
    else if (!status)
        status =
            init_buffers(prefetch, (int)samples, (int)samples, open->allocator);
    return status;
}

static int check_ranks(const leat_open *open)
{
    if (open->world_size == 1 || !leat_args_number(open->args, "unordered"))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "prefetch: unordered gives each of the %d ranks another "
                      "order, so that together they would not read every "
                      "sample once; leave unordered out",
                      open->world_size);
}

static int prefetch_open(const leat_open *open, leat_reader **out)
{
    bool is_unordered = leat_args_number(open->args, "unordered") > 0;
    int status = check_ranks(open);
    if (!status)
        status = leat__fork_watch();
    if (status)
        return status;
    prefetch_reader *prefetch = leat__decorator_new(
        open, choose_ops(open->upstream[0], is_unordered), sizeof(*prefetch));
    if (!prefetch)
        return LEAT_ENOMEM;
    status = init_shared(prefetch);
    if (status)
        goto fail_self;
    status = init(prefetch, open);
    if (status)
        goto fail_shared;
    *out = &prefetch->decorator.reader;
    return LEAT_OK;

fail_shared:
    free_own(prefetch);
fail_self:
    leat__free(prefetch);
    return status;
}

static const leat_argument prefetch_arguments[] = {
    {.name = "samples",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .keeps_samples = 1,
     .initial = "auto",
     .min = -1,
     .max = 1 << 20,
     .words = "auto",
     .help = "samples read ahead; auto, 0 or -1: 16 a thread, doubled whenever "
             "the caller finds none, up to max_bytes"},
    {.name = "threads",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "1",
     .min = 1,
     .max = THREADS_MAX,
     .help = "threads that read, started by the first sample asked for"},
    {.name = "max_bytes",
     .kind = LEAT_ARGUMENT_BYTES,
     .keeps_samples = 1,
     .initial = "0",
     .max = INT64_MAX,
     .help = "memory up to which auto doubles; 0: a quarter of the caller's "
             "limit, or 256M"},
    {.name = "unordered",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "0",
     .max = 1,
     .help = "1: samples come as they are ready; neither ranks nor save"},
    {0},
};

const leat_reader_type leat__prefetch_type = {
    .size = sizeof(leat_reader_type),
    .name = "prefetch",
    .help = "reads ahead on threads of its own",
    .arguments = prefetch_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .keeps_order = 1,
    .open = prefetch_open,
};

int leat_prefetch_options_init(leat_prefetch_options *options)
{
    const leat_prefetch_options defaults = LEAT_PREFETCH_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat_pipeline_prefetch(leat_pipeline **out, leat_pipeline *upstream,
                           const leat_prefetch_options *options)
{
    leat_prefetch_options values = LEAT_PREFETCH_OPTIONS_INIT;
    char text[128];
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    int used =
        values.samples > 0 || values.samples < -1
            ? snprintf(text, sizeof(text), "%lld", (long long)values.samples)
            : snprintf(text, sizeof(text), "auto");
    if (values.threads != 0 && values.threads != 1)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         ",threads=%d", values.threads);
    if (values.max_bytes != 0)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         ",max_bytes=%lld", (long long)values.max_bytes);
    if (values.unordered)
        snprintf(text + used, sizeof(text) - (size_t)used, ",unordered=1");
    return leat_pipeline_create(out, &leat__prefetch_type, text, NULL, NULL,
                                &upstream, 1);
}
