/* dump_files.h: what is in a directory already when a dump goes there. */
#ifndef LEAT_TOOLS_DELIVERY_DUMP_FILES_H
#define LEAT_TOOLS_DELIVERY_DUMP_FILES_H

/*
 * Whether a dump may go into the directory, which is open and locked; `force`:
 * beside other files, and in the place of an earlier dump. What a killed dump
 * left unfinished is removed. Errors: LEAT_EINVAL, LEAT_EIO.
 */
int dump_files_check(int directory, const char *path, int force);

/* Removes the files of an earlier dump. Errors: LEAT_EIO. */
int dump_files_clear(int directory, const char *path);

#endif
