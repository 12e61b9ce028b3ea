/*
 * part.h: the directory in which a database is written, beside its target.
 *
 * It is PATH.leat-part, held by a lock, and takes its target's place in one
 * step when it is complete. A file `leat-import` in it tells what is being made
 * there, so that the same command, and no other, goes on with what was stopped;
 * without that file what a killed run left is thrown away.
 */
#ifndef LEAT_TOOLS_DATABASE_PART_H
#define LEAT_TOOLS_DATABASE_PART_H

#include <leat/status.h>

struct part;

/* What becomes of a database that is there already. */
enum part_mode { PART_REFUSE, PART_REPLACE, PART_APPEND };

struct part_order {
    const char *path;
    enum part_mode mode;
    int restart;        /* an unfinished one of another recipe is thrown away */
    const char *recipe; /* lines; NULL: never gone on with */
};

/* What was found. */
enum part_state {
    PART_FRESH,    /* it is empty */
    PART_STOPPED,  /* it holds what a run of the same order left */
    PART_COMPLETE, /* such a run was stopped when the target was in place; there
                      is no part any more */
};

/*
 * Makes and locks the directory. Errors: LEAT_EINVAL for a path without a
 * letter, when something is in the way or another process is at work, LEAT_EIO,
 * LEAT_ENOMEM.
 */
int part_open(struct part **out, const struct part_order *order);

enum part_state part_state(const struct part *part);

/* Where the database is written, and where it will be. Borrowed. */
const char *part_path(const struct part *part);
const char *part_target(const struct part *part);

/* Whether there is a database to be appended to. */
int part_has_base(const struct part *part);

/* Bytes that its file system has left; INT64_MAX where it does not say. */
int64_t part_free_bytes(const struct part *part);

/*
 * Puts a number, 0 or more, beside the recipe, for a run that finds the part or
 * its target complete. Without a recipe it does nothing. Errors: LEAT_EIO,
 * LEAT_ENOMEM.
 */
int part_remember(struct part *part, int64_t number);

/* What the run before remembered; below 0: nothing. */
int64_t part_remembered(const struct part *part);

/* Removes the database's files; the directory and its lock stay. */
int part_clear(struct part *part);

/*
 * Puts the finished database, which is on disk already, in the target's place.
 * Until close, a run that is killed is told so by the next one: PART_COMPLETE.
 * Errors: LEAT_EINVAL when the target changed meanwhile, LEAT_EIO.
 */
int part_publish(struct part *part);

/*
 * Frees it. What was not published is removed, unless `keep` is set and there
 * is a recipe. Takes NULL.
 */
void part_close(struct part *part, int keep);

#endif
