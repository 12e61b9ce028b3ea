/*
 * leat/ext/reader.h: the reader table, for adding a reader.
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

/** The operations of a reader. */
typedef struct leat_reader_ops leat_reader_ops;

/** The location of a sample, as its reader defines it. */
typedef struct leat_locator {
    int64_t record; /* its number in its source, from 0 */
    uint64_t where; /* defined by the reader */
} leat_locator;

/** The first member of every reader's own struct. */
struct leat_reader {
    const leat_reader_ops *ops; /* its type's; set by open */
    leat_pipeline *pipeline;    /* what leat_pipeline_open opened; leat's own */
};

/**
 * The operations of a reader.
 *
 * size, name, fields, next, reset, cancel and close are required. All others
 * may be NULL, except that read_at needs count, advise needs read_at, and save
 * and restore, locate and read_located come in pairs. The table is checked when
 * its reader is opened: LEAT_EINVAL names a missing entry, and the reader is
 * closed again if it has `close`.
 *
 * Threads. One caller at a time, on any thread, calls fields, next, locate,
 * reset, seek, save, restore and close; data used only by these needs no lock.
 * cancel, count, read_at, read_located, may_block and advise may be called on
 * any threads, concurrently with each other and with those, between the return
 * of open and close. close is called after all other calls have returned, and
 * is the last call. A layer calls on its reader's thread, on workers, and on
 * the thread that calls setup, forward, restore or destroy; leat's threads
 * block all signals.
 *
 * Reentrancy. A function of a table, and a callback of leat/pipeline.h, may use
 * other layers and readers; of the layer that it reads for it may only call
 * leat_data_layer_cancel, also inside cancel itself. Setup, restore and destroy
 * of that layer would deadlock: they are LEAT_ESTATE, and destroy only logs it.
 * Forward of that layer, where it would wait, is LEAT_ESTATE on leat's own
 * threads and during setup; on any other thread it may wait forever. No
 * function may end its thread (pthread_exit). leat's threads have 1 MiB of
 * stack, of which leat uses up to 64 KiB.
 *
 * Samples are buffers of the caller with arbitrary earlier contents. For each
 * sample that is returned with LEAT_OK, next, read_at and read_located set
 *  - nfields, the number that `fields` returned, and field[0] to field[nfields
 *    - 1], in its order: dtype, ndim, shape[0] to shape[ndim - 1], data and
 *    bytes, which are enough for type and shape; data may be NULL only for 0
 *    bytes; leat_sample_set does both;
 *  - stable: 1 if everything that data and from.key point to is valid until
 *    close, such as a map; else 0: each of them is in the sample's own buffer,
 *    of leat_sample_reserve, or in memory that is valid until close;
 *  - from.source, which is valid until close, from.record, from.key (NULL:
 *    none) and from.key_size.
 * With an error out[0]->from is set likewise, as far as known, to name the
 * record. The rest of `from`, buffer, buffer_size and allocator belong to the
 * caller and must not be changed.
 *
 * leat checks, as LEAT_ESTATE, that `*got` fits the status, that the status is
 * in leat/status.h and, if positive, LEAT_END, and that nfields is 1 to
 * LEAT_MAX_FIELDS; the error names the function and the value. An error without
 * a line of leat_error gets one, LEAT_EDATA with from.record. Everything else
 * is trusted.
 */
struct leat_reader_ops {
    size_t size; /* sizeof(leat_reader_ops) of the header compiled against */
    const char *name; /* for errors */

    /**
     * The fields of each sample, 1 to LEAT_MAX_FIELDS; `*out` is borrowed from
     * the reader until close. May read samples ahead.
     */
    int (*fields)(leat_reader *reader, const leat_field_spec **out, int *n);

    /**
     * Fills up to `n` samples, at least 1, in order, and returns their number
     * in `*got`, which is 0 when next is called.
     *
     * LEAT_OK with *got from 1 to n; fewer than n has no further meaning.
     * LEAT_END with *got 0 at the end, and from every further call until reset.
     * An error, with *got 0, is returned by a call of its own, after the good
     * samples before it: LEAT_EDATA skips the bad record (out[0]->from names
     * it), any other error is sticky until reset or restore. LEAT_ECANCELLED
     * after cancel.
     *
     * The same buffer may occur several times in `out` if the caller discards
     * these samples.
     */
    int (*next)(leat_reader *reader, leat_sample *const out[], int n, int *got);

    /**
     * Returns to the first sample, for the next epoch. Clears sticky errors,
     * but does not undo cancel. LEAT_EUNSUPPORTED if there is a single pass:
     * for the layer this is the end of all data.
     */
    int (*reset)(leat_reader *reader);

    /**
     * Makes waiting and all further calls of next, read_at, locate and
     * read_located return LEAT_ECANCELLED soon, until close; next may still
     * return LEAT_END if it was at the end. It is permanent: a layer that
     * continues opens a new reader. May be called repeatedly, before the first
     * next, and during any other call, for which it does not wait. A decorator
     * cancels its upstream readers.
     */
    void (*cancel)(leat_reader *reader);

    /**
     * Frees the reader and closes its upstream readers. Views of stable samples
     * become invalid.
     */
    void (*close)(leat_reader *reader);

    /**
     * The number of samples in an epoch, bad ones included; constant.
     * LEAT_EUNSUPPORTED if it is unknown before reading, but not for a reader
     * with read_at.
     */
    int (*count)(leat_reader *reader, int64_t *out);

    /**
     * Fills out[i] with the sample at index[i], in [0, count), of the epoch
     * out[i]->from.epoch, which the caller sets: only a reader whose order
     * differs by epoch needs it. Same contract as next, but stateless: no
     * LEAT_END, no sticky errors, and after an error at out[0] the caller
     * continues with index + 1. leat checks indices against count. Any threads,
     * in parallel and concurrently with next, whose position it does not
     * change.
     */
    int (*read_at)(leat_reader *reader, const int64_t index[],
                   leat_sample *const out[], int n, int *got);

    /**
     * Positions next before the sample at `index`, in [0, count]; count is the
     * end. LEAT_EINVAL for others. Clears sticky errors. Without it the layer
     * resumes by reading and discarding samples.
     */
    int (*seek)(leat_reader *reader, int64_t index);

    /**
     * Appends the data set's identity to the token, upstream readers first, at
     * most 32 bytes each: what tells the data from other data, and the
     * arguments of a file reader that change samples. The token's hash of the
     * pipeline already covers a decorator's arguments, such as a seed; a
     * decorator that was given an object (leat_args_object) appends what
     * identifies its contents. Every call appends the same
     * bytes: a layer calls it at setup, and refuses a token with other bytes as
     * another data set's.
     */
    int (*save)(leat_reader *reader, leat_token *token);

    /**
     * Reads what save appended, and returns to the first sample. LEAT_EINVAL
     * for another data set. A layer calls it on a newly opened reader.
     */
    int (*restore)(leat_reader *reader, leat_token *token);

    /**
     * Whether reads may block from now on, for example on a file that is not in
     * memory: 1 or 0. NULL: as in the type. A decorator asks its upstream
     * readers by leat_reader_may_block. Any thread.
     */
    int (*may_block)(leat_reader *reader);

    /**
     * Announces that read_at of these indices, in [0, count), follows soon, so
     * that the storage can prefetch them. May do nothing. A decorator maps the
     * indices and calls leat_reader_advise of its upstream readers. Any
     * threads, in parallel.
     */
    void (*advise)(leat_reader *reader, const int64_t index[], int n);

    /**
     * next in two steps, if finding a sample is much cheaper than reading it:
     * `locate` advances as next does, one caller at a time, but only returns
     * the samples' locations and detects no bad records; `read_located` fills
     * out[i] from locator[i], on any threads, in parallel, with the errors of
     * read_at. Both or neither.
     */
    int (*locate)(leat_reader *reader, leat_locator out[], int n, int *got);
    /** The second step of `locate`; samples are filled as by next. */
    int (*read_located)(leat_reader *reader, const leat_locator locator[],
                        leat_sample *const out[], int n, int *got);
};

/** Whether the reader has locate and read_located: 1 or 0. Thread safety: any
    thread. */
LEAT_API int leat_reader_can_locate(const leat_reader *reader);

/**
 * Locates the next up to `n` samples; as leat_reader_next_batch, except that
 * bad records are detected only when they are read. Errors: LEAT_EUNSUPPORTED,
 * and those of the reader. Blocks as the storage does; woken by
 * leat_reader_cancel. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_locate(leat_reader *reader, leat_locator out[], int n,
                                int *got);

/**
 * Reads located samples, with the errors of leat_reader_read_at. Errors:
 * LEAT_EUNSUPPORTED, and those of the reader. Blocks as the storage does; woken
 * by leat_reader_cancel. Thread safety: any threads, in parallel.
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
 * The integer value of `key=` in [min, max]; `*out` is unchanged if the key is
 * absent. Errors: LEAT_EINVAL, naming key and value. Thread safety: any
 * threads.
 */
LEAT_API int leat_args_int(const leat_args *args, const char *key, int64_t min,
                           int64_t max, int64_t *out);

/**
 * The object passed to leat_pipeline_create, or NULL. Borrowed from the
 * pipeline, and shared by all its readers, hence const: a type that changes its
 * object casts that away and synchronises. Thread safety: any threads.
 */
LEAT_API const void *leat_args_object(const leat_args *args);

/**
 * An entry of the registry: a reader's name and how it is opened. size, name
 * and open are required; zero elsewhere means none.
 */
typedef struct leat_reader_type {
    size_t size;             /* sizeof(leat_reader_type) */
    const char *name;        /* letters, digits and _ */
    const char *const *keys; /* its keys, NULL-terminated; may be NULL */
    int min_args;            /* positional arguments: at least */
    int max_args;            /* and at most */
    int min_upstream;        /* 0, 0 for a file reader */
    int max_upstream;        /* at most 64 */
    /**
     * 1: reads may block: AUTO gives the reader its own thread, and forward
     * never calls it on the caller's thread.
     */
    int may_block;
    /**
     * Opens a reader and sets its `ops`. On success it owns the upstream
     * readers; on failure the caller does. The arguments are valid as long as
     * the reader. Any threads.
     */
    int (*open)(const leat_args *args, leat_reader *const upstream[], int n,
                leat_reader **out);
} leat_reader_type;

/**
 * Adds a type to the registry; `type` is borrowed for the life of the process.
 * Errors: LEAT_EINVAL if the name is taken or malformed (expected 1 to 63
 * letters, digits or _), if size, name or open is missing, or if 256 types are
 * registered. Thread safety: any thread.
 */
LEAT_API int leat_reader_register(const leat_reader_type *type);

/**
 * Creates a pipeline of one reader of `type`, which need not be registered,
 * over `n` upstream pipelines (shared).
 *
 * `text` has the arguments as in a pipeline text; may be NULL. leat_args_object
 * returns `object` to open; `release`, if not NULL, is called with it when the
 * pipeline is freed, also if this call fails. `type` is borrowed until then.
 * Owned by the caller: leat_pipeline_unref. Errors: LEAT_EINVAL for arguments
 * or upstreams that the type does not accept, and for a type without size, name
 * or open; LEAT_ENOMEM. Thread safety: any thread.
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
