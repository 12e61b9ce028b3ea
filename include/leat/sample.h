/* leat/sample.h: one instance of the data, and its provenance. */
#ifndef LEAT_SAMPLE_H
#define LEAT_SAMPLE_H

#include <leat/allocator.h>
#include <leat/dtype.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most fields a sample can have. */
#define LEAT_MAX_FIELDS 32

/** What a field of LEAT_BYTES holds. */
typedef enum leat_content {
    LEAT_CONTENT_ANY = 0,   /* anything: an encoded image, text, or numbers of a
                               type that differs from sample to sample */
    LEAT_CONTENT_IMAGE = 1, /* an encoded image */
    LEAT_CONTENT_PLAIN = 2  /* bytes that are no image, such as text */
} leat_content;

/**
 * A field's description, known before the first sample; -1: varies.
 *
 * A data layer checks each sample against it: type, number of dimensions and
 * each dimension that does not vary; a sample that differs is a bad record
 * (LEAT_EDATA). Zero is the default of all members from `content` on.
 */
typedef struct leat_field_spec {
    const char *name;             /* borrowed from the reader */
    leat_dtype dtype;             /* LEAT_BYTES: see content */
    int ndim;                     /* -1: varies */
    int64_t shape[LEAT_MAX_DIMS]; /* of one sample; -1: varies */
    leat_content content;   /* of a field of LEAT_BYTES; with ANY, nothing of
                               the field is checked */
    const char *offsets_of; /* the field whose rows these int64 offsets divide
                               into groups: 0, the end of each group, the last
                               of which is the number of rows. It may hold
                               offsets itself, whose groups are then its rows.
                               NULL: none */
    bool is_batch; /* the first axis is that of a batch, which the reader made
                      of several samples; a layer delivers it as it is */
    bool varies;   /* type and shape are the first sample's, and others may
                      differ: nothing is checked */
} leat_field_spec;

/**
 * One field of a sample: a typed, shaped view.
 *
 * `data` need not be aligned to the element. A scalar has ndim 0. `bytes` is at
 * least the product of the shape and the element's size; the rest is ignored.
 */
typedef struct leat_field {
    leat_dtype dtype;             /* of an element */
    int ndim;                     /* 0: a scalar */
    const void *data;             /* the view */
    size_t bytes;                 /* of the view */
    int64_t shape[LEAT_MAX_DIMS]; /* elements, row-major */
} leat_field;

/** What a batch has in place of a record; see leat_on_error, leat_epoch_end. */
typedef enum leat_replacement {
    LEAT_REPLACEMENT_NONE = 0,  /* none: the record itself */
    LEAT_REPLACEMENT_ZEROS = 1, /* zeros; the provenance names the bad record */
    LEAT_REPLACEMENT_RECORD = 2, /* an earlier record, named by the provenance
                                  */
    LEAT_REPLACEMENT_PADDING = 3 /* no bad record, but no sample at all: a row
                                    of zeros that fills a batch up; its record
                                    and position are -1 */
} leat_replacement;

/** Where a sample came from. */
typedef struct leat_provenance {
    const char *source; /* path or name, borrowed from the reader */
    int64_t record;     /* number of the record in its source, from 0 */
    const void *key;    /* its key there; NULL if the source has none */
    size_t key_size;    /* bytes */
    int64_t epoch;      /* pass over the data, from 0; set by a data layer */
    int64_t position;   /* in that pass, from 0, not in the endless sequence by
                           which ranks share; set by a data layer */
    leat_replacement replacement; /* set by a data layer */
    uint32_t key_cut; /* 0: the key is complete; else set by a data layer: bytes
                         of it after the first 64, which are all that is kept of
                         short-lived keys and of bad records */
} leat_provenance;

/** A place in the passes over the data. */
typedef struct leat_position {
    int64_t epoch; /* from 0 */
    int64_t index; /* of a sample in that epoch, from 0 */
} leat_position;

/** The location of a sample whose work is deferred, as its reader defines it.
 */
typedef struct leat_locator {
    int64_t record; /* its number in its source, from 0 */
    uint64_t where; /* defined by the reader */
} leat_locator;

/**
 * A sample is a buffer that readers fill and refill.
 *
 * Views of fields and key that lie in the sample's own buffer, such as an LMDB
 * record's label, live until the sample is cleared or finished. All others live
 * as long as the reader when `stable` is set (they point into a map).
 *
 * leat_sample_clear empties it; readers then append their fields after those
 * that are there, and take what memory they need from its buffer.
 */
typedef struct leat_sample {
    int nfields;          /* filled elements of field */
    int stable;           /* 1: see above */
    int deferred;         /* 1: leat_reader_materialize completes it */
    int idle;             /* clears since a large buffer was in full use; -1: a
                             reader knows the buffer by its address */
    uint64_t route;       /* of a deferred sample: leat/ext/reader.h */
    leat_locator locator; /* likewise */
    leat_position at;     /* where a map that chooses by it gave the sample;
                             epoch -1: not noted */
    void *buffer;         /* the sample's own memory, 64-byte aligned */
    size_t buffer_size;   /* bytes */
    size_t taken;         /* of it, by leat_sample_take */
    const leat_allocator *allocator; /* of the buffer, borrowed; NULL: malloc */
    leat_provenance from;            /* its origin */
    leat_field field[LEAT_MAX_FIELDS]; /* in the order of the reader's specs */
} leat_sample;

/**
 * Initialises an empty sample. Owned by the caller: leat_sample_finish. Cannot
 * fail. Thread safety: one caller a sample.
 */
LEAT_API void leat_sample_init(leat_sample *sample);

/** Frees the sample's own memory. Thread safety: one caller a sample. */
LEAT_API void leat_sample_finish(leat_sample *sample);

/**
 * Empties the sample: no fields, nothing taken, no key; stable until a reader
 * says otherwise. Its buffer stays allocated, unless it is larger than 4 MiB
 * and has held less than an eighth of that 16 times in turn; source, record,
 * epoch and position stay.
 * Thread safety: one caller a sample.
 */
LEAT_API void leat_sample_clear(leat_sample *sample);

/**
 * Takes `bytes` of the sample's buffer, after what was taken since it was
 * cleared. Returns their address, 64-byte aligned, or NULL when memory is
 * short. Where the buffer grows it moves, and with it the views of fields and
 * key that point into it; addresses from earlier calls become invalid. Thread
 * safety: one caller a sample.
 */
LEAT_API void *leat_sample_take(leat_sample *sample, size_t bytes);

/**
 * Makes the sample self-contained: fields and key that lie elsewhere are copied
 * into its buffer, so that it outlives its reader. A deferred sample has to be
 * materialized first. Errors: LEAT_ENOMEM; the sample is then unchanged. Thread
 * safety: one caller a sample.
 */
LEAT_API int leat_sample_own(leat_sample *sample);

/**
 * Exchanges two samples, buffers included, but for epoch and position, which
 * stay where they are. No sample is copied. Thread safety: one caller for both.
 */
LEAT_API void leat_sample_swap(leat_sample *a, leat_sample *b);

/**
 * Gives the caller a sample that the reader held in `from`: exchanges the two,
 * as leat_sample_swap does, but a buffer of the caller's that is large for the
 * contents stays the caller's, and they are copied into it; or, where `to` has
 * fields of another reader, appends those of `from`, copied unless they are
 * stable. A sample moved to itself stays as it is. Errors: LEAT_EINVAL for more
 * fields than a sample can have, LEAT_ENOMEM. Thread safety: one caller for
 * both.
 */
LEAT_API int leat_sample_move(leat_sample *to, leat_sample *from);

/**
 * Makes field `i` a view of `data`: as many elements of `dtype` as the product
 * of the `ndim` dimensions `shape`, row-major; a scalar has ndim 0, and `shape`
 * may be NULL. For LEAT_BYTES the one dimension is the number of bytes. Fields
 * are set in order: the sample then has i + 1 of them, and those after field
 * `i` are gone; to replace one alone, set nfields back.
 * Errors: LEAT_EINVAL for `i` that is not the next field or a set one, an
 * unknown type, a shape that is none, or `data` NULL where there are elements;
 * the sample is then as it was. Thread safety: one caller a sample.
 */
LEAT_API int leat_sample_set(leat_sample *sample, int i, leat_dtype dtype,
                             int ndim, const int64_t shape[], const void *data);

#ifdef __cplusplus
}
#endif
#endif
