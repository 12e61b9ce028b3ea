/*
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
 * With max_bytes a thread takes slots only if their samples have room, and
 * reserves what they may grow by until they are complete.
 *
 * `lock` guards all that threads share, and is held for bookkeeping alone:
 * nothing of another reader is called under it. Threads wait on `work` until
 * they can claim slots, the caller on `changed` until what it awaits is there.
 * cancel wakes both; threads inside the upstream reader return as that is
 * cancelled. tests/models/prefetch.pml checks all this.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "data/sample.h"
#include "decorators/prefetch/prefetch_reader.h"

enum {
    CHUNK_MAX = 64,   /* slots that a thread claims at a time */
    CHUNK_NS = 200000 /* the time that it should take for them */
};

/* What one thread has claimed. */
typedef struct prefetch_job {
    leat__prefetch_slot *slot[CHUNK_MAX];
    leat_sample *sample[CHUNK_MAX];
    int status[CHUNK_MAX];
    leat_position first; /* with by_index */
    int n;
    int64_t reserved; /* of the prefetch's */
    int64_t bytes;    /* that the buffers may take */
} prefetch_job;

static bool is_cancelled(const leat__prefetch *prefetch)
{
    return atomic_load(&prefetch->decorator.cancelled);
}

enum { SLOT_BYTES = sizeof(leat__prefetch_slot) };

/* Bytes by which a slot's buffer grows for one of the largest samples. */
static int64_t growth(const leat__prefetch *prefetch,
                      const leat__prefetch_slot *slot)
{
    int64_t bytes = prefetch->recent.largest - (int64_t)slot->counted;
    return bytes > 0 ? bytes : 0;
}

/* Bytes that max_bytes leaves. */
static int64_t count_left(const leat__prefetch *prefetch)
{
    return prefetch->max_bytes - leat__counter_get(&prefetch->buffer.memory) -
           prefetch->reserved;
}

/* Empty slots that samples have room for, up to `most`: one of all slots, and
 * no other while the size of a sample is not known. */
static int count_claimable(const leat__prefetch *prefetch, int most)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    int n = 0;
    most = most < buffer->nempty ? most : buffer->nempty;
    if (prefetch->max_bytes == 0)
        return most;
    if (prefetch->recent.largest < 0)
        return most > 0 && buffer->nempty == buffer->nslots;
    int64_t left = count_left(prefetch);
    while (n < most) {
        left -= growth(prefetch, buffer->empty[buffer->nempty - 1 - n]);
        if (left < 0)
            break;
        n++;
    }
    return n == 0 && buffer->nempty == buffer->nslots ? 1 : n;
}

int leat__prefetch_room(const leat__prefetch *prefetch)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    if (prefetch->max_bytes == 0)
        return buffer->nslots;
    int n =
        buffer->nslots - buffer->nempty + count_claimable(prefetch, CHUNK_MAX);
    return n > 1 ? n : 1;
}

void leat__prefetch_fit(leat__prefetch *prefetch)
{
    leat__prefetch_buffer *buffer = &prefetch->buffer;
    if (prefetch->max_bytes == 0 || buffer->empty_bytes == 0)
        return;
    const leat__prefetch_slot *next = buffer->empty[buffer->nempty - 1];
    int64_t lacking = growth(prefetch, next) - count_left(prefetch);
    if (lacking > 0 && buffer->empty_bytes > (int64_t)next->counted)
        leat__prefetch_buffer_trim(buffer, lacking);
}

void leat__prefetch_grow(leat__prefetch *prefetch, int n)
{
    int64_t fit = prefetch->max_bytes / (SLOT_BYTES + prefetch->recent.largest);
    n = n < prefetch->most ? n : prefetch->most;
    /* Without memory it stays as it is. */
    if (prefetch->is_auto)
        (void)leat__prefetch_buffer_grow(&prefetch->buffer,
                                         n < fit ? n : (int)fit);
}

/* Slots that a thread may take now, up to `most`. */
static int count_free(const leat__prefetch *prefetch, int most)
{
    const leat__prefetch_buffer *buffer = &prefetch->buffer;
    int64_t ring = buffer->size - (buffer->tail - buffer->head);
    return count_claimable(prefetch, most < ring ? most : (int)ring);
}

static bool can_claim(const leat__prefetch *prefetch)
{
    return !prefetch->is_paused && !prefetch->is_stuck &&
           !is_cancelled(prefetch) &&
           (prefetch->by_index || !prefetch->is_pulling) &&
           count_free(prefetch, 1) > 0;
}

void leat__prefetch_unlock(leat__prefetch *prefetch)
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

int leat__prefetch_wait(leat__prefetch *prefetch,
                        leat__prefetch_condition *condition)
{
    while (!condition(prefetch) && !is_cancelled(prefetch)) {
        prefetch->awaited = condition;
        pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    }
    prefetch->awaited = NULL;
    return leat__decorator_check_running(&prefetch->decorator);
}

static void fail_slot(leat__prefetch_slot *slot, int *status, int failure)
{
    *status = failure;
    if (failure != LEAT_END)
        leat__error_save(slot->line);
}

/* What follows a bad sample is read again, and may have fields already. */
static void clear_after(prefetch_job *job, int first, int end)
{
    for (int i = first; i < end; i++)
        leat_sample_clear(job->sample[i]);
}

/* Nothing follows an error of the reader. */
static void fail_rest(prefetch_job *job, int first, int end, int failure)
{
    for (int i = first; i < end; i++)
        fail_slot(job->slot[i], &job->status[i], failure);
}

/* Completes the first `end` samples of a job, bad ones in their place. */
static void complete(leat__prefetch *prefetch, prefetch_job *job, int end)
{
    leat_reader *upstream = leat__prefetch_upstream(prefetch);
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
        if (!status)
            continue;
        if (status != LEAT_EDATA) {
            fail_rest(job, done + got, end, status);
            return;
        }
        fail_slot(job->slot[done + got], &job->status[done + got], status);
        done++;
        if (prefetch->by_index)
            clear_after(job, done + got, end);
    }
}

/* Pulls one sample, or several where no mark is needed, after those pulled. */
static int pull_some(leat__prefetch *prefetch, prefetch_job *job, int wanted)
{
    int got, at = job->n;
    int n = prefetch->has_mark ? 1 : wanted - at;
    int status = LEAT_OK;
    if (prefetch->has_mark) {
        leat_token *mark = &job->slot[at]->mark;
        status = leat_reader_mark(leat__prefetch_upstream(prefetch), mark);
        if (status)
            mark->size = 0;
    }
    if (!status && prefetch->has_mark && at == 0) {
        pthread_mutex_lock(&prefetch->lock);
        prefetch->pulled = job->slot[0];
        leat__prefetch_unlock(prefetch);
    }
    if (!status)
        status = leat_reader_pull(leat__prefetch_upstream(prefetch),
                                  job->sample + at, n, &got);
    if (status) {
        fail_slot(job->slot[at], &job->status[at], status);
        got = 1;
    }
    job->n += got;
    return status;
}

/* Whether those pulled leave room for more. */
static bool has_room(const leat__prefetch *prefetch, const prefetch_job *job)
{
    return prefetch->max_bytes == 0 ||
           (int64_t)leat__sample_buffers(job->sample, job->n) <= job->bytes;
}

/*
 * Fills up to `wanted` slots in order. Samples that are there are not kept
 * waiting for others where that may take for ever.
 */
static int pull(leat__prefetch *prefetch, prefetch_job *job, int wanted)
{
    leat_reader *upstream = leat__prefetch_upstream(prefetch);
    int status = pull_some(prefetch, job, wanted);
    int passed = wanted; /* since the last ask; 0: if a pipe was opened */
    while (!status && job->n < wanted && has_room(prefetch, job) &&
           !leat__block_probe_ask(&prefetch->probe, upstream, passed)) {
        status = pull_some(prefetch, job, wanted);
        passed = 0;
    }
    return status;
}

/* Counts what a sample takes, also a bad one. */
static void count_sample(leat__prefetch *prefetch, leat__prefetch_slot *slot)
{
    leat__prefetch_buffer_count(&prefetch->buffer, slot);
    if (slot->status && slot->status != LEAT_EDATA)
        return;
    if (prefetch->recent.largest < 0)
        atomic_store_explicit(&prefetch->first_bytes, slot->counted,
                              memory_order_relaxed);
    leat__recent_largest_add(&prefetch->recent, (int64_t)slot->counted);
}

/* Pushes what was pulled; a status at the end of it is ready at once. */
static void push_pulled(leat__prefetch *prefetch, prefetch_job *job, int status,
                        int wanted)
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
    count_sample(prefetch, last);
    prefetch->is_stuck = status != LEAT_END && status != LEAT_EDATA;
}

/* Those of repeat go round, too. */
static int64_t epoch_after(int64_t epoch)
{
    return epoch < INT64_MAX ? epoch + 1 : 0;
}

/* From the end of an epoch to the next one, ahead of the caller. */
static void begin_next_epoch(leat__prefetch *prefetch)
{
    leat_position begin = {epoch_after(prefetch->next.epoch), 0};
    leat__prefetch_unlock(prefetch);
    int status =
        leat_reader_seek(leat__prefetch_upstream(prefetch), begin, NULL);
    pthread_mutex_lock(&prefetch->lock);
    prefetch->seek_status = status;
    if (status)
        leat__error_save(prefetch->seek_line);
    else
        prefetch->next = begin;
    prefetch->is_stuck |= status != LEAT_OK;
}

/* Under the lock, which it releases while it reads. */
static void claim_in_order(leat__prefetch *prefetch, prefetch_job *job)
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

static void claim_by_index(leat__prefetch *prefetch, prefetch_job *job)
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
    *next = (leat_position){epoch_after(next->epoch), 0};
}

/* The slots for a thread: the caller gives back many at a time. */
static int claim_size(const leat__prefetch *prefetch)
{
    return count_free(prefetch, prefetch->chunk);
}

/* How many slots take a thread CHUNK_NS, if one took `each`. */
static int chunk_for(const leat__prefetch *prefetch, int64_t each)
{
    int most = leat__prefetch_room(prefetch) / (2 * prefetch->nrunning);
    int64_t chunk = CHUNK_NS / (each + 1);
    most = most < CHUNK_MAX ? most : CHUNK_MAX;
    chunk = chunk < most ? chunk : most;
    return chunk > 1 ? (int)chunk : 1;
}

/* Reserves what the job's samples may grow by, in place of what it had. */
static void reserve(leat__prefetch *prefetch, prefetch_job *job)
{
    prefetch->reserved -= job->reserved;
    job->reserved = job->bytes = 0;
    for (int i = 0; i < job->n && prefetch->max_bytes > 0; i++) {
        job->reserved += growth(prefetch, job->slot[i]);
        job->bytes += (int64_t)job->slot[i]->counted;
    }
    job->bytes += job->reserved;
    prefetch->reserved += job->reserved;
}

/* One at least, as nothing else is claimed. */
static void take_slots(leat__prefetch *prefetch, prefetch_job *job)
{
    int i = 0;
    do {
        job->slot[i] = leat__prefetch_buffer_take(&prefetch->buffer);
        job->sample[i] = &job->slot[i]->sample;
        job->status[i] = LEAT_OK;
    } while (++i < job->n);
    reserve(prefetch, job);
}

/* Under the lock: takes slots, fills them, and reports them. */
static void work(leat__prefetch *prefetch)
{
    prefetch_job job = {.n = claim_size(prefetch)};
    take_slots(prefetch, &job);
    int64_t begun = leat__clock_now();
    prefetch->busy++;
    if (prefetch->by_index)
        claim_by_index(prefetch, &job);
    else
        claim_in_order(prefetch, &job);
    reserve(prefetch, &job);
    leat__prefetch_unlock(prefetch);
    complete(prefetch, &job, job.n);
    int64_t each = (leat__clock_now() - begun) / (job.n + 1);
    pthread_mutex_lock(&prefetch->lock);
    for (int i = 0; i < job.n; i++) {
        job.slot[i]->status = job.status[i];
        job.slot[i]->is_ready = true;
        count_sample(prefetch, job.slot[i]);
        prefetch->is_stuck |= job.status[i] && job.status[i] != LEAT_EDATA;
    }
    prefetch->reserved -= job.reserved;
    if (job.n > 0)
        leat__prefetch_grow(prefetch, prefetch->usual);
    leat__prefetch_fit(prefetch);
    prefetch->chunk = chunk_for(prefetch, each);
    prefetch->busy--;
}

static void *run(void *argument)
{
    leat__prefetch *prefetch = argument;
    leat__thread_use_batch_scheduling();
    pthread_mutex_lock(&prefetch->lock);
    while (!prefetch->is_closing) {
        if (can_claim(prefetch)) {
            work(prefetch);
            leat__prefetch_unlock(prefetch);
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

int leat__prefetch_start(leat__prefetch *prefetch)
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
