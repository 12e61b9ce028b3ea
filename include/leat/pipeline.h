/* leat/pipeline.h: where samples come from and what is done to them. */
#ifndef LEAT_PIPELINE_H
#define LEAT_PIPELINE_H

#include <leat/sample.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A description of readers; immutable and shared (reference counted). Opening
 * it gives an independent reader, as often as wanted.
 */
typedef struct leat_pipeline leat_pipeline;

/** A running pass; see leat/reader.h. */
typedef struct leat_reader leat_reader;

/**
 * Options of the LMDB reader, which change how it reads, never what. Zero is
 * the default of every field but `size`; a pipeline text gives the fields by
 * their names, with the same values.
 */
typedef struct leat_lmdb_options {
    size_t size; /* of this struct, as the caller knows it */
    /**
     * Bytes to have storage read ahead where the file is not in memory; 0: 32
     * MiB, but in order what the kernel does where its own setting for the
     * device is 4 MiB or more; -1: what the kernel does of itself. Memory that
     * is short anyway wants less, storage of long latency more.
     */
    int64_t read_ahead;
    /**
     * 1: pages that were read in order are unmapped and dropped from memory
     * again, `keep_behind` bytes later. Epochs then read storage anew; other
     * processes' use of the file is not disturbed. Pages of records that are
     * read by their numbers stay, as for a decorator that maps positions and
     * for one rank of several: a line in the log says so, once.
     */
    int drop_behind;
    /**
     * Bytes that stay, about; 0: 64 MiB; -1: none. They should hold what
     * prefetch and workers have in hand: what is dropped too soon is read
     * twice.
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
 * by the caller: no more is written. Errors: LEAT_EINVAL where it is 0.
 * Thread safety: any thread.
 */
LEAT_API int leat_lmdb_options_init(leat_lmdb_options *options);

/**
 * Caffe's LMDB: Datums of the unnamed database, in key order.
 *
 * `path` is a directory with data.mdb, or the file itself; relative to the
 * working directory at open. `options` may be NULL. Nothing is opened yet. The
 * lock file is that of the file itself, also where a link leads to it.
 *
 * A reader sees the database as it was when it was opened, whatever a writer
 * does; where there is no lock file and none can be made, nobody may write.
 * The process must not open the same database by liblmdb itself meanwhile,
 * which would lose its locks.
 *
 * Opening it is LEAT_EIO, with a line that says what to remove, where something
 * else than a lock file is in that one's place, or it is damaged while another
 * program uses it, or such a program holds it for more than 5 seconds. In a
 * forked child a reader of the parent's is LEAT_ESTATE to all but close, which
 * leaves the parent's alone; the child opens the database anew.
 * Fields: `data`, channels x height x width, uint8 or float32, or the bytes of
 * an encoded image; and `label`, an int32 scalar.
 * Owned by the caller: leat_pipeline_unref.
 * Errors: LEAT_EINVAL, also for options out of range or not initialised;
 * LEAT_ENOMEM. Thread safety: any thread.
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
 * Samples that lie in memory, sliced along their first axis.
 *
 * The fields' descriptions are copied, their data is borrowed until the
 * pipeline and every reader of it are gone. Random access. Owned by the caller:
 * leat_pipeline_unref.
 * Errors: LEAT_EINVAL, LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_pipeline_memory(leat_pipeline **out,
                                  const leat_memory_field fields[], int nfields,
                                  int64_t count);

/**
 * Samples from the caller's own functions.
 *
 * `next` fills one sample: leat_sample_set for each field. Views in the
 * sample's buffer (leat_sample_reserve) are taken as they are, and so are all
 * of them where it sets `stable`, which promises that they stay valid as long
 * as the reader; others need to be valid until it returns, and are copied. It
 * returns LEAT_OK, LEAT_END, or an error, with leat_error (leat/status.h)
 * telling why; LEAT_EDATA concerns that sample alone. Without a line leat
 * writes one, which has the record's number; a status that leat/status.h does
 * not have is refused as LEAT_EINVAL. All calls come from one thread at a time:
 * leat's own, and whoever calls setup, restore, destroy or leat_reader
 * functions; but for cancel. What they may call, and how much stack there is,
 * says leat/ext/reader.h.
 */
typedef struct leat_callbacks {
    size_t size;      /* sizeof(leat_callbacks) */
    const char *name; /* for provenance and errors; NULL: "callback" */
    const leat_field_spec *fields; /* what each sample has */
    int nfields;                   /* 1 to LEAT_MAX_FIELDS */
    /** Starts a pass; `*pass` is handed to the others. NULL: pass is user. */
    int (*open)(void *user, void **pass);
    int (*next)(void *pass, leat_sample *sample); /* see above */
    int (*reset)(void *pass);   /* to the first sample; NULL: a single epoch */
    void (*cancel)(void *pass); /* any thread; needed if next can block */
    void (*close)(void *pass);  /* may be NULL */
} leat_callbacks;

/**
 * A pipeline over the caller's functions. `callbacks` is copied with what it
 * points to, `user` is borrowed until the pipeline and every reader of it are
 * gone. Without `open` only one reader at a time can be open (LEAT_ESTATE).
 * Owned by the caller: leat_pipeline_unref.
 * Errors: LEAT_EINVAL, LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_pipeline_callback(leat_pipeline **out,
                                    const leat_callbacks *callbacks,
                                    void *user);

/**
 * A pipeline from its text, `reader:arguments`, such as "lmdb:mnist_train",
 * readers joined by `|`: each reads the one before it.
 *
 * Arguments are separated by commas; a backslash takes the next character
 * literally, be it a comma, bar, equals sign or backslash. Names come from the
 * registry. Owned by the caller: leat_pipeline_unref.
 * Errors: LEAT_EINVAL, saying which character; LEAT_ENOMEM.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_parse(leat_pipeline **out, const char *text);

/**
 * The pipeline as text, which parses to the same where its readers are in the
 * registry and each reads at most one other. Borrowed until unref.
 * Thread safety: any thread.
 */
LEAT_API const char *leat_pipeline_text(const leat_pipeline *pipeline);

/**
 * Starts a pass of its own. The reader holds a reference to the pipeline.
 * Owned by the caller: leat_reader_close. Blocks as the storage does, with
 * nothing to wake it.
 * Errors: those of the readers. Thread safety: any thread.
 */
LEAT_API int leat_pipeline_open(const leat_pipeline *pipeline,
                                leat_reader **out);

/** One owner more. Thread safety: any thread. */
LEAT_API void leat_pipeline_ref(leat_pipeline *pipeline);

/**
 * One owner less; the last one frees it. Takes NULL. Thread safety: any thread.
 */
LEAT_API void leat_pipeline_unref(leat_pipeline *pipeline);

#ifdef __cplusplus
}
#endif
#endif
