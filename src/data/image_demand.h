/* image_demand.h: decides when a buffer is far larger than recent images need.
 */
#ifndef LEAT_DATA_IMAGE_DEMAND_H
#define LEAT_DATA_IMAGE_DEMAND_H

#include <stddef.h>

/* Images after which a buffer may shrink. */
#define LEAT__DEMAND_IMAGES 512

/* The demand of the images since the last decision. All zero is valid. */
typedef struct leat__demand {
    size_t most;
    int images;
} leat__demand;

/*
 * Notes that an image needs `bytes` of a buffer of `capacity`. Returns the
 * capacity that the buffer should have: the same, or, once in
 * LEAT__DEMAND_IMAGES images, the most that any of them needed. Images that
 * differ in size by a small factor never shrink it, so in the steady state
 * nothing is allocated.
 */
static inline size_t leat__demand_record(leat__demand *demand, size_t bytes,
                                         size_t capacity)
{
    /* Smaller buffers and small factors are not worth an allocation. */
    const size_t kept = (size_t)4 << 20, factor = 8;
    if (bytes > demand->most)
        demand->most = bytes;
    if (++demand->images < LEAT__DEMAND_IMAGES)
        return capacity;
    size_t most = demand->most;
    demand->most = 0;
    demand->images = 0;
    return capacity > kept && capacity / factor > most ? most : capacity;
}

#endif
