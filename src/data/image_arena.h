/* image_arena.h: the codecs' memory, taken back image by image. */
#ifndef LEAT_DATA_IMAGE_ARENA_H
#define LEAT_DATA_IMAGE_ARENA_H

#include "base/memory.h"
#include "data/image_demand.h"

struct leat__arena_spill;

/*
 * One block, served from its start, and spills for what did not fit. A reset
 * enlarges the block to what the past image took, so that the next of its kind
 * allocates nothing, and shrinks one that recent images left almost empty. All
 * zero is a valid, empty arena.
 */
typedef struct leat__arena {
    unsigned char *block;
    size_t size;        /* of the block */
    size_t used;        /* of the block, from its start */
    const void *latest; /* the piece that can be taken back; NULL: none */
    size_t latest_bytes;
    struct leat__arena_spill *spills;
    size_t spilled; /* bytes in the spills */
    size_t peak;    /* the most in use at once since the reset */
    leat__demand demand;
    /* Second line of defence; the codecs' estimates are the first. */
    size_t limit;    /* bytes that may be in use at once; 0: any number */
    size_t reserved; /* of them, bytes that lie outside of the arena */
    int status;      /* what the latest NULL was for */
} leat__arena;

/*
 * Memory at LEAT__ALIGNMENT; NULL with the error line and `status` set:
 * LEAT_EDATA beyond the limit, LEAT_ENOMEM.
 */
void *leat__arena_alloc(leat__arena *arena, size_t bytes);

/*
 * Takes back the latest piece; any other stays until the reset. What is in use
 * never depends on earlier images.
 */
void leat__arena_free(leat__arena *arena, const void *memory);

/* Takes everything back. */
void leat__arena_reset(leat__arena *arena);

/* Frees the block too. */
void leat__arena_finish(leat__arena *arena);

#endif
