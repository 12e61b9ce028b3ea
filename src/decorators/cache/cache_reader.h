/*
 * cache_reader.h: a reader that keeps its upstream's first epoch, and what it
 * keeps.
 *
 * DESIGN. Every epoch is the upstream's epoch 0, wherever a sample is read, so
 * that what comes at a position depends neither on what was kept nor on when.
 * As the upstream reader is not told of another epoch, it is asked in each
 * whether its data were written since, and once more when all is kept.
 *
 * Over random access an array has a pointer to the entry of each index. Any
 * threads read what is missing, and store it by exchanging NULL for their
 * entry; one that comes late frees its own. Entries stay until close, so that
 * samples are stable views of them.
 *
 * Over a stream the entries are those from index 0 on without a gap, and the
 * upstream reader waits where they end (`kept`), unless the epoch ended there
 * and it is needed no more. Where the upstream's order does not come again, as
 * merge's, what was kept is forgotten when the upstream has to begin anew. All
 * of that is the one caller's.
 *
 * On disk samples are given from the directory once that is whole; until then
 * they are read from the upstream reader, and written on the way. A directory
 * that was whole at open gives random access, whatever the upstream reader has:
 * no order may depend on that (leat__reader_has_lasting_access).
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_READER_H
#define LEAT_DECORATORS_CACHE_CACHE_READER_H

#include "base/counter.h"
#include "decorators/cache/cache_directory.h"
#include "decorators/cache/cache_writer.h"
#include "decorators/index_map.h"

#include <stdbool.h>

typedef struct leat__cache_memory_entry {
    _Alignas(LEAT__CACHE_ENTRY_UNIT) size_t size; /* of `bytes` */
    void *block;                                  /* it lies in, to be freed */
    _Alignas(LEAT__CACHE_ENTRY_UNIT) unsigned char bytes[];
} leat__cache_memory_entry;

typedef _Atomic(leat__cache_memory_entry *) leat__cache_entry_pointer;

/* Bytes that an entry takes of the budget at least, its pointer included. */
#define LEAT__CACHE_COST_MIN (4 * LEAT__CACHE_ENTRY_UNIT)

typedef struct leat__cache_reader {
    leat__index_map map; /* first; over a stream `count` is not used */

    /* Immutable. */
    bool is_random_access;
    bool has_mark;
    bool is_repeatable; /* the upstream's order comes again */
    int64_t budget;
    int64_t max_memory; /* the caller's; 0: no limit */

    leat__cache_entry_pointer *entry; /* of each index; grows over a stream */
    int64_t nentries;                 /* its length */
    atomic_int_fast64_t used;         /* bytes that entries take */
    atomic_int_fast64_t samples;      /* that they are */
    atomic_bool is_full;         /* a sample did not fit; said in the log */
    atomic_int_fast64_t checked; /* the last epoch that was entered; or -1 */

    const char *path;           /* on disk; NULL: in memory */
    leat_token identity;        /* of the data set and what is done to it */
    leat__cache_writer *writer; /* NULL: it was whole at open */
    atomic_bool is_writing;
    _Atomic(leat__cache_directory *) directory; /* NULL: not whole yet */

    /* Over a stream; the caller's. */
    int64_t taken;        /* samples kept, from index 0 on */
    int64_t kept;         /* of these, what can be given: all, or none yet */
    bool is_whole;        /* the epoch ended there */
    bool has_given;       /* views of entries, which so stay until close */
    bool is_beside;       /* the upstream reader alone is read, from a mark */
    int64_t upstream_at;  /* where the upstream reader goes on; -1: nowhere */
    leat_token kept_mark; /* the upstream's at `taken`, where it has one */
    leat_token next_mark; /* scratch: that after one more sample */
    leat_sample passed;   /* scratch: one that skip keeps */
    leat__block_probe probe; /* of the upstream reader */
} leat__cache_reader;

/* In `checked`: all is kept, of data that nobody had written to. */
#define LEAT__CACHE_SETTLED INT64_MAX

/*
 * Before samples are given in an epoch, over random access: LEAT_EIO if the
 * data were written since they were opened, as what is kept is of those. Any
 * threads.
 */
int leat__cache_enter(leat__cache_reader *cache, int64_t epoch);

/* What is kept of a sample. */
typedef struct leat__cache_kept {
    const void *bytes;
    size_t size;
    int status; /* of finding them: LEAT_EDATA with a line */
} leat__cache_kept;

static inline leat_reader *leat__cache_upstream(const leat__cache_reader *cache)
{
    return cache->map.decorator.upstream[0];
}

/* Whether a sample is kept, and what of it. Any threads. */
bool leat__cache_find(const leat__cache_reader *cache, int64_t index,
                      leat__cache_kept *out);

/* Makes `out` a view of it. LEAT_EDATA: the sample is a bad one. */
int leat__cache_give(const leat__cache_kept *kept, leat_sample *out);

/* Keeps a sample if there is room; another thread's stays. Any threads. */
bool leat__cache_store(leat__cache_reader *cache, int64_t index,
                       const leat__cache_item *item);

/* The cache on disk is not made after all; reading goes on. */
void leat__cache_give_up(leat__cache_reader *cache);

/* All samples are written: from now on they are given from the directory. */
bool leat__cache_complete(leat__cache_reader *cache);

/* Over a stream: keeps nothing any more of what it kept. */
void leat__cache_forget(leat__cache_reader *cache);

/* Frees all that is kept. */
void leat__cache_free(leat__cache_reader *cache);

/* Operations over random access. */
int leat__cache_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got);
int leat__cache_seek_index(leat_reader *reader, leat_position position,
                           leat_token *mark);
void leat__cache_advise(leat_reader *reader, const leat_position at[], int n);
int leat__cache_skip_index(leat_reader *reader, int64_t n, int64_t *skipped);

/* Operations over a stream. */
int leat__cache_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got);
int leat__cache_seek(leat_reader *reader, leat_position position,
                     leat_token *mark);
int leat__cache_skip(leat_reader *reader, int64_t n, int64_t *skipped);
int leat__cache_mark(leat_reader *reader, leat_token *token);
int leat__cache_restore(leat_reader *reader, leat_token *token);
int leat__cache_count(leat_reader *reader, int64_t *out);

#endif
