/*
 * upload.pml: finished batches become ready in the order of the sequence, one
 * upload at a time: by the worker that finds nobody at it, which takes along
 * what others finish meanwhile, or, with THREAD, by leat-copy.
 *
 * What stands for what:
 *   complete, make_all_ready, copy_thread   complete, make_all_ready and upload:
 *                                           src/layer/device_queue.c
 *   worker, caller                          a claim, forward and destroy, whose
 *                                           own waits prefetcher.pml has
 * WORKERS finish batches in any order, at most POOL at a time; each upload takes
 * two steps, and takes RUN batches at most. With FAILS_AT the upload of that batch ends the sequence: what comes
 * after it is not made ready. With STOP_EARLY the caller may close at any moment.
 * How long leat-copy looks for a batch before it sleeps changes nothing.
 */
#define COUNTS 1
#include "threads.inc"
#include "wakeup.inc"

#define DONE 0
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef POOL
#define POOL 3
#endif
#ifndef FORWARDS
#define FORWARDS 4
#endif
#ifndef RUN
#define RUN 1
#endif
#ifndef FAILS_AT
#define FAILS_AT 99
#endif
#define NONE 15

byte free_batches = POOL;
byte next_number;           /* of the next batch that a worker begins */
byte finished[POOL] = NONE; /* by number modulo POOL */
byte next_completed;
bit locked;
bit is_uploading;
bit is_in_upload;
bit ended;
byte nready;
byte uploaded;
bit closed;
byte joined;

/*
 * The number that is made ready next, with as many after it as `taken` says; NONE:
 * not finished, or none is any more. The one that fails is taken alone.
 */
inline next_locked()
{
    found = (ended -> NONE : finished[next_completed % POOL]);
    taken = 0;
    do
    :: found != NONE && taken < RUN &&
       finished[next_completed % POOL] == next_completed &&
       (taken == 0 || (next_completed != FAILS_AT && found != FAILS_AT)) ->
#ifndef MUTANT_TAKES_AFTER_UPLOAD
        finished[next_completed % POOL] = NONE;
#endif
        next_completed++;
        taken++
    :: else -> break
    od;
    assert(found == NONE || taken > 0)
}

/* leat__upload_enqueue, and into the ready queue, which has room. */
inline make_ready()
{
    atomic {
        assert(!is_in_upload && found == uploaded);
        is_in_upload = 1
    };
    atomic {
        is_in_upload = 0;
        uploaded = uploaded + taken;
        nready = nready + taken;
        assert(nready <= POOL);
        if
        :: found == FAILS_AT -> ended = 1
        :: else
        fi
    }
}

inline make_all_ready()
{
    SECTION {
        lock(locked);
        is_other = is_uploading;
#ifndef MUTANT_UPLOADS_TOGETHER
        is_uploading = 1;
#endif
        found = NONE;
        if
        :: !is_other -> next_locked()
        :: else
        fi;
        if
        :: found == NONE -> is_uploading = is_other
        :: else
        fi;
        unlock(locked)
    };
    do
    :: found == NONE -> break
    :: else ->
        make_ready();
#ifdef MUTANT_TAKES_AFTER_UPLOAD
        finished[found % POOL] = NONE;
#endif
#ifdef MUTANT_GIVES_UP_AFTER_LOOKING
        SECTION {
            lock(locked);
            next_locked();
            unlock(locked)
        };
        SECTION {
            lock(locked);
            if
            :: found == NONE -> is_uploading = 0
            :: else
            fi;
            unlock(locked)
        }
#else
        SECTION {
            lock(locked);
            next_locked();
            if
            :: found == NONE -> is_uploading = 0
            :: else
            fi;
            unlock(locked)
        }
#endif
    od;
    atomic {
        is_other = 0;
        found = 0;
        taken = 0
    }
}

inline complete(batch)
{
    SECTION {
        lock(locked);
        assert(finished[batch % POOL] == NONE);
        finished[batch % POOL] = batch;
        unlock(locked)
    };
#ifdef THREAD
#ifdef MUTANT_COMPLETE_WAKES_NOBODY
    add(DONE)
#else
    wake_one(DONE)
#endif
#else
    make_all_ready()
#endif
}

proctype worker(byte me)
{
    byte batch, found, taken;
    bit is_other, timed_out, wakes;
    do
    :: atomic {
           !closed && free_batches > 0 && next_number < FORWARDS + POOL ->
           free_batches--;
           batch = next_number;
           next_number++
       };
        complete(batch);
        batch = 0
    :: closed || next_number == FORWARDS + POOL -> break
    od;
    joined++
}

#ifdef THREAD
proctype copy_thread(byte me)
{
    byte status, found, taken;
    bit is_other, timed_out, wakes;
    do
    :: true ->
#ifndef MUTANT_TICKET_AFTER_LOOK
        ticket(DONE);
#endif
        make_all_ready();
#ifdef MUTANT_TICKET_AFTER_LOOK
        ticket(DONE);
#endif
        wait(DONE, FOREVER, status);
        if
        :: status == CANCELLED -> break
        :: else
        fi
    od;
    joined++
}
#endif

proctype caller(byte me)
{
    byte forwards;
    bit wakes;
    do
    :: forwards == FORWARDS -> break
#ifdef STOP_EARLY
    :: break
#endif
    :: atomic {
           forwards < FORWARDS && nready > 0 ->
           nready--;
           forwards++;
           free_batches++
       }
    :: forwards < FORWARDS && nready == 0 && ended -> break
    od;
    assert(forwards <= FAILS_AT + 1);
#ifndef STOP_EARLY
    assert(forwards == FORWARDS || forwards == FAILS_AT + 1);
#endif
    closed = 1;
#ifndef MUTANT_CLOSE_LEAVES_THE_THREAD
    close_count(DONE);
#endif
#ifdef THREAD
    joined == WORKERS + 1;
#else
    joined == WORKERS;
#endif
    destroyed = 1
}

init
{
    atomic {
        byte i;
        for (i : 0 .. WORKERS - 1) {
            run worker(i)
        }
#ifdef THREAD
        run copy_thread(WORKERS);
#endif
        run caller(WORKERS + 1)
    }
}
