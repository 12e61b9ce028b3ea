/*
 * wakeup.pml: an event count alone, each statement of src/layer/wakeup.c a step
 * of its own.
 *
 * Three threads want items: each draws a ticket, looks, and then waits, two for
 * ever, the third once, until a deadline. Two more make the 2 items available:
 * WAKES of them (1) come each with a wake-up, the others with an event only. A
 * last one stops them: at any moment with STOP_EARLY; else it wakes all once
 * everything is available, unless each item came with a wake-up, and waits until
 * all is taken, for which the wake-ups must arrive.
 *
 * Without TAKES_ALL a taker takes one item and goes, so each must be woken.
 */
#define COUNTS 1
#define FINE
#include "threads.inc"
#include "wakeup.inc"

#define C 0
#define TAKERS 3
#define ITEMS 2
#ifndef WAKES
#define WAKES 1
#endif

byte available;
byte taken;
byte makers_done;
byte takers_done;

inline take(got)
{
    d_step {
        got = 0;
        if
        :: available > 0 -> available--; taken++; got = 1
        :: else
        fi
    }
}

proctype taker(byte me; byte deadline)
{
    byte status;
    bit got, timed_out, wakes;
    do
    :: true ->
#ifndef MUTANT_TICKET_AFTER_LOOK
        ticket(C);
#endif
        take(got);
        if
#ifdef TAKES_ALL
        :: got
#else
        :: got -> break
#endif
        :: !got ->
#ifdef MUTANT_TICKET_AFTER_LOOK
            ticket(C);
#endif
            wait(C, deadline, status);
            if
            :: status == CANCELLED -> break
            :: status == OK && deadline == SOON -> take(got); break
            :: else
            fi
        fi
    od;
    drop_ticket(C);
    takers_done++
}

proctype waker(byte me)
{
    byte i;
    bit wakes;
    do
    :: i < WAKES -> available++; wake_one(C); i++
    :: else -> break
    od;
    makers_done++
}

proctype adder(byte me)
{
    byte i;
    do
    :: i < ITEMS - WAKES -> available++; add(C); i++
    :: else -> break
    od;
    makers_done++
}

proctype stopper(byte me)
{
    bit wakes;
#ifndef STOP_EARLY
    makers_done == 2;
    if
    :: WAKES < ITEMS -> wake_all(C)
    :: else
    fi;
    taken == ITEMS;
#endif
    close_count(C);
    /* Destroy joins first. */
    makers_done == 2 && takers_done == TAKERS;
    assert(sleepers[C] == 0 && woken[C] == 0);
    destroyed = 1
}

init
{
    atomic {
        run taker(0, FOREVER);
        run taker(1, FOREVER);
        run taker(2, SOON);
        run waker(3);
        run adder(4);
        run stopper(5)
    }
}
