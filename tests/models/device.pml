/*
 * device.pml: how a batch's memory is handed from the host to the layer's streams,
 * to the caller's streams and back (POOL of 2 or 3), by the events `copied`, `ready`
 * and `consumed`. With TRANSFORM the device computes a top from what was copied, on a
 * stream of its own; kernels of the caller read both. With RETURNS the caller gives a
 * batch back for which neither it nor a stream of its has waited.
 *
 * What stands for what:
 *   worker        await_upload and fill_batch: src/layer/worker.c
 *   upload        leat__upload_enqueue: src/layer/upload.c
 *   forward       await and deliver: src/layer/layer_forward.c
 *   give_unused   count_bad: src/layer/layer_forward.c
 *   mark          leat__device_copy_mark: src/layer/device_copy.c
 *   destroy       leat__prefetcher_destroy, leat__device_copy_wait
 * The queues are channels here; prefetcher.pml has them in full, and several
 * workers. Streams are those of CUDA: each does in order, and whenever it likes,
 * what was enqueued; waiting for an event means its latest record at the time of
 * the call, and for one that was never recorded nothing.
 *
 * Copies, transforms and kernels take two steps, so that what happens in between
 * shows.
 */
#ifndef POOL
#define POOL 2
#endif
#ifndef FORWARDS
#define FORWARDS (POOL + 1)
#endif
#define DEPTH 20
#define NONE 15
#define GARBAGE 255

/* Streams: the layer's, and two of the caller's. LEAT_HOST is none of them. */
#define COPIES 0
#define HOST 0
#ifdef TRANSFORM
#define TRANSFORMS 3
#define STREAMS 4
#else
#define STREAMS 3
#endif

/* Events of batch s; and one of the caller's own. */
#define READY(s) (s)
#define CONSUMED(s, k) (POOL + 2 * (s) + (k))
#define OWN (3 * POOL)
#ifdef TRANSFORM
#define COPIED(s) (3 * POOL + 1 + (s))
#define EVENTS (4 * POOL + 1)
#else
#define EVENTS (3 * POOL + 1)
#endif

/* When the host side may be filled again. */
#ifdef TRANSFORM
#define FREE_AT(s) COPIED(s)
#else
#define FREE_AT(s) READY(s)
#endif

mtype = {WAIT, RECORD, COPY, COMPUTE, KERNEL};
chan stream[STREAMS] = [DEPTH] of {mtype, byte, byte};
bit busy[STREAMS];

byte recorded[EVENTS]; /* records enqueued */
byte passed[EVENTS];   /* the last of them that its stream has come by */

chan free_batches = [POOL] of {byte};
chan ready_batches = [POOL] of {byte};
bit closed;
bit joined;

/* Which of the sequence is on either side of a batch. */
byte host[POOL] = GARBAGE;
byte device[POOL] = GARBAGE;
#ifdef TRANSFORM
byte top[POOL] = GARBAGE;
bit awaited[POOL] = 1;
#define TOP(s) top[s]
#else
#define TOP(s) device[s]
#endif
byte number[POOL];
byte nconsumed[POOL];
bit freed;

inline record(event, to)
{
    d_step {
        recorded[event]++;
        assert(nfull(stream[to]));
        stream[to]!RECORD(event, recorded[event])
    }
}

inline stream_wait(to, event)
{
    d_step {
        assert(nfull(stream[to]));
        stream[to]!WAIT(event, recorded[event])
    }
}

inline event_synchronize(event)
{
    passed[event] >= recorded[event]
}

proctype run_stream(byte me)
{
    byte x, t;
end:
    do
    :: atomic {
           stream[me]?WAIT(x, t) -> busy[me] = 1;
           passed[x] >= t;
           busy[me] = 0;
           x = 0;
           t = 0
       }
    :: atomic {
           stream[me]?RECORD(x, t);
           passed[x] = (passed[x] < t -> t : passed[x]);
           x = 0;
           t = 0
       }
    :: atomic {
           stream[me]?COPY(x, t) -> busy[me] = 1;
           assert(!freed && host[x] == t);
           device[x] = GARBAGE
       };
        atomic {
            assert(!freed && host[x] == t);
            device[x] = t;
            busy[me] = 0;
            x = 0;
            t = 0
        }
#ifdef TRANSFORM
    :: atomic {
           stream[me]?COMPUTE(x, t) -> busy[me] = 1;
           assert(!freed && device[x] == t);
           top[x] = GARBAGE
       };
        atomic {
            assert(!freed && device[x] == t);
            top[x] = t;
            busy[me] = 0;
            x = 0;
            t = 0
        }
#endif
    :: atomic {
           stream[me]?KERNEL(x, t) -> busy[me] = 1;
           assert(!freed && device[x] == t && TOP(x) == t)
       };
        atomic {
            assert(!freed && device[x] == t && TOP(x) == t);
            busy[me] = 0;
            x = 0;
            t = 0
        }
    od
}

#ifdef TRANSFORM
/* What reads the former top ended before the copy, and so before `copied`. */
inline transform(s)
{
    record(COPIED(s), COPIES);
    awaited[s] = 0;
#ifndef MUTANT_TRANSFORM_WAITS_NOT
    stream_wait(TRANSFORMS, COPIED(s));
#endif
    stream[TRANSFORMS]!COMPUTE(s, number[s]);
#ifdef MUTANT_READY_ON_COPIES
    record(READY(s), COPIES)
#else
    record(READY(s), TRANSFORMS)
#endif
}
#endif

/* An upload is enqueued under device_queues' lock, in one go. */
inline upload(s)
{
    atomic {
#if defined(TRANSFORM) && !defined(MUTANT_UNAWAITED_IS_OVERWRITTEN)
        if
        :: !awaited[s] -> stream_wait(COPIES, READY(s))
        :: else
        fi;
#endif
#ifndef MUTANT_COPY_WAITS_NOT
        if
        :: nconsumed[s] > 0 -> stream_wait(COPIES, CONSUMED(s, 0))
        :: else
        fi;
        if
        :: nconsumed[s] > 1 -> stream_wait(COPIES, CONSUMED(s, 1))
        :: else
        fi;
#endif
        nconsumed[s] = 0;
#ifdef MUTANT_READY_BEFORE_COPY
        record(READY(s), COPIES);
        stream[COPIES]!COPY(s, number[s])
#else
        stream[COPIES]!COPY(s, number[s]);
#ifdef TRANSFORM
        transform(s)
#else
        record(READY(s), COPIES)
#endif
#endif
    }
}

proctype worker()
{
    byte s, next_number;
    do
    :: atomic {
           /* More than are asked for show nothing new. */
           next_number < FORWARDS && nempty(free_batches) ->
           free_batches?s;
           number[s] = next_number;
           next_number++
       };
#ifndef MUTANT_NO_HOST_WAIT
        event_synchronize(FREE_AT(s));
#endif
        host[s] = GARBAGE;
        host[s] = number[s];
        upload(s);
        atomic {
            ready_batches!s;
            s = 0
        }
    :: closed -> break
    od;
    joined = 1
}

/* leat__prefetcher_mark: what the stream does before this reads the batch. */
inline mark(s, to)
{
    if
    :: to == HOST -> nconsumed[s] = 0
    :: else ->
        record(CONSUMED(s, 0), to);
        nconsumed[s] = 1
    fi
}

/* On a stream that another one is to follow: the caller's own event. */
inline use_on_two_streams(s)
{
    atomic {
        stream[at]!KERNEL(s, number[s]);
        record(OWN, at);
        stream_wait(3 - at, OWN);
        stream[3 - at]!KERNEL(s, number[s])
    };
    atomic {
        record(CONSUMED(s, 0), at);
        nconsumed[s] = 1;
#ifndef MUTANT_ONE_STREAM_RELEASED
        record(CONSUMED(s, 1), 3 - at);
        nconsumed[s] = 2;
#endif
        free_batches!s;
        current = NONE
    }
}

/* Its batch is refused, before any stream is made to wait for it. */
inline give_unused()
{
    ready_batches?s;
    forwards++;
    free_batches!s;
    s = 0
}

proctype caller()
{
    byte current = NONE;
    byte at, to, s, forwards;
    do
    :: forwards == FORWARDS -> break
    :: break
#ifdef RETURNS
    :: atomic { forwards < FORWARDS && current == NONE -> give_unused() }
#endif
    :: forwards < FORWARDS ->
        /* Another stream each time, or the same, or none. */
        atomic {
            if
            :: to = HOST
            :: to = 1
            :: to = 2
            fi;
            if
            :: current != NONE ->
#ifdef MUTANT_CONSUMED_ON_NEXT_STREAM
                mark(current, to);
#else
#ifndef MUTANT_CONSUMED_AT_DELIVERY
                mark(current, at);
#endif
#endif
                free_batches!current;
                current = NONE
            :: else
            fi;
            at = to;
            to = 0
        };
        atomic {
            ready_batches?s;
            assert(number[s] == forwards);
            forwards++;
            current = s;
            s = 0;
#ifndef MUTANT_FORWARD_WAITS_NOT
            if
            :: at == HOST -> event_synchronize(READY(current))
            :: else -> stream_wait(at, READY(current))
            fi;
#endif
#ifdef TRANSFORM
            awaited[current] = 1;
#endif
#ifdef MUTANT_CONSUMED_AT_DELIVERY
            mark(current, at)
#endif
        };
        if
        :: at == HOST ->
            assert(device[current] == number[current] &&
                   TOP(current) == number[current])
        :: at != HOST -> stream[at]!KERNEL(current, number[current])
#ifdef EARLY
        /* Released early, over two streams. */
        :: at != HOST -> use_on_two_streams(current)
#endif
        fi
    od;
    closed = 1;
    joined;
#ifndef MUTANT_NO_MARK
    if
    :: current != NONE -> mark(current, at)
    :: else
    fi;
#endif
#ifndef MUTANT_DESTROY_WAITS_NOT
    atomic { empty(stream[COPIES]) && !busy[COPIES] };
#if defined(TRANSFORM) && !defined(MUTANT_DESTROY_WAITS_FOR_COPIES_ALONE)
    atomic { empty(stream[TRANSFORMS]) && !busy[TRANSFORMS] };
#endif
    for (s : 0 .. POOL - 1) {
        if
        :: nconsumed[s] > 0 -> event_synchronize(CONSUMED(s, 0))
        :: else
        fi;
        if
        :: nconsumed[s] > 1 -> event_synchronize(CONSUMED(s, 1))
        :: else
        fi
    }
#endif
    freed = 1
}

init
{
    byte i;
    atomic {
        for (i : 0 .. POOL - 1) {
            free_batches!i
        }
        i = 0;
        run run_stream(0);
        run run_stream(1);
        run run_stream(2);
#ifdef TRANSFORM
        run run_stream(TRANSFORMS);
#endif
        run worker();
        run caller()
    }
}
