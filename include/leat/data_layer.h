/* leat/data_layer.h: Caffe's face: setup once, then forward, forward. */
#ifndef LEAT_DATA_LAYER_H
#define LEAT_DATA_LAYER_H

#include <leat/blob.h>
#include <leat/pipeline.h>
#include <leat/stats.h>
#include <leat/token.h>
#include <leat/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads samples, transforms them and delivers them in batches, ahead of the
 * caller. Threads start at setup.
 *
 * Thread safety: one caller at a time for each layer, but for
 * leat_data_layer_cancel. Any number of layers, on one pipeline too.
 */
typedef struct leat_data_layer leat_data_layer;

/** Who reads storage. The bytes delivered are the same. */
typedef enum leat_reader_thread {
    LEAT_READER_AUTO = 0, /* a thread where storage can block, else workers */
    LEAT_READER_ON = 1,   /* Caffe's shape: a producer thread */
    LEAT_READER_OFF = 2   /* always the workers */
} leat_reader_thread;

typedef enum leat_top_mode {
    LEAT_TOP_LEND = 0, /* the tops share the batch's memory until the next */
    LEAT_TOP_COPY = 1  /* the tops keep their own memory and addresses */
} leat_top_mode;

typedef struct leat_data_layer_options {
    size_t size;
    const char *name;        /* the layer's; NULL: "data" */
    const char *const *tops; /* their names, NULL-terminated; NULL: the
                                fields' */
    leat_phase phase;
    int64_t batch_size;        /* samples in a batch of this rank */
    int64_t global_batch_size; /* of all ranks together; instead of it */
    int prefetch;              /* batches made ahead, at least 1 */
    const leat_transform_options *transform; /* of field `data`; NULL: none */
    const char *device;                      /* NULL: "cpu" */
    leat_dtype top_type;   /* FLOAT32, FLOAT64, or UINT8 (no mean, no scale) */
    leat_dtype label_type; /* of all other tops; BYTES: as top_type, or FLOAT32
                              when that is UINT8 */
    leat_layout layout;    /* of images */
    leat_top_mode top_mode;
    leat_rng rng;
    int64_t random_seed; /* below 0: drawn from the system, see seed */
    int rank;            /* with TRAIN: takes positions p = rank mod ranks */
    int world_size;
    int shard_test; /* 1: TEST is divided between the ranks as TRAIN is */
    int workers;    /* 0: as many as the machine lends */
    leat_reader_thread reader_thread;
    int help;          /* 1: forward works when nothing is ready */
    size_t max_memory; /* bytes; prefetch shrinks to fit; 0: no limit */
    /* Which data layer of a net file; only leat_data_layer_create_from_net. */
    const char *layer;         /* by name; NULL: the only one */
    const char *const *stages; /* the net state's, NULL-terminated; or NULL */
    int level;
} leat_data_layer_options;

/** Every default. */
#define LEAT_DATA_LAYER_OPTIONS_INIT                                           \
    {                                                                          \
        sizeof(leat_data_layer_options), NULL, NULL, LEAT_TRAIN, 0, 0, 4,      \
            NULL, NULL, LEAT_FLOAT32, LEAT_BYTES, LEAT_NCHW, LEAT_TOP_LEND,    \
            LEAT_RNG_LEAT, -1, 0, 1, 0, 0, LEAT_READER_AUTO, 1, 0, NULL, NULL, \
            0                                                                  \
    }

/** What forward delivered: provenance of every sample. */
typedef struct leat_batch {
    int64_t number;              /* batches before it, from 0 */
    int64_t epoch;               /* of its first sample */
    int64_t n;                   /* samples in it */
    int64_t valid;               /* of those, real ones; the rest is padding */
    const leat_provenance *from; /* n of them */
} leat_batch;

/**
 * Makes a layer that reads from `pipeline` (shared) as `options` say (copied).
 * Owned by the caller: leat_data_layer_destroy. Starts nothing.
 * Errors: LEAT_EINVAL for options that contradict themselves or a device that
 * is not there; LEAT_EIO, LEAT_EFORMAT for the mean file; LEAT_ENOMEM.
 */
LEAT_API int leat_data_layer_create(leat_data_layer **out,
                                    const leat_pipeline *pipeline,
                                    const leat_data_layer_options *options);

/**
 * Makes the data layer that a Caffe net file describes for `phase`.
 *
 * All other layers are skipped. `options` may be NULL; what the file says wins,
 * they give what it leaves open and choose among several data layers (layer,
 * stages, level). Paths in the file are relative to the working directory.
 * Errors: LEAT_EINVAL, naming file, line and column; LEAT_EIO; LEAT_ENOMEM.
 */
LEAT_API int
leat_data_layer_create_from_net(leat_data_layer **out, const char *prototxt,
                                leat_phase phase,
                                const leat_data_layer_options *options);

/**
 * Opens the readers, gives the tops their shapes, takes all memory and starts
 * the threads. top[0] becomes batch x C x H x W, top[1] the labels, batch; more
 * tops the further fields. Fewer tops than fields leave the rest out.
 *
 * Called once, before the first forward. The tops are borrowed during the call.
 * Errors: LEAT_EINVAL (tops, crop, mean), LEAT_EDATA or LEAT_EFORMAT (the first
 * record), LEAT_EIO, LEAT_ENOMEM, LEAT_ELIMIT, LEAT_EDEVICE.
 */
LEAT_API int leat_data_layer_setup(leat_data_layer *layer,
                                   leat_blob *const top[], int ntop);

/**
 * The number of tops that setup takes: those named in the options or the net
 * file; else one for each field, for which the pipeline is opened once.
 * Errors: those of the readers.
 */
LEAT_API int leat_data_layer_top_count(const leat_data_layer *layer);

/** Name of a top, "data" and "label" by default; NULL where there is none. */
LEAT_API const char *leat_data_layer_top_name(const leat_data_layer *layer,
                                              int i);

/** The pipeline, borrowed from the layer. */
LEAT_API const leat_pipeline *
leat_data_layer_pipeline(const leat_data_layer *layer);

/** The options in force, what a net file said included; borrowed. */
LEAT_API const leat_data_layer_options *
leat_data_layer_get_options(const leat_data_layer *layer);

/**
 * Delivers the next batch into the tops, ready on `stream`; LEAT_HOST: ready
 * for the CPU. Gives the previous batch back.
 *
 * Contents are valid until the next forward, release or destroy. `stream` must
 * live until then. Tops may be other blobs at every call.
 * Errors: LEAT_EDATA for a bad record in this batch, which is consumed: the
 * next forward gives the next one. Others are sticky until restore. The tops
 * stay as they were. Blocks until a batch is ready; woken by
 * leat_data_layer_cancel.
 */
LEAT_API int leat_data_layer_forward(leat_data_layer *layer,
                                     leat_blob *const top[], int ntop,
                                     leat_stream stream);

/**
 * Like forward, but returns LEAT_AGAIN when nothing was ready within
 * `timeout_ms`; 0: at once. The previous batch is given back all the same.
 */
LEAT_API int leat_data_layer_try_forward(leat_data_layer *layer,
                                         leat_blob *const top[], int ntop,
                                         leat_stream stream, int timeout_ms);

/**
 * Gives the batch back before the next forward: its memory is refilled once all
 * `n` streams have passed this point. n 0: at once, or behind the stream that
 * forward was given. Without a batch it does nothing.
 * Errors: LEAT_EINVAL, LEAT_EDEVICE.
 */
LEAT_API int leat_data_layer_release(leat_data_layer *layer,
                                     const leat_stream *streams, int n);

/** The batch that forward delivered last, or NULL. Borrowed until the next. */
LEAT_API const leat_batch *leat_data_layer_batch(const leat_data_layer *layer);

/** The random seed in force, drawn or given. */
LEAT_API uint64_t leat_data_layer_seed(const leat_data_layer *layer);

/**
 * Writes where the next forward goes on into an initialised token.
 * Errors: LEAT_EUNSUPPORTED where the pipeline keeps no order, LEAT_ESTATE
 * before setup, LEAT_ENOMEM.
 */
LEAT_API int leat_data_layer_save(leat_data_layer *layer, leat_token *token);

/**
 * Goes on where the token was saved, also with another batch size, number of
 * threads or ranks. After setup; clears sticky errors.
 * Errors: LEAT_EINVAL for a token of another data set, pipeline or seed given
 * otherwise; with LEAT_RNG_CAFFE also of another world size.
 */
LEAT_API int leat_data_layer_restore(leat_data_layer *layer, leat_token *token);

/** What each stage did since setup. stats->size is set by the caller. */
LEAT_API int leat_data_layer_stats(const leat_data_layer *layer,
                                   leat_stats *stats);

/**
 * Makes a forward that waits, and every later one, return LEAT_ECANCELLED until
 * restore. Thread safety: any thread, at any time before destroy.
 */
LEAT_API void leat_data_layer_cancel(leat_data_layer *layer);

/**
 * Stops and joins every thread and frees everything, in any state, but memory
 * that lent blobs still share. Takes NULL.
 */
LEAT_API void leat_data_layer_destroy(leat_data_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
