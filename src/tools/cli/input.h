/* input.h: files and pipes, read once from the beginning. */
#ifndef LEAT_TOOLS_CLI_INPUT_H
#define LEAT_TOOLS_CLI_INPUT_H

#include <leat/status.h>

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

#endif
