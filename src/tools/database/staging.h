/*
 * staging.h: the directory in which a database is made, beside its target.
 *
 * NAME.leat-part holds the database, a lock and a journal that says what the
 * database is made of. The same command, and no other, resumes what was
 * stopped; without a journal a rerun begins anew. The finished database takes
 * its target's place in one step.
 */
#ifndef LEAT_TOOLS_DATABASE_STAGING_H
#define LEAT_TOOLS_DATABASE_STAGING_H

#include <leat/status.h>

struct staging_options {
    const char *target;
    const char *arguments; /* lines that decide the records; NULL: no journal */
    int replace;           /* a database at the target gives way */
    int restart;           /* so does an unfinished one of other arguments */
};

enum staging_state {
    STAGING_FRESH,   /* the database is yet to be made */
    STAGING_RESUMED, /* it holds what a run of the same arguments committed */
    STAGING_COMPLETE /* such a run was killed after it was published */
};

/* Owned by the caller, who reads the first group only. */
struct staging {
    char *target;
    char *path;     /* of the directory: target.leat-part */
    char *database; /* path/database */
    enum staging_state state;
    int64_t result; /* of a complete one; below 0: none */

    char *journal; /* its text, without the last line; NULL: none */
    int replace;
    int fd;        /* of the directory; holds the lock; -1: none */
    int owned;     /* this run made what is in it */
    int published; /* the database is in place */
    int tidy;      /* and what it replaced is gone */
};

/*
 * Makes and locks the directory. Errors: LEAT_EINVAL when something is in the
 * way or another process is at work, LEAT_EIO, LEAT_ENOMEM; nothing is open
 * then.
 */
int staging_open(struct staging *staging,
                 const struct staging_options *options);

/*
 * Puts the finished database, which is on disk already, in the target's place.
 * Until close, `result`, 0 or more, is saved for a rerun of a killed run.
 * Errors: LEAT_EINVAL when the target changed meanwhile, LEAT_EIO.
 */
int staging_publish(struct staging *staging, int64_t result);

/* Removes what was not published, unless `keep`. Takes one that is all zero. */
void staging_close(struct staging *staging, int keep);

#endif
