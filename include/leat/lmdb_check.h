/* leat/lmdb_check.h: checks a database and reads what a damaged one still has.
 */
#ifndef LEAT_LMDB_CHECK_H
#define LEAT_LMDB_CHECK_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A check of an LMDB: it walks every page and continues after damage, where a
 * reader stops. Values are undecoded; see leat_datum_fields.
 */
typedef struct leat_lmdb_check leat_lmdb_check;

/**
 * A record, or a damaged part. Its views are borrowed from the check until
 * close.
 */
typedef struct leat_lmdb_check_entry {
    /**
     * The record's number, from 0, among those found, bad ones included; at a
     * damaged page the number of the next record. -1 after a jump.
     */
    int64_t record;
    int64_t page;    /* its leaf, or the damaged page; -1: no particular page */
    int64_t lost;    /* records that the damage costs; -1: unknown; else 0 */
    const void *key; /* NULL if there is no record, or its key was not found */
    size_t key_size; /* bytes */
    const void *value; /* NULL at damage */
    size_t value_size; /* bytes */
} leat_lmdb_check_entry;

/**
 * Opens the current snapshot of the database at `path`, a directory with
 * data.mdb or the file itself; writers do not affect it, unless it cannot be
 * locked (leat_lmdb_check_next). A file with a damaged
 * meta page is opened by the other one, and a truncated file as far as it
 * reaches; both are then reported as the first damage, and nothing may write to
 * such a file meanwhile. Owned by the caller: leat_lmdb_check_close. Blocks as
 * the storage does; nothing wakes it. Errors: LEAT_EIO; LEAT_EFORMAT if the
 * file is not an LMDB of Caffe's or nothing in it can be found; LEAT_ENOMEM.
 * Thread safety: any thread.
 */
LEAT_API int leat_lmdb_check_open(leat_lmdb_check **out, const char *path);

/** Closes the check. Takes NULL. Thread safety: one caller, and no other call
 * at the same time. */
LEAT_API void leat_lmdb_check_close(leat_lmdb_check *check);

/**
 * The number of records according to the meta page. Thread safety: any threads.
 */
LEAT_API int64_t leat_lmdb_check_count(const leat_lmdb_check *check);

/**
 * Returns up to `n` consecutive records in `out` and their number in `*got`.
 *
 * LEAT_OK with *got from 1 to n; fewer than n has no further meaning. LEAT_END
 * with *got 0 after the last record. Each damage is returned by a call of its
 * own, with *got 0: LEAT_EFORMAT for malformed pages, LEAT_EIO for pages that
 * the storage fails to read. out[0] has the location, leat_last_error the
 * reason, and the next call continues after it. LEAT_ENOMEM is not damage, and
 * LEAT_ESTATE neither: where the lock file could not be locked, for want of a
 * right or of space, a writer may have overwritten what was read.
 * Blocks as the storage does; nothing wakes it.
 *
 * The check covers each page's number, type and bounds; each record's node, key
 * and overflow pages; that no page is reached twice; that keys ascend and
 * branches lead to them; the number of records; and, after the last record,
 * that no page in use is on the freelist and no page is on it twice. Each
 * damage is reported once; of a freelist with more than 10000 faults the first
 * ones, and that there are more. After a lost page of records, `record`
 * continues as if the page had been empty. Thread safety: any threads, in
 * parallel; each gets different records.
 */
LEAT_API int leat_lmdb_check_next(leat_lmdb_check *check,
                                  leat_lmdb_check_entry out[], int n, int *got);

/** How the pages of a database are used. */
typedef struct leat_lmdb_page_use {
    size_t size;    /* sizeof(leat_lmdb_page_use), set by the caller */
    int64_t all;    /* in the file, the two meta pages included */
    int64_t used;   /* reached: by records, branches and the freelist */
    int64_t free;   /* on the freelist, and in the file */
    int64_t leaked; /* neither: space lost by writers that crashed, which is not
                       damage; -1: unknown because of damage */
} leat_lmdb_page_use;

/**
 * Returns the page counts, once leat_lmdb_check_next has returned LEAT_END.
 * Errors: LEAT_ESTATE before that, after a jump, and if the freelist cannot be
 * found or has more than 10000 faults; LEAT_EINVAL without a size. Thread
 * safety: any threads.
 */
LEAT_API int leat_lmdb_check_page_use(leat_lmdb_check *check,
                                      leat_lmdb_page_use *out);

/**
 * Continues at the leaf at `share` of all leaves, from 0, the first, to 1, the
 * last; for sampling a database that is too large to be read. The branches that
 * a jump passes are read, but no leaves; jumps forward are cheapest. A negative
 * share and NaN count as 0, one above 1 as 1. From then on pages may be reached
 * again, and records have no number. leat_lmdb_check_next reports a damaged
 * branch on the way, and continues after it. Thread safety: one caller, and no
 * other call at the same time.
 */
LEAT_API void leat_lmdb_check_jump(leat_lmdb_check *check, double share);

#ifdef __cplusplus
}
#endif
#endif
