/* buffer.h: memory that grows with its contents. */
#ifndef LEAT_TOOLS_CLI_BUFFER_H
#define LEAT_TOOLS_CLI_BUFFER_H

#include <leat/status.h>

#include <stddef.h>

/* A zeroed one is empty; owned by the caller: free(bytes). */
struct buffer {
    unsigned char *bytes;
    size_t size;
};

/*
 * Makes room for `size` bytes or more, which may move those that are there.
 * Errors: LEAT_ENOMEM.
 */
int buffer_reserve(struct buffer *buffer, size_t size);

/* Frees memory of more than `most` bytes, with what is in it. */
void buffer_trim(struct buffer *buffer, size_t most);

#endif
