/*
 * journal.h: what an unfinished database is made of, as text in a file.
 *
 * It consists of a header, the lines of the arguments, and, once all records
 * are committed, a last line with the result and the inode of the database.
 */
#ifndef LEAT_TOOLS_DATABASE_JOURNAL_H
#define LEAT_TOOLS_DATABASE_JOURNAL_H

#include <leat/status.h>

/* Texts are owned by the caller: free. NULL: no memory, with its line. */
char *journal_begin(const char *arguments);
char *journal_complete(const char *journal, int64_t result, uint64_t inode);

/* Whether the journal found is of the arguments of `now`, complete or not. */
int journal_is_same(const char *found, const char *now);
int journal_is_complete(const char *found, int64_t *result, uint64_t *inode);

/* LEAT_EINVAL, with the first line in which they differ. */
int journal_other_error(const char *path, const char *found, const char *now);

/*
 * The journal in an open directory, by the name `path` in errors. *out is owned
 * by the caller, and unchanged where there is none. Errors: LEAT_EIO.
 */
int journal_read(int directory, const char *path, char **out);

/* Replaces it in one step; its bytes are on disk, its name may not be yet. */
int journal_write(int directory, const char *path, const char *text);

#endif
