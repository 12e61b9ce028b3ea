/*
 * The prefetcher with several lanes: batches are opened in sequence, each in its
 * lane's slot, by a worker or by a caller that helps. Caller 0 goes on only when
 * the others are a step ahead of it, for which there are slots: it must not be
 * needed for that.
 *
 * What stands for what:
 *   claim, worker, next (in caller)    src/layer/prefetcher.c
 *   publish                            src/layer/batch_order.c
 *   reader                             produce: src/layer/data_reader.c
 * The queues are those of queue.inc. What prefetcher.pml has checked is left
 * out: errors, shapes, cancel in the middle, late waking, which is off here.
 *
 * Options: LANES, SLOTS (of each), RUNS (boxes), RUNS_IN_BATCH, STEPS, HELP.
 */
#ifndef LANES
#define LANES 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef RUNS_IN_BATCH
#define RUNS_IN_BATCH 2
#endif
#ifndef STEPS
#define STEPS 2
#endif

#define QUEUES (2 * LANES + 2)
#define CAPACITY 4
#include "queue.inc"

#define FREE(lane) (lane)
#define FULL(lane) (LANES + lane)
#define FREE_RUNS (2 * LANES)
#define FULL_RUNS (2 * LANES + 1)
#define ALL (LANES * SLOTS)

#define NONE 15
#define WORKER 0
#define READER 1

mtype = {EMPTY, FILLING, READY, LENT};
mtype state[ALL] = EMPTY; /* slots by number: lane * SLOTS and on */
byte number[ALL];
byte outstanding[ALL];

/* Under the claim lock. */
bit claiming;
byte open = NONE;
byte next_number;
byte taken; /* runs of the open batch */

/* Under the publish lock. */
byte finished[ALL] = NONE;
byte next_published;

byte steps[LANES]; /* that each caller has taken */
byte ended;  /* callers that have taken all */
byte joined; /* threads that have ended */

#define CLAIMED 0
#define NO_SLOT 1
#define NO_RUN 2
#define STOPPED 3

/* One look at a queue and what is local make a step; opening and taking are two. */
inline claim(result)
{
    atomic {
        !claiming;
        claiming = 1;
        result = CLAIMED;
        lane = next_number % LANES;
        seen = stirs[FREE(lane)];
        if
        :: open == NONE ->
            pick(FREE(lane), slot, status);
            if
            :: status == AGAIN -> result = NO_SLOT
            :: status == CANCELLED -> result = STOPPED
            :: else ->
                assert(state[slot] == EMPTY && slot / SLOTS == lane);
                state[slot] = FILLING;
                number[slot] = next_number;
                next_number++;
                outstanding[slot] = RUNS_IN_BATCH;
                open = slot;
#ifndef MUTANT_OPEN_STIRS_NOBODY
                stir(FREE(lane))
#else
                skip
#endif
            fi;
            slot = 0
        :: else
        fi;
        if
        :: result != CLAIMED -> claiming = 0
        :: else
        fi
    };
    atomic {
        if
        :: result == CLAIMED ->
            pop(FULL_RUNS, box, NOW, status);
            if
            :: status == AGAIN -> result = NO_RUN
            :: status == CANCELLED -> result = STOPPED
            :: else ->
                slot = open;
                taken++;
                if
                :: taken == RUNS_IN_BATCH ->
                    taken = 0;
                    open = NONE
                :: else
                fi
            fi;
            claiming = 0
        :: else
        fi;
        status = 0
    }
}

/* The run's samples, its box back, and behind the last run what is finished. */
inline work()
{
    atomic {
        push(FREE_RUNS, box, status);
        box = 0;
        outstanding[slot]--;
        if
        :: outstanding[slot] == 0 ->
            finished[number[slot] % ALL] = slot;
            slot = 0;
            do
            :: finished[next_published % ALL] != NONE ->
                slot = finished[next_published % ALL];
                finished[next_published % ALL] = NONE;
                assert(number[slot] == next_published);
                assert(state[slot] == FILLING);
                state[slot] = READY;
                next_published++;
                push(FULL(slot / SLOTS), slot, status)
            :: else -> break
            od
        :: else
        fi;
        slot = 0;
        status = 0
    }
}

proctype worker(byte me)
{
    byte slot, box, status, turns, result, lane, seen;
    bit timed_out, wakes;
    do
    :: claim(result);
        if
        :: result == CLAIMED -> work()
        :: atomic {
               result == NO_SLOT ->
               wait_stirred(FREE(lane), seen, status)
           }
        :: atomic {
               result == NO_RUN ->
               wait(FULL_RUNS, FOREVER, status)
           }
        :: result == STOPPED -> break
        fi;
        atomic {
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
    byte box, status, turns;
    bit timed_out, wakes;
    do
    :: atomic {
           pop(FREE_RUNS, box, FOREVER, status);
           if
           :: status != OK -> break
           :: else
           fi
       };
       atomic {
           push(FULL_RUNS, box, status);
           box = 0;
           if
           :: status != OK -> break
           :: else
           fi
       }
    od;
    joined++
}

proctype caller(byte me; byte mine)
{
    byte slot, box, status, turns, result, lane, seen, batch, step;
    byte current = NONE;
    bit timed_out, wakes, help;
    do
    :: step == STEPS -> break
    :: step < STEPS ->
        atomic {
            if
            :: current != NONE ->
                state[current] = EMPTY;
                push(FREE(mine), current, status);
                current = NONE
            :: else
            fi
        };
        help = HELP;
        do
        :: atomic {
               if
               :: help -> pop(FULL(mine), batch, NOW, status)
               :: else -> pop(FULL(mine), batch, FOREVER, status)
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
        od;
        atomic {
            assert(state[batch] == READY);
            assert(number[batch] == step * LANES + mine);
            state[batch] = LENT;
            current = batch;
            batch = 0;
            result = 0;
            lane = 0;
            seen = 0;
            help = 0;
            step++;
            steps[mine] = step
        };
        mine > 0 || step == STEPS || steps[1] > step
    od;
    atomic {
        ended++;
        if
        :: ended == LANES ->
            slot = 0;
            do
            :: slot < QUEUES -> close(slot); slot++
            :: else -> break
            od
        :: else
        fi
    };
    joined == 2
}

init
{
    byte i;
    atomic {
        for (i : 0 .. QUEUES - 1) {
            capacity[i] = CAPACITY;
            wake_at[i] = 1
        }
        for (i : 0 .. ALL - 1) {
            ring[FREE(i / SLOTS)]!i;
            size[FREE(i / SLOTS)]++
        }
        for (i : 0 .. RUNS - 1) {
            ring[FREE_RUNS]!i;
            size[FREE_RUNS]++
        }
        run worker(WORKER);
        run reader(READER);
        for (i : 0 .. LANES - 1) {
            run caller(READER + 1 + i, i)
        }
        i = 0
    }
}
