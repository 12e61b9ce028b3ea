/*
 * prefetcher.pml: the hand-off from reader to forward and back, with destroy
 * and cancel at any moment.
 *
 * What stands for what:
 *   fill                           src/layer/sampler.c
 *   take, produce                  src/layer/data_reader.c
 *   claim, worker, grow,
 *   next (in forward)              src/layer/prefetcher.c
 *   work                           src/layer/worker.c
 *   publish                        src/layer/batch_order.c
 *   the relay                      src/layer/on_error/carry_chain.c, replacement.c
 *   forward                        src/layer/layer_forward.c
 *   stop, canceller                src/layer/data_layer.c: leat__data_layer_stop
 *                                  and destroy, leat_data_layer_cancel
 * The queues are those of queue.inc. A worker's timed wait (src/layer/wakeup.c) is left
 * out: what holds for one that only others wake holds for one that also looks by
 * itself. Samples are left out: a run is one step of work on its batch. What a
 * slot is in is written down, and asserted, at every step that touches it.
 *
 * Options: WORKERS, SLOTS, CIRCULATING (slots in use from the start), RUNS (boxes
 * of the reader thread; without it each taker has one), RUNS_IN_BATCH, BATCHES
 * (forwards at most), WAKE_AT (of the free slots),
 * HELP, THREADED (a reader thread), BAD_AT (the run with a bad record), ENDS_AT
 * (the run after which nothing comes), BLOCKS (storage may give nothing until
 * it is cancelled), CANCELS (another thread cancels), TIMEOUTS (forwards with a
 * deadline that may pass), RELAY (on_error REPLACE: a run may wait for the one
 * before it), RESTS (at any forward workers may be let rest, or no longer).
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CIRCULATING
#define CIRCULATING SLOTS
#endif
#ifndef RUNS_IN_BATCH
#define RUNS_IN_BATCH 2
#endif
#ifndef THREADED
#define RUNS (WORKERS + 1)
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef BATCHES
#define BATCHES 3
#endif
#ifndef WAKE_AT
#define WAKE_AT 1
#endif
#ifndef ENDS_AT
#define ENDS_AT 255
#endif
#ifndef BAD_AT
#define BAD_AT 255
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif

#define QUEUES 4
#define CAPACITY 4
#include "queue.inc"

/* How a run or batch fails: one record, or for good. */
#define BAD 1
#define ENDED 2

/* The queues: of slots, and of runs. */
#define FREE 0
#define FULL 1
#define FREE_RUNS 2
#define FULL_RUNS 3

#define NONE 15

/* More than there can be. */
#define NEVER 15

/* Who: workers from 0 on, then these. */
#define CALLER WORKERS
#define READER (WORKERS + 1)

#ifdef THREADED
#define THREADS (WORKERS + 1)
#else
#define THREADS WORKERS
#endif

/* What a slot is in, and by number which batch. */
mtype = {EMPTY, FILLING, READY, LENT};
mtype state[SLOTS] = EMPTY;
byte number[SLOTS];
byte outstanding[SLOTS];
bit shaped[SLOTS];
byte failed[SLOTS];

/* A run: its place in the sequence and in its batch. */
byte sequence[RUNS];
byte first[RUNS];
bit last[RUNS];
byte fails[RUNS];
byte slot_of[RUNS];
bit held[RUNS]; /* by whoever took it */

/* The sampler's. */
byte next_run;
byte in_batch;
bit stuck;

/* Under the claim lock. */
bit claiming;
byte open = NONE;
byte next_number;
bit stopped;

/* Under the publish lock. */
bit publishing;
byte finished[SLOTS] = NONE;
byte next_published;

#ifdef RELAY
bit left[(BATCHES + SLOTS) * RUNS_IN_BATCH + 1]; /* by runs: their batons */
#endif

bit cancelled;
bit reader_cancelled;
bit was_full;
byte circulating = CIRCULATING;

/* The layer's: what cancel may use, under its lock. */
bit layer_locked;
bit running = 1;
byte joined; /* threads that have ended */

inline fill(box)
{
    atomic {
#ifdef BLOCKS
        if
        :: turns = 0
        :: turns = 1
        fi;
        if
        :: turns == 1 -> reader_cancelled; turns = 0; stuck = 1
        :: else
        fi;
#endif
        sequence[box] = next_run;
        first[box] = in_batch;
        in_batch++;
        if
        :: next_run >= ENDS_AT || stuck ->
            stuck = 1;
            fails[box] = ENDED;
            last[box] = 1
        :: else ->
            fails[box] = (next_run == BAD_AT -> BAD : 0);
            last[box] = (in_batch == RUNS_IN_BATCH)
        fi;
        if
        :: last[box] -> in_batch = 0
        :: else
        fi;
        next_run++
    }
}

/* leat__data_reader_take: under the claim lock. */
inline take(box, status)
{
#ifdef THREADED
    pop(FULL_RUNS, box, NOW, status)
#else
    if
    :: reader_cancelled -> status = CANCELLED
    :: else -> box = me; status = OK; fill(box)
    fi
#endif
}

#define CLAIMED 0
#define NO_SLOT 1
#define NO_RUN 2
#define STOPPED 3

/*
 * Getting a lock, one look at a queue and what is local follow each other in
 * one step: others cannot tell. The pick and the take are two.
 */
inline claim(box, result)
{
    atomic {
#ifndef MUTANT_CLAIM_UNLOCKED
        !claiming;
#endif
        claiming = 1;
        result = CLAIMED;
        if
        :: stopped -> result = STOPPED
        :: !stopped && open == NONE ->
            pick(FREE, slot, status);
            if
            :: status == AGAIN -> result = NO_SLOT
            :: status == CANCELLED -> result = STOPPED
            :: else -> begin(slot)
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
            take(box, status);
            if
            :: status == AGAIN -> result = NO_RUN
            :: status == CANCELLED -> result = STOPPED
            :: else -> claim_run(box)
            fi;
            claiming = 0
        :: else
        fi;
        status = 0
    }
}

/* leat__batch_begin, on a slot that nobody else may know. */
inline begin(slot)
{
    d_step {
        assert(state[slot] == EMPTY);
        state[slot] = FILLING;
        number[slot] = next_number;
        next_number++;
        outstanding[slot] = RUNS_IN_BATCH;
        shaped[slot] = 0;
        failed[slot] = 0;
        open = slot
    }
}

inline claim_run(box)
{
    d_step {
        assert(!held[box]);
        held[box] = 1;
        /* The runs of a batch come in order, and are all of it. */
        assert(number[open] * RUNS_IN_BATCH + first[box] == sequence[box] ||
               stuck);
        slot_of[box] = open;
        if
        :: last[box] -> open = NONE
        :: else
        fi;
        if
        :: fails[box] == ENDED -> stopped = 1
        :: else
        fi
    }
}

inline publish(slot)
{
    atomic {
        !publishing;
        publishing = 1;
        assert(finished[number[slot] % SLOTS] == NONE);
        finished[number[slot] % SLOTS] = slot;
        slot = 0
    };
    do
#ifdef MUTANT_PUBLISH_OUT_OF_SEQUENCE
    :: atomic {
           finished[done] != NONE ->
           state[finished[done]] = READY;
           push(FULL, finished[done], status);
           finished[done] = NONE
       }
    :: atomic {
           done + 1 < SLOTS && finished[done] == NONE ->
           done++
       }
    :: atomic {
           done + 1 == SLOTS && finished[done] == NONE ->
           done = 0;
           publishing = 0;
           break
       }
#else
    :: atomic {
           finished[next_published % SLOTS] != NONE ->
           done = finished[next_published % SLOTS];
           finished[next_published % SLOTS] = NONE;
           assert(number[done] == next_published);
           assert(state[done] == FILLING && outstanding[done] == 0);
           state[done] = READY;
           next_published++;
           /* There is room for every slot: this never sleeps. */
           assert(size[FULL] < SLOTS);
           push(FULL, done, status);
           done = 0;
           status = 0
       }
    :: atomic {
           finished[next_published % SLOTS] == NONE ->
           publishing = 0;
           break
       }
#endif
    od
}

inline work(box)
{
    /* prepare_batch tells the shape, or that there is none; the others wait. */
    atomic {
        slot = slot_of[box];
        if
#ifdef MUTANT_BAD_BATCH_TELLS_NO_SHAPE
        :: first[box] == 0 && fails[box] == 0 -> shaped[slot] = 1
        :: first[box] == 0 && fails[box] != 0
#else
        :: first[box] == 0 -> shaped[slot] = 1
#endif
        :: shaped[slot]
        fi
    };
#ifdef RELAY
    /* leat__replacement_end: leat__carry_chain_await the run before, or not; and leave. */
    atomic {
        if
        :: turns = 0
        :: turns = 1
        fi;
        turns == 0 || sequence[box] == 0 || left[sequence[box] - 1];
        turns = 0;
#ifdef MUTANT_BAD_RUN_LEAVES_NOTHING
        left[sequence[box]] = (fails[box] == 0)
#else
        left[sequence[box]] = 1
#endif
    };
#endif
    /* leat__batch_fill_place writes the samples. */
    atomic {
        n = 1;
        assert(state[slot] == FILLING);
        if
        :: fails[box] > failed[slot] -> failed[slot] = fails[box]
        :: else
        fi;
        /* What a batch cut short will never have counts as done. */
#ifndef MUTANT_SHORT_BATCH_COUNTS_AS_READ
        if
        :: last[box] -> n = RUNS_IN_BATCH - first[box]
        :: else
        fi;
#endif
        held[box] = 0;
#ifdef THREADED
        push(FREE_RUNS, box, status);
        status = 0;
#endif
        box = 0
    };
    /* finish_samples */
    atomic {
        assert(outstanding[slot] >= n);
        outstanding[slot] = outstanding[slot] - n;
        n = 0;
        if
        :: outstanding[slot] == 0
        :: else -> slot = NONE
        fi
    };
    if
    :: slot != NONE -> publish(slot)
    :: slot == NONE -> slot = 0
    fi
}

proctype worker(byte me)
{
    byte r, slot, status, turns, done, n, result;
    bit timed_out, wakes;
    do
    :: cancelled -> break
    :: !cancelled ->
        claim(r, result);
        if
        :: atomic {
               result == NO_SLOT ->
               was_full = 1;
               wait(FREE, FOREVER, status)
           }
#ifdef THREADED
        :: atomic {
               result == NO_RUN ->
               result = 0;
               wait(FULL_RUNS, FOREVER, status)
           }
#endif
        :: result == CLAIMED -> work(r)
        :: result == STOPPED -> break
        fi;
        atomic {
            result = 0;
            if
            :: status != OK -> break
            :: else
            fi
        }
    od;
    joined++
}

#ifdef THREADED
/* produce; the reader thread is the only sampler, so filling is its own step. */
proctype reader(byte me)
{
    byte r, status, turns;
    bit timed_out, wakes, was_stuck;
    do
    :: atomic {
           !was_stuck ->
           pop(FREE_RUNS, r, FOREVER, status);
           if
           :: status != OK -> break
           :: else
           fi;
           was_stuck = stuck;
           fill(r)
       };
       atomic {
           push(FULL_RUNS, r, status);
           r = 0;
           if
           :: status != OK -> break
           :: else
           fi
       }
    :: was_stuck -> break
    od;
    joined++
}
#endif

inline grow()
{
    if
    :: circulating < SLOTS && was_full ->
        was_full = 0;
        circulating++;
        push(FREE, circulating - 1, status)
    :: else
    fi
}

/* leat__data_reader_cancel */
inline cancel_reader()
{
#ifndef MUTANT_CANCEL_LEAVES_STORAGE
    reader_cancelled = 1;
#endif
#ifdef THREADED
#ifndef MUTANT_CANCEL_LEAVES_RUNS
    close(FREE_RUNS);
    close(FULL_RUNS)
#endif
#endif
}

inline cancel()
{
    cancelled = 1;
    cancel_reader();
#ifndef MUTANT_CANCEL_LEAVES_SLOTS
    close(FREE);
#endif
#ifndef MUTANT_CANCEL_LEAVES_FORWARD
    close(FULL)
#endif
}

/* leat__prefetcher_next, which forward calls twice: without waiting, then with. */
inline next(deadline_, help_)
{
    has_woken = deadline_ == NOW;
    help = help_;
    do
    :: if
       :: deadline_ == SOON -> help = 0
       :: true
       fi;
       if
       :: !has_woken && !(rests && help) ->
           grow();
#ifndef MUTANT_NO_KICK
           kick(FREE);
#endif
           has_woken = 1
       :: else
       fi;
       atomic {
           if
           :: help -> pop(FULL, batch, NOW, status)
           :: else -> pop(FULL, batch, deadline_, status)
           fi;
           if
           :: cancelled -> status = CANCELLED
           :: else
           fi;
           if
           :: status != AGAIN || !help -> break
           :: else
           fi
       };
       claim(r, result);
       if
       :: result == CLAIMED -> work(r)
       :: else -> help = 0; result = 0
       fi
    od
}

/* leat__prefetcher_rest */
inline rest(rest_)
{
    if
    :: rests != rest_ ->
        rests = rest_;
        if
        :: rests -> wake_at[FREE] = NEVER
        :: else ->
            wake_at[FREE] = WAKE_AT;
            kick(FREE)
        fi
    :: else
    fi
}

proctype caller(byte me)
{
    byte r, slot, status, turns, done, n, result, batch, forwards, late;
    byte current = NONE;
    bit timed_out, wakes, help, rests, has_woken;
    do
    :: forwards == BATCHES -> break
    /* Whoever has enough destroys the layer. */
    :: break
    :: atomic {
           forwards < BATCHES ->
           /* release: leat__prefetcher_give */
           if
           :: current != NONE ->
               assert(state[current] == LENT);
               state[current] = EMPTY;
               push(FREE, current, status);
               current = NONE
           :: else
           fi
       };
#ifdef RESTS
       if
       :: true -> rest(0)
       :: true -> rest(1)
       fi;
#endif
       atomic {
           pop(FULL, batch, NOW, status);
           if
           :: cancelled -> status = CANCELLED
           :: else
           fi
       };
       if
       :: status == AGAIN && late < TIMEOUTS -> late++; next(SOON, HELP)
       :: status == AGAIN -> next(FOREVER, HELP)
       :: else
       fi;
       atomic {
           if
           :: status == CANCELLED -> break
           :: status == AGAIN
           :: status == OK ->
               assert(state[batch] == READY);
               assert(number[batch] == forwards);
               state[batch] = LENT;
               forwards++;
               current = batch;
               batch = 0;
               /* refuse: such an error stays, the other's batch goes back. */
               if
               :: failed[current] == ENDED -> break
               :: failed[current] == BAD && BAD_AT / RUNS_IN_BATCH ==
                       number[current] ->
                   state[current] = EMPTY;
                   push(FREE, current, status);
                   current = NONE
               :: else -> assert(failed[current] == 0)
               fi
           fi;
           status = 0
       }
    od;
    /* leat__data_layer_stop, leat__prefetcher_destroy */
    atomic {
        !layer_locked;
        running = 0;
        status = 0;
        batch = 0
    };
    cancel();
#ifndef MUTANT_DESTROY_JOINS_NOT
    joined == THREADS;
#endif
    destroyed = 1;
    assert(!claiming && !publishing)
}

#ifdef CANCELS
proctype canceller(byte me)
{
    byte status, turns;
    bit timed_out, wakes;
    atomic {
        !layer_locked;
        layer_locked = 1
    };
    if
    :: running -> cancel()
    :: else
    fi;
    layer_locked = 0
}
#endif

init
{
    byte i;
    atomic {
        capacity[FREE] = SLOTS;
        capacity[FULL] = SLOTS;
        capacity[FREE_RUNS] = RUNS;
        capacity[FULL_RUNS] = RUNS;
        wake_at[FREE] = WAKE_AT;
        wake_at[FULL] = 1;
        wake_at[FREE_RUNS] = 1;
        wake_at[FULL_RUNS] = 1;
        for (i : 0 .. CIRCULATING - 1) {
            ring[FREE]!i;
            size[FREE]++
        }
#ifdef THREADED
        for (i : 0 .. RUNS - 1) {
            ring[FREE_RUNS]!i;
            size[FREE_RUNS]++
        }
#endif
        for (i : 0 .. WORKERS - 1) {
            run worker(i)
        }
        i = 0;
#ifdef THREADED
        run reader(READER);
#endif
#ifdef CANCELS
        if
        :: run canceller(READER + 1)
#ifndef BLOCKS
        :: true
#endif
        fi;
#endif
        run caller(CALLER)
    }
}
