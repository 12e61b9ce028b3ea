/*
 * record_format.h: what a file format of records is.
 *
 * A format is a table of functions over bytes in memory: a whole mapped file,
 * or what a stream has read of one so far. The readers over it
 * (record_reader.h) do the rest: files, index, positions, residency, errors.
 * So a format opens, reads and allocates nothing of its own, and all that it
 * is given is hostile.
 */
#ifndef LEAT_READERS_RECORD_FORMAT_H
#define LEAT_READERS_RECORD_FORMAT_H

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Consecutive bytes of a file, decompressed. */
typedef struct leat__record_window {
    const unsigned char *bytes;
    size_t size;
    uint64_t offset;              /* in the file, of bytes[0] */
    bool is_last;                 /* the file ends where they end */
    const atomic_bool *cancelled; /* the reading; NULL: what is long is not */
} leat__record_window;

/* What `begin` finds out about a file; zero at first, but for its number. */
typedef struct leat__record_file {
    int64_t number; /* of the file among those of the reader, from 0 */
    uint64_t first; /* offset of the first record */
    /*
     * If not 0, all records are of so many bytes, record i begins at
     * first + i * stride, and there are `count`: neither walk nor an index is
     * needed then. A stream walks all the same.
     */
    uint64_t stride;
    int64_t count;
    uint64_t own[4]; /* the format's */
} leat__record_file;

/* A place in a walk over a file, in its order. */
typedef struct leat__record_walk {
    uint64_t offset; /* where the next record is looked for */
    int64_t record;  /* its number in the file */
    uint64_t own[4]; /* the format's; 0 at the beginning of the file */
    size_t needed;   /* by LEAT_AGAIN: bytes from `offset` on */
} leat__record_walk;

/* A record that a walk found: all bytes of the file that `read` looks at. */
typedef struct leat__record_span {
    uint64_t offset; /* below 2^48; all that an index keeps of it */
    uint64_t size;   /* headers and checksums included */
} leat__record_span;

typedef struct leat__record_format leat__record_format;

/*
 * Threads: begin, walk and resume of one file may run while other threads read
 * or walk it; each works on its own struct, and the format is immutable, but
 * for what begin of the first file completes (its specs), which open calls.
 *
 * Errors: one line, without file, record and offset, which the caller puts
 * before it: "its checksum is 1234abcd, expected ...".
 */
typedef struct leat__record_format_ops {
    const char *name; /* the reader's */

    /*
     * Begins a file of `size` bytes (UINT64_MAX: unknown, a stream) by its
     * first ones. NULL: records begin at offset 0. LEAT_AGAIN: too few bytes
     * are at hand, `out->first` says how many; not with is_last. LEAT_EFORMAT:
     * the file is none of this format.
     */
    int (*begin)(leat__record_format *format, const leat__record_window *window,
                 uint64_t size, leat__record_file *out);

    /*
     * Finds up to `n` records from walk->offset on, which is in the window or
     * at its end, and moves the walk past them. It looks at headers only,
     * where the format has any. The window is the caller's again afterwards.
     *
     * LEAT_OK: *got from 1 to n; what comes after them is the next call's.
     * Otherwise *got is 0:
     * LEAT_END: the file ends, as it should;
     * LEAT_AGAIN: more bytes are needed, walk->needed from walk->offset on
     *   (a format may ask for a few at a time); not with is_last;
     * LEAT_EDATA: out[0] is a bad record, which `read` refuses as well, and the
     *   walk is past it;
     * LEAT_EFORMAT: the walk cannot go on, and stays; out[0].offset is where.
     */
    int (*walk)(const leat__record_format *format,
                const leat__record_file *file,
                const leat__record_window *window, leat__record_walk *walk,
                leat__record_span out[], int n, int *got);

    /*
     * Checks `n` records that a walk found, whole, and appends the fields of
     * span[i] to out[i]: views of the window, or of memory taken by
     * leat__record_take. A span's size is 0 where only the offset is known:
     * from an index, and in materialize. The file may have changed since the
     * walk, so bounds are checked again. The window is the whole file; or, with
     * n of 1, the record's span in the sample's own buffer, and is_last.
     * LEAT_EDATA, LEAT_ENOMEM: they concern record *got, and those after it are
     * as they were.
     */
    int (*read)(const leat__record_format *format,
                const leat__record_file *file, leat__record_window *window,
                const leat__record_span span[], leat_sample *const out[], int n,
                int *got);

    /*
     * Sets the walk, zero but for `offset` and `record`, to a record that an
     * earlier walk found there. NULL: that is all a walk needs.
     */
    int (*resume)(const leat__record_format *format,
                  const leat__record_file *file,
                  const leat__record_window *window, leat__record_walk *walk);

    /* Frees the format. NULL: leat__free. */
    void (*destroy)(leat__record_format *format);
} leat__record_format_ops;

/* A format with its arguments: the first member of its own struct. */
struct leat__record_format {
    const leat__record_format_ops *ops;
    struct leat__byte_filter *filter; /* of a stream; NULL: none */
    /*
     * Set by the type's open, or by begin of the first file, as the specs are:
     * `read` has work for other threads (a checksum, a conversion), so that
     * next leaves it to materialize; else next reads.
     */
    bool defers;
    uint64_t revision; /* of other files that open has read; 0: none */
    int64_t memory;    /* bytes that begin has taken for mapped files */
    int nspec;
    leat_field_spec spec[LEAT_MAX_FIELDS];
};

/* Takes NULL. */
void leat__record_format_destroy(leat__record_format *format);

/*
 * leat_sample_take for `read`, whose sample is no longer stable: where the
 * window lies in the sample's buffer, which may move, its `bytes` follow. NULL
 * without memory.
 */
void *leat__record_take(leat_sample *sample, leat__record_window *window,
                        size_t bytes);

/* The error of a sample that has LEAT_MAX_FIELDS already. */
int leat__record_too_many(void);

/* Appends a field, whose shape is still to be set; NULL: there are too many. */
static inline leat_field *leat__record_append(leat_sample *sample,
                                              leat_dtype dtype, int ndim,
                                              const void *data, size_t bytes)
{
    int i = sample->nfields;
    if (i >= LEAT_MAX_FIELDS)
        return NULL;
    leat_field *field = &sample->field[i];
    field->dtype = dtype;
    field->ndim = ndim;
    field->data = data;
    field->bytes = bytes;
    sample->nfields = i + 1;
    return field;
}

/* Appends a view of `size` bytes. */
static inline int leat__record_append_bytes(leat_sample *sample,
                                            const void *data, size_t size)
{
    leat_field *field = leat__record_append(sample, LEAT_BYTES, 1, data, size);
    if (!field)
        return leat__record_too_many();
    field->shape[0] = (int64_t)size;
    return LEAT_OK;
}

/* Appends the field that a spec of known shape describes. */
static inline int leat__record_append_as(leat_sample *sample,
                                         const leat_field_spec *spec,
                                         const void *data, size_t size)
{
    leat_field *field =
        leat__record_append(sample, spec->dtype, spec->ndim, data, size);
    if (!field)
        return leat__record_too_many();
    memcpy(field->shape, spec->shape, sizeof(field->shape));
    return LEAT_OK;
}

/* Little-endian numbers, at any address. */
static inline uint32_t leat__get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static inline uint64_t leat__get_u64(const unsigned char *at)
{
    return leat__get_u32(at) | (uint64_t)leat__get_u32(at + 4) << 32;
}

#endif
