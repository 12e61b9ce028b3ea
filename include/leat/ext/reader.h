/*
 * leat/ext/reader.h: the reader table, for those who add a reader of their own.
 *
 * A file reader reads storage; a decorator reads other readers. Both are a
 * struct whose first member is a leat_reader, with a const table of operations,
 * and a leat_reader_type that opens it by name.
 */
#ifndef LEAT_EXT_READER_H
#define LEAT_EXT_READER_H

#include <leat/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The table of a reader. */
typedef struct leat_reader_ops leat_reader_ops;

/** Where a sample lies, in terms of the reader that located it. */
typedef struct leat_locator {
    int64_t record; /* its number in its source, from 0 */
    uint64_t where; /* the reader's own */
} leat_locator;

/** The first member of every reader's own struct. */
struct leat_reader {
    const leat_reader_ops *ops; /* its type's; set by open */
    leat_pipeline *pipeline;    /* what leat_pipeline_open opened; leat's own */
};

/**
 * What a reader can do.
 *
 * Obligatory are size, name, fields, next, reset, cancel and close. All others
 * may be NULL, but that read_at needs count, advise needs read_at, and save and
 * restore, locate and read_located come in pairs. What a table lacks is looked
 * for when its reader is opened: LEAT_EINVAL names the entry, and the reader is
 * closed again, if it has `close`.
 *
 * Threads. One caller at a time, of whatever thread, calls fields, next,
 * locate, reset, seek, save, restore and close; what these alone touch needs no
 * lock. cancel, count, read_at, read_located, may_block and advise come from
 * any threads, several at once and beside those, between open's return and
 * close. close comes when all other calls have returned, and none follows. A
 * layer calls from its reader's thread, from workers, and from whoever calls
 * setup, forward, restore or destroy; leat's threads block all signals.
 *
 * Inside. A function of a table, and a callback of leat/pipeline.h, may use
 * other layers and readers, and of the layer that it reads for
 * leat_data_layer_cancel, also inside cancel itself. Setup, restore and destroy
 * of that layer would wait for themselves: they are LEAT_ESTATE, and destroy
 * does nothing but log it; so is a forward there that would wait, on leat's own
 * threads and during setup; elsewhere it may wait for ever. No function
 * ends its thread (pthread_exit). On leat's threads there is 1 MiB of stack, of
 * which leat takes up to 64 KiB.
 *
 * Samples are buffers of the caller's, and hold what the last reader left
 * there. For each that is given with LEAT_OK, next, read_at and read_located
 * set
 *  - nfields, as many as `fields` says, and field[0] to field[nfields - 1], in
 *    its order: dtype, ndim, shape[0] to shape[ndim - 1], data and bytes, which
 *    are enough for type and shape; data may be NULL only for 0 bytes;
 *    leat_sample_set does both;
 *  - stable: 1 if all that data and from.key point to lives until close, such
 *    as a map; else 0: each then lies in the sample's own buffer, by
 *    leat_sample_reserve, or in memory that lives until close all the same;
 *  - from.source, which lives until close, from.record, from.key (NULL where
 *    there is none) and from.key_size.
 * With an error out[0]->from is set likewise, as far as it is known: it names
 * the record. The rest of `from`, buffer, buffer_size and allocator are the
 * caller's: the reader leaves them as they are.
 *
 * leat refuses, as LEAT_ESTATE, a `*got` that the status does not allow,
 * statuses that leat/status.h does not have and positive ones but LEAT_END, by
 * name of the function and value, and nfields outside 1 to LEAT_MAX_FIELDS; an
 * error without a line of leat_error gets one, LEAT_EDATA with from.record. The
 * rest it takes on trust.
 */
struct leat_reader_ops {
    size_t size; /* sizeof(leat_reader_ops) of the header compiled against */
    const char *name; /* for errors */

    /**
     * The fields that each sample will have, 1 to LEAT_MAX_FIELDS; `*out` is
     * borrowed from the reader until close. May read ahead to find out.
     */
    int (*fields)(leat_reader *reader, const leat_field_spec **out, int *n);

    /**
     * Fills up to `n` samples, at least 1, in order, and says in `*got` how
     * many; it is 0 when next is called.
     *
     * LEAT_OK with *got from 1 to n; fewer than n means only that. LEAT_END
     * with *got 0 at the end, again and again until reset. An error, with *got
     * 0, comes from a call of its own, after the good samples before it were
     * delivered: LEAT_EDATA steps over the bad record (out[0]->from names it),
     * any other error is sticky until reset or restore. LEAT_ECANCELLED once
     * cancel was called.
     *
     * The same buffer may stand in several places of out, where the caller
     * drops those samples.
     */
    int (*next)(leat_reader *reader, leat_sample *const out[], int n, int *got);

    /**
     * Goes back to the first sample: the next epoch. Clears sticky errors, but
     * does not undo cancel. LEAT_EUNSUPPORTED where there is a single pass: the
     * layer takes that for the end of all data.
     */
    int (*reset)(leat_reader *reader);

    /**
     * Makes next, read_at, locate and read_located return LEAT_ECANCELLED soon,
     * those that wait now and all from now on, until close (at its end next may
     * go on to say LEAT_END): nothing undoes it, and a layer that goes on opens
     * a reader anew. May come again, before the
     * first next, and while any other call runs; it does not wait for them. A
     * decorator cancels its upstream readers.
     */
    void (*cancel)(leat_reader *reader);

    /**
     * Frees the reader and closes the upstream readers that it was given.
     * Views of stable samples end with it.
     */
    void (*close)(leat_reader *reader);

    /**
     * The number of samples in an epoch, bad ones counted: the same from each
     * call. LEAT_EUNSUPPORTED when it cannot be known without reading, not for
     * a reader with read_at.
     */
    int (*count)(leat_reader *reader, int64_t *out);

    /**
     * Fills out[i] with the sample at index[i], indices in [0, count), of the
     * epoch that the caller put into out[i]->from.epoch: a shuffle that differs
     * in each epoch goes by it, others need not.
     * Same contract as next, but stateless: no LEAT_END, no error is sticky,
     * and after an error at out[0] the caller goes on with index + 1. leat
     * checks indices against count. Any threads, in parallel, and beside next,
     * whose place it does not move.
     */
    int (*read_at)(leat_reader *reader, const int64_t index[],
                   leat_sample *const out[], int n, int *got);

    /**
     * The next next gives the sample at `index`, in [0, count]; count is the
     * end. LEAT_EINVAL for others. Clears sticky errors. Without it the layer
     * resumes by reading and dropping.
     */
    int (*seek)(leat_reader *reader, int64_t index);

    /**
     * Puts into the token what identifies the data set, those of the reader's
     * own arguments included that change samples, where it has no upstream; and
     * what a decorator was given by leat_args_object. Arguments of a decorator,
     * a seed among them, are in the token's hash of the pipeline already.
     * Upstream readers first. The same bytes from each call: a layer calls it
     * at setup, and takes a token whose bytes differ for another data set's.
     */
    int (*save)(leat_reader *reader, leat_token *token);

    /**
     * Takes back what save put, and goes to the first sample. LEAT_EINVAL for
     * another data set. A layer calls it on a reader just opened.
     */
    int (*restore)(leat_reader *reader, leat_token *token);

    /**
     * Whether storage may block from now on, such as a file that is not in
     * memory: 1 or 0. NULL: as the type says. A decorator asks its upstream
     * readers by leat_reader_may_block. Any thread.
     */
    int (*may_block)(leat_reader *reader);

    /**
     * Says that read_at of these, indices in [0, count), comes soon: storage
     * can be asked for them ahead. It may also do nothing; it reports nothing.
     * A decorator maps them and tells its upstream readers by
     * leat_reader_advise. Any threads, in parallel.
     */
    void (*advise)(leat_reader *reader, const int64_t index[], int n);

    /**
     * next in two halves, where finding a sample is quick and reading it is
     * not: `locate` goes on as next does, one caller at a time, but only says
     * where the samples lie, and knows no bad records; `read_located` fills
     * out[i] from locator[i], from any threads, in parallel, with errors as
     * read_at has them. Both or neither.
     */
    int (*locate)(leat_reader *reader, leat_locator out[], int n, int *got);
    /** The other half of `locate`; samples are filled as by next. */
    int (*read_located)(leat_reader *reader, const leat_locator locator[],
                        leat_sample *const out[], int n, int *got);
};

/** Whether the reader has locate and read_located: 1 or 0. Thread safety: any
    thread. */
LEAT_API int leat_reader_can_locate(const leat_reader *reader);

/**
 * Says where the next up to `n` samples lie; as leat_reader_next_batch, but
 * that bad records show only when they are read. Errors: LEAT_EUNSUPPORTED, and
 * those of the reader. Blocks as the storage does; woken by leat_reader_cancel.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_locate(leat_reader *reader, leat_locator out[], int n,
                                int *got);

/**
 * Reads the samples that were located, with errors as leat_reader_read_at.
 * Errors: LEAT_EUNSUPPORTED, and those of the reader. Blocks as the storage
 * does; woken by leat_reader_cancel. Thread safety: any threads, in parallel.
 */
LEAT_API int leat_reader_read_located(leat_reader *reader,
                                      const leat_locator locator[],
                                      leat_sample *const out[], int n,
                                      int *got);

/** Arguments of a reader in a pipeline: `name:first,second,key=value`. */
typedef struct leat_args leat_args;

/**
 * Positional argument i, or NULL. Borrowed from the arguments.
 * Thread safety: any threads.
 */
LEAT_API const char *leat_args_at(const leat_args *args, int i);

/**
 * The value of `key=`, or NULL. Borrowed from the arguments.
 * Thread safety: any threads.
 */
LEAT_API const char *leat_args_get(const leat_args *args, const char *key);

/**
 * The integer value of `key=` in [least, most]; `*out` stays as it is when the
 * key is absent. Errors: LEAT_EINVAL, naming key and value.
 * Thread safety: any threads.
 */
LEAT_API int leat_args_int(const leat_args *args, const char *key,
                           int64_t least, int64_t most, int64_t *out);

/**
 * The object that code gave with leat_pipeline_create, or NULL. Borrowed from
 * the pipeline. Thread safety: any threads.
 */
LEAT_API const void *leat_args_object(const leat_args *args);

/**
 * An entry of the registry: how to open a reader of this name. size, name and
 * open are obligatory; zeros elsewhere mean none.
 */
typedef struct leat_reader_type {
    size_t size;             /* sizeof(leat_reader_type) */
    const char *name;        /* letters, digits and _ */
    const char *const *keys; /* keys it knows, NULL-terminated; may be NULL */
    int min_args;            /* positional arguments: at least */
    int max_args;            /* and at most */
    int min_upstream;        /* 0, 0 for a file reader */
    int max_upstream;        /* at most 64 */
    /**
     * Storage may block: AUTO gives it a thread of its own, and forward never
     * runs it on the caller's thread.
     */
    int may_block;
    /**
     * Opens a reader and sets its `ops`. On success it owns the upstream
     * readers; on failure the caller still does. The arguments live as long as
     * the reader. Any threads.
     */
    int (*open)(const leat_args *args, leat_reader *const upstream[], int n,
                leat_reader **out);
} leat_reader_type;

/**
 * Adds a type to the registry; `type` is borrowed for ever.
 * Errors: LEAT_EINVAL when the name is taken or malformed (1 to 63 letters,
 * digits and _ make one), when size, name or open is not there, or when there
 * are 256 types already. Thread safety: any thread.
 */
LEAT_API int leat_reader_register(const leat_reader_type *type);

/**
 * A pipeline of one reader of a registered type, or of one that is not in the
 * registry, over `n` upstream pipelines (shared: their counts go up).
 *
 * `text` holds the arguments as in a pipeline text, may be NULL. `object` is
 * handed to open by leat_args_object; `release`, if not NULL, is called with it
 * when the pipeline goes, also when this call fails. `type` is borrowed until
 * then. Owned by the caller: leat_pipeline_unref.
 * Errors: LEAT_EINVAL for arguments or upstreams that the type does not take,
 * and for a type without size, name or open; LEAT_ENOMEM. Thread safety: any
 * thread.
 */
LEAT_API int leat_pipeline_create(leat_pipeline **out,
                                  const leat_reader_type *type,
                                  const char *text, void *object,
                                  void (*release)(void *object),
                                  leat_pipeline *const upstream[], int n);

#ifdef __cplusplus
}
#endif
#endif
