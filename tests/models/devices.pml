/*
 * devices.pml: the prefetcher with several devices. Batch k goes through queue k
 * mod DEVICES, so batches are opened in sequence, each from its device's free
 * ones, by a worker or by a caller that helps. Caller 0 goes on only when the
 * others are a step ahead of it, for which there are batches: it must not be
 * needed for that.
 *
 * What stands for what:
 *   claim, worker, next (in caller)     src/layer/prefetcher.c
 *   give, press, complete (in work)     src/layer/device_queue.c
 *   reader                              produce: src/layer/data_reader.c
 * Queues and event counts are those of queue.inc and wakeup.inc. What
 * prefetcher.pml has checked is left out: errors, shapes, cancel in the middle,
 * inline mode and the threshold, which several devices have not.
 *
 * All workers wait on one event count, whichever device has no free batch: each
 * event ends a wait, and who wakes looks at the device that is next then. Here
 * each free batch must wake (MUTANT_GIVE_WAKES_AT_TWO): a caller that waits has
 * pressed before another device's caller gave back the batch that is missing,
 * and that caller may not look again before the first one is served. Nor does
 * press make up for a ticket that is drawn too late (MUTANT_TICKET_AFTER_LOOK).
 *
 * Options: DEVICES, POOL (batches of each), CHUNKS (of the reader),
 * CHUNKS_IN_BATCH, STEPS, WORKERS, HELP.
 */
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef POOL
#define POOL 2
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef CHUNKS_IN_BATCH
#define CHUNKS_IN_BATCH 2
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef WORKERS
#define WORKERS 1
#endif

#define QUEUES (DEVICES + 2)
#define CAPACITY 4
#define COUNTS 2
#include "threads.inc"
#include "queue.inc"
#include "wakeup.inc"

#define READY(device) (device)
#define FREE DEVICES
#define FILLED (DEVICES + 1)
#define ALL (DEVICES * POOL)

/* The event counts. */
#define ROOM 0
#define INPUT 1

#ifdef MUTANT_GIVE_WAKES_AT_TWO
#define THRESHOLD 2
#else
#define THRESHOLD 1
#endif

#define NONE 15
#define READER WORKERS

mtype = {EMPTY, FILLING, COMPLETED, LENT};
mtype state[ALL] = EMPTY; /* device i's from i * POOL on */
byte number[ALL];
byte outstanding[ALL];
byte nfree[DEVICES] = POOL;

/* Under the claim lock. */
bit claiming;
byte open = NONE;
byte next_number;
byte claimed; /* chunks of the open batch */

/* Under the lock of device_queues. */
byte finished[ALL] = NONE;
byte next_completed;

byte steps[DEVICES]; /* that each caller has taken */
byte ended;          /* callers that have taken all */
byte joined;         /* threads that have ended */
bit cancelled;

#define CLAIMED 0
#define NO_BATCH 1
#define NO_CHUNK 2
#define STOPPED 3

#define HAS_MORE (open != NONE || nfree[next_number % DEVICES] > 0)

inline open_batch()
{
    d_step {
        open = device * POOL;
        do
        :: state[open] == EMPTY -> break
        :: else -> open++
        od;
        nfree[device]--;
        state[open] = FILLING;
        number[open] = next_number;
        next_number++;
        outstanding[open] = CHUNKS_IN_BATCH
    }
}

/* One look and what is local make a step; opening and taking are two. */
inline claim(result)
{
    atomic {
#ifndef MUTANT_TICKET_AFTER_LOOK
        ticket(ROOM);
#endif
        !claiming;
        claiming = 1;
        result = CLAIMED;
        device = next_number % DEVICES;
        if
        :: open == NONE && nfree[device] == 0 ->
            result = NO_BATCH;
            claiming = 0
        :: open == NONE && nfree[device] > 0 -> open_batch()
        :: else
        fi
    };
    atomic {
        if
        :: result == CLAIMED ->
            ticket(INPUT);
            pop(FILLED, chunk, NOW, status);
            drop_ticket(ROOM);
            if
            :: status == AGAIN -> result = NO_CHUNK
            :: status == CANCELLED -> result = STOPPED
            :: else ->
                drop_ticket(INPUT);
                batch = open;
                claimed++;
                if
                :: claimed == CHUNKS_IN_BATCH ->
                    claimed = 0;
                    open = NONE
                :: else
                fi;
                if
                :: me < WORKERS && sleepers[ROOM] > 0 && HAS_MORE ->
                    has_sleepers(ROOM)
                :: else
                fi
            fi;
            claiming = 0
        :: else
        fi;
        status = 0
    };
    if
    :: wakes -> signal(woken[ROOM])
    :: !wakes
    fi
}

/* The chunk's samples; after the last one the batches that are finished. */
inline work()
{
    atomic {
        push(FREE, chunk, status);
        chunk = 0;
        outstanding[batch]--;
        if
        :: outstanding[batch] == 0 ->
            finished[number[batch] % ALL] = batch;
            do
            :: finished[next_completed % ALL] != NONE ->
                batch = finished[next_completed % ALL];
                finished[next_completed % ALL] = NONE;
                assert(number[batch] == next_completed);
                assert(state[batch] == FILLING);
                state[batch] = COMPLETED;
                next_completed++;
                push(READY(batch / POOL), batch, status)
            :: else -> break
            od
        :: else
        fi;
        batch = 0;
        status = 0
    }
}

proctype worker(byte me)
{
    byte batch, chunk, status, result, device;
    bit timed_out, wakes;
    do
    :: cancelled -> break
    :: !cancelled ->
        claim(result);
        if
        :: result == CLAIMED -> work()
        :: atomic {
               result == NO_BATCH ->
#ifdef MUTANT_TICKET_AFTER_LOOK
               ticket(ROOM);
#endif
               wait(ROOM, FOREVER, status)
           }
        :: atomic {
               result == NO_CHUNK ->
               wait(INPUT, FOREVER, status)
           }
        :: result == STOPPED -> break
        fi;
        atomic {
            device = 0;
            result = 0;
            if
            :: status != OK -> break
            :: else
            fi
        }
    od;
    joined++
}

proctype reader(byte me)
{
    byte chunk, status;
    bit timed_out, wakes;
    do
    :: atomic {
           pop(FREE, chunk, FOREVER, status);
           if
           :: status != OK -> break
           :: else
           fi
       };
       atomic {
           push(FILLED, chunk, status);
           chunk = 0;
           if
           :: status != OK -> break
           :: else
           fi;
           has_sleepers(INPUT)
       };
       if
       :: wakes -> signal(woken[INPUT])
       :: !wakes
       fi
    od;
    joined++
}

inline give()
{
    atomic {
        state[current] = EMPTY;
        number[current] = 0;
        current = NONE;
        nfree[mine]++;
        if
        :: nfree[mine] < THRESHOLD -> add(ROOM)
        :: else -> has_sleepers(ROOM)
        fi
    };
    if
    :: wakes -> signal(woken[ROOM])
    :: !wakes
    fi
}

inline press()
{
    if
    :: nfree[mine] > 0 -> wake_all(ROOM)
    :: else
    fi
}

proctype caller(byte me; byte mine)
{
    byte batch, chunk, status, result, device, ready, i;
    byte current = NONE;
    bit timed_out, wakes, help;
    do
    :: steps[mine] == STEPS -> break
    :: steps[mine] < STEPS ->
        if
        :: current != NONE -> give()
        :: else
        fi;
        pop(READY(mine), ready, NOW, status);
        if
        :: status == AGAIN ->
            press();
            help = HELP;
            do
            :: atomic {
                   if
                   :: help -> pop(READY(mine), ready, NOW, status)
                   :: else -> pop(READY(mine), ready, FOREVER, status)
                   fi;
                   if
                   :: status == OK -> break
                   :: else -> assert(status == AGAIN)
                   fi
               };
               claim(result);
               if
               :: result == CLAIMED -> work()
               :: else -> help = 0
               fi
            od
        :: else
        fi;
        atomic {
            assert(state[ready] == COMPLETED);
            assert(number[ready] == steps[mine] * DEVICES + mine);
            state[ready] = LENT;
            current = ready;
            ready = 0;
            result = 0;
            device = 0;
            help = 0;
            drop_ticket(INPUT);
            drop_ticket(ROOM);
            steps[mine]++
        };
        mine > 0 || steps[mine] == STEPS || steps[1] > steps[mine]
    od;
    atomic {
        ended++;
        if
        :: ended == DEVICES ->
            cancelled = 1;
            for (i : 0 .. QUEUES - 1) {
                close(i)
            }
            for (i : 0 .. COUNTS - 1) {
                close_count(i)
            }
            i = 0
        :: else
        fi
    };
    joined == WORKERS + 1
}

init
{
    byte i;
    atomic {
        for (i : 0 .. QUEUES - 1) {
            capacity[i] = CAPACITY
        }
        for (i : 0 .. CHUNKS - 1) {
            ring[FREE]!i;
            size[FREE]++
        }
        for (i : 0 .. WORKERS - 1) {
            run worker(i)
        }
        run reader(READER);
        for (i : 0 .. DEVICES - 1) {
            run caller(READER + 1 + i, i)
        }
        i = 0
    }
}
