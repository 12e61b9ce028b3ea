/* leat/data_layer.h: Caffe's face: setup once, then forward, forward. */
#ifndef LEAT_DATA_LAYER_H
#define LEAT_DATA_LAYER_H

#include <leat/blob.h>
#include <leat/data_layer_options.h>
#include <leat/pipeline.h>
#include <leat/stats.h>
#include <leat/token.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads samples, transforms them and delivers them in batches, ahead of the
 * caller. Threads start at setup and block all signals but those of a crash,
 * such as SIGSEGV: a program that ends its own last thread by pthread_exit, and
 * not its layers, gets no other any more. No function of leat may be called in
 * a signal handler: set a flag there, and call leat_data_layer_cancel on a
 * thread.
 *
 * A layer is for one caller at a time, but for leat_data_layer_cancel. There
 * may be any number of layers, on one pipeline too.
 *
 * fork(). A layer belongs to the process that created it, set up or not. In a
 * forked child its calls return LEAT_ESTATE at once, batch NULL; cancel does
 * nothing; pipeline, get_options, seed, top and top_name still answer. Destroy
 * there waits for nothing, closes no reader and no file, calls neither the
 * device nor an allocator's hooks, and keeps mapped what the layer's threads
 * worked on until the child ends; a layer that another thread was destroying at
 * the fork is not the child's to destroy. Layers that the child creates work as
 * any other, beside its parent's too; on a GPU only if the parent has not used
 * the GPU. The child of vfork() calls exec or _exit; children made by clone()
 * or _Fork() are not noticed.
 *
 * pthread_cancel(). No call of a layer is a cancellation point: a thread that
 * is cancelled in a call finishes the call first, and ends at its next
 * cancellation point. leat_data_layer_cancel wakes it if the call waits.
 * Other calls of leat's that read or write files may be: see leat/reader.h.
 * Asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS) of a thread in a call
 * of leat's is forbidden.
 *
 * Stacks. Threads of leat's have 1 MiB, whatever RLIMIT_STACK is. A thread
 * needs 64 KiB of free stack to call create, setup, restore, forward or
 * try_forward; 96 KiB where the pipeline has several readers, and 4 KiB more
 * for each beyond eight in a chain. The first three check that, and return
 * LEAT_ELIMIT. What callbacks, a device's driver or a sanitizer use comes on
 * top.
 */
typedef struct leat_data_layer leat_data_layer;

/** What forward delivered: provenance of every sample. */
typedef struct leat_batch {
    int64_t number; /* from 0 at position 0. A group numbers the batches of all
                       its members. A restored layer goes on from the number
                       that its own batches (of all ranks in TRAIN) have at the
                       token's position, rounded down */
    int64_t epoch;  /* of its first sample; of one without samples, its own */
    int64_t n;      /* rows of the tops: batch_size, or what a single pass left,
                       or PARTIAL an epoch, of which 0 may be this rank's */
    int64_t valid;  /* of those, real samples, which come first; fewer than n
                       with PAD alone */
    const leat_provenance *from; /* n of them; borrowed as the batch is */
    int64_t bad; /* of those, places where another record or zeros stand in */
    int slot;    /* in which of the layer's batch buffers it lies, from 0 to
                    leat_data_layer_slots - 1 */
} leat_batch;

/**
 * Makes a layer that reads from `pipeline` (shared) as `options` say (copied).
 * Owned by the caller: leat_data_layer_destroy. Starts nothing.
 * Errors: LEAT_EINVAL for options that contradict themselves, for an enum that
 * has no such value, naming the field, or for a device that is not there;
 * LEAT_EDEVICE for one that cannot be had; LEAT_EIO, LEAT_EFORMAT for the mean
 * file; LEAT_ELIMIT where the calling thread has too little stack; LEAT_ENOMEM.
 * Thread safety: any thread.
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
 * docs/prototxt.md says what is understood.
 * Errors: LEAT_EINVAL, naming file, line and column; LEAT_EIO; LEAT_EFORMAT;
 * LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int
leat_data_layer_create_from_net(leat_data_layer **out, const char *prototxt,
                                leat_phase phase,
                                const leat_data_layer_options *options);

/**
 * Opens the readers, gives the tops their shapes, takes all memory and starts
 * the threads. top[0] becomes batch x C x H x W (the first field, whatever its
 * name: images of uint8 or float32; one that is not of three dimensions keeps
 * its own), top[1] the second field, which of an LMDB are the labels, batch;
 * more tops the further fields. Fewer tops than fields leave the rest out. With
 * `top` NULL and `ntop` 0 the layer makes blobs of its own, one for each top:
 * leat_data_layer_top.
 *
 * With a list of tops in the options they come in its order, all of them, and
 * have the shapes of a batch whose samples are all like the first one; those of
 * PAD to the longest and of RAGGED change with every forward. With such tops
 * setup reads all of the first batch. Samples that are batches of their
 * reader's (leat_field_spec: is_batch) get no axis more, and need a batch_size
 * of 1.
 *
 * Succeeds once, before the first forward; after an error it may be called
 * again. The tops, no two of them one blob, are borrowed during the call.
 * Blocks until the first sample is read; woken by leat_data_layer_cancel.
 * Errors: LEAT_EINVAL (tops, crop, or a mean file that is not of the shape of
 * the first image before its crop; a list of tops that does not fit the fields,
 * naming the top; on_error REPLACE with several ranks without random access; a
 * single pass of fewer samples than ranks; epoch_end DROP where an epoch fills
 * no batch), LEAT_EDATA (the first top's field is of a type that no image is,
 * or neither the first record nor one near it has a shape), LEAT_EFORMAT,
 * LEAT_EIO, LEAT_ENOMEM, LEAT_ELIMIT, LEAT_EDEVICE, LEAT_EUNSUPPORTED
 * (transform_on DEVICE on one that has no transform), LEAT_ECANCELLED,
 * LEAT_ESTATE when it was set up before, or created in another process.
 * LEAT_ELIMIT is max_memory or the calling thread's stack. Thread safety: one
 * caller a layer.
 */
LEAT_API int leat_data_layer_setup(leat_data_layer *layer,
                                   leat_blob *const top[], int ntop);

/**
 * The number of tops that setup takes: those named or listed in the options or
 * the net file, with their lengths and offsets; else, or where one is RAGGED,
 * before setup those of the fields, for which the pipeline is
 * opened and closed. Blocks as the storage does, with nothing to wake it.
 * Errors: those of the readers. Thread safety: one caller a layer.
 */
LEAT_API int leat_data_layer_top_count(const leat_data_layer *layer);

/**
 * The samples of an epoch, of all ranks together, with those that epoch_end
 * DROP leaves out. With n of them an epoch has n divided by the batch of all
 * ranks batches, rounded up, with DROP down; with WRAP batches do not end with
 * it. LEAT_ENDLESS (leat/ext/reader.h) if an epoch has no end. Before setup it
 * opens the pipeline, as leat_data_layer_top_count does.
 * Errors: LEAT_EUNSUPPORTED where the number is not known before reading, as of
 * a callback without one; those of opening. Thread safety: one caller a layer.
 */
LEAT_API int leat_data_layer_count(const leat_data_layer *layer, int64_t *n);

/**
 * The number of slots: the batch buffers of this layer, which leat_batch.slot
 * numbers. With LEAT_TOP_LEND the tops of a batch lie in its slot, at addresses
 * that stay until restore: all batches of a slot have the same ones, except
 * where the shapes of tops vary. So what is made for addresses, such as a CUDA
 * graph, is made once for each slot and used for every later batch in it.
 *
 * The number stays until restore. It is prefetch + 1, fewer where max_memory
 * leaves no room for them, and with LEAT_PREFETCH_AUTO the most that there may
 * ever be, of which the last may never be used.
 * Errors: LEAT_ESTATE before setup and after a restore that failed. Thread
 * safety: one caller a layer.
 */
LEAT_API int leat_data_layer_slots(const leat_data_layer *layer);

/**
 * Name of a top, the options' or the field's; NULL where there is none. Before
 * setup "data" and "label" stand for fields not yet known, and a RAGGED top has
 * one top of offsets. Borrowed from the
 * layer. Thread safety: one caller a layer.
 */
LEAT_API const char *leat_data_layer_top_name(const leat_data_layer *layer,
                                              int i);

/**
 * Top `i` of a layer that was set up without blobs of the caller's; NULL, with
 * an error line, before setup, out of range, or where the caller gave blobs.
 * Borrowed from the layer until destroy. Thread safety: one caller a layer.
 */
LEAT_API leat_blob *leat_data_layer_top(const leat_data_layer *layer, int i);

/** The pipeline, borrowed from the layer. Thread safety: any thread. */
LEAT_API const leat_pipeline *
leat_data_layer_pipeline(const leat_data_layer *layer);

/**
 * The options in force, what a net file said included; borrowed from the layer.
 * Thread safety: any thread.
 */
LEAT_API const leat_data_layer_options *
leat_data_layer_get_options(const leat_data_layer *layer);

/**
 * Delivers the next batch into the tops, ready on `stream`; LEAT_HOST: ready
 * for the CPU. Gives the previous batch back. With `top` NULL and `ntop` 0 the
 * layer's own tops take it: leat_data_layer_top.
 *
 * Contents are valid until the next forward, release or destroy, and in COPY
 * mode as long as the top. `stream` must live until then, in COPY mode until
 * the call returns. Tops may be other blobs at every call, each its own.
 *
 * On cuda:N `stream` is any stream of that device's primary context, which the
 * CUDA runtime uses, or of a green context, the default stream included, but
 * cudaStreamPerThread in COPY mode only: in LEND mode a later call, perhaps of
 * another thread, records where the stream's reads end. Any other is
 * LEAT_EINVAL.
 *
 * LEAT_END, again and again, when the pipeline has a single pass and that is
 * over; what it left over was a shorter batch, unless epoch_end is DROP or PAD.
 * Errors: LEAT_EDATA for a bad record; the whole batch that it is in is
 * consumed, and the next forward gives the next batch. LEAT_EINVAL, as the
 * others, for an image that the mean file does not fit, whatever on_error says:
 * images of several sizes go with mean values. LEAT_EINVAL, LEAT_ESTATE for a
 * wrong call, which changes nothing; so is one while `stream`, or that of
 * the previous batch where it is lent, is captured into a graph. All others are
 * sticky until restore. Blocks until a batch is ready, with `caller_helps` also
 * until the chunk of samples is done that it works on meanwhile, which a filter
 * that finds none makes long; woken by leat_data_layer_cancel. Thread safety:
 * one caller a layer.
 */
LEAT_API int leat_data_layer_forward(leat_data_layer *layer,
                                     leat_blob *const top[], int ntop,
                                     leat_stream stream);

/**
 * Like forward, but returns LEAT_AGAIN when nothing was ready within
 * `timeout_ms`; 0 or less: at once. The previous batch is given back all the
 * same.
 * With `caller_helps` it may take longer by the chunk of samples that it works
 * on. Blocks so long; woken by leat_data_layer_cancel. Thread safety: one
 * caller a layer.
 */
LEAT_API int leat_data_layer_try_forward(leat_data_layer *layer,
                                         leat_blob *const top[], int ntop,
                                         leat_stream stream, int timeout_ms);

/**
 * Gives the batch back before the next forward: its memory is refilled once the
 * stream that forward was given, and the `n` further ones, at most 8, have
 * passed this point; for the host at once. Tops that it was lent to give out no
 * pointer any more. Without a batch it does nothing. On cuda:N the further
 * streams are as forward's; cudaStreamPerThread is the calling thread's.
 * Errors: LEAT_EINVAL, and LEAT_ESTATE while one of these streams is captured
 * into a graph: the batch stays; LEAT_EDEVICE. Thread safety: one caller a
 * layer.
 */
LEAT_API int leat_data_layer_release(leat_data_layer *layer,
                                     const leat_stream *streams, int n);

/**
 * The batch that the latest forward delivered; NULL after a release or error.
 * Borrowed until the next forward, release or destroy.
 * Thread safety: one caller a layer.
 */
LEAT_API const leat_batch *leat_data_layer_batch(const leat_data_layer *layer);

/**
 * The random seed in force, drawn, given or restored; 0 where none was given
 * and nothing is chosen at random. Thread safety: one caller a layer.
 */
LEAT_API uint64_t leat_data_layer_seed(const leat_data_layer *layer);

/**
 * Writes where the next forward goes on into an initialised token: after the
 * same number of batches the same one on every rank; over buffers of a stream
 * (shuffle:N, bucket, window) it may be each rank's own, and there and over a
 * cache of a stream another one after a restore: all lead to the same samples.
 * Errors: LEAT_ESTATE before setup;
 * LEAT_EUNSUPPORTED where a reader cannot be resumed, as of a queue or a pipe;
 * LEAT_ENOMEM; the token is then as it was. Thread safety: one caller a layer.
 */
LEAT_API int leat_data_layer_save(leat_data_layer *layer, leat_token *token);

/**
 * Goes on where the token was saved, also with another batch size, epoch_end,
 * number of threads or ranks: the token has one position p for all ranks, and
 * every rank restores the same token. Of W ranks, rank p mod W then takes the
 * sample at p. After setup; clears sticky errors and cancel. Gives the batch
 * back that forward delivered; blobs of the caller's that it was lent to keep
 * its memory, beside the new one, until they take another batch. Readers that
 * cannot seek read and drop what comes before. LEAT_END, like every later
 * forward: the token is of the end of a single pass. Errors that change
 * nothing: LEAT_EINVAL for a token of another data set, pipeline or rng, or of
 * another seed than the options give, with LEAT_RNG_CAFFE also of another world
 * size; LEAT_EUNSUPPORTED as of save; LEAT_ESTATE before setup. Those of setup
 * are sticky, with LEAT_EFORMAT for LEAT_EDATA; so is LEAT_EINVAL where files
 * have another size, number or other ends than at setup, or an LMDB, which is
 * opened anew, another number of records or other first and last keys. Blocks
 * as setup does; woken by leat_data_layer_cancel. Thread safety: one caller a
 * layer.
 */
LEAT_API int leat_data_layer_restore(leat_data_layer *layer, leat_token *token);

/**
 * What each stage did since setup or the latest restore. `stats->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL.
 * Thread safety: one caller a layer.
 */
LEAT_API int leat_data_layer_stats(const leat_data_layer *layer,
                                   leat_stats *stats);

/**
 * Makes a setup or forward that waits, and every later one, return
 * LEAT_ECANCELLED until restore, unless an error or the end sticks already; a
 * layer that was never set up stays so. Calls the reader's cancel unless the
 * layer is cancelled already, and may be called from inside it, of this layer
 * and of others. Thread safety: any thread, at any time before destroy.
 */
LEAT_API void leat_data_layer_cancel(leat_data_layer *layer);

/**
 * Stops and joins every thread and frees everything, in any state, but memory
 * that lent blobs still share. Takes NULL. Waits for the work under way, a
 * chunk of samples a thread, and for a callback that blocks without cancel. The
 * stream that forward was given in LEND mode is used once more: destroy that
 * afterwards.
 * Thread safety: one caller, and no other call at the same time.
 */
LEAT_API void leat_data_layer_destroy(leat_data_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
