/* staging.h: the directory beside a target in which its database is made.
 *
 * NAME.leat-part holds the database, a lock and the journal of the import. The
 * same arguments, and no others, resume a stopped import; without a journal a
 * rerun begins anew. The finished database takes its target's place in one
 * step.
 */
#ifndef LEAT_TOOLS_DATABASE_STAGING_H
#define LEAT_TOOLS_DATABASE_STAGING_H

#include <leat/status.h>

#include <stdbool.h>

struct staging_options {
    const char *target;
    const char *arguments; /* lines that decide the records; NULL: no journal */
    bool in_place;         /* the target is read: the last of these lines is of
                              all data, which are others once it is replaced,
                              and the one before it of the other inputs' */
    bool replace;          /* a database at the target gives way */
    bool restart;          /* so does an unfinished one, of any arguments; and a
                              complete one is made again */
};

enum staging_state {
    STAGING_FRESH,   /* the database is yet to be made */
    STAGING_RESUMED, /* it holds the records committed by a run of the same
                        arguments */
    STAGING_COMPLETE /* such a run was killed after it published the database */
};

/* Owned by the caller, which reads the first group only. */
struct staging {
    char *target;
    char *path;     /* of the directory: target.leat-part */
    char *database; /* path/database */
    char *data;     /* target/data.mdb */
    enum staging_state state;
    int64_t result; /* saved by a complete run; below 0: none */

    char *journal; /* its text without the last line; NULL: no journal */
    bool in_place;
    bool replace;
    int fd;          /* of the directory; holds the lock; -1: none */
    bool owned;      /* this run made its contents */
    bool published;  /* the database replaced the target */
    bool unreported; /* the next run is to report it; set by the caller */
};

/*
 * Makes and locks the directory. Errors: LEAT_EINVAL when something is in the
 * way or another process is at work, LEAT_EIO, LEAT_ENOMEM; nothing is open
 * then.
 */
int staging_open(struct staging *staging,
                 const struct staging_options *options);

/*
 * Whether staging_open would refuse the target, as far as that is known without
 * the arguments and the lock. Makes nothing. Errors: as of staging_open.
 */
int staging_check(const struct staging_options *options);

/*
 * Replaces the target by the finished database, which is on disk already. Until
 * close, `result`, 0 or more, is saved for the rerun of a killed run. Errors:
 * LEAT_EINVAL when the target changed meanwhile, LEAT_ESTATE when its path
 * leads to another directory than the staging directory's, LEAT_EIO.
 */
int staging_publish(struct staging *staging, int64_t result);

/* Removes an unpublished database, unless `keep`. Takes a zeroed one. */
void staging_close(struct staging *staging, bool keep);

#endif
