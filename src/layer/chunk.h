/*
 * chunk.h: consecutive samples of one batch, the unit of work, and the source
 * that fills chunks from a reader.
 */
#ifndef LEAT_LAYER_CHUNK_H
#define LEAT_LAYER_CHUNK_H

#include "base/memory.h"
#include "base/random.h"
#include "layer/on_error/bad_list.h"
#include "layer/on_error/failure.h"
#include "layer/sampler.h"

#include <leat/pipeline.h>
#include <leat/reader.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * Samples lie an odd number of cache lines apart, or their first lines would
 * share the few sets of a cache.
 */
typedef struct leat__chunk_sample {
    leat_sample sample;
    char apart[LEAT__CACHE_LINE];
} leat__chunk_sample;

_Static_assert(sizeof(leat__chunk_sample) / LEAT__CACHE_LINE % 2 == 1,
               "the samples of a chunk crowd in a cache");

/* Belongs to one thread at a time: the one that fills it, then its worker. */
typedef struct leat__chunk {
    int capacity;         /* samples there is room for */
    int first;            /* index of its first sample in the batch */
    int n;                /* samples */
    bool is_last;         /* the batch ends with this chunk */
    leat__position after; /* with `is_last`: the batch */
    leat_token mark;      /* likewise, of the reader; empty: it has none */
    /* The first sample that could not be read; -1: none. */
    int failed;
    int status;
    char line[LEAT__ERROR_MAX];
    leat__failure ending; /* that sample, or one after it */
    leat__bad_list bad;   /* or, where those are collected, all that are bad */
    /* How its samples are still to be read, by the worker; NULL: they are. */
    int (*read)(leat_reader *reader, struct leat__chunk *chunk, int i,
                int *got);
    int64_t claimed; /* the clock, when the worker's turn for it came */
    int64_t begun;   /* the clock, when its work on it began */
    leat__chunk_sample *all;
    leat_sample **sample; /* n of them, each with a buffer of its own */
    leat_position *at;    /* of each sample */
    uint32_t *words;      /* of Caffe's generator, n x draws */
    bool follows_gap;     /* samples before it were left out, that can be read
                             again */
    bool is_used;         /* samples may not be clear */
    bool is_queued;       /* goes through the reader thread's queues */
    size_t most;  /* that the samples' buffers may take before it ends early */
    bool is_full; /* they took more when it was filled or read */
    size_t held;  /* with `is_queued`: as its pool counted them last */
    /* Of all that was read into it; read by anybody. */
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;  /* nanoseconds */
    struct leat__carry *taken; /* the last good sample before it, and its own */
    struct leat__carry *handed; /* for the next chunk; to replace bad records */
} leat__chunk;

/*
 * What the buffers of a chunk's samples may take before it ends early, where
 * there are few chunks. A record may be far longer than the fields that tops
 * take of it.
 */
#define LEAT__CHUNK_BUFFERS ((size_t)16 << 20)

/*
 * A chunk of at most `capacity` samples, each with `draws` words of Caffe's
 * generator; their buffers come from `buffers` (borrowed; NULL: malloc).
 * Errors: LEAT_ENOMEM.
 */
int leat__chunk_create(leat__chunk **out, int capacity, int draws,
                       const leat_allocator *buffers);
void leat__chunk_destroy(leat__chunk *chunk); /* takes NULL */

/* Makes the samples' buffers this large, as many as the chunk has room for, and
 * one at least. Errors: LEAT_ENOMEM. */
int leat__chunk_reserve(leat__chunk *chunk, size_t bytes);

/*
 * Samples of one call of a reader, of `n` that are wanted. A call may end at
 * each one, and takes some time for all that it is given.
 */
static inline int leat__chunk_call_size(int n)
{
    enum { MOST = 1024 };
    return n < MOST ? n : MOST;
}

/* Bytes of the buffers of the samples from `first` on. */
size_t leat__chunk_buffers(const leat__chunk *chunk, int first);

/* Clears `n` samples from `first` on, as the reader's next expects them. */
void leat__chunk_clear(leat__chunk *chunk, int first, int n);

/*
 * Clears all samples after use, and frees buffers of a full chunk that held
 * little. Their worker does it, not the thread that fills the chunk next: that
 * one holds the lock that the others wait for.
 */
void leat__chunk_recycle(leat__chunk *chunk);

/* Frees the buffers of a chunk that was recycled. */
void leat__chunk_release(leat__chunk *chunk);

typedef struct leat__chunk_list {
    leat__chunk **chunk;
    int n;
    const atomic_bool *cancelled; /* ends create (borrowed); NULL: nothing */
} leat__chunk_list;

/* `n` chunks with buffers of so many bytes, each of which ends early at `most`.
 * Destroy is due all the same. Errors: LEAT_ENOMEM; LEAT_ECANCELLED. */
int leat__chunk_list_create(leat__chunk_list *list, int n, int capacity,
                            int draws, const leat_allocator *buffers,
                            size_t bytes, size_t most);
void leat__chunk_list_destroy(leat__chunk_list *list);

/*
 * Reads the samples that the source left to the worker; failures are noted in
 * the chunk, bad records in its list with `collects`. Any thread.
 */
void leat__chunk_read(leat__chunk *chunk, leat_reader *reader, bool collects);

/*
 * Notes the failure of sample `i`: of the chunk's those that come first, and
 * where those are collected a bad record (LEAT_EDATA); the line is the
 * thread's.
 */
void leat__chunk_fail(leat__chunk *chunk, int i, int status, bool collects);

/*
 * Sets the positions of all samples: one before the failure may turn out to be
 * bad in the transform. Returns the bytes of the samples that were read; the
 * others' contents, nfields included, are undefined.
 */
int64_t leat__chunk_settle(leat__chunk *chunk);

/* The ways to read what the source left, for `read` of a chunk. */
int leat__chunk_materialize(leat_reader *reader, leat__chunk *chunk, int i,
                            int *got);
int leat__chunk_read_at(leat_reader *reader, leat__chunk *chunk, int i,
                        int *got);

/* How a source fills chunks. */
typedef struct leat__chunk_source_options {
    const leat_pipeline *pipeline; /* borrowed */
    const leat_allocator *buffers; /* borrowed; NULL: malloc */
    int batch_size;
    int rank; /* takes positions p = rank mod step */
    int step;
    leat_epoch_end epoch_end;
    bool whole_batches; /* a chunk is a batch, from the first one on */
    bool collects; /* LEAT_EDATA goes into the chunk's list, fails nothing */
    int draws;     /* words of Caffe's generator a sample; 0: none */
    uint32_t seed; /* of that generator's parent */
} leat__chunk_source_options;

/*
 * An open reader and its position. One thread's at a time, but for fields
 * marked otherwise.
 */
typedef struct leat__chunk_source {
    leat__chunk_source_options options;
    leat_reader *reader;                    /* borrowed */
    const struct leat__read_way *way;       /* of workers */
    const struct leat__read_way *ahead_way; /* of a thread that reads ahead */
    bool marks;                             /* positions, where batches end */
    int64_t length;                         /* of an epoch; 0: not known */
    int64_t found; /* length of the latest epoch that ended; 0: none yet */
    int64_t count; /* the same, if read by index */
    leat__sampler sampler;
    int stuck; /* the status after which nothing comes; 0: running */

    /* read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_bool is_filling;

    leat__mt19937 generator;
    int64_t drawn; /* samples that it has drawn words for, or left out */
    char stuck_line[LEAT__ERROR_MAX];
} leat__chunk_source;

/*
 * For a reader just opened. Errors: those of the reader's count; LEAT_EINVAL
 * where an epoch fills no batch, and what is left over is dropped.
 */
int leat__chunk_source_init(leat__chunk_source *source, leat_reader *reader,
                            const leat__chunk_source_options *options);

/*
 * Goes to `start`, the beginning of a batch, by the reader's mark where `mark`,
 * from its cursor on, has one. The reader is fresh.
 */
void leat__chunk_source_go_to(leat__chunk_source *source,
                              const leat__position *start, leat_token *mark);

/* Copies a mark. One that memory is short for is empty: who resumes there reads
 * from the beginning of the epoch. */
void leat__mark_copy(leat_token *to, const leat_token *from);

/*
 * Whether chunks must have room for a whole batch: whether a batch is dropped
 * is known when its last sample is read.
 */
bool leat__chunk_source_needs_batches(const leat__chunk_source *source);

/*
 * Fills a chunk, all of it new, with the next samples, or leaves their reading
 * to its worker. A thread that reads `ahead` waits for storage itself, instead
 * of the workers. Failures are noted in the chunk. May block as the storage
 * does.
 */
void leat__chunk_source_fill(leat__chunk_source *source, leat__chunk *chunk,
                             bool ahead);

/* Bytes of the fields of a good sample, of which most have two. */
static inline int64_t leat__chunk_payload(const leat__chunk *chunk, int i)
{
    const leat_sample *sample = chunk->sample[i];
    const leat_field *field = sample->field;
    int n = sample->nfields;
    size_t bytes = n > 1 ? field[0].bytes + field[1].bytes : field[0].bytes;
    for (int k = 2; k < n; k++)
        bytes += field[k].bytes;
    return (int64_t)bytes;
}

#endif
