/*
 * queue.pml: the queue alone, each statement of it a step of its own.
 *
 * Two threads push, one pops until the queue is closed, one waits and picks as
 * the prefetcher's workers do, and one waits once and takes nothing. One more
 * stops them: once all items are through, which needs every wake-up to arrive,
 * or, with STOP_EARLY, whenever it likes (and then nobody just looks). With
 * STIRRED who waits does so by wait_stirred, as beside other lanes.
 */
#define QUEUES 1
#define CAPACITY 2
#define PUSHERS 2
#define ITEMS (2 - me) /* of each pusher: 2 and 1 */
#ifndef WAKE_AT
#define WAKE_AT 1
#endif
#define FINE
#include "queue.inc"

#define Q 0

byte pushed;
byte taken;
byte pushers_done;
byte takers_done;
byte popped[PUSHERS]; /* of each pusher, what was popped last, plus 1 */

inline take(item)
{
    d_step {
        assert(item % 8 < 2);
        taken++
    }
}

proctype pusher(byte me)
{
    byte i, status, turns;
    bit timed_out, wakes;
    do
    :: i < ITEMS ->
        push(Q, me * 8 + i, status);
        if
        :: status == OK -> pushed++
        :: else -> assert(closed[Q]); break
        fi;
        i++
    :: else -> break
    od;
    pushers_done++
}

proctype popper(byte me)
{
    byte item, status, turns;
    bit timed_out, wakes;
    do
    :: pop(Q, item, FOREVER, status);
        if
        :: status == OK ->
            take(item);
            /* First in, first out. */
            assert(item % 8 >= popped[item / 8]);
            popped[item / 8] = item % 8 + 1
        :: else -> assert(status == CANCELLED); break
        fi
    od;
    takers_done++
}

proctype picker(byte me)
{
    byte item, status, turns;
    bit timed_out, wakes;
    do
    :: pick(Q, item, status);
        if
        :: status == OK -> take(item)
        :: status == AGAIN ->
#ifdef STIRRED
            wait_stirred(Q, 0, status);
#else
            wait(Q, FOREVER, status);
#endif
            if
            :: status == CANCELLED -> break
            :: else
            fi
        :: else -> break
        fi
    od;
    takers_done++
}

proctype looker(byte me)
{
    byte status, turns;
    bit timed_out, wakes;
#ifdef STIRRED
    wait_stirred(Q, 0, status);
#else
    wait(Q, SOON, status);
#endif
    takers_done++
}

/* The one with the stop; as a forward does, it kicks before it waits. */
proctype stopper(byte me)
{
    bit wakes;
#ifndef STOP_EARLY
    pushers_done == PUSHERS;
#ifndef MUTANT_NO_KICK
    kick(Q);
#endif
    taken == 3;
#endif
    close(Q);
    /* Destroy joins first. */
    pushers_done == PUSHERS && takers_done == 3;
    assert(taken == pushed && size[Q] == 0);
    assert(waiting_empty[Q] == 0 && waiting_full[Q] == 0);
    destroyed = 1
}

init
{
    atomic {
        capacity[Q] = CAPACITY;
        wake_at[Q] = WAKE_AT;
        run pusher(0);
        run pusher(1);
        run popper(2);
        run picker(3);
#ifdef STOP_EARLY
        takers_done = 1;
#else
        run looker(4);
#endif
        run stopper(5)
    }
}
