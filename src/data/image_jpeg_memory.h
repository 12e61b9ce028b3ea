/* image_jpeg_memory.h: libjpeg's memory manager over an arena. */
#ifndef LEAT_DATA_IMAGE_JPEG_MEMORY_H
#define LEAT_DATA_IMAGE_JPEG_MEMORY_H

#include "data/image_arena.h"

#include <stdio.h> /* jpeglib.h uses FILE without it */

#include <jpeglib.h>

/*
 * Replaces the manager of jpeg_create_decompress, which keeps its earlier
 * allocations and must be restored before the object is destroyed. Pools have
 * no meaning here: the arena's reset frees everything, so the tables that
 * libjpeg keeps from image to image must be cleared before the next one.
 */
typedef struct leat__jpeg_memory {
    struct jpeg_memory_mgr manager; /* first: libjpeg holds its address */
    leat__arena *arena; /* borrowed; its `status` is the reason of a failure */
} leat__jpeg_memory;

void leat__jpeg_memory_init(leat__jpeg_memory *memory, leat__arena *arena);

#endif
