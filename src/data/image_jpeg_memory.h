/* image_jpeg_memory.h: libjpeg's memory manager over an arena. */
#ifndef LEAT_DATA_IMAGE_JPEG_MEMORY_H
#define LEAT_DATA_IMAGE_JPEG_MEMORY_H

#include "data/image_arena.h"

#include <stdio.h> /* jpeglib.h uses FILE without it */

#include <jpeglib.h>

/*
 * Takes the place of the manager that jpeg_create_decompress made, which keeps
 * what it gave so far and must be put back before the object is destroyed.
 * Pools mean nothing here: all goes with the arena's reset, so the tables that
 * libjpeg keeps from image to image must be forgotten before the next one.
 */
typedef struct leat__jpeg_memory {
    struct jpeg_memory_mgr manager; /* first: libjpeg holds its address */
    leat__arena *arena; /* borrowed; its `status` says why memory is short */
} leat__jpeg_memory;

void leat__jpeg_memory_init(leat__jpeg_memory *memory, leat__arena *arena);

#endif
