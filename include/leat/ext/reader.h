/*
 * leat/ext/reader.h: the reader table, for adding a reader.
 *
 * A file reader reads storage; a decorator reads other readers. Both are a
 * struct whose first member is a leat_reader, with a const table of operations,
 * and a leat_reader_type that opens it by name.
 */
#ifndef LEAT_EXT_READER_H
#define LEAT_EXT_READER_H

#include <leat/ext/arguments.h>
#include <leat/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The count of an epoch that never ends. */
#define LEAT_ENDLESS INT64_MAX

/** The operations of a reader. */
typedef struct leat_reader_ops leat_reader_ops;

/** The first member of every reader's own struct. */
struct leat_reader {
    const leat_reader_ops *ops; /* its type's; set by open */
    leat_pipeline *pipeline;    /* what leat_pipeline_open opened; leat's own */
    struct leat_reader_state *state; /* leat's own */
};

/**
 * The operations of a reader.
 *
 * size, name, fields, next, seek, cancel and close are required. All others may
 * be NULL, except that read_at needs count and excludes mark, advise and parts
 * need read_at, save and restore come as a pair, and revision needs them. The
 * table is checked when its reader is opened: LEAT_EINVAL names the entry, and
 * the reader is closed again if it has `close`.
 *
 * Threads. One caller at a time, on any thread, calls fields, next, seek, skip,
 * mark, save, revision, restore and close; data used only by these needs no
 * lock. cancel, count, read_at, materialize, may_block, advise and check may be
 * called on any threads, concurrently with each other and with those, between
 * the return of open and close. close is called after all other calls have
 * returned, and is the last call. In a forked child leat calls
 * none of a parent's reader, but is_endless and can_seek. A layer calls on its
 * reader's thread, on workers, and on the thread that calls setup, forward,
 * restore or destroy; leat's threads block all signals but those of a crash,
 * such as SIGSEGV. A program that a function starts there, as by popen, begins
 * so, too, unless the function sets its mask.
 *
 * Reentrancy. A function of a table, and a callback of leat/pipeline.h, may use
 * other layers and readers; of the layer that it reads for it may only call
 * leat_data_layer_cancel, also inside cancel itself. Setup, restore and destroy
 * of that layer would deadlock: they are LEAT_ESTATE, and destroy only logs it.
 * Forward of that layer, where it would wait, is LEAT_ESTATE on leat's own
 * threads, during setup, and where the layer itself calls the function on its
 * caller's thread, as in forward or restore; elsewhere it may wait forever. No
 * function may end its thread (pthread_exit); each returns on its own stack
 * before its thread goes on inside leat: no switch of coroutines, and no
 * longjmp out of it. leat's threads have 1 MiB of stack, of which leat uses up
 * to 64 KiB, and below other readers up to what leat/data_layer.h says of a
 * chain.
 *
 * Samples are cleared buffers of the caller; below a reader that joins several
 * they have the fields of others already, and are asked for one at a time. Each
 * reader appends: for each sample that is returned, next (or materialize, for
 * those that next deferred) and read_at
 *  - append the fields of `fields`, in its order, from field[nfields] on, and
 *    add their number to nfields: dtype, ndim, shape[0] to shape[ndim - 1],
 *    data and bytes, which are enough for type and shape; data may be NULL only
 *    for 0 bytes; leat_sample_set does both;
 *  - set stable to 0 unless everything that data and from.key point to is valid
 *    until close, such as a map; it is then in memory of leat_sample_take, or
 *    valid until close;
 *  - set from.source, which is valid until close, from.record, from.key (NULL:
 *    none) and from.key_size.
 * With an error `from` of the sample at which it occurred is set likewise, as
 * far as known, to name the record. A sample that the reader held may be given
 * by leat_sample_move, if its buffer has the allocator that open was given. The
 * rest of `from`, buffer, buffer_size, taken and allocator belong to the
 * caller and must not be changed otherwise.
 *
 * Status. next, read_at and materialize return the number of good samples in
 * `*got`, which is 0 when they are called, and the status that ended them:
 * LEAT_OK with *got from 1 to n; fewer than n has no further meaning. LEAT_END
 * (of next), or an error, which concerns out[*got]: LEAT_EDATA that sample
 * alone, which is then skipped; any other error the reader. leat delivers the
 * good samples first and the status with the following call, repeats LEAT_END
 * and errors of next until seek or restore, so a reader need not return them
 * twice. LEAT_ECANCELLED after cancel.
 *
 * leat checks, as LEAT_ESTATE, that `*got` fits the status, that the status is
 * in leat/status.h and, if positive, LEAT_END, and that nfields is 1 to
 * LEAT_MAX_FIELDS; the error names the function and the value. An error without
 * a line of leat_error gets one, LEAT_EDATA with from.record. A data layer
 * checks type, number of dimensions and fixed dimensions of each field against
 * its spec (leat_field_spec), as LEAT_EDATA. Everything else is trusted.
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
     * Fills up to `n` samples, at least 1, in order: see "Status" above. A file
     * reader may leave a sample to `materialize`, where that is work that other
     * threads can do: next then sets `deferred` to 1, and `locator` as it
     * likes, and appends no field. A decorator passes deferred samples on as
     * they are (leat_reader_pull), unless it needs their fields.
     */
    int (*next)(leat_reader *reader, leat_sample *const out[], int n, int *got);

    /**
     * Goes to `position`, from where next continues: to index 0 of any epoch
     * always, unless there is a single pass (LEAT_EUNSUPPORTED: for the layer
     * this is the end of all data); elsewhere where the reader can, else
     * LEAT_EUNSUPPORTED, and leat goes to index 0 and skips. LEAT_EINVAL for an
     * index below 0 or beyond the end, where it is known. A reader just opened
     * is at {0, 0} without a call. What comes at a position depends on it,
     * and on the arguments and seed, alone.
     *
     * `mark`, if not NULL, has what `mark` appended at this position, possibly
     * in another process: the reader takes it by leat_token_get, after its
     * upstream readers (leat_reader_seek), or before them where it has their
     * position, as a filter: in the order of `mark`. It then always succeeds. A
     * decorator passes the epoch on with it, and any index: a mark has all that
     * leads to the position.
     *
     * After an error but LEAT_EUNSUPPORTED, or LEAT_EINVAL without a mark, leat
     * calls no next before another seek. LEAT_EDATA, which concerns a record,
     * becomes LEAT_EFORMAT here, as in `mark`, `save` and `restore`.
     */
    int (*seek)(leat_reader *reader, leat_position position, leat_token *mark);

    /**
     * Makes waiting and all further calls of next, read_at, skip and
     * materialize return LEAT_ECANCELLED soon, until close; next may still
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
     * Completes samples that next deferred: reads, checks and decodes them,
     * with the contract of next, but without LEAT_END. Any threads, in
     * parallel, while next goes on. The work for a sample depends on the sample
     * and its position alone.
     *
     * A decorator over one reader has it for work on each sample, such as a
     * map: it gets every sample of its next and read_at, with the fields of
     * the upstream reader, and changes them. A decorator over several whose
     * next passes deferred samples on notes their upstream reader by
     * leat_sample_push_route, and has materialize call
     * leat_reader_materialize_routed.
     */
    int (*materialize)(leat_reader *reader, leat_sample *const out[], int n,
                       int *got);

    /**
     * The number of samples in an epoch, bad ones included; constant;
     * LEAT_ENDLESS if it has no end. LEAT_EUNSUPPORTED if it is unknown before
     * reading, but not for a reader with read_at.
     */
    int (*count)(leat_reader *reader, int64_t *out);

    /**
     * Fills out[i] with the sample at position at[i], whose index is in
     * [0, count). Same contract as next, but stateless: no LEAT_END, no
     * deferred samples, and after an error at out[*got] the caller continues
     * with the position after it. leat checks indices against count. Any
     * threads, in parallel and concurrently with next, whose position it does
     * not change.
     */
    int (*read_at)(leat_reader *reader, const leat_position at[],
                   leat_sample *const out[], int n, int *got);

    /**
     * Announces that read_at of these positions, with indices in [0, count),
     * follows soon, so that the storage can prefetch them. May do nothing. A
     * decorator maps the positions and calls leat_reader_advise of its upstream
     * readers. Any threads, in parallel.
     */
    void (*advise)(leat_reader *reader, const leat_position at[], int n);

    /**
     * Passes by up to `n` samples, at least 1, bad ones included, without
     * reading their payload, and returns their number in `*skipped`, with the
     * contract of next; LEAT_EDATA means that one bad record was passed as
     * well. Without it leat reads them and drops them.
     */
    int (*skip)(leat_reader *reader, int64_t n, int64_t *skipped);

    /**
     * Whether seek finds every index: 1 or 0. NULL: 1. A decorator that maps
     * positions asks its upstream readers by leat_reader_can_seek. Any thread.
     */
    int (*can_seek)(leat_reader *reader);

    /**
     * Appends to `token` what seek needs to find the position at which next
     * continues, at most 32 bytes, after that of the upstream readers
     * (leat_reader_mark). For readers that cannot seek by index alone, such as
     * a filter. Takes no input, and allocates nothing.
     */
    int (*mark)(leat_reader *reader, leat_token *token);

    /**
     * Appends the data set's identity to the token, upstream readers first, at
     * most 32 bytes each: what tells the data from other data, whatever the
     * seed. The token's hash of the pipeline already covers the arguments,
     * except those that keep the samples, and the type's object_id. Every call
     * appends the same bytes: a layer calls it at setup, and refuses a token
     * with other bytes as another data set's. LEAT_ESTATE where no run can be
     * resumed, as of samples that are gone once they are read: the layer then
     * refuses to save, with this line.
     */
    int (*save)(leat_reader *reader, leat_token *token);

    /**
     * Reads what save appended, and returns to the first sample. LEAT_EINVAL
     * for another data set. After an error but LEAT_EUNSUPPORTED leat calls no
     * next before a seek or another restore. A layer calls it on a newly opened
     * reader.
     */
    int (*restore)(leat_reader *reader, leat_token *token);

    /**
     * Whether reads may block from now on, for example on a file that is not in
     * memory: 1 or 0. NULL: as in the type. A decorator asks its upstream
     * readers by leat_reader_may_block. Asked now and then, as the answer may
     * take long. Any thread.
     */
    int (*may_block)(leat_reader *reader);

    /**
     * The bytes of memory that the reader holds now: buffers of samples, an
     * index; not its upstream readers', which leat adds, nor mapped files. What
     * it shares with other readers counts with each. NULL: next to none. Any
     * thread. Returns at once, and opens, reads and closes no reader: leat
     * holds a lock of the chain's.
     */
    int64_t (*memory)(leat_reader *reader);

    /**
     * The parts of an epoch that another order may exchange, such as files:
     * `*n` of them, (*first)[i] the index of the first sample of part i, and
     * (*first)[*n] the count; borrowed until close. For readers with read_at.
     * NULL: all is one part. Any thread.
     */
    int (*parts)(leat_reader *reader, const int64_t **first, int64_t *n);

    /**
     * Appends what changes whenever the data are written again, although save
     * may append the same bytes: times of modification, a transaction. At most
     * 32 bytes. leat_reader_identify calls it after each reader's save, also
     * where a decorator's save calls that one: for `cache:dir=PATH` and
     * unfinished imports, which refuse data that were written since. An
     * `interleave` of a pipeline for which it was called identifies each reader
     * that it opens from then on, and refuses one that has other data. Tokens
     * do not have it, as they are good for a copy of the data. NULL: save tells
     * all.
     */
    int (*revision)(leat_reader *reader, leat_token *token);

    /**
     * Looks whether the data were written since they were opened: LEAT_EIO
     * then. A `cache` that lacks samples calls it in each epoch and when it
     * seeks, one on disk when it is complete, and an `interleave` of a pipeline
     * when it seeks, and of each reader that it opened as that ends; its own is
     * that of all that are open. A decorator over several readers calls
     * leat_reader_check of each. NULL: it is that of the upstream reader; of a
     * file reader, the data do not change. Any thread.
     */
    int (*check)(leat_reader *reader);

    /**
     * Whether an epoch has no end, unless it is empty: 1 or 0; constant. For
     * readers that have none without a count, and for those whose count takes
     * long. NULL: whether count is LEAT_ENDLESS; where that is unknown, what a
     * decorator's only upstream reader says. Any thread.
     */
    int (*is_endless)(leat_reader *reader);

    /**
     * Whether what was read is gone, as of a pipe, so that another reader of
     * the same pipeline does not find it: 1 or 0; constant. A layer then
     * refuses to save and to restore. NULL: whether one of the upstream readers
     * says so.
     */
    int (*reads_once)(leat_reader *reader);

    /**
     * The bytes that setup leaves the reader of a layer's max_memory. For one
     * whose threads hold now more and now less: the same in every run. NULL:
     * what memory returns. Any thread; as memory otherwise.
     */
    int64_t (*reserves)(leat_reader *reader);
};

/**
 * Counts time for which the reader waited, for a thread of its own or for data
 * from a pipe: in `blocked` of leat_reader_stats, and where it waited in one of
 * its operations, which leat times, no longer as `busy`. The reader takes the
 * clock (CLOCK_MONOTONIC) where it would sleep, not for each sample.
 * Thread safety: any threads, between the return of open and close.
 */
LEAT_API void leat_reader_add_blocked(leat_reader *reader, int64_t nanoseconds);

/**
 * Whether an epoch of the reader has no end, unless it is empty, as far as is
 * known: 1 or 0. `cache`, `leat info` and `leat import pipeline` refuse one.
 * Thread safety: any threads.
 */
LEAT_API int leat_reader_is_endless(leat_reader *reader);

/**
 * Reads up to `n` samples for a decorator: appends their fields to what `out`
 * has, and may leave samples deferred. `*got` is the number of good samples,
 * returned before the status that ended them. Errors: as leat_reader_next.
 * Blocks as the storage does; woken by leat_reader_cancel. Thread safety: one
 * caller at a time.
 */
LEAT_API int leat_reader_pull(leat_reader *reader, leat_sample *const out[],
                              int n, int *got);

/**
 * Completes those of `n` samples that leat_reader_pull of this reader left
 * deferred. `*got` is the number of good samples before an error, which
 * concerns out[*got]; the caller continues after it. Errors: those of
 * leat_reader_next. Blocks as the storage does; woken by leat_reader_cancel.
 * Thread safety: any threads, in parallel, while the reader is read.
 */
LEAT_API int leat_reader_materialize(leat_reader *reader,
                                     leat_sample *const out[], int n, int *got);

/**
 * Notes that a sample which leat_reader_pull left deferred came from reader `i`
 * of `n`. Thread safety: one caller a sample.
 */
LEAT_API void leat_sample_push_route(leat_sample *sample, int i, int n);

/**
 * leat_reader_materialize for a reader over `nupstream` others, each sample by
 * the reader that leat_sample_push_route noted. Thread safety: as that.
 */
LEAT_API int leat_reader_materialize_routed(leat_reader *const upstream[],
                                            int nupstream,
                                            leat_sample *const out[], int n,
                                            int *got);

/**
 * The parts of an epoch of a reader of several files; see leat_reader_ops.
 * Errors: LEAT_EUNSUPPORTED for a reader that has none; those of the reader.
 * Thread safety: any threads.
 */
LEAT_API int leat_reader_parts(leat_reader *reader, const int64_t **first,
                               int64_t *n);

/**
 * leat_reader_read_at for a decorator: appends fields to what `out` has. Thread
 * safety: any threads, in parallel.
 */
LEAT_API int leat_reader_pull_at(leat_reader *reader, const leat_position at[],
                                 leat_sample *const out[], int n, int *got);

/**
 * Whether leat_reader_seek finds every index: 1 or 0. Thread safety: any
 * thread.
 */
LEAT_API int leat_reader_can_seek(leat_reader *reader);

/**
 * Whether a position of the reader cannot be found by its index, so that a mark
 * is worth taking: 1 or 0. Thread safety: any thread.
 */
LEAT_API int leat_reader_has_mark(const leat_reader *reader);

/**
 * Whether the data are still those that were opened; see leat_reader_ops.
 * Errors: LEAT_EIO for data that were written since; those of the reader.
 * Blocks as the storage does; nothing wakes it. Thread safety: any thread.
 */
LEAT_API int leat_reader_check(leat_reader *reader);

/**
 * Appends a mark, from which leat_reader_seek finds this position again. For a
 * reader without `mark` it is its position. A mark of what a program opened
 * begins with 8 bytes of its form: while readers can do other things than then,
 * as where a directory of cache was made since, seek refuses it (LEAT_EINVAL),
 * and index 0 and leat_reader_skip lead there. Errors: LEAT_ESTATE while
 * samples that followed a bad one are still to be returned; a sticky error,
 * also one that the next call is to return first, until seek or restore: it may
 * have lost samples; LEAT_ENOMEM. The token is then as it was. Thread safety:
 * one caller at a time.
 */
LEAT_API int leat_reader_mark(leat_reader *reader, leat_token *token);

/** The most upstream readers of one reader. */
#define LEAT_MAX_UPSTREAM 65536

/**
 * What a reader is opened with. The struct and the array `upstream` are valid
 * until open returns, so a reader that needs them later copies them; all else
 * that they point to is valid as long as the reader.
 */
typedef struct leat_open {
    size_t size; /* of this struct, as leat knows it; members are appended */
    const leat_args *args;          /* the arguments' values */
    leat_reader *const *upstream;   /* open; the reader's own on success */
    leat_pipeline *const *pipeline; /* of the upstream readers: leat_open_again
                                       opens one once more */
    int nupstream;                  /* elements of both */
    /**
     * For leat_choice: made of the caller's seed and the reader's position in
     * the pipeline, so that two readers of one type choose differently.
     */
    uint64_t seed;
    leat_phase phase;                /* these four as in leat_open_options */
    int rank;                        /* from 0 */
    int world_size;                  /* at least 1 */
    const leat_allocator *allocator; /* of samples; NULL: malloc */
    /**
     * The bytes that the caller may take in all, its batches included; 0: no
     * limit. A reader that chooses the size of its buffers takes at most a
     * quarter of it. One that was given a size takes that, or fails with
     * LEAT_ELIMIT and names the argument. A layer compares at setup: what
     * `reserves` or `memory` of all readers reports counts like batches.
     */
    int64_t max_memory;
    int threads; /* that materialize may run on at a time; 0: unknown */
    int depth;   /* in the chain of readers: 1 delivers to the caller */
    struct leat_reader_figures *figures; /* leat's own */
    bool drop_behind;                    /* as in leat_open_options */
    /**
     * What the reader may hold of what it reads ahead on threads of its own: an
     * even part of a quarter of max_memory, of which each reader of the
     * pipeline that reads ahead has one; 0: no limit. A reader that opens
     * pipelines again has one for all of them, if they read ahead, and gives
     * leat_open_again a copy of this struct with what it leaves each.
     */
    int64_t ahead_bytes;
} leat_open;

/**
 * The reader's seed: the value of its argument `seed=` where it is given, or
 * else open->seed. Where a type has such an argument without a default, a layer
 * draws a random_seed. Thread safety: any thread.
 */
LEAT_API uint64_t leat_open_seed(const leat_open *open);

/**
 * Opens a pipeline for the reader that was opened with `open`, or with a copy
 * of it: an upstream pipeline once more, or one made of an argument. `number`
 * tells these apart, for their seeds; in statistics they are one reader, the
 * opener's upstream. Owned by the caller: leat_reader_close.
 * Blocks as the storage does; nothing wakes it. Errors: those of the readers.
 * Thread safety: any thread.
 */
LEAT_API int leat_open_again(const leat_open *open,
                             const leat_pipeline *pipeline, int64_t number,
                             leat_reader **out);

/**
 * An entry of the registry: a reader's name and how it is opened. size, name
 * and open are required; zero elsewhere means none.
 */
typedef struct leat_reader_type {
    size_t size;                    /* sizeof(leat_reader_type) */
    const char *name;               /* letters, digits and _ */
    const char *help;               /* a phrase for `leat readers` */
    const leat_argument *arguments; /* until one without a name; may be NULL */
    size_t argument_size; /* sizeof(leat_argument); needed with arguments */
    int min_upstream;     /* 0, 0 for a file reader */
    int max_upstream;     /* at most LEAT_MAX_UPSTREAM */
    /**
     * 1: reads may block: AUTO gives the reader its own thread, and forward
     * never calls it on the caller's thread.
     */
    int may_block;
    /**
     * 1: a decorator of one reader that gives the same samples in the same
     * order, such as a prefetch: a resumed run may have it or not. 2: one that
     * gives those of the first epoch in every epoch, such as a cache: likewise,
     * unless a reader before it has an argument `seed`, by which its epochs may
     * differ.
     */
    int passes_on;
    /**
     * A number that identifies the contents of an object of
     * leat_pipeline_create, which a resumed run must have again. NULL: none.
     * Called once, by leat_pipeline_create.
     */
    uint64_t (*object_id)(const void *object);
    /**
     * Opens a reader and sets its `ops`. On success it owns the upstream
     * readers; on failure the caller does. Any threads.
     */
    int (*open)(const leat_open *open, leat_reader **out);
    /**
     * 1: a decorator whose next reads its upstream readers in their own order,
     * such as take or a map. Over a file that is best read in order, a layer
     * then calls next, although there is read_at.
     */
    int keeps_order;
    /**
     * 1: the reader opens its upstream pipelines itself, as one that shares
     * them: open->upstream is NULL, and nupstream the number of pipelines.
     */
    int opens_upstream;
    /** 1: its upstream readers are opened with leat_open_options.drop_behind.
     */
    int drops_behind;
    /**
     * 1: a decorator whose random access does not depend on that of its
     * upstream readers: it has it over any, or never opens without. Of others a
     * mix, whose order differs by that, uses it only where it does not come
     * from a cache of a stream, which has it once all is kept.
     */
    int own_access;
    /** 1: it reads ahead on threads of its own: leat_open.ahead_bytes. */
    int reads_ahead;
} leat_reader_type;

/**
 * Adds a type to the registry; `type` is borrowed for the life of the process.
 * Errors: LEAT_EINVAL if the name is taken or malformed (expected 1 to 63
 * letters, digits or _), if size, name or open is missing, if an argument is
 * not described as it should be, or if 256 types are registered. Thread safety:
 * any thread.
 */
LEAT_API int leat_reader_register(const leat_reader_type *type);

/**
 * The type at `i` of the registry, leat's own first; NULL after the last. Valid
 * for the life of the process. Thread safety: any thread.
 */
LEAT_API const leat_reader_type *leat_reader_type_at(int i);

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

/**
 * Upstream pipeline `i` of a pipeline; NULL after the last. Borrowed from it.
 * Thread safety: any thread.
 */
LEAT_API const leat_pipeline *
leat_pipeline_upstream_at(const leat_pipeline *pipeline, int i);

#ifdef __cplusplus
}
#endif
#endif
