/* data_reader.h: hands out the samples of a pipeline in order, chunk by chunk.
 */
#ifndef LEAT_LAYER_DATA_READER_H
#define LEAT_LAYER_DATA_READER_H

#include "layer/autotune.h"
#include "layer/tops/preview.h"
#include "layer/wakeup.h"

#include <leat/stats.h>

typedef struct leat__data_reader leat__data_reader;

typedef struct leat__data_reader_options {
    leat__chunk_source_options source;
    const leat_open_options *open; /* for create alone; NULL: defaults */
    bool threaded;       /* a producer thread always fills chunks ahead */
    bool probes;         /* it does so only while the reader may block */
    int64_t probe_every; /* nanoseconds between two probes of the reader */
    int64_t probe_pause; /* at least, if the second is for a new epoch */
    const void *owner;   /* of its thread: leat__thread */
} leat__data_reader_options;

/*
 * Opens the pipeline and goes to `start`; the thread, if any, does not run.
 * `token`, if not NULL, has the data set's identity, which the reader refuses
 * if it is another's, and a mark of the start, or none, from its cursor on.
 * Errors: those of the readers, LEAT_ENOMEM.
 */
int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__position *start, leat_token *token);
/* Cancels, joins and frees. Takes NULL. */
void leat__data_reader_destroy(leat__data_reader *reader);

/* The open reader, borrowed; for its fields and identity. */
leat_reader *leat__data_reader_reader(leat__data_reader *reader);

/*
 * Reads one more sample before the first take, which will give it in its turn,
 * and lends it until then. Errors: those of the reader; after LEAT_EDATA the
 * next one can be previewed, if those are collected; LEAT_END after as many as
 * can be; LEAT_ELIMIT where too many batches have none of this rank.
 */
int leat__data_reader_preview(leat__data_reader *reader,
                              const leat_sample **out);

/* The samples of a pass that has ended. */
int64_t leat__data_reader_samples(const leat__data_reader *reader);

/* After a preview: the samples of the epoch whose end it met; 0: of none. */
int64_t leat__data_reader_found(const leat__data_reader *reader);

/* Whether every chunk must have room for a whole batch. */
bool leat__data_reader_needs_batches(const leat__data_reader *reader);

/*
 * With whole_batches, after a preview: the `*n` samples of its batch, NULL for
 * bad ones; `*out` is freed by the caller, the samples are lent. What fails
 * fails the batch, in its turn. Errors: LEAT_ENOMEM.
 */
int leat__data_reader_preview_batch(leat__data_reader *reader,
                                    const leat_sample ***out, int *n);

/* The chunks that are made at the start, and the most samples of one. */
typedef struct leat__data_reader_chunks {
    int size;             /* of a chunk that a taker fills */
    int takers;           /* one chunk each, */
    size_t own_buffers;   /* whose samples' buffers end it early at so much */
    int ahead_size;       /* of a chunk that the thread fills */
    size_t sample_buffer; /* bytes of a sample's that are taken at once */
    leat__autotune_chunks ahead; /* those of the thread */
} leat__data_reader_chunks;

/*
 * Makes buffers for chunks, and starts the thread where one fills them, or may
 * have to when storage is not in memory any more. Once, after the previews.
 */
int leat__data_reader_start(leat__data_reader *reader,
                            const leat__data_reader_chunks *chunks);

/*
 * Takes the next chunk, in order. While no thread fills, makes it in the
 * buffers of taker number `taker`, which has given back its last chunk; that
 * may block as the storage does. LEAT_AGAIN: the thread has none ready, and
 * `*ticket` is for leat__data_reader_wait; LEAT_ECANCELLED. One caller at a
 * time. After the chunk with an error that is not LEAT_EDATA, or LEAT_END,
 * nothing comes any more.
 */
int leat__data_reader_take(leat__data_reader *reader, int taker,
                           leat__chunk **out, int64_t *ticket);

/*
 * Waits until the thread may have a chunk ready, or takers fill since the
 * ticket was drawn. Woken by cancel.
 */
int leat__data_reader_wait(leat__data_reader *reader, int64_t ticket);

/* Reads a chunk's samples if that is still to be done. Any thread. */
void leat__data_reader_read(leat__data_reader *reader, leat__chunk *chunk);

/* Gives the buffers back. Any thread. */
void leat__data_reader_give(leat__data_reader *reader, leat__chunk *chunk);

/*
 * Whether any sample can be read again: for a reader that collects, where
 * access is random. Any thread.
 */
bool leat__data_reader_can_reread(const leat__data_reader *reader);

/*
 * Reads the neighbor, one before (`step` -1) or after (1), of the sample at
 * `*epoch` and `*index`, which become the neighbor's. LEAT_END: there is none
 * before. Errors: those of the reader. Any thread.
 */
int leat__data_reader_read_neighbor(leat__data_reader *reader, int step,
                                    int64_t *epoch, int64_t *index,
                                    leat_sample *sample);

/* Wakes all waiting threads, for good. Any thread. */
void leat__data_reader_cancel(leat__data_reader *reader);

/* Whether a thread is in the reader to fill a chunk just now. Any thread. */
bool leat__data_reader_is_filling(const leat__data_reader *reader);

void leat__data_reader_stats(const leat__data_reader *reader,
                             leat_stage_stats *out);

#endif
