/*
 * prefetcher.pml: the hand-over from the reader to forward and back, with
 * destroy and cancel at any moment; and every rule of src/layer/wakeup.h.
 *
 * What stands for what:
 *   fill                           src/layer/chunk.c, sampler.c
 *   take, produce (in reader),
 *   cancel_reader                  src/layer/data_reader.c
 *   claim, worker, next, cancel    src/layer/prefetcher.c
 *   open_batch, give, press, grow,
 *   set_inline, complete           src/layer/device_queue.c
 *   work                           src/layer/worker.c
 *   carried                        src/layer/on_error/carry_chain.c
 *   caller                         src/layer/layer_forward.c
 *   its end                        leat__group_stop: src/layer/layer_start.c
 *   canceller                      src/layer/data_layer_group.c
 * Queues and event counts are those of queue.inc and wakeup.inc; complete is one
 * lock's here, and upload.pml has it in full. Samples are left out: a chunk is one
 * step of work on its batch. The state of a batch is written down, and asserted, at
 * every step that touches it. Free batches are alike, so the first one is taken.
 *
 * The rules of wakeup.h, each with the mutant that breaks it:
 *   a ticket is drawn before the look       MUTANT_TICKET_AFTER_LOOK
 *   a chunk wakes one worker                MUTANT_CHUNK_WAKES_NOBODY
 *   a worker that leaves work wakes one     MUTANT_NO_CHAIN (SLOW)
 *   a caller that finds none ready presses  MUTANT_NO_PRESS
 *   press grows before it wakes             MUTANT_GROWS_AFTER_WAKING (SLOW)
 *   a caller that polls meets the threshold MUTANT_THRESHOLD_TOO_HIGH (POLLS)
 *   the end of inline mode wakes all        MUTANT_INLINE_ENDS_QUIETLY (POLLS)
 *   a poll ends it                          MUTANT_POLL_STAYS_INLINE (POLLS)
 *   a caller that waits in it presses       MUTANT_INLINE_PRESSES_NOT
 *   a change of who fills wakes all         MUTANT_HANDS_OVER_QUIETLY (ADAPTS)
 * The two with SLOW lose time, not a wake-up. So do the following, which hold:
 * any threshold, if the caller waits (THRESHOLD); a timed wait or none (TIMED);
 * a batch below the threshold without an event, and a press that wakes one
 * (FEWER_WAKE_UPS).
 *
 * Options: WORKERS, POOL (batches), CIRCULATING (of them in use from the start),
 * CHUNKS (of the reader's thread), CHUNKS_IN_BATCH, FORWARDS (at most),
 * THRESHOLD (instead of wakeup.c's), HELP, THREADED (a thread reads), ADAPTS (a
 * thread or the takers, changing at any chunk), BAD_AT (the chunk with a bad
 * record), ENDS_AT (the chunk after which nothing comes), BLOCKS (storage may
 * give nothing until it is cancelled), CANCELS (another thread cancels),
 * TIMEOUTS (forwards with a deadline that may pass), POLLS (the caller never
 * waits, but looks again), CARRY (on_error REPLACE: a chunk may wait for the one
 * before it), INLINE (inline mode begins and ends at any forward), TIMED (a
 * worker's wait for a batch may end by itself), SLOW (work on a chunk takes
 * longer than all else; nobody may sleep beside work meanwhile), FEWER_WAKE_UPS.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef POOL
#define POOL 2
#endif
#ifndef CIRCULATING
#define CIRCULATING POOL
#endif
#ifndef CHUNKS_IN_BATCH
#define CHUNKS_IN_BATCH 2
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef FORWARDS
#define FORWARDS 3
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

/* leat__wake_threshold, of a device that is alone. */
#define HALF ((circulating + 1) / 2)
#define LIMITED (HALF < circulating - 2 -> HALF : circulating - 2)
#ifdef MUTANT_THRESHOLD_TOO_HIGH
#define THRESHOLD (circulating + 1)
#endif
#ifndef THRESHOLD
#define THRESHOLD (LIMITED > 1 -> LIMITED : 1)
#endif

#define QUEUES 3
#define CAPACITY 4
#define COUNTS 2
#include "threads.inc"
#include "queue.inc"
#include "wakeup.inc"

/* The queues: of batches, and of chunks. */
#define READY 0
#define FREE 1
#define FILLED 2

/* The event counts. */
#define ROOM 0
#define INPUT 1

#define NONE 15

/* How a chunk or batch fails: one record, or for good. */
#define BAD 1
#define ENDED 2

/* Who: workers from 0 on, then these. A taker's own chunk is OWN. */
#define CALLER WORKERS
#define READER (WORKERS + 1)
#define OWN (CHUNKS + me)
#define ALL_CHUNKS (CHUNKS + WORKERS + 1)

#ifdef ADAPTS
#define THREADED
#endif
#ifdef THREADED
#define THREADS (WORKERS + 1)
#else
#define THREADS WORKERS
#endif

/* What a batch is in, and by number which one of the sequence. */
mtype = {SPARE, EMPTY, FILLING, COMPLETED, LENT};
mtype state[POOL] = SPARE;
byte number[POOL];
byte outstanding[POOL];
bit shaped[POOL];
byte failed[POOL];
byte nfree;
byte circulating = CIRCULATING;
bit was_full;
bit is_inline;

/* A chunk: its position in the sequence, and in its batch. */
byte sequence[ALL_CHUNKS];
byte first[ALL_CHUNKS];
bit last[ALL_CHUNKS];
byte fails[ALL_CHUNKS];
byte batch_of[ALL_CHUNKS];
bit held[ALL_CHUNKS]; /* by a claimant */

/* The source's. */
byte next_chunk;
byte in_batch;
bit stuck;

/* The data reader's: who fills. */
#ifdef THREADED
bit is_threaded = 1;
bit drained;
#else
bit is_threaded;
bit drained = 1;
#endif

/* Under the claim lock. */
bit claiming;
byte open = NONE;
byte next_number;
bit stopped;

/* Under the lock of device_queues. */
bit completing;
byte finished[POOL] = NONE;
byte next_completed;
bit ended;

#ifdef CARRY
bit carried[(FORWARDS + POOL) * CHUNKS_IN_BATCH + 1]; /* what chunks handed on */
#endif

bit cancelled;
bit reader_cancelled;

/* The group's: what cancel may use, under its lock. */
bit group_locked;
bit running = 1;
byte joined; /* threads that have ended */

inline fill(chunk)
{
    atomic {
#ifdef BLOCKS
        if
        :: n = 0
        :: n = 1
        fi;
        if
        :: n == 1 -> reader_cancelled; n = 0; stuck = 1
        :: else
        fi;
#endif
        sequence[chunk] = next_chunk;
        first[chunk] = in_batch;
        in_batch++;
        if
        :: next_chunk >= ENDS_AT || stuck ->
            stuck = 1;
            fails[chunk] = ENDED;
            last[chunk] = 1
        :: else ->
            fails[chunk] = (next_chunk == BAD_AT -> BAD : 0);
            last[chunk] = (in_batch == CHUNKS_IN_BATCH)
        fi;
        if
        :: last[chunk] -> in_batch = 0
        :: else
        fi;
        next_chunk++
    }
}

inline take_own(chunk, status)
{
    if
    :: reader_cancelled -> status = CANCELLED
    :: else ->
        chunk = OWN;
        status = OK;
        fill(chunk);
#ifdef ADAPTS
        /* hand_to_thread */
        if
        :: !stuck -> drained = 0; is_threaded = 1
        :: true
        fi
#endif
    fi
}

/* leat__data_reader_take: under the claim lock. */
inline take(chunk, status)
{
    if
    :: drained -> take_own(chunk, status)
    :: else ->
#ifndef MUTANT_TICKET_AFTER_LOOK
        ticket(INPUT);
#endif
        pop(FILLED, chunk, NOW, status);
        if
        :: status == AGAIN && !is_threaded ->
            drained = 1;
            take_own(chunk, status)
        :: else
        fi
    fi;
    if
    :: status != AGAIN -> drop_ticket(INPUT)
    :: else
    fi
}

/* leat__device_queue_take and leat__batch_begin. */
inline open_batch()
{
    d_step {
        open = 0;
        do
        :: state[open] == EMPTY -> break
        :: else -> open++
        od;
        nfree--;
        state[open] = FILLING;
        number[open] = next_number;
        next_number++;
        outstanding[open] = CHUNKS_IN_BATCH;
        shaped[open] = 0;
        failed[open] = 0
    }
}

inline claim_chunk(chunk)
{
    d_step {
        assert(!held[chunk]);
        held[chunk] = 1;
        /* The chunks of a batch come in order, and are all of it. */
        assert(number[open] * CHUNKS_IN_BATCH + first[chunk] ==
                   sequence[chunk] ||
               stuck);
        batch_of[chunk] = open;
        if
        :: last[chunk] -> open = NONE
        :: else
        fi;
        if
#ifdef MUTANT_STOPS_INSIDE_A_BATCH
        :: fails[chunk] == ENDED -> stopped = 1
#else
        /* With the batch that has no samples. */
        :: fails[chunk] == ENDED && first[chunk] == 0 -> stopped = 1
#endif
        :: else
        fi
    }
}

#define CLAIMED 0
#define NO_BATCH 1
#define NO_CHUNK 2
#define STOPPED 3

#define HAS_MORE (!stopped && (open != NONE || nfree > 0))

/*
 * Getting the lock, one look and what is local follow each other in one step:
 * others cannot tell. The looks for a batch and for a chunk are two.
 */
inline claim(chunk, result)
{
    atomic {
#ifndef MUTANT_TICKET_AFTER_LOOK
        ticket(ROOM);
#endif
#ifndef MUTANT_CLAIM_UNLOCKED
        !claiming;
#endif
        claiming = 1;
        result = CLAIMED;
        if
        :: stopped -> result = STOPPED
        :: !stopped && open == NONE && nfree == 0 -> result = NO_BATCH
        :: !stopped && open == NONE && nfree > 0 -> open_batch()
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
            take(chunk, status);
            drop_ticket(ROOM);
            if
            :: status == AGAIN -> result = NO_CHUNK
            :: status == CANCELLED -> result = STOPPED
            :: else -> claim_chunk(chunk)
            fi;
            claiming = 0;
#ifndef MUTANT_NO_CHAIN
            if
            :: result == CLAIMED && me < WORKERS && sleepers[ROOM] > 0 &&
                    HAS_MORE ->
                has_sleepers(ROOM)
            :: else
            fi
#endif
        :: else
        fi;
        status = 0
    };
    if
    :: wakes -> signal(woken[ROOM])
    :: !wakes
    fi
}

inline complete(batch)
{
    atomic {
        !completing;
        completing = 1;
        assert(finished[number[batch] % POOL] == NONE);
        finished[number[batch] % POOL] = batch;
        batch = 0
    };
    do
#ifdef MUTANT_COMPLETES_OUT_OF_SEQUENCE
    :: atomic {
           finished[done] != NONE ->
           state[finished[done]] = COMPLETED;
           push(READY, finished[done], status);
           finished[done] = NONE
       }
    :: atomic {
           done + 1 < POOL && finished[done] == NONE ->
           done++
       }
    :: atomic {
           done + 1 == POOL && finished[done] == NONE ->
           done = 0;
           completing = 0;
           break
       }
#else
    :: atomic {
           finished[next_completed % POOL] != NONE && !ended ->
           done = finished[next_completed % POOL];
           finished[next_completed % POOL] = NONE;
           assert(number[done] == next_completed);
           assert(state[done] == FILLING && outstanding[done] == 0);
           state[done] = COMPLETED;
           next_completed++;
           /* There is room for every batch: this never sleeps. */
           assert(size[READY] < POOL);
           push(READY, done, status);
           if
           :: failed[done] == ENDED -> ended = 1; close(READY)
           :: else
           fi;
           done = 0;
           status = 0
       }
    :: atomic {
           finished[next_completed % POOL] == NONE || ended ->
           completing = 0;
           break
       }
#endif
    od
}

/* Nobody sleeps while the caller waits and there is something to claim. */
#define IS_BESIDE_WORK                                                         \
    (sleepers[ROOM] + sleepers[INPUT] > 0 && HAS_MORE && !is_inline &&         \
     !cancelled && (drained && !stuck || size[FILLED] > 0))

inline work(chunk)
{
#ifdef SLOW
    timeout -> assert(!IS_BESIDE_WORK);
#endif
    /* prepare_batch finds the shape, or that there is none; the others wait. */
    atomic {
        batch = batch_of[chunk];
        if
#ifdef MUTANT_BAD_BATCH_HAS_NO_SHAPE
        :: first[chunk] == 0 && fails[chunk] == 0 -> shaped[batch] = 1
        :: first[chunk] == 0 && fails[chunk] != 0
#else
        :: first[chunk] == 0 -> shaped[batch] = 1
#endif
        :: shaped[batch]
        fi
    };
#ifdef CARRY
    /* leat__carry_chain_await, if a record is to be replaced, and leave. */
    atomic {
        if
        :: sequence[chunk] > 0 -> carried[sequence[chunk] - 1]
        :: true
        fi;
#ifdef MUTANT_BAD_CHUNK_HANDS_NOTHING_ON
        carried[sequence[chunk]] = (fails[chunk] == 0)
#else
        carried[sequence[chunk]] = 1
#endif
    };
#endif
    /* fill_batch writes the samples; then the chunk is given back. */
    atomic {
        n = 1;
        assert(state[batch] == FILLING);
        /* The first failure counts; after an end there is none. */
        if
        :: fails[chunk] && (!failed[batch] || fails[chunk] < failed[batch]) ->
            failed[batch] = fails[chunk]
        :: else
        fi;
        /* Samples that a batch cut short will never have count as done. */
#ifndef MUTANT_SHORT_BATCH_COUNTS_AS_READ
        if
        :: last[chunk] -> n = CHUNKS_IN_BATCH - first[chunk]
        :: else
        fi;
#endif
        held[chunk] = 0;
        if
        :: chunk < CHUNKS -> push(FREE, chunk, status); status = 0
        :: else
        fi;
        chunk = 0
    };
    /* leat__device_queues_complete */
    atomic {
        assert(outstanding[batch] >= n);
        outstanding[batch] = outstanding[batch] - n;
        n = 0;
        if
        :: outstanding[batch] == 0
        :: else -> batch = NONE
        fi
    };
    if
    :: batch != NONE -> complete(batch)
    :: batch == NONE -> batch = 0
    fi
}

proctype worker(byte me)
{
    byte chunk, batch, status, done, n, result;
    bit timed_out, wakes;
    do
    :: cancelled -> break
    :: !cancelled ->
        claim(chunk, result);
        if
        :: atomic {
               result == NO_BATCH ->
               was_full = 1;
#ifdef MUTANT_TICKET_AFTER_LOOK
               ticket(ROOM);
#endif
#ifdef TIMED
               wait(ROOM, SOON, status)
#else
               wait(ROOM, FOREVER, status)
#endif
           }
        :: atomic {
               result == NO_CHUNK ->
#ifdef MUTANT_TICKET_AFTER_LOOK
               ticket(INPUT);
#endif
               wait(INPUT, FOREVER, status)
           }
        :: result == CLAIMED -> work(chunk)
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
    atomic {
        drop_ticket(ROOM);
        drop_ticket(INPUT);
        joined++
    }
}

#ifdef THREADED
/* Filling is a step of its own: the source is the thread's. */
proctype reader(byte me)
{
    byte chunk, status, n;
    bit timed_out, wakes, was_stuck;
    do
    :: atomic {
           !was_stuck ->
           /* await_turn */
           is_threaded || reader_cancelled;
           if
           :: !is_threaded -> break
           :: else
           fi;
           pop(FREE, chunk, FOREVER, status);
           if
           :: status != OK -> break
           :: else
           fi;
           was_stuck = stuck;
           fill(chunk)
       };
       atomic {
           push(FILLED, chunk, status);
           chunk = 0;
           if
           :: status != OK -> break
           :: else
           fi;
#ifndef MUTANT_CHUNK_WAKES_NOBODY
           has_sleepers(INPUT)
#endif
       };
       if
       :: wakes -> signal(woken[INPUT])
       :: !wakes
       fi;
#ifdef ADAPTS
       /* hand_to_takers */
       if
       :: !stuck ->
           is_threaded = 0;
#ifndef MUTANT_HANDS_OVER_QUIETLY
           wake_all(INPUT)
#endif
       :: true
       fi
#endif
    :: was_stuck -> break
    od;
    joined++
}
#endif

/* The caller's; `wakes` afterwards, if somebody is to be woken. */
inline give(batch)
{
    assert(state[batch] == LENT);
    state[batch] = EMPTY;
    number[batch] = 0;
    nfree++;
    if
#ifdef FEWER_WAKE_UPS
    :: nfree < THRESHOLD || is_inline
#else
    :: nfree < THRESHOLD || is_inline -> add(ROOM)
#endif
    :: else -> has_sleepers(ROOM)
    fi
}

inline grow()
{
    if
    :: circulating < POOL && was_full ->
        was_full = 0;
        state[circulating] = EMPTY;
        circulating++;
        nfree++
    :: else
    fi
}

inline press()
{
    atomic {
#ifndef MUTANT_GROWS_AFTER_WAKING
        grow();
#endif
        if
#ifdef FEWER_WAKE_UPS
        :: nfree > 0 -> wake_one(ROOM)
#else
        :: nfree > 0 -> wake_all(ROOM)
#endif
        :: else
        fi;
#ifdef MUTANT_GROWS_AFTER_WAKING
        grow()
#endif
    }
}

inline set_inline(to)
{
    atomic {
        if
        :: is_inline && !to ->
            is_inline = 0;
#ifndef MUTANT_INLINE_ENDS_QUIETLY
            wake_all(ROOM)
#endif
        :: else -> is_inline = to
        fi
    }
}

/* leat__data_reader_cancel */
inline cancel_reader()
{
#ifndef MUTANT_CANCEL_LEAVES_STORAGE
    reader_cancelled = 1;
#endif
#ifdef THREADED
#ifndef MUTANT_CANCEL_LEAVES_CHUNKS
    close(FREE);
    close(FILLED);
#endif
#ifndef MUTANT_CANCEL_LEAVES_INPUT
    close_count(INPUT)
#endif
#endif
}

inline cancel()
{
    cancelled = 1;
    cancel_reader();
#ifndef MUTANT_CANCEL_LEAVES_ROOM
    close_count(ROOM);
#endif
#ifndef MUTANT_CANCEL_LEAVES_FORWARD
    close(READY)
#endif
}

/* leat__prefetcher_next after one that did not wait. */
inline next(deadline)
{
    has_pressed = 0;
    help = HELP;
    do
    :: if
#ifdef MUTANT_INLINE_PRESSES_NOT
       :: !has_pressed && !is_inline ->
#else
       :: !has_pressed && !(is_inline && help) ->
#endif
#ifndef MUTANT_NO_PRESS
           press();
#endif
           has_pressed = 1
       :: else
       fi;
       atomic {
           if
           :: help -> pop(READY, ready, NOW, status)
           :: else -> pop(READY, ready, deadline, status)
           fi;
           if
           :: cancelled -> status = CANCELLED
           :: else
           fi;
           if
           :: status != AGAIN || !help -> break
           :: else
           fi;
           if
           :: deadline == SOON -> break
           :: true
           fi
       };
       claim(chunk, result);
       if
       :: result == CLAIMED -> work(chunk)
       :: else -> help = 0; result = 0
       fi
    od
}

proctype caller(byte me)
{
    byte chunk, batch, status, done, n, result, ready, forwards, late;
    byte current = NONE;
    bit timed_out, wakes, help, has_pressed;
    do
    :: forwards == FORWARDS -> break
    /* A caller that has enough destroys the layer. */
    :: break
    :: atomic {
           forwards < FORWARDS ->
           if
           :: current != NONE -> give(current); current = NONE
           :: else
           fi
       };
       if
       :: wakes -> signal(woken[ROOM])
       :: !wakes
       fi;
#ifdef INLINE
       if
       :: true -> set_inline(0)
       :: true -> set_inline(1)
       fi;
#endif
       atomic {
           pop(READY, ready, NOW, status);
           if
           :: cancelled -> status = CANCELLED
           :: else
           fi
       };
       if
       :: status != AGAIN
#ifdef POLLS
       /* It looks again and again, of which the last time counts. */
       :: status == AGAIN ->
#ifndef MUTANT_POLL_STAYS_INLINE
           set_inline(0);
#endif
           size[READY] > 0 || closed[READY]
#else
       :: status == AGAIN && late < TIMEOUTS -> late++; next(SOON)
       :: status == AGAIN -> next(FOREVER)
#endif
       fi;
       atomic {
           if
           :: status == CANCELLED -> break
           :: status == AGAIN
           :: status == OK ->
               assert(state[ready] == COMPLETED);
               assert(number[ready] == forwards);
               state[ready] = LENT;
               forwards++;
               current = ready;
               ready = 0;
               /* Such an error stays; a bad record's batch goes back at once. */
               if
               :: failed[current] == ENDED -> break
               :: failed[current] == BAD && BAD_AT / CHUNKS_IN_BATCH ==
                       number[current] ->
                   give(current);
                   current = NONE
               :: else -> assert(failed[current] == 0)
               fi
           fi;
           status = 0
       };
       if
       :: wakes -> signal(woken[ROOM])
       :: !wakes
       fi
    od;
    /* leat__prefetcher_destroy */
    atomic {
        !group_locked;
        running = 0;
        status = 0;
        ready = 0
    };
    cancel();
#ifndef MUTANT_DESTROY_JOINS_NOT
    joined == THREADS;
#endif
    destroyed = 1;
    assert(!claiming && !completing)
}

#ifdef CANCELS
proctype canceller(byte me)
{
    byte status;
    bit timed_out, wakes;
    atomic {
        !group_locked;
        group_locked = 1
    };
    if
    :: running -> cancel()
    :: else
    fi;
    group_locked = 0
}
#endif

init
{
    byte i;
    atomic {
        capacity[READY] = POOL;
        capacity[FREE] = CHUNKS;
        capacity[FILLED] = CHUNKS;
        for (i : 0 .. CIRCULATING - 1) {
            state[i] = EMPTY;
            nfree++
        }
        for (i : 0 .. CHUNKS - 1) {
            ring[FREE]!i;
            size[FREE]++
        }
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
