/* leat/stats.h: what each stage of a layer did and what it waited for. */
#ifndef LEAT_STATS_H
#define LEAT_STATS_H

#include <leat/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most stages a layer can have. */
#define LEAT_MAX_STAGES 8

/** One stage since setup or restore. Times are sums over its threads. */
typedef struct leat_stage_stats {
    const char *name;     /* static */
    int threads;          /* 0: runs on the threads of other stages; the one of
                             "copy" is for all devices of a group */
    int64_t items;        /* samples; of stage "copy", batches */
    int64_t bytes;        /* payload read, or bytes written */
    double busy;          /* seconds; of copies, those in which the layer waits
                             for one or makes the call */
    double blocked_empty; /* seconds waiting for something to work on */
    double blocked_full;  /* seconds waiting for room to put it */
} leat_stage_stats;

/** The most readers that statistics list. */
#define LEAT_MAX_READER_STATS 16

/** The most bytes of a reader's path, its NUL included. */
#define LEAT_READER_PATH_MAX 128

/**
 * A reader of a pipeline since it was opened: a layer opens its readers at
 * setup and restore. Times are in seconds, sums over the threads that call it,
 * and without those of the readers that it reads.
 */
typedef struct leat_reader_stats {
    char path[LEAT_READER_PATH_MAX]; /* the readers' names from the one that
                               delivers on, such as "batch/zip/1/lmdb": the
                               number is that of one of several upstream
                               readers. The readers that one opens itself
                               (leat_open_again) are one here. Of a long path
                               the end, after "..." */
    int64_t items;                   /* samples that it gave, or passed on */
    int64_t bytes;                   /* of their fields */
    double busy;                     /* in its operations, but for: */
    double blocked; /* waits that it reported (leat_reader_add_blocked) */
    int64_t memory; /* bytes that it holds now, as it reports them */
} leat_reader_stats;

/**
 * Memory of batches and of files, in bytes. What is reserved includes batches
 * that are not in circulation yet, although their pageable memory takes no room
 * before they are.
 */
typedef struct leat_memory_stats {
    int64_t pinned;   /* host memory that the device reaches by DMA; with that
                         of a lent top that the device computed, once the host
                         has read it */
    int64_t pageable; /* host memory that the device could not pin: copies from
                         it are slower, and their call may wait */
    int64_t device;   /* memory of the device, where that is not the host's */
    int64_t host;    /* the batches' where the device computes in host memory */
    int64_t mapped;  /* files' pages resident in the whole process: the system's
                        to take back, not a leak */
    int64_t readers; /* held by the pipeline's readers now: buffers, an index */
} leat_memory_stats;

/** The most bad records that statistics list; the others are counted. */
#define LEAT_BAD_RECORDS_MAX 64

/** A bad record that a forward met. */
typedef struct leat_bad_record {
    leat_provenance from; /* its source, number, key and position. `replacement`
                             is the kind; the record that replaces it is in
                             leat_batch.from */
    const char *reason;   /* the error line */
} leat_bad_record;

/** The statistics of a data layer: leat_data_layer_stats. */
typedef struct leat_stats {
    size_t size; /* of this struct, as the caller knows it */

    /* Delivery. */
    int nstages;                             /* of stage, how many are filled */
    leat_stage_stats stage[LEAT_MAX_STAGES]; /* in the order of the flow */
    int64_t batches;                         /* delivered since setup */
    int64_t samples;                         /* delivered since setup */
    int64_t batches_in_use;                  /* in circulation, the caller's
                                                included */
    int64_t grown_batches;                   /* larger than their memory */
    int64_t helped_chunks; /* chunks that forward made itself */

    /* Bad records. */
    int64_t bad_records;        /* in the batches that forward consumed, in each
                                   epoch again; where a bad record fails its batch,
                                   the first one in it */
    int64_t distinct_bad;       /* different records among them, as max_errors
                                   counts them; without max_errors at most
                                   2^20, and further ones are not counted */
    int64_t unwritten;          /* bad records that bad_record_file lacks */
    const leat_bad_record *bad; /* the first LEAT_BAD_RECORDS_MAX of them, in
                                   order; borrowed until restore or destroy */
    int nbad;                   /* of bad, how many there are */
    int64_t image_warnings;     /* images whose decoder warned */

    /* Images decoded since setup. */
    int64_t jpeg_fast;    /* JPEGs by leat's own decoder */
    int64_t jpeg_library; /* JPEGs by libjpeg-turbo, which decodes what is not
                             plain baseline, or not clean */

    /* Memory. */
    leat_memory_stats memory; /* reserved */
    leat_memory_stats peak;   /* of it, the most that batches in circulation
                                 took since setup or restore; mapped and
                                 readers: as in memory */

    /* Time, in seconds since setup or restore. */
    double elapsed;      /* until now */
    double waited;       /* forward had no batch ready, which includes the time
                            in which it helped, and that in which a forward for
                            LEAT_HOST waited for the copy */
    double helped;       /* of waited, forward made chunks itself */
    double blocked_lock; /* workers that looked for a chunk waited for each
                            other: for the lock, and for what is read under it
                            */

    /* The machine. */
    int cores;       /* that the process could use at create; 0: unknown */
    int device_node; /* the NUMA node that the device is next to; -1: unknown,
                        or it has no memory of its own */
    int host_node;   /* that the batches' host memory begins on; -1: unknown,
                        or not in use yet */

    /* The readers: of a pipeline of one it is stage "reader". */
    int nreaders; /* of reader, how many are filled */
    leat_reader_stats reader[LEAT_MAX_READER_STATS]; /* the one that delivers
                                                        first; what exceeds
                                                        this is in the last
                                                        one, "others" */
} leat_stats;

/**
 * Fills `out` with what the reader, and those that it reads, did since it was
 * opened, as in leat_stats.reader, and returns how many these are, at least 1.
 * A reader alone is not measured here: only `path`, `blocked` and `memory` of
 * it are filled. Thread safety: any threads, in parallel, until close.
 */
LEAT_API int
leat_reader_chain_stats(leat_reader *reader,
                        leat_reader_stats out[LEAT_MAX_READER_STATS]);

/** The most bytes of a verdict, its NUL included. */
#define LEAT_VERDICT_MAX 256

/**
 * Writes in one line what bounds the feed, and the evidence, such as
 * "bound by decode: decode by 2 threads busy 98 %, storage busy 0 %, waits for
 * input 0 %, room 0 %, lock 0 %; forward waits 1 %, helps 60 %; more cores
 * would help", or "the feed keeps up; bound by the consumer: ...", which comes
 * first where forward found its batch ready.
 *
 * Where reading bounds it, and several readers read, the busiest of them is
 * named: "storage busy 98 % (shuffle/lmdb 90 %)", or, where one waits for its
 * own source longer than any is busy, "(pipe waits 95 %)".
 *
 * The shares are of the time that the threads had; where more threads than
 * cores share these, of the cores' time. Waiting has three causes: input, for
 * the reader's thread to fill a chunk; room, for a batch that the caller, its
 * streams or a copy still hold; lock, for each other. Forward waits for others
 * to make its batch, or helps: makes it itself.
 *
 * Where batches are copied to a device the line has the share of the copies,
 * too; they, or streams that give batches back late, may be what bounds.
 *
 * The line is about the time from `before` (NULL: setup) to `now`, both from
 * leat_data_layer_stats of one layer. `out` has LEAT_VERDICT_MAX bytes.
 * Errors: LEAT_EINVAL when no time lies between them. Thread safety: any
 * thread.
 */
LEAT_API int leat_stats_verdict(const leat_stats *now, const leat_stats *before,
                                char *out);

/**
 * The verdict of leat_stats_verdict in one word:
 *
 * - "consumer": the feed keeps up, or the consumer's streams give batches back
 *   late
 * - "storage": reading
 * - "decode", "transform": the stage of that name
 * - "copy": copies to the device
 * - "lock": workers that wait for each other
 * - "room": workers that wait for a free batch while forward waits for a batch
 *   or makes it itself, by turns or because a worker wakes too late
 * - "input": workers that wait for a reader's thread that is not busy either
 * - "none": nobody is busy, and nobody waits
 *
 * The text is static. NULL where leat_stats_verdict would return an error.
 * Thread safety: any thread.
 */
LEAT_API const char *leat_stats_bound_by(const leat_stats *now,
                                         const leat_stats *before);

#ifdef __cplusplus
}
#endif
#endif
