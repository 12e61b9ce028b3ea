/* leat/pipeline.h: pipelines, which describe the source of samples. */
#ifndef LEAT_PIPELINE_H
#define LEAT_PIPELINE_H

#include <leat/sample.h>
#include <leat/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A description of readers; immutable and shared (reference counted). Each
 * opening makes an independent reader.
 */
typedef struct leat_pipeline leat_pipeline;

/** A running pass; see leat/reader.h. */
typedef struct leat_reader leat_reader;

/**
 * Options of the LMDB reader; they affect performance, never the samples. Zero
 * is the default of every field but `size`, of which leat_data_layer_options
 * has the rule; a pipeline text takes the fields by name, with the same values.
 */
typedef struct leat_lmdb_options {
    size_t size; /* of this struct, as the caller knows it */
    /**
     * Bytes to read ahead while the file is not in memory. 0: 32 MiB, but
     * sequential reads are left to the kernel if its own setting for the device
     * is 4 MiB or more; -1: left to the kernel. Use less when memory is short,
     * more for storage of high latency.
     */
    int64_t read_ahead;
    /**
     * 1: pages that were read in order are unmapped and dropped from memory
     * `keep_behind` bytes later, so each epoch reads the storage again; other
     * processes are not affected. Pages of records read by number, as for a
     * decorator that maps positions or one rank of several, are kept, which is
     * logged once.
     */
    int drop_behind;
    /**
     * Approximate bytes kept; 0: 64 MiB; -1: none. They should cover the
     * samples in use by workers: pages dropped too soon are read twice.
     */
    int64_t keep_behind;
} leat_lmdb_options;

/** Every default, written out. */
#define LEAT_LMDB_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(leat_lmdb_options), 0, 0, 0                                     \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_lmdb_options_init(leat_lmdb_options *options);

/**
 * Caffe's LMDB: the Datums of the unnamed database, in key order.
 *
 * `path` is a directory with data.mdb, or the file itself; relative to the
 * working directory at open. `options` may be NULL. Nothing is opened yet.
 * Through a link, too, the lock file is that of the file itself, but beside a
 * link called data.mdb to a file of another name it is the link's lock.mdb. A
 * writer must use the same one, so it opens the directory, not data.mdb with
 * MDB_NOSUBDIR, and not a directory in which data.mdb is a link to another.
 *
 * A reader sees the snapshot at its opening, whatever a writer does; but if it
 * may not write the lock file, or there is none and none can be created,
 * nothing may write to the database. The process must not open the same
 * database through liblmdb meanwhile, which would lose its locks.
 *
 * Opening is LEAT_EIO, with a line that names the file to remove, if the lock
 * file is another file, is damaged while another program uses it, or is held by
 * another program for more than 5 seconds; LEAT_EIO while another program uses
 * another of the lock files that this path leads to, or all slots for readers
 * are taken, one for each process and snapshot: 1022 in a lock file that leat
 * makes, 126 in liblmdb's unless it was made with more. A forked child
 * can open the database again. Fields: `data`, channels x height x
 * width, uint8 or float32, or the bytes of an encoded image; and `label`, an
 * int32 scalar. Owned by the caller: leat_pipeline_unref. Errors: LEAT_EINVAL,
 * also for options out of range or not initialised; LEAT_ENOMEM. Thread safety:
 * any thread.
 */
LEAT_API int leat_pipeline_lmdb(leat_pipeline **out, const char *path,
                                const leat_lmdb_options *options);

/** One field of data in memory: `count` elements of ndim dimensions each. */
typedef struct leat_memory_field {
    const char *name;             /* such as "data" */
    leat_dtype dtype;             /* of an element */
    int ndim;                     /* of one sample; 0: a scalar */
    int64_t shape[LEAT_MAX_DIMS]; /* of one sample, row-major */
    const void *data; /* sample i at i times the size of one; borrowed */
} leat_memory_field;

/**
 * Samples in memory, sliced along the first axis.
 *
 * The field descriptions are copied; the data is borrowed until the pipeline
 * and all its readers are freed. Supports random access. Owned by the caller:
 * leat_pipeline_unref. Errors: LEAT_EINVAL, LEAT_ENOMEM. Thread safety: any
 * thread.
 */
LEAT_API int leat_pipeline_memory(leat_pipeline **out,
                                  const leat_memory_field fields[], int nfields,
                                  int64_t count);

/**
 * Samples from the caller's own functions.
 *
 * `next` fills one sample: leat_sample_set for each field. Views into the
 * sample's buffer (leat_sample_take) are used as they are, as are all views
 * if it sets `stable`, which promises that they remain valid as long as the
 * reader; other views must be valid until it returns, and are copied. It
 * returns LEAT_OK, LEAT_END, or an error whose reason leat_error
 * (leat/status.h) has set; LEAT_EDATA concerns only that sample. Without a
 * reason leat sets one with the record's number; an unknown status is
 * LEAT_EINVAL. Before the call sample->from has `name` as its source, the
 * number of the sample in the pass and no key; next may set record, key
 * and key_size (the key is a view as a field is), and source, which must be
 * valid until close. All calls except cancel are made by one thread at a time:
 * one of leat's own, or the caller of setup, restore, destroy or a leat_reader
 * function. leat/ext/reader.h lists what they may call, and the size of the
 * stack.
 *
 * Callbacks read in order alone. They have no count, seek or read_at: restore
 * reads and drops the samples before the token's position, several ranks each
 * read all samples, and on_error REPLACE with several ranks is refused. Without
 * `open` and `reset` the caller brings `user` back to the first sample before a
 * restore. They have no identity: a token of another data set is not noticed.
 * Where that matters, write a reader: leat/ext/reader.h,
 * docs/adding-a-reader.md.
 */
typedef struct leat_callbacks {
    size_t size;      /* sizeof(leat_callbacks) */
    const char *name; /* for provenance and errors; NULL: "callback" */
    const leat_field_spec *fields; /* of each sample */
    int nfields;                   /* 1 to LEAT_MAX_FIELDS */
    /** Starts a pass; `*pass` is passed to the others. NULL: pass is user. */
    int (*open)(void *user, void **pass);
    int (*next)(void *pass, leat_sample *sample); /* see above */
    int (*reset)(void *pass);   /* to the first sample; NULL: a single epoch */
    void (*cancel)(void *pass); /* any thread; needed if next can block */
    void (*close)(void *pass);  /* may be NULL */
} leat_callbacks;

/**
 * A pipeline over the caller's functions. `callbacks` and what it points to are
 * copied; `user` is borrowed until the pipeline and all its readers are freed.
 * Without `open` only one reader can be open at a time (LEAT_ESTATE). Owned by
 * the caller: leat_pipeline_unref. Errors: LEAT_EINVAL, LEAT_ENOMEM. Thread
 * safety: any thread.
 */
LEAT_API int leat_pipeline_callback(leat_pipeline **out,
                                    const leat_callbacks *callbacks,
                                    void *user);

/**
 * @name Sources
 * Thread safety: any thread.
 * @{
 */

/**
 * `range:START,STOP,STEP`: the whole numbers from `start` on, by `step`, before
 * `stop`, as an int64 field "value". A `step` of 0, and more values than an
 * int64 counts, are LEAT_EINVAL when the pipeline is opened.
 */
LEAT_API int leat_pipeline_range(leat_pipeline **out, int64_t start,
                                 int64_t stop, int64_t step);

/** How likely the numbers of `random` are. */
typedef enum leat_distribution {
    LEAT_DISTRIBUTION_UNIFORM = 0, /* all the same, from low to high */
    LEAT_DISTRIBUTION_NORMAL = 1   /* around mean, by the standard deviation */
} leat_distribution;

/** Options of random; zero is the default of each. */
typedef struct leat_random_options {
    size_t size;      /* of this struct, as the caller knows it */
    const char *name; /* of the field; NULL: "data" */
    leat_dtype dtype; /* a type of numbers; 0, which is BYTES: FLOAT32 */
    int ndim;         /* of a sample; 0: a scalar */
    int64_t shape[LEAT_MAX_DIMS];   /* each 1 or more */
    leat_distribution distribution; /* NORMAL integers are cast as C does */
    bool has_bounds;  /* low and high are meant; else floats are from 0 to 1,
                         integers all that the type has */
    double low;       /* the least of UNIFORM */
    double high;      /* their end, which is not reached */
    double mean;      /* of NORMAL */
    double deviation; /* its standard deviation; 0: 1 */
    bool has_seed;    /* seed is meant; else it is the layer's */
    int64_t seed;     /* of all values */
} leat_random_options;

/** Every default, written out. */
#define LEAT_RANDOM_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(leat_random_options), NULL, LEAT_BYTES, 0, {0},                 \
            LEAT_DISTRIBUTION_UNIFORM, false, 0, 0, 0, 0, false, 0             \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_random_options_init(leat_random_options *options);

/**
 * `random:N,shape=3x32x32,dtype=uint8`: `count` samples of random numbers
 * (-1: without an end), each a function of seed, epoch and position. `options`
 * may be NULL. Bounds that the type does not hold are LEAT_EINVAL when the
 * pipeline is opened. NORMAL numbers have the bits of the C library's logarithm
 * and sine.
 */
LEAT_API int leat_pipeline_random(leat_pipeline **out, int64_t count,
                                  const leat_random_options *options);

/** @} */

/**
 * Parses a pipeline text such as "lmdb:mnist_train": `reader:arguments`, joined
 * by `|`; each reader reads the one before it. A reader of several has them
 * before it, each in parentheses: "(lmdb:a | take:10) (lmdb:b) | zip". `leat
 * readers` lists leat's readers with their arguments, which leat/files.h and
 * leat/decorators.h describe; leat_reader_register adds others.
 *
 * Arguments are separated by commas: first those by position, and anywhere
 * among them name=value. Blanks, tabs and line breaks around readers, names and
 * values do not count. A backslash takes the next letter as it is: a comma,
 * bar, equals sign, parenthesis, backslash, or a blank at an edge;
 * leat_args_escape writes them. A value of several elements is (a,b,c). A value
 * that is a pipeline is in parentheses, too, with {} for the element that its
 * reader fills in: "files:train-*.tfr | interleave:(tfrecord:{}),cycle=4".
 * Parentheses are at most 32 deep, a chain at most 64 readers long, and a
 * reader reads at most 65,536 others. Along a chain the numbers of these, and
 * 65 of a `share`, multiply to less than 2^64.
 *
 * Owned by the caller: leat_pipeline_unref. Errors: LEAT_EINVAL with the line
 * and column in the text, as 1:17; LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_pipeline_parse(leat_pipeline **out, const char *text);

/**
 * The pipeline's text, which parses to an equal pipeline if its readers are in
 * the registry and have no object. Borrowed until unref. Thread safety: any
 * thread.
 */
LEAT_API const char *leat_pipeline_text(const leat_pipeline *pipeline);

/**
 * Starts an independent pass, with the default of every option. The reader
 * holds a reference to the pipeline. Owned by the caller: leat_reader_close.
 * Blocks as the storage does; nothing wakes it. Errors: those of the readers.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_open(const leat_pipeline *pipeline,
                                leat_reader **out);

/**
 * For whom a pipeline is opened. A data layer fills these from its own options.
 * Zero is the default of every field but `size`.
 */
typedef struct leat_open_options {
    size_t size;      /* of this struct, as the caller knows it */
    uint64_t seed;    /* of random choices; each reader has one made of it */
    leat_phase phase; /* TRAIN or TEST */
    int rank;         /* of those that divide the samples, from 0 */
    int world_size;   /* how many they are; 0: 1 */
    const leat_allocator *allocator; /* of samples' buffers, borrowed until the
                                        reader is closed; NULL: malloc */
    int64_t max_memory; /* bytes the caller may take in all; 0: no limit */
    int threads; /* the caller's own, which also do readers' work; 0: unknown */
    bool drop_behind; /* files drop pages that were read in order, unless their
                         own drop_behind=0 is given */
} leat_open_options;

/** Every default, written out. */
#define LEAT_OPEN_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(leat_open_options), 0, LEAT_TRAIN, 0, 0, NULL, 0, 0, false      \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_open_options_init(leat_open_options *options);

/**
 * leat_pipeline_open for the caller that `options` describe; NULL: all
 * defaults. Blocks as the storage does; nothing wakes it. Errors: LEAT_EINVAL
 * for options out of range or not initialised, and those of the readers. Thread
 * safety: any thread.
 */
LEAT_API int leat_pipeline_open_with(const leat_pipeline *pipeline,
                                     const leat_open_options *options,
                                     leat_reader **out);

/** Takes a reference. Thread safety: any thread. */
LEAT_API void leat_pipeline_ref(leat_pipeline *pipeline);

/**
 * Drops a reference; the last one frees the pipeline. Takes NULL. Thread
 * safety: any thread.
 */
LEAT_API void leat_pipeline_unref(leat_pipeline *pipeline);

#ifdef __cplusplus
}
#endif
#endif
