#include "data/cast.h"

#include <stdbool.h>
#include <string.h>

static bool is_number(leat_dtype dtype)
{
    return dtype == LEAT_UINT8 || dtype == LEAT_INT32 || dtype == LEAT_INT64 ||
           dtype == LEAT_FLOAT32 || dtype == LEAT_FLOAT64;
}

bool leat__cast_is_possible(leat_dtype from, leat_dtype to)
{
    return from == to || (is_number(from) && is_number(to));
}

/* An element as both an integer and a float; integers keep all their bits. */
typedef struct number {
    bool is_integer;
    int64_t integer;
    double real;
} number;

#define LOAD(type, value)                                                      \
    type value;                                                                \
    memcpy(&value, from, sizeof(value))

static number load(const void *from, leat_dtype type)
{
    switch (type) {
    case LEAT_UINT8: {
        LOAD(uint8_t, value);
        return (number){1, value, 0};
    }
    case LEAT_INT32: {
        LOAD(int32_t, value);
        return (number){1, value, 0};
    }
    case LEAT_INT64: {
        LOAD(int64_t, value);
        return (number){1, value, 0};
    }
    case LEAT_FLOAT32: {
        LOAD(float, value);
        return (number){0, 0, (double)value};
    }
    default: {
        LOAD(double, value);
        return (number){0, 0, value};
    }
    }
}

static int64_t to_integer(number value, int64_t least, int64_t most)
{
    if (!value.is_integer) {
        if (value.real != value.real)
            return 0;
        if (value.real <= (double)least)
            return least;
        if (value.real >= (double)most)
            return most;
        return (int64_t)value.real;
    }
    if (value.integer < least)
        return least;
    return value.integer > most ? most : value.integer;
}

static void store(void *to, leat_dtype type, number value)
{
    if (type == LEAT_UINT8) {
        uint8_t out = (uint8_t)to_integer(value, 0, UINT8_MAX);
        memcpy(to, &out, sizeof(out));
    } else if (type == LEAT_INT32) {
        int32_t out = (int32_t)to_integer(value, INT32_MIN, INT32_MAX);
        memcpy(to, &out, sizeof(out));
    } else if (type == LEAT_INT64) {
        int64_t out = to_integer(value, INT64_MIN, INT64_MAX);
        memcpy(to, &out, sizeof(out));
    } else if (type == LEAT_FLOAT32) {
        /* Directly from the integer: through double it would be rounded twice.
         */
        float out = value.is_integer ? (float)value.integer : (float)value.real;
        memcpy(to, &out, sizeof(out));
    } else {
        double out = value.is_integer ? (double)value.integer : value.real;
        memcpy(to, &out, sizeof(out));
    }
}

/* The conversion of most labels. */
static void int32_to_float32(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t value;
        memcpy(&value, (const char *)from + i * sizeof(value), sizeof(value));
        float out = (float)value;
        memcpy((char *)to + i * sizeof(out), &out, sizeof(out));
    }
}

void leat__cast(void *to, leat_dtype to_type, const void *from,
                leat_dtype from_type, size_t n)
{
    if (from_type == LEAT_INT32 && to_type == LEAT_FLOAT32) {
        int32_to_float32(to, from, n);
        return;
    }
    size_t to_size = leat_dtype_size(to_type);
    size_t from_size = leat_dtype_size(from_type);
    if (to_type == from_type) {
        memcpy(to, from, n * to_size);
        return;
    }
    for (size_t i = 0; i < n; i++)
        store((char *)to + i * to_size, to_type,
              load((const char *)from + i * from_size, from_type));
}
