/*
 * transform_rows_body.h: the kernels of one instruction set, in vectors that
 * gcc and clang know without naming instructions. The including file defines
 * ROW_KERNELS, the table's name, ROW_NAME, its text, ROW_LANES, the floats in a
 * vector, ROW_HAS_BYTE_SHUFFLE and how bytes become ROW_LANES floats or half as
 * many doubles (with a byte shuffle, out of a register too); the build gives it
 * the set's flags.
 *
 * No mean is a mean of 0 and no scale a scale of 1: x - 0 and x * 1 are x for
 * every x, and stores are what the time goes to. The rest of a row is done by
 * a last vector that overlaps the one before it.
 */
#include "device/transform_rows.h"

#include <stdint.h>

/* Floats of a Datum lie at any address. */
typedef float __attribute__((aligned(1), may_alias)) loose_float;

#define ROW_INLINE static inline __attribute__((always_inline))

#define REVERSED_2 1, 0
#define REVERSED_4 3, 2, REVERSED_2
#define REVERSED_8 7, 6, 5, 4, REVERSED_4
#define REVERSED_16 15, 14, 13, 12, 11, 10, 9, 8, REVERSED_8
#define REVERSED_32                                                            \
    31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, REVERSED_16

#if defined(__clang__)
#define SHUFFLE(Mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(Mask, a, b, ...) __builtin_shuffle(a, b, (Mask){__VA_ARGS__})
#endif

#if ROW_LANES == 16
#define REVERSE_FLOATS(x) SHUFFLE(float_ints, x, x, REVERSED_16)
#define REVERSE_DOUBLES(x) SHUFFLE(double_longs, x, x, REVERSED_8)
#elif ROW_LANES == 8
#define REVERSE_FLOATS(x) SHUFFLE(float_ints, x, x, REVERSED_8)
#define REVERSE_DOUBLES(x) SHUFFLE(double_longs, x, x, REVERSED_4)
#else
#define REVERSE_FLOATS(x) SHUFFLE(float_ints, x, x, REVERSED_4)
#define REVERSE_DOUBLES(x) SHUFFLE(double_longs, x, x, REVERSED_2)
#endif

/* As many elements of other types as a vector has floats, or doubles. */
#define VECTOR(Type, lanes)                                                    \
    Type __attribute__((vector_size((lanes) * sizeof(Type))))
#define DOUBLE_LANES (ROW_LANES / 2)
typedef VECTOR(float, ROW_LANES) float_vector;
typedef VECTOR(int32_t, ROW_LANES) float_ints;
typedef VECTOR(double, DOUBLE_LANES) double_vector;
typedef VECTOR(int64_t, DOUBLE_LANES) double_longs;
typedef VECTOR(float, DOUBLE_LANES) double_floats;
typedef VECTOR(unsigned char, 16) byte_vector;
/*
 * Wider than 32, bytes are no longer reversed in two instructions, and copies
 * are slower: rows are not aligned, so all of them would cross cache lines.
 */
#if ROW_LANES == 4
typedef VECTOR(unsigned char, 16) copy_vector;
#define REVERSE_BYTES(x) SHUFFLE(copy_vector, x, x, REVERSED_16)
#else
typedef VECTOR(unsigned char, 32) copy_vector;
#define REVERSE_BYTES(x) SHUFFLE(copy_vector, x, x, REVERSED_32)
#endif

#define LOAD(name, Vector, Source)                                             \
    ROW_INLINE Vector name(const Source *source)                               \
    {                                                                          \
        Vector x;                                                              \
        memcpy(&x, source, sizeof(x));                                         \
        return x;                                                              \
    }

LOAD(load_byte_vector, byte_vector, unsigned char)
LOAD(load_copy_vector, copy_vector, unsigned char)
LOAD(load_loose_vector, float_vector, loose_float)
LOAD(load_double_floats, double_floats, loose_float)
LOAD(load_float_vector, float_vector, float)
LOAD(load_double_vector, double_vector, double)

#ifdef ROW_WIDENS_WORDS
typedef VECTOR(uint16_t, 8) short_vector;

ROW_INLINE uint32_t load_word(const unsigned char *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

ROW_INLINE float_vector floats_of_word(uint32_t word)
{
    byte_vector x = (byte_vector)(VECTOR(uint32_t, 4)){word, 0, 0, 0};
    byte_vector zeros = {0};
    short_vector y =
        (short_vector)SHUFFLE(byte_vector, x, zeros, 0, 16, 1, 17, 2, 18, 3, 19,
                              4, 20, 5, 21, 6, 22, 7, 23);
    float_ints z = (float_ints)SHUFFLE(short_vector, y, (short_vector)zeros, 0,
                                       8, 1, 9, 2, 10, 3, 11);
    return __builtin_convertvector(z, float_vector);
}
#endif

/*
 * A vector of source elements, in the top's type. Bytes are widened by the
 * including file: gcc does it one by one.
 */
#define byte_to_float(source) ROW_FLOATS_OF_BYTES(source)
#define byte_to_double(source) ROW_DOUBLES_OF_BYTES(source)
#define float_to_float(source) load_loose_vector(source)
#define float_to_double(source)                                                \
    __builtin_convertvector(load_double_floats(source), double_vector)

#define VALUE(load, place) value
#define IMAGE(load, place) load(mean + (place))
#define ONE(place) mean[place]
#define KEEP(x) x

/*
 * The top is walked forward, whatever the mirror: memory takes stores best in
 * order. What is reversed in a register is the result.
 */
#define CONVERT(name, widen, Source, Top, Vector, load, MEAN, MEAN_ONE,        \
                REVERSE, FROM)                                                 \
    ROW_INLINE void name##_step(const Source *source, const Top *mean,         \
                                Top value, Top scale, Top *top)                \
    {                                                                          \
        (void)mean;                                                            \
        (void)value;                                                           \
        Vector x = (widen(source) - MEAN(load, 0)) * scale;                    \
        x = REVERSE(x);                                                        \
        memcpy(top, &x, sizeof(x));                                            \
    }                                                                          \
    ROW_INLINE void name##_row(const Source *source, const Top *mean,          \
                               Top value, Top scale, size_t width, Top *top)   \
    {                                                                          \
        size_t lanes = sizeof(Vector) / sizeof(Top);                           \
        size_t i = 0;                                                          \
        if (width < lanes) {                                                   \
            for (; i < width; i++)                                             \
                top[i] = ((Top)source[FROM(1)] - MEAN_ONE(FROM(1))) * scale;   \
            return;                                                            \
        }                                                                      \
        for (; i + lanes <= width; i += lanes)                                 \
            name##_step(source + FROM(lanes), mean + FROM(lanes), value,       \
                        scale, top + i);                                       \
        if (i == width)                                                        \
            return;                                                            \
        i = width - lanes;                                                     \
        name##_step(source + FROM(lanes), mean + FROM(lanes), value, scale,    \
                    top + i);                                                  \
    }                                                                          \
    static void name(const leat__row_run *run)                                 \
    {                                                                          \
        const unsigned char *source = run->source;                             \
        const unsigned char *mean = run->mean;                                 \
        unsigned char *top = run->top;                                         \
        Top value = (Top)run->mean_value;                                      \
        Top scale = (Top)run->scale;                                           \
        for (size_t rows = run->rows; rows > 0; rows--) {                      \
            name##_row((const Source *)(const void *)source,                   \
                       (const Top *)(const void *)mean, value, scale,          \
                       run->width, (Top *)(void *)top);                        \
            source += run->source_stride;                                      \
            mean += run->mean_stride;                                          \
            top += run->top_stride;                                            \
        }                                                                      \
    }

#define FORWARD(n) i
#define BACKWARD(n) (width - (n)-i)
#define VALUE_ONE(place) value

#define CONVERT_ALL(widen, Source, Top, Vector, load, REVERSE)                 \
    CONVERT(widen##_value, widen, Source, Top, Vector, load, VALUE, VALUE_ONE, \
            KEEP, FORWARD)                                                     \
    CONVERT(widen##_value_mirror, widen, Source, Top, Vector, load, VALUE,     \
            VALUE_ONE, REVERSE, BACKWARD)                                      \
    CONVERT(widen##_image, widen, Source, Top, Vector, load, IMAGE, ONE, KEEP, \
            FORWARD)                                                           \
    CONVERT(widen##_image_mirror, widen, Source, Top, Vector, load, IMAGE,     \
            ONE, REVERSE, BACKWARD)

CONVERT_ALL(byte_to_float, unsigned char, float, float_vector,
            load_float_vector, REVERSE_FLOATS)
CONVERT_ALL(byte_to_double, unsigned char, double, double_vector,
            load_double_vector, REVERSE_DOUBLES)
CONVERT_ALL(float_to_float, loose_float, float, float_vector, load_float_vector,
            REVERSE_FLOATS)
CONVERT_ALL(float_to_double, loose_float, double, double_vector,
            load_double_vector, REVERSE_DOUBLES)

ROW_INLINE void copy_row(const unsigned char *source, size_t width,
                         unsigned char *top)
{
    size_t lanes = sizeof(copy_vector);
    if (width < lanes) {
        for (size_t i = 0; i < width; i++)
            top[i] = source[i];
        return;
    }
    for (size_t i = 0; i + lanes <= width; i += lanes) {
        copy_vector x = load_copy_vector(source + i);
        memcpy(top + i, &x, lanes);
    }
    copy_vector x = load_copy_vector(source + width - lanes);
    memcpy(top + width - lanes, &x, lanes);
}

ROW_INLINE void mirror_step(const unsigned char *source, unsigned char *top)
{
    copy_vector x = load_copy_vector(source);
    x = REVERSE_BYTES(x);
    memcpy(top, &x, sizeof(x));
}

ROW_INLINE void mirror_row(const unsigned char *source, size_t width,
                           unsigned char *top)
{
    size_t lanes = sizeof(copy_vector);
    if (width < lanes) {
        for (size_t i = 0; i < width; i++)
            top[width - 1 - i] = source[i];
        return;
    }
    for (size_t i = 0; i + lanes <= width; i += lanes)
        mirror_step(source + i, top + width - lanes - i);
    mirror_step(source + width - lanes, top);
}

static void byte_to_byte(const leat__row_run *run)
{
    for (size_t row = 0; row < run->rows; row++)
        copy_row(run->source + row * run->source_stride, run->width,
                 run->top + row * run->top_stride);
}

static void byte_to_byte_mirror(const leat__row_run *run)
{
    for (size_t row = 0; row < run->rows; row++)
        mirror_row(run->source + row * run->source_stride, run->width,
                   run->top + row * run->top_stride);
}

/* Channel c of 16 pixels: byte 3 i + c of the 48 in x, y and z. */
#define CHANNEL_A(x, y, z)                                                     \
    SHUFFLE(byte_vector,                                                       \
            SHUFFLE(byte_vector, x, y, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, \
                    0, 0, 0, 0, 0),                                            \
            z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29)
#define CHANNEL_B(x, y, z)                                                     \
    SHUFFLE(byte_vector,                                                       \
            SHUFFLE(byte_vector, x, y, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28,    \
                    31, 0, 0, 0, 0, 0),                                        \
            z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30)
#define CHANNEL_C(x, y, z)                                                     \
    SHUFFLE(byte_vector,                                                       \
            SHUFFLE(byte_vector, x, y, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, \
                    0, 0, 0, 0, 0),                                            \
            z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31)

ROW_INLINE void split_step(const unsigned char *pixels, unsigned char *a,
                           unsigned char *b, unsigned char *c)
{
    byte_vector x = load_byte_vector(pixels);
    byte_vector y = load_byte_vector(pixels + 16);
    byte_vector z = load_byte_vector(pixels + 32);
    byte_vector channel = CHANNEL_A(x, y, z);
    memcpy(a, &channel, sizeof(channel));
    channel = CHANNEL_B(x, y, z);
    memcpy(b, &channel, sizeof(channel));
    channel = CHANNEL_C(x, y, z);
    memcpy(c, &channel, sizeof(channel));
}

static void split_bytes(const void *pixels, void *planes, size_t stride,
                        size_t n)
{
    const unsigned char *source = pixels;
    unsigned char *a = planes;
    unsigned char *b = a + stride;
    unsigned char *c = b + stride;
    size_t i = 0;
    if (n < 16 || !ROW_HAS_BYTE_SHUFFLE) {
        for (; i < n; i++) {
            a[i] = source[3 * i];
            b[i] = source[3 * i + 1];
            c[i] = source[3 * i + 2];
        }
        return;
    }
    for (; i + 16 <= n; i += 16)
        split_step(source + 3 * i, a + i, b + i, c + i);
    i = n - 16;
    split_step(source + 3 * i, a + i, b + i, c + i);
}

#if ROW_HAS_BYTE_SHUFFLE
#define OTHER_HALF(x)                                                          \
    SHUFFLE(byte_vector, x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, \
            6, 7)

/*
 * Pixels to planes without a stop in memory: what the split would have stored
 * is read back at once, and waits for all the stores to the top before it.
 * A step is 16 pixels, a channel of them a vector of floats, or two.
 */
#define SPREAD(name, MEAN, REVERSE, FROM, TO)                                  \
    ROW_INLINE void name##_channel(byte_vector bytes, const float *mean,       \
                                   float value, float scale, float *top)       \
    {                                                                          \
        (void)mean;                                                            \
        (void)value;                                                           \
        for (size_t i = 0; i < 16; i += ROW_LANES) {                           \
            float_vector x = ROW_FLOATS_OF_VECTOR(bytes);                      \
            x = (x - MEAN(load_float_vector, i)) * scale;                      \
            x = REVERSE(x);                                                    \
            memcpy(top + TO(i), &x, sizeof(x));                                \
            bytes = OTHER_HALF(bytes);                                         \
        }                                                                      \
    }                                                                          \
    ROW_INLINE void name##_step(const leat__row_run run[3], size_t row,        \
                                size_t from, size_t i)                         \
    {                                                                          \
        const unsigned char *pixels =                                          \
            run->source + row * run->source_stride + 3 * from;                 \
        byte_vector x = load_byte_vector(pixels);                              \
        byte_vector y = load_byte_vector(pixels + 16);                         \
        byte_vector z = load_byte_vector(pixels + 32);                         \
        byte_vector channels[] = {CHANNEL_A(x, y, z), CHANNEL_B(x, y, z),      \
                                  CHANNEL_C(x, y, z)};                         \
        for (size_t c = 0; c < 3; c++) {                                       \
            const unsigned char *mean = run[c].mean + row * run->mean_stride;  \
            unsigned char *top = run[c].top + row * run->top_stride;           \
            name##_channel(channels[c],                                        \
                           (const float *)(const void *)mean + from,           \
                           (float)run[c].mean_value, (float)run->scale,        \
                           (float *)(void *)top + i);                          \
        }                                                                      \
    }                                                                          \
    static void name(const leat__row_run *given)                               \
    {                                                                          \
        /* In a copy no store to the top can change anything. */               \
        const leat__row_run run[3] = {given[0], given[1], given[2]};           \
        size_t width = run->width;                                             \
        for (size_t row = 0; row < run->rows; row++) {                         \
            size_t i = 0;                                                      \
            for (; i + 16 <= width; i += 16)                                   \
                name##_step(run, row, FROM(16), i);                            \
            if (i == width)                                                    \
                continue;                                                      \
            i = width - 16;                                                    \
            name##_step(run, row, FROM(16), i);                                \
        }                                                                      \
    }

#define IN_ORDER(i) (i)
#define IN_REVERSE(i) (16 - ROW_LANES - (i))

SPREAD(spread_value, VALUE, KEEP, FORWARD, IN_ORDER)
SPREAD(spread_value_mirror, VALUE, REVERSE_FLOATS, BACKWARD, IN_REVERSE)
SPREAD(spread_image, IMAGE, KEEP, FORWARD, IN_ORDER)
SPREAD(spread_image_mirror, IMAGE, REVERSE_FLOATS, BACKWARD, IN_REVERSE)
#endif

#define SPLIT(name, Source, Plane)                                             \
    ROW_INLINE void name##_row(const Source *restrict pixels,                  \
                               Plane *restrict a, Plane *restrict b,           \
                               Plane *restrict c, size_t n)                    \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            a[i] = pixels[3 * i];                                              \
            b[i] = pixels[3 * i + 1];                                          \
            c[i] = pixels[3 * i + 2];                                          \
        }                                                                      \
    }                                                                          \
    static void name(const void *pixels, void *planes, size_t stride,          \
                     size_t n)                                                 \
    {                                                                          \
        Plane *a = planes;                                                     \
        name##_row(pixels, a, a + stride, a + 2 * stride, n);                  \
    }

#define JOIN(name, Top)                                                        \
    ROW_INLINE void name##_row(const Top *restrict a, const Top *restrict b,   \
                               const Top *restrict c, Top *restrict pixels,    \
                               size_t n)                                       \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            pixels[3 * i] = a[i];                                              \
            pixels[3 * i + 1] = b[i];                                          \
            pixels[3 * i + 2] = c[i];                                          \
        }                                                                      \
    }                                                                          \
    static void name(const void *planes, size_t stride, void *pixels,          \
                     size_t n)                                                 \
    {                                                                          \
        const Top *a = planes;                                                 \
        name##_row(a, a + stride, a + 2 * stride, pixels, n);                  \
    }

SPLIT(split_floats, loose_float, float)
JOIN(join_bytes, unsigned char)
JOIN(join_floats, float)
JOIN(join_doubles, double)

#define ROW_FUNCTIONS(name)                                                    \
    {                                                                          \
        {name##_value, name##_value_mirror},                                   \
        {                                                                      \
            name##_image, name##_image_mirror                                  \
        }                                                                      \
    }

const leat__row_kernels ROW_KERNELS = {
    .name = ROW_NAME,
    .convert =
        {
            [LEAT__ROW_UINT8] = {{{byte_to_byte, byte_to_byte_mirror}},
                                 ROW_FUNCTIONS(byte_to_float),
                                 ROW_FUNCTIONS(byte_to_double)},
            [LEAT__ROW_FLOAT32] = {{{NULL}},
                                   ROW_FUNCTIONS(float_to_float),
                                   ROW_FUNCTIONS(float_to_double)},
        },
#if ROW_HAS_BYTE_SHUFFLE
    .spread = ROW_FUNCTIONS(spread),
#endif
    .split = {split_bytes, split_floats},
    .join = {join_bytes, join_floats, join_doubles},
};
