/*
 * prefetch.pml: src/decorators/prefetch: threads that read ahead in
 * order, and the caller, who takes samples, goes into the next epoch, seeks
 * elsewhere, and closes at any moment, while threads are inside the upstream
 * reader's next. Another thread cancels at any moment with CANCELS. With BLOCKS
 * the upstream's sample 1 of epoch 1 comes only after cancel.
 *
 * An epoch has COUNT samples; a slot holds epoch * 4 + index, the index COUNT
 * for its end. What is checked: one thread at a time is inside the upstream
 * reader, every sample comes once and in order, and nothing waits for ever.
 */
#include "threads.inc"

#ifndef THREADS
#define THREADS 2
#endif
#ifndef STEPS
#define STEPS 5
#endif
#define SLOTS 2
#define COUNT 2
#define FAILED 255
#define NOBODY 0
#define FRONT 1
#define IDLE 2
#define EPOCH 3

bit locked;
byte work;    /* asleep: threads */
byte changed; /* asleep: the caller */
byte item[SLOTS];
bit ready[SLOTS];
byte head, used;
byte vacant = SLOTS;
bit paused, pulling, stuck, closing, cancelled;
byte busy, idle, awaited;
byte begun; /* the epoch in which the upstream reader is, as is known */
byte front_epoch;

/* The upstream reader. */
byte inside, up_epoch, up_index;
bit up_cancelled;

byte threads_done;
bit caller_done;

#ifdef MUTANT_PULLS_TOGETHER
#define can_claim (!paused && !stuck && !cancelled && vacant > 0)
#else
#define can_claim (!paused && !stuck && !cancelled && !pulling && vacant > 0)
#endif
#define has_front (used > 0 && ready[head])
#define has_come                                                               \
    ((awaited == FRONT && has_front) || (awaited == IDLE && busy == 0) ||      \
     (awaited == EPOCH && begun > front_epoch))

inline enter()
{
    d_step {
        inside++;
        assert(inside == 1)
    }
}

/* In front of each signal other processes may run. */
inline unlock_and_wake()
{
    d_step {
        wakes = has_come;
        wakes_thread = idle > 0 && can_claim;
#ifdef MUTANT_NOTHING_WAKES_THREADS
        wakes_thread = 0;
#endif
#ifdef MUTANT_NOTHING_WAKES_THE_CALLER
        wakes = 0;
#endif
        if
        :: wakes -> awaited = NOBODY
        :: else
        fi;
        locked = 0
    };
    if
    :: wakes -> signal(changed)
    :: else
    fi;
    if
    :: wakes_thread -> atomic { wakes_thread = 0; wakes = 1 }; signal(work)
    :: else
    fi
}

inline pull(got)
{
    enter();
#ifdef BLOCKS
    (up_cancelled || up_epoch != 1 || up_index != 1);
#endif
    d_step {
        if
        :: up_cancelled -> got = FAILED
        :: else ->
            got = up_epoch * 4 + up_index;
            if
            :: up_index < COUNT -> up_index++
            :: else
            fi
        fi;
        inside--
    }
}

inline seek_upstream(to)
{
    enter();
    d_step {
        up_epoch = to;
        up_index = 0;
        inside--
    }
}

inline push(got)
{
    d_step {
        slot = (head + used) % SLOTS;
        used++;
        item[slot] = got;
        ready[slot] = (got == FAILED || got % 4 == COUNT);
        stuck = stuck || got == FAILED
    }
}

proctype thread(byte me)
{
    byte got, slot;
    bit wakes, wakes_thread, timed_out;
    lock(locked);
    do
    :: closing -> break
    :: !closing && !can_claim -> idle++; sleep(work, locked); idle--
    :: !closing && can_claim ->
        d_step { vacant--; busy++; pulling = 1; locked = 0 };
        pull(got);
        lock(locked);
        push(got);
        if
        :: got != FAILED && got % 4 == COUNT ->
            unlock_and_wake();
            seek_upstream(got / 4 + 1);
            lock(locked);
            begun = got / 4 + 1
        :: else
        fi;
        pulling = 0;
        unlock_and_wake();
        /* Completes its sample beside the others; an end is complete. */
        lock(locked);
        d_step {
            if
            :: got != FAILED && got % 4 != COUNT -> ready[slot] = 1
            :: else
            fi;
            busy--;
            got = 0;
            slot = 0
        };
        unlock_and_wake();
        lock(locked)
    od;
    unlock(locked);
    threads_done++
}

/* Under the lock: until `condition` is true, or cancel. */
inline wait_for(condition, name)
{
    do
    :: (condition) || cancelled -> break
    :: !(condition) && !cancelled -> awaited = name; sleep(changed, locked)
    od;
    awaited = NOBODY
}

inline give_back()
{
    d_step {
        ready[head] = 0;
        item[head] = 0;
        head = (head + 1) % SLOTS;
        used--;
        vacant++
    }
}

/* A sample, in its place, or the end, which stays. */
inline next()
{
    lock(locked);
    wait_for(has_front, FRONT);
    if
    :: cancelled
    :: !cancelled && item[head] % 4 == COUNT ->
        assert(item[head] == epoch * 4 + COUNT && index == COUNT)
    :: !cancelled && item[head] % 4 != COUNT ->
        assert(item[head] == epoch * 4 + index);
        index++;
        give_back()
    fi;
    unlock_and_wake()
}

/* From an end in front into the epoch that the threads have begun. */
inline go_on()
{
    lock(locked);
    front_epoch = epoch;
#ifndef MUTANT_SEEK_GOES_AHEAD
    wait_for(begun > front_epoch, EPOCH);
#endif
    if
    :: cancelled
    :: !cancelled ->
        assert(begun > epoch);
        give_back();
        epoch++;
        index = 0
    fi;
    unlock_and_wake()
}

inline seek(to)
{
    lock(locked);
    paused = 1;
#ifndef MUTANT_SEEK_WAITS_NOT
    wait_for(busy == 0, IDLE);
#endif
    unlock(locked);
    if
    :: cancelled
    :: !cancelled ->
        lock(locked);
#ifndef MUTANT_SEEK_KEEPS_SAMPLES
        do
        :: used > 0 -> give_back()
        :: used == 0 -> break
        od;
#endif
        stuck = 0;
        unlock(locked);
        seek_upstream(to);
        d_step { begun = to; epoch = to; index = 0 };
        lock(locked);
        paused = 0;
#ifdef MUTANT_RESUME_WAKES_NOBODY
        unlock(locked)
#else
        unlock_and_wake()
#endif
    fi
}

inline cancel()
{
    cancelled = 1;
#ifdef MUTANT_CANCEL_WAKES_NOBODY
    skip;
#else
#ifdef MUTANT_CANCEL_TAKES_NO_LOCK
    d_step { changed = 0; work = 0 };
#else
    SECTION {
        lock(locked);
        changed = 0;
        work = 0;
        unlock(locked)
    };
#endif
#endif
    up_cancelled = 1
}

proctype caller(byte me)
{
    byte epoch, index, step;
    bit wakes, wakes_thread, timed_out;
    do
    :: step == STEPS || cancelled -> break
    :: step < STEPS && !cancelled ->
        step++;
        if
        :: next()
        :: index == COUNT && has_front -> go_on()
        :: epoch < 2 -> seek(1 - epoch % 2)
        :: break
        fi
    od;
#ifndef MUTANT_CLOSE_CANCELS_NOT
    cancel();
#endif
    lock(locked);
    closing = 1;
#ifndef MUTANT_CLOSE_WAKES_NOBODY
    work = 0;
#endif
    unlock(locked);
    threads_done == THREADS;
    assert(busy == 0 && inside == 0 && idle == 0);
    assert(used + vacant == SLOTS);
    caller_done = 1
}

proctype canceller(byte me)
{
    if
    :: cancel()
    :: caller_done
    fi
}

init
{
    atomic {
        run thread(0);
#if THREADS > 1
        run thread(1);
#endif
        run caller(2);
#ifdef CANCELS
        run canceller(3)
#endif
    }
}
