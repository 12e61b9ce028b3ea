#include "pool.h"

#include <stdlib.h>
#include <string.h>

/* Stands before each piece. */
typedef struct head {
    void *memory;
    size_t room;
    size_t bytes;
    size_t alignment;
} head;

static void *take_room(const pool *self, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (self->device)
        return self->device->ops->host_alloc(self->device, bytes, &memory)
                   ? NULL
                   : memory;
    return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
}

static void *pool_alloc(void *user, size_t bytes, size_t alignment)
{
    pool *self = user;
    size_t before = sizeof(head);
    while (before % alignment)
        before++;
    head head = {NULL, before + bytes, bytes, alignment};
    head.memory = take_room(self, head.room, alignment);
    if (!head.memory)
        return NULL;
    /* Nobody may count on zeros. */
    memset(head.memory, 0xa5, head.room);
    char *piece = (char *)head.memory + before;
    memcpy(piece - sizeof(head), &head, sizeof(head));
    atomic_fetch_add(&self->given, 1);
    atomic_fetch_add(&self->out, 1);
    return piece;
}

static void pool_free(void *user, void *memory, size_t bytes, size_t alignment)
{
    pool *self = user;
    head head;
    memcpy(&head, (char *)memory - sizeof(head), sizeof(head));
    if (head.bytes != bytes || head.alignment != alignment)
        atomic_store(&self->is_wrong, 1);
    atomic_fetch_sub(&self->out, 1);
    if (self->device)
        self->device->ops->host_free(self->device, head.memory, head.room);
    else
        free(head.memory);
}

leat_allocator pool_hooks(pool *self)
{
    return (leat_allocator){.size = sizeof(leat_allocator),
                            .alloc = pool_alloc,
                            .free = pool_free,
                            .user = self};
}
