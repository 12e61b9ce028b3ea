/*
 * queue.pml: src/base/queue.c alone, each statement of it a step of its own.
 *
 * Two threads push 2 items and 1. One pops until the queue is closed, and waits
 * for ever; one pops once: it tries, and then waits until a deadline. A last
 * one stops them: once all items are through, which needs every wake-up to arrive,
 * or, with STOP_EARLY, at any moment.
 */
#define QUEUES 1
#define CAPACITY 1
#define PUSHERS 2
#define ITEMS (2 - me)
#define FINE
#include "threads.inc"
#include "queue.inc"

#define Q 0

byte pushed;
byte taken;
byte pushers_done;
byte poppers_done;

/* First in, first out: of a pusher's items each popper gets later ones. */
inline take(item)
{
    d_step {
        assert(item % 8 >= popped[item / 8]);
        popped[item / 8] = item % 8 + 1;
        taken++;
        item = 0
    }
}

proctype pusher(byte me)
{
    byte i, status;
    bit wakes;
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
    byte item, status;
    byte popped[PUSHERS]; /* of each pusher, the last item, plus 1 */
    bit timed_out, wakes;
    do
    :: pop(Q, item, FOREVER, status);
        if
        :: status == OK -> take(item)
        :: else -> assert(status == CANCELLED); break
        fi
    od;
    poppers_done++
}

proctype popper_in_time(byte me)
{
    byte item, status;
    byte popped[PUSHERS];
    bit timed_out, wakes;
    pop(Q, item, NOW, status);
    if
    :: status == AGAIN -> pop(Q, item, SOON, status)
    :: else
    fi;
    if
    :: status == OK -> take(item)
    :: else -> assert(status == AGAIN || closed[Q])
    fi;
    poppers_done++
}

proctype stopper(byte me)
{
#ifndef STOP_EARLY
    pushers_done == PUSHERS && taken == 3;
#endif
    close(Q);
    /* Destroy joins first. */
    pushers_done == PUSHERS && poppers_done == 2;
    assert(taken == pushed && size[Q] == 0);
    assert(waiting_empty[Q] == 0 && waiting_full[Q] == 0);
    destroyed = 1
}

init
{
    atomic {
        capacity[Q] = CAPACITY;
        run pusher(0);
        run pusher(1);
        run popper(2);
        run popper_in_time(3);
        run stopper(4)
    }
}
