/*
 * divisor.h: division by a number that is known beforehand, as a product and
 * shifts. Shared with device kernels as transform_job.h is.
 */
#ifndef LEAT_DEVICE_DIVISOR_H
#define LEAT_DEVICE_DIVISOR_H

#include <stdint.h>

#ifndef LEAT__DEVICE_FUNCTION
#define LEAT__DEVICE_FUNCTION
#endif

typedef struct leat__divisor {
    uint32_t factor;
    uint32_t first;
    uint32_t second;
} leat__divisor;

/* By Granlund and Montgomery: exact for every dividend of 32 bits. */
static inline leat__divisor leat__divisor_of(uint32_t divisor)
{
    uint32_t bits = 0;
    while (bits < 32 && (uint64_t)1 << bits < divisor)
        bits++;
    uint64_t above = ((uint64_t)1 << bits) - divisor;
    leat__divisor out = {(uint32_t)((above << 32) / divisor + 1),
                         bits > 0 ? 1u : 0u, bits > 0 ? bits - 1 : 0};
    return out;
}

static LEAT__DEVICE_FUNCTION inline uint32_t
leat__divide(uint32_t dividend, const leat__divisor *by)
{
    uint32_t high = (uint32_t)((uint64_t)by->factor * dividend >> 32);
    return (high + ((dividend - high) >> by->first)) >> by->second;
}

#endif
