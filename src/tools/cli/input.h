/* input.h: files and pipes, read once from the beginning. */
#ifndef LEAT_TOOLS_CLI_INPUT_H
#define LEAT_TOOLS_CLI_INPUT_H

#include <leat/status.h>

#include <stddef.h>
#include <sys/stat.h>

/*
 * Opens `path`; the caller closes `*fd`. Does not wait for a pipe's writer,
 * which may open it until the first read. Errors: LEAT_EIO.
 */
int input_open(int *fd, const char *path);

/*
 * Reads the bytes available, at most `size`; `*got` is 0 only at the end.
 * Waits for a pipe until a signal arrives: LEAT_ECANCELLED. Errors: LEAT_EIO.
 */
int input_read(int fd, const char *path, void *out, size_t size, size_t *got);

/* What the file is now. Errors: LEAT_EIO. */
int input_look(int fd, const char *path, struct stat *out);

/*
 * That nobody wrote the file since that look, by its size and time of
 * modification; a pipe passes. Errors: LEAT_EFORMAT, LEAT_EIO.
 */
int input_check(int fd, const char *path, const struct stat *before);

#endif
