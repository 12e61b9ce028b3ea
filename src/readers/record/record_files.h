/*
 * record_files.h: several mapped files, whose records are read as one sequence.
 *
 * Their bytes are numbered as if the files were one after the other. Immutable
 * once open, but for what is atomic; any threads.
 */
#ifndef LEAT_READERS_RECORD_FILES_H
#define LEAT_READERS_RECORD_FILES_H

#include "base/file_version.h"
#include "readers/file_list.h"
#include "readers/mapped_file.h"
#include "readers/record/record_format.h"

#include <stdatomic.h>

/* An address of a record, in 8 bytes: file and offset. */
#define LEAT__RECORD_OFFSET_BITS 48
/* A process has 65,530 maps, as Linux sets it (vm.max_map_count). */
#define LEAT__RECORD_FILES_MAX 60000

static inline uint64_t leat__record_address(int file, uint64_t offset)
{
    return (uint64_t)file << LEAT__RECORD_OFFSET_BITS | offset;
}

static inline int leat__record_address_file(uint64_t address)
{
    return (int)(address >> LEAT__RECORD_OFFSET_BITS);
}

static inline uint64_t leat__record_address_offset(uint64_t address)
{
    return address & ((UINT64_C(1) << LEAT__RECORD_OFFSET_BITS) - 1);
}

typedef struct leat__record_source {
    leat__mapped_file map; /* its name is the path, borrowed */
    leat__record_file file;
    leat__file_version version; /* at opening, as the next three */
    dev_t device;
    ino_t inode;
    uid_t owner;
    uint64_t begin;               /* of its first byte, over all files */
    const atomic_bool *cancelled; /* the reading; or NULL */
    atomic_int_fast64_t entered;  /* the epoch read by index last; -1: none */
} leat__record_source;

typedef struct leat__record_files {
    int n;
    uint64_t bytes;    /* of all */
    uint64_t revision; /* a hash of the times of modification, and the format's
                          own */
    leat__record_source *source;
} leat__record_files;

/*
 * Maps the files, and begins each by `format`, whose specs are then complete.
 * The paths are borrowed, as `cancelled`, which may be NULL. Errors: LEAT_EIO,
 * as for files or folders that others replaced meanwhile; LEAT_EFORMAT,
 * LEAT_ELIMIT, LEAT_ENOMEM.
 */
int leat__record_files_open(leat__record_files *out,
                            const leat__file_list *list,
                            leat__record_format *format,
                            const atomic_bool *cancelled);
void leat__record_files_close(leat__record_files *files);

static inline leat__record_window
leat__record_source_window(const leat__record_source *source)
{
    /* An empty file has no map. */
    static const unsigned char none[1];
    return (leat__record_window){source->map.size ? source->map.base : none,
                                 source->map.size, 0, true, source->cancelled};
}

/*
 * Names file, record and byte before the error's line, and returns `status`.
 * Where the file has changed, that is the error: leat__record_source_check's.
 */
int leat__record_source_blame(const leat__record_source *source, int64_t record,
                              uint64_t offset, int status);

/* LEAT_EIO if the file's size or time of modification is another than when it
 * was opened. */
int leat__record_source_check(const leat__record_source *source);

/* The same of all files. */
int leat__record_files_check_versions(const leat__record_files *files);

/* Whether its name still leads to the file that is mapped. */
bool leat__record_source_has_name(const leat__record_source *source);

/*
 * Before records are read by index: leat__record_source_check where others of
 * the file were read in another epoch last. It is a system call, which takes
 * longer than most records.
 */
static inline int leat__record_source_enter(leat__record_source *source,
                                            int64_t epoch)
{
    if (atomic_load_explicit(&source->entered, memory_order_relaxed) == epoch)
        return LEAT_OK;
    int status = leat__record_source_check(source);
    if (!status)
        atomic_store_explicit(&source->entered, epoch, memory_order_relaxed);
    return status;
}

/* The most records of one call. */
#define LEAT__RECORD_AWAIT_MAX 32

/* Has the records in memory, so that nobody blocks on them. Errors: LEAT_EIO,
 * LEAT_ECANCELLED. */
int leat__record_source_await(const leat__record_source *source,
                              const leat__record_span record[], int n);

/*
 * The format's walk, which sees some bytes of the file at a time. `awaited`:
 * NULL, or the end of what is in memory, beyond which bytes are awaited before
 * they are seen. Results: those of leat__record_format_ops.walk but LEAT_AGAIN;
 * LEAT_EIO, LEAT_ECANCELLED.
 */
int leat__record_source_walk(const leat__record_source *source,
                             const leat__record_format *format,
                             uint64_t *awaited, leat__record_walk *walk,
                             leat__record_span out[], int n, int *got);

/* The file that byte `at` is in, below files->bytes. */
int leat__record_files_find(const leat__record_files *files, uint64_t at);

/*
 * Requests, or drops, the bytes [from, to), which go on with the first file
 * after the last. Requests return the number of pages that were absent.
 */
size_t leat__record_files_ask(const leat__record_files *files, uint64_t from,
                              uint64_t to);
void leat__record_files_drop(const leat__record_files *files, uint64_t from,
                             uint64_t to);

/* Whether more than a few of the pages sampled from all files are not in
 * memory. */
bool leat__record_files_may_block(const leat__record_files *files);

/* Puts into the token what tells these files from others, wherever they are:
 * sizes, and bytes. Errors: LEAT_ENOMEM. */
int leat__record_files_save(const leat__record_files *files, leat_token *token);

/* LEAT_EINVAL if the token is of other files. */
int leat__record_files_check(const leat__record_files *files,
                             leat_token *token);

#endif
