/*
 * float16.h: floats as float16 and bfloat16, rounded to nearest, ties to even,
 * in integers, so that host and device give the same bits. NaN becomes one NaN
 * of its type. Shared with device kernels as transform_job.h is.
 */
#ifndef LEAT_DEVICE_FLOAT16_H
#define LEAT_DEVICE_FLOAT16_H

#include <stdint.h>
#include <string.h>

#ifndef LEAT__DEVICE_FUNCTION
#define LEAT__DEVICE_FUNCTION
#endif

static LEAT__DEVICE_FUNCTION inline uint16_t leat__float16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t size = bits & 0x7fffffff;
    /* The exponent's bias goes from 127 to 15, and 13 bits are rounded off. */
    uint32_t half = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    if (size < 0x38800000) {
        /* Below the least normal one: one half has its last bit where float16
           has, so the sum is rounded there. */
        float sum;
        memcpy(&sum, &size, sizeof(sum));
        sum += 0.5f;
        memcpy(&half, &sum, sizeof(half));
        half -= 0x3f000000;
    }
    if (size >= 0x477ff000)
        half = 0x7c00;
    if (size > 0x7f800000)
        return 0x7e00;
    return (uint16_t)(sign | half);
}

static LEAT__DEVICE_FUNCTION inline uint16_t leat__bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
