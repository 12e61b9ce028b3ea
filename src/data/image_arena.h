/* image_arena.h: the codecs' memory, freed after each image. */
#ifndef LEAT_DATA_IMAGE_ARENA_H
#define LEAT_DATA_IMAGE_ARENA_H

#include "base/memory.h"
#include "data/image_demand.h"

struct leat__arena_spill;

/*
 * One block, allocated from its start, and spills for pieces that did not fit.
 * A reset enlarges the block to the past image's use, so that similar images
 * allocate nothing, and shrinks a block that recent images left almost empty.
 * All zero is a valid, empty arena.
 */
typedef struct leat__arena {
    unsigned char *block;
    size_t size;        /* of the block */
    size_t used;        /* of the block, from its start */
    const void *latest; /* the piece that can be freed; NULL: none */
    size_t latest_bytes;
    struct leat__arena_spill *spills;
    size_t spilled; /* bytes in the spills */
    size_t peak;    /* peak use since the reset */
    leat__demand demand;
    /* The second check of the limit, after the codecs' estimates. */
    size_t limit;    /* bytes that may be in use at once; 0: any number */
    size_t reserved; /* of these, bytes outside the arena */
    int status;      /* status of the latest NULL */
} leat__arena;

/*
 * Memory at LEAT__ALIGNMENT; NULL with the error line and `status` set:
 * LEAT_EDATA beyond the limit, LEAT_ENOMEM.
 */
void *leat__arena_alloc(leat__arena *arena, size_t bytes);

/*
 * Frees the latest piece; any other is freed by the reset. The use never
 * depends on earlier images.
 */
void leat__arena_free(leat__arena *arena, const void *memory);

/* Frees all pieces. */
void leat__arena_reset(leat__arena *arena);

/* Frees the block too. */
void leat__arena_finish(leat__arena *arena);

#endif
