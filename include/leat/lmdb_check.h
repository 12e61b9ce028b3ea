/* leat/lmdb_check.h: all that can be read of a database, damaged or not. */
#ifndef LEAT_LMDB_CHECK_H
#define LEAT_LMDB_CHECK_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A walk over an LMDB that checks every page and goes on behind damage, where a
 * reader stops. What it gives is undecoded: see leat_datum_fields.
 */
typedef struct leat_lmdb_check leat_lmdb_check;

/**
 * A record, or what is known of a damaged place. Its views are borrowed from
 * the check until close.
 */
typedef struct leat_lmdb_check_entry {
    /**
     * The record's number, from 0, of those that were found, bad ones counted;
     * at a damaged page the number of the next one. -1 behind a jump.
     */
    int64_t record;
    int64_t page; /* its leaf, or what is damaged; -1: no page in particular */
    int64_t lost; /* records that the damage costs; -1: unknown; else 0 */
    const void *key;   /* NULL where it is no record's, or was not found */
    size_t key_size;   /* bytes */
    const void *value; /* NULL at damage */
    size_t value_size; /* bytes */
} leat_lmdb_check_entry;

/**
 * Opens the database at `path`, a directory with data.mdb or the file itself,
 * as it is now, whatever a writer does. A file with a damaged meta page, or
 * shorter than it should be, is opened too, by the other meta page or as far as
 * it goes, with these as the first damage; it must not be written to meanwhile.
 * Owned by the caller: leat_lmdb_check_close. Blocks as the storage does, with
 * nothing to wake it.
 * Errors: LEAT_EIO; LEAT_EFORMAT for what is no LMDB of Caffe's, or holds
 * nothing that can be found; LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_lmdb_check_open(leat_lmdb_check **out, const char *path);

/** Ends the check. Takes NULL. Thread safety: one caller, and no other call at
    the same time. */
LEAT_API void leat_lmdb_check_close(leat_lmdb_check *check);

/**
 * The number of records that the database says it has. Thread safety: any
 * threads.
 */
LEAT_API int64_t leat_lmdb_check_count(const leat_lmdb_check *check);

/**
 * Gives up to `n` records that follow one another, and says in `*got` how many.
 *
 * LEAT_OK with *got from 1 to n; fewer than n means only that. LEAT_END with
 * *got 0 behind the last one. Damage comes from a call of its own, with *got 0:
 * LEAT_EFORMAT for pages that make no sense, LEAT_EIO for those that storage
 * fails to give; out[0] says where, leat_last_error how; the next call goes on
 * behind it. LEAT_ENOMEM is no damage. Blocks as the storage does, with nothing
 * to wake it.
 *
 * Checked are: each page's number, kind and bounds; each record's node, key and
 * overflow pages; that no page is met twice; that keys ascend, and branches
 * lead to them; that there are as many records as the database says; behind the
 * last record, that no page that is in use is listed as free, and none twice.
 * One damaged place is told once. Behind a page of records that is lost
 * `record` goes on as if there were none in it.
 * Thread safety: any threads, in parallel; each gets other records.
 */
LEAT_API int leat_lmdb_check_next(leat_lmdb_check *check,
                                  leat_lmdb_check_entry out[], int n, int *got);

/** What the pages of a database are there for. */
typedef struct leat_lmdb_page_use {
    size_t size;    /* sizeof(leat_lmdb_page_use), set by the caller */
    int64_t all;    /* in the file, the two meta pages included */
    int64_t used;   /* met: by records, branches and the list of free pages */
    int64_t free;   /* listed as free, and in the file */
    int64_t leaked; /* neither: room that is lost, but no damage, as writers
                       that crash may leave it; -1: unknown behind damage */
} leat_lmdb_page_use;

/**
 * Tells it, once leat_lmdb_check_next gave LEAT_END.
 * Errors: LEAT_ESTATE before that, behind a jump, and where the list of free
 * pages cannot be found; LEAT_EINVAL without a size. Thread safety: any
 * threads.
 */
LEAT_API int leat_lmdb_check_page_use(leat_lmdb_check *check,
                                      leat_lmdb_page_use *out);

/**
 * Goes on with the records of the leaf at about `share` of the way, 0 the first
 * and 1 the last; for samples of a database that is too large to be read. A
 * share below 0 and NaN count as 0, one above 1 as 1. From then on pages may be
 * met again, and records have no number. A damaged page on the way is what
 * leat_lmdb_check_next then tells of.
 * Thread safety: one caller, and no other call at the same time.
 */
LEAT_API void leat_lmdb_check_jump(leat_lmdb_check *check, double share);

#ifdef __cplusplus
}
#endif
#endif
