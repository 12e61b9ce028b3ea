/* input.h: what is read once from its beginning, a file or a pipe. */
#ifndef LEAT_TOOLS_CLI_INPUT_H
#define LEAT_TOOLS_CLI_INPUT_H

#include <leat/status.h>

/*
 * Opens `path`; whoever called closes `*fd`. Waits for nobody: a pipe's writer
 * may come until the first read. Errors: LEAT_EIO.
 */
int input_open(int *fd, const char *path);

/*
 * Reads what there is, `size` bytes at most; `*got` is 0 at the end only.
 * Waits for a pipe, until a signal comes: LEAT_ECANCELLED. Errors: LEAT_EIO.
 */
int input_read(int fd, const char *path, void *out, size_t size, size_t *got);

/*
 * Waits for the first bytes of a pipe, and has its reads block from then on, as
 * a library expects it that reads by itself; a signal ends them, until
 * interrupt_keep before close. Errors: LEAT_EIO, LEAT_ECANCELLED.
 */
int input_begin(int fd, const char *path);

#endif
