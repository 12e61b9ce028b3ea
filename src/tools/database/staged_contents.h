/* staged_contents.h: what the directories of an import and of its target hold.
 */
#ifndef LEAT_TOOLS_DATABASE_STAGED_CONTENTS_H
#define LEAT_TOOLS_DATABASE_STAGED_CONTENTS_H

#include <leat/status.h>

#include <dirent.h>
#include <stdbool.h>

/* A name that no reader gives a file, as it does lock.mdb: of one that leat has
   in the directory of a database for a moment. A killed run may leave it, and
   the next one replaces or removes it. */
#define STAGED_TRIED "leat-tried.mdb"

/* What the staging directory's database consists of; the last for a moment. */
#define STAGED_DATA "database/data.mdb"
#define STAGED_LOCK "database/lock.mdb"
#define STAGED_FILE "database/" STAGED_TRIED

enum staged_contents { STAGED_MISSING, STAGED_OWN, STAGED_FOREIGN };

/* Whether an entry is none of a database's directory; a filter. One that a file
   system keeps until it is closed (leat__file_is_hidden) is, and stays. */
int staged_contents_is_foreign(const struct dirent *entry);

/*
 * Whether the directory `name`, seen from `at`, holds entries that `filter`
 * takes. A link is foreign. Any failure is an error, which names `path`, as
 * much is removed because something else is missing.
 */
int staged_contents_find(int at, const char *name, const char *path,
                         int (*filter)(const struct dirent *entry),
                         enum staged_contents *out);

/*
 * They remove, in the staging directory `at`, a file, which need not be there;
 * the lock files of its database, which a reader or a killed run left; and the
 * database, needing no descriptor, since none may be left. Its directory stays
 * where nothing but hidden files is in it. Errors: LEAT_EIO, naming `path`.
 */
int staged_contents_unlink(int at, const char *name, const char *path);
int staged_contents_remove_locks(int at, const char *path);
int staged_contents_remove(int at, const char *path);

/* The error, of errno `code`, that `target` cannot be made in its directory. */
int staged_contents_cannot_make(const char *target, int code);

/*
 * Whether a database that is moved from the directory `from`, seen from `at`,
 * can get the name `target`, where one that is there gives way with `replace`
 * alone. Errors: LEAT_EINVAL, LEAT_EIO, LEAT_ENOMEM.
 */
int staged_contents_check_target(const char *target, int at, const char *from,
                                 bool replace);

/*
 * Whether a file can be moved to the directory `target`, if it is there: makes
 * the file `staged`, seen from `at`, moves it and removes it. Some file systems
 * refuse it between directories of one mount. Errors: LEAT_EINVAL, LEAT_EIO.
 */
int staged_contents_try_move(int at, const char *staged, const char *target);

/* Puts the names in a directory on disk, where that can be done: one that may
 * be written but not read cannot be synced. Errors: LEAT_EIO, naming `path`. */
int staged_contents_sync(int at, const char *name, const char *path);

#endif
