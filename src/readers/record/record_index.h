/*
 * record_index.h: where each record is, 8 bytes each.
 *
 * Found by a pass over headers, in parallel over files; or kept beside a file,
 * in .NAME.leat-index, where it is used only if its checksum is right, and the
 * file has the size and time of modification with which it was made. What is
 * kept looks like this, little-endian:
 *
 *     0   "leatidx1"
 *     8   the format's name, and zeros
 *     24  the file's size
 *     32  its time of modification, nanoseconds
 *     40  the number of records
 *     48  CRC-32C of the offsets
 *     52  CRC-32C of the bytes 0 to 51
 *     56  the offsets, 8 bytes each, ascending
 */
#ifndef LEAT_READERS_RECORD_INDEX_H
#define LEAT_READERS_RECORD_INDEX_H

#include "readers/record/record_files.h"

#include <stdatomic.h>

/* Bytes of a kept index before its offsets. */
#define LEAT__RECORD_INDEX_HEADER 56

/* The records of one file. */
typedef struct leat__record_offsets {
    int64_t count;
    const uint64_t *offset; /* NULL: file.stride says where they are */
    void *memory;           /* the header's room, then the offsets; owned */
} leat__record_offsets;

typedef struct leat__record_index {
    const leat__record_files *files; /* borrowed */
    int64_t count;
    int64_t bytes;  /* of memory */
    int64_t *first; /* of each file, and the count */
    leat__record_offsets *of;
} leat__record_index;

typedef struct leat__record_index_options {
    const leat__record_format *format;
    size_t window;          /* of read-ahead */
    bool keeps;             /* beside each file */
    atomic_bool *cancelled; /* ends it with LEAT_ECANCELLED */
    int64_t max_memory;     /* of offsets; 0: no limit */
} leat__record_index_options;

/*
 * Finds all records. Owned by the caller: leat__record_index_destroy. Errors:
 * LEAT_EFORMAT where a file cannot be walked to its end; LEAT_EIO for one that
 * changed; LEAT_ELIMIT for more than max_memory; LEAT_ECANCELLED, LEAT_ENOMEM.
 */
int leat__record_index_create(leat__record_index **out,
                              const leat__record_files *files,
                              const leat__record_index_options *options);
void leat__record_index_destroy(leat__record_index *index);

/* The file that a record in [0, count) is in. */
int leat__record_index_find(const leat__record_index *index, int64_t at);

/* Record `i` of a file; its size is at most that of the span. */
static inline leat__record_span
leat__record_index_span(const leat__record_index *index, int file, int64_t i)
{
    const leat__record_source *source = &index->files->source[file];
    const leat__record_offsets *of = &index->of[file];
    if (!of->offset)
        return (leat__record_span){source->file.first +
                                       (uint64_t)i * source->file.stride,
                                   source->file.stride};
    uint64_t end = i + 1 < of->count ? of->offset[i + 1] : source->map.size;
    return (leat__record_span){of->offset[i], end - of->offset[i]};
}

/*
 * What is kept of an index: the offsets in `bytes`, if it is one of the format
 * `name`, and of a file of `size` bytes with that time of modification. They
 * are views of `bytes`, which is 8-byte aligned. False: it is none.
 */
bool leat__record_index_parse(const void *bytes, size_t bytes_size,
                              const char *name, size_t size, int64_t modified,
                              leat__record_offsets *out);

/* The memory that the offsets of all files take. */
typedef struct leat__record_index_memory {
    atomic_int_fast64_t bytes;
    int64_t most; /* 0: no limit */
} leat__record_index_memory;

/* Adds `more` bytes. Errors: LEAT_ELIMIT. */
int leat__record_index_add_memory(leat__record_index_memory *memory,
                                  const char *name, int64_t more);

/*
 * Reads what is kept beside the file. Errors: LEAT_ELIMIT, before it is read;
 * any other one where there is none that is usable.
 */
int leat__record_index_load(const leat__record_source *source,
                            const char *format,
                            leat__record_index_memory *memory,
                            leat__record_offsets *out);

/* Keeps it beside the file, as it lies in memory, where the header is written.
 * What cannot be written is logged. */
void leat__record_index_keep(const leat__record_source *source,
                             const char *format,
                             const leat__record_offsets *offsets);

#endif
