#include "data/cast.h"
#include "device/float16.h"

#include <stdbool.h>
#include <string.h>

/* Integers, with the least and the greatest value of each. */
#define INTEGERS(X)                                                            \
    X(LEAT_UINT8, uint8_t, 0, UINT8_MAX)                                       \
    X(LEAT_UINT16, uint16_t, 0, UINT16_MAX)                                    \
    X(LEAT_UINT32, uint32_t, 0, UINT32_MAX)                                    \
    X(LEAT_INT8, int8_t, INT8_MIN, INT8_MAX)                                   \
    X(LEAT_INT16, int16_t, INT16_MIN, INT16_MAX)                               \
    X(LEAT_INT32, int32_t, INT32_MIN, INT32_MAX)                               \
    X(LEAT_INT64, int64_t, INT64_MIN, INT64_MAX)

/* What a type holds; zeros for BYTES, which are no numbers. */
typedef struct range {
    int digits;    /* bits of a value, without its sign */
    bool is_float; /* of any exponent: see `exponent` */
    bool is_signed;
    int exponent; /* of a float: bits */
} range;

static range range_of(leat_dtype type)
{
    static const range ranges[] = {
        [LEAT_UINT8] = {8, false, false, 0},
        [LEAT_UINT16] = {16, false, false, 0},
        [LEAT_UINT32] = {32, false, false, 0},
        [LEAT_INT8] = {7, false, true, 0},
        [LEAT_INT16] = {15, false, true, 0},
        [LEAT_INT32] = {31, false, true, 0},
        [LEAT_INT64] = {63, false, true, 0},
        [LEAT_FLOAT16] = {11, true, true, 5},
        [LEAT_BFLOAT16] = {8, true, true, 8},
        [LEAT_FLOAT32] = {24, true, true, 8},
        [LEAT_FLOAT64] = {53, true, true, 11},
    };
    const range none = {0};
    return type < sizeof(ranges) / sizeof(ranges[0]) ? ranges[type] : none;
}

bool leat__dtype_is_float(leat_dtype dtype)
{
    return range_of(dtype).is_float;
}

bool leat__cast_is_possible(leat_dtype from, leat_dtype to)
{
    return from == to || (range_of(from).digits && range_of(to).digits);
}

bool leat__cast_is_exact(leat_dtype from, leat_dtype to)
{
    range a = range_of(from), b = range_of(to);
    if (from == to)
        return true;
    return a.digits && a.digits <= b.digits && a.exponent <= b.exponent &&
           a.is_signed <= b.is_signed;
}

/* Elements are converted in blocks, through the widest type of their kind. */
#define BLOCK 256

#define LOAD_CASE(code, type, wide)                                            \
    case code:                                                                 \
        for (size_t i = 0; i < n; i++) {                                       \
            type value;                                                        \
            memcpy(&value, (const char *)from + i * sizeof(value),             \
                   sizeof(value));                                             \
            out[i] = (wide)value;                                              \
        }                                                                      \
        break;

#define LOAD_INTEGER_CASE(code, type, least, most)                             \
    LOAD_CASE(code, type, int64_t)

static void load_integers(int64_t *out, const void *from, leat_dtype type,
                          size_t n)
{
    switch (type) {
        INTEGERS(LOAD_INTEGER_CASE)
    default:
        memset(out, 0, n * sizeof(*out));
        break;
    }
}

static double widen_half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t wide =
        sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float value;
    if (exponent == 0)
        return (sign ? -1 : 1) * (double)fraction * 0x1p-24;
    memcpy(&value, &wide, sizeof(value));
    return (double)value;
}

static double widen_bfloat(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return (double)value;
}

static void load_floats(double *out, const void *from, leat_dtype type,
                        size_t n)
{
    switch (type) {
        LOAD_CASE(LEAT_FLOAT32, float, double)
        LOAD_CASE(LEAT_FLOAT64, double, double)
    default:
        for (size_t i = 0; i < n; i++) {
            uint16_t bits;
            memcpy(&bits, (const char *)from + i * sizeof(bits), sizeof(bits));
            out[i] =
                type == LEAT_FLOAT16 ? widen_half(bits) : widen_bfloat(bits);
        }
        break;
    }
}

static inline int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static inline int64_t truncate_to(double value, int64_t least, int64_t most)
{
    if (value != value)
        return 0;
    if (value <= (double)least)
        return least;
    return value >= (double)most ? most : (int64_t)value;
}

#define STORE(value)                                                           \
    memcpy((char *)to + i * sizeof(value), &(value), sizeof(value))

/*
 * A float that rounds to 16 bits as the number itself would: towards zero, and
 * odd in its last bit where that loses anything.
 */
static float to_odd(double value)
{
    float near = (float)value;
    uint32_t bits;
    if (value != value || (double)near == value)
        return near;
    memcpy(&bits, &near, sizeof(bits));
    if (value < 0 ? (double)near < value : (double)near > value)
        bits--;
    bits |= 1;
    memcpy(&near, &bits, sizeof(near));
    return near;
}

/* The same of an integer with more bits than a double has. */
static double integer_to_odd(int64_t value)
{
    if (value >= INT64_C(1) << 53 || value <= -(INT64_C(1) << 53))
        value = (value & ~INT64_C(0xfff)) | (value & 0xfff ? 0x800 : 0);
    return (double)value;
}

static uint16_t narrow(double value, leat_dtype type)
{
    float odd = to_odd(value);
    return type == LEAT_FLOAT16 ? leat__float16(odd) : leat__bfloat16(odd);
}

#define FROM_INTEGERS_CASE(code, type, least, most)                            \
    case code:                                                                 \
        for (size_t i = 0; i < n; i++) {                                       \
            type out = (type)clamp(from[i], least, most);                      \
            STORE(out);                                                        \
        }                                                                      \
        break;

static void store_integers(void *to, leat_dtype type, const int64_t *from,
                           size_t n)
{
    switch (type) {
        INTEGERS(FROM_INTEGERS_CASE)
    case LEAT_FLOAT32:
        /* Directly: through double it would be rounded twice. */
        for (size_t i = 0; i < n; i++) {
            float out = (float)from[i];
            STORE(out);
        }
        break;
    case LEAT_FLOAT64:
        for (size_t i = 0; i < n; i++) {
            double out = (double)from[i];
            STORE(out);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            uint16_t out = narrow(integer_to_odd(from[i]), type);
            STORE(out);
        }
        break;
    }
}

#define FROM_FLOATS_CASE(code, type, least, most)                              \
    case code:                                                                 \
        for (size_t i = 0; i < n; i++) {                                       \
            type out = (type)truncate_to(from[i], least, most);                \
            STORE(out);                                                        \
        }                                                                      \
        break;

static void store_floats(void *to, leat_dtype type, const double *from,
                         size_t n)
{
    switch (type) {
        INTEGERS(FROM_FLOATS_CASE)
    case LEAT_FLOAT32:
        for (size_t i = 0; i < n; i++) {
            float out = (float)from[i];
            STORE(out);
        }
        break;
    case LEAT_FLOAT64:
        memcpy(to, from, n * sizeof(*from));
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            uint16_t out = narrow(from[i], type);
            STORE(out);
        }
        break;
    }
}

bool leat__cast_holds(leat_dtype type, double number)
{
    char element[8] = {0};
    double back = 0;
    leat__cast(element, type, &number, LEAT_FLOAT64, 1);
    leat__cast(&back, LEAT_FLOAT64, element, type, 1);
    return back == number || (back != back && number != number);
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

static void cast_block(char *to, leat_dtype to_type, const char *from,
                       leat_dtype from_type, size_t n)
{
    if (leat__dtype_is_float(from_type)) {
        double value[BLOCK];
        load_floats(value, from, from_type, n);
        store_floats(to, to_type, value, n);
    } else {
        int64_t value[BLOCK];
        load_integers(value, from, from_type, n);
        store_integers(to, to_type, value, n);
    }
}

void leat__cast(void *to, leat_dtype to_type, const void *from,
                leat_dtype from_type, size_t n)
{
    if (from_type == LEAT_INT32 && to_type == LEAT_FLOAT32) {
        int32_to_float32(to, from, n);
        return;
    }
    /* Bytes are what uint8 are. */
    to_type = to_type == LEAT_BYTES ? LEAT_UINT8 : to_type;
    from_type = from_type == LEAT_BYTES ? LEAT_UINT8 : from_type;
    size_t to_size = leat_dtype_size(to_type);
    size_t from_size = leat_dtype_size(from_type);
    if (to_type == from_type) {
        if (n > 0) /* of none there may be no address */
            memcpy(to, from, n * to_size);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK)
        cast_block((char *)to + i * to_size, to_type,
                   (const char *)from + i * from_size, from_type,
                   n - i < BLOCK ? n - i : BLOCK);
}
