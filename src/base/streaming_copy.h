/* streaming_copy.h: copies into memory that a device reads next. */
#ifndef LEAT_BASE_STREAMING_COPY_H
#define LEAT_BASE_STREAMING_COPY_H

#include <stddef.h>

/*
 * Like memcpy, by stores that leave no copy in this core's caches where the
 * processor has such: a device then reads from memory, and the memory's former
 * contents are not read before. Others see the bytes after
 * leat__streaming_copy_end.
 */
void leat__streaming_copy(void *to, const void *from, size_t bytes);

/* Orders this thread's streaming copies before its later stores. */
void leat__streaming_copy_end(void);

#endif
