#include "readers/random_distribution.h"
#include "base/decimal.h"
#include "base/error.h"
#include "data/cast.h"

#include <leat/choice.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Where a normal distribution by 53 bits ends, in deviations. */
#define NORMAL_END 8.6

/* In [0, 1), of as many bits as a float has: none is rounded to 1. */
static double unit(int bits, const uint32_t words[2])
{
    uint64_t word = (uint64_t)words[0] << 32 | words[1];
    return ldexp((double)(word >> (64 - bits)), -bits);
}

/* Two words each: the two halves of a block. */
static void make_floats(const leat__random_distribution *random,
                        const uint32_t words[4], double out[2])
{
    double u = unit(random->bits, words), v = unit(random->bits, words + 2);
    if (random->kind == LEAT_DISTRIBUTION_UNIFORM) {
        out[0] = random->low + (random->high - random->low) * u;
        out[1] = random->low + (random->high - random->low) * v;
        return;
    }
    /* Box and Muller's method; 1 - u is not 0. */
    double radius = random->high * sqrt(-2 * log(1 - u));
    double angle = 6.283185307179586 * v;
    out[0] = random->low + radius * cos(angle);
    out[1] = random->low + radius * sin(angle);
}

static void make_integers(const leat__random_distribution *random,
                          const uint32_t words[4], int64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        uint64_t choice = random->range == 0
                              ? (uint64_t)words[2 * i] << 32 | words[2 * i + 1]
                              : leat_choice_below(words + 2 * i, random->range);
        out[i] = (int64_t)((uint64_t)(int64_t)random->low + choice);
    }
}

/* Bytes of which all values are equally likely need no arithmetic. */
static bool is_raw(const leat__random_distribution *random)
{
    return leat_dtype_size(random->dtype) == 1 && random->range == 256;
}

size_t leat__random_distribution_block(const leat__random_distribution *random)
{
    return is_raw(random) ? 16 : 2;
}

void leat__random_distribution_make(const leat__random_distribution *random,
                                    const uint32_t words[4], size_t n, char *to)
{
    double floats[2];
    int64_t integers[2];
    if (is_raw(random)) {
        memcpy(to, words, n);
    } else if (!leat__dtype_is_float(random->dtype) &&
               random->kind == LEAT_DISTRIBUTION_UNIFORM) {
        make_integers(random, words, integers);
        leat__cast(to, random->dtype, integers, LEAT_INT64, n);
    } else {
        make_floats(random, words, floats);
        leat__cast(to, random->dtype, floats, LEAT_FLOAT64, n);
    }
}

/* The least value of an integer type, and how many there are; 0: 2^64. */
static uint64_t range_of(leat_dtype dtype, double *least)
{
    unsigned bits = 8 * (unsigned)leat_dtype_size(dtype);
    bool is_signed = dtype == LEAT_INT8 || dtype == LEAT_INT16 ||
                     dtype == LEAT_INT32 || dtype == LEAT_INT64;
    *least = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    return bits < 64 ? (uint64_t)1 << bits : 0;
}

static int read_number(const leat_args *args, const char *name, double initial,
                       double *out)
{
    const char *text = leat_args_get(args, name);
    *out = initial;
    if (!text ||
        (leat__decimal_double(text, strlen(text), out) && isfinite(*out)))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "random: %s: expected a number, found '%s'",
                      name, text);
}

/* Integers have whole bounds that their type holds. */
static int set_integers(leat__random_distribution *random, double least,
                        uint64_t range)
{
    double end = range ? least + (double)range : 0x1p63;
    if (floor(random->low) != random->low ||
        floor(random->high) != random->high || random->low < least ||
        random->high > end || random->low >= random->high)
        return leat_error(LEAT_EINVAL,
                          "random: low %g, high %g: expected whole numbers "
                          "from %g to %g, low below high",
                          random->low, random->high, least, end);
    /* Exact, as doubles of whole numbers are multiples of ever larger powers of
       2; what is 2^64 becomes 0. */
    double distance = random->high - random->low;
    random->range = distance < 0x1p64 ? (uint64_t)distance : 0;
    return LEAT_OK;
}

/* The greatest number of a float type. */
static double greatest(leat_dtype dtype)
{
    if (dtype == LEAT_FLOAT16)
        return 65504;
    if (dtype == LEAT_BFLOAT16)
        return 0x1.fep127;
    return dtype == LEAT_FLOAT32 ? FLT_MAX : DBL_MAX;
}

/* None may become infinite. */
static int check_floats(const leat__random_distribution *random)
{
    double most = greatest(random->dtype), low = random->low,
           high = random->high;
    bool is_uniform = random->kind == LEAT_DISTRIBUTION_UNIFORM;
    const char *type = leat_dtype_name(random->dtype);
    if (is_uniform && low > high)
        return leat_error(LEAT_EINVAL,
                          "random: low %g, high %g: expected low to high", low,
                          high);
    if (is_uniform &&
        (fabs(low) > most || fabs(high) > most || high - low > DBL_MAX))
        return leat_error(LEAT_EINVAL,
                          "random: low %g, high %g: expected numbers of %s, "
                          "which ends at %g, and at most %g apart",
                          low, high, type, most, DBL_MAX);
    if (!is_uniform && high < 0)
        return leat_error(LEAT_EINVAL,
                          "random: deviation %g: expected 0 or more", high);
    if (!is_uniform && fabs(low) + NORMAL_END * high > most)
        return leat_error(LEAT_EINVAL,
                          "random: mean %g, deviation %g: expected at most %g, "
                          "where %s ends, within %g deviations",
                          low, high, most, type, NORMAL_END);
    return LEAT_OK;
}

static int set_uniform(leat__random_distribution *random, const leat_args *args)
{
    leat_dtype dtype = random->dtype;
    bool is_float = leat__dtype_is_float(dtype);
    double least = 0;
    uint64_t range = range_of(dtype, &least);
    double end = range ? least + (double)range : 0x1p63;
    int status = read_number(args, "low", is_float ? 0 : least, &random->low);
    if (!status)
        status = read_number(args, "high", is_float ? 1 : end, &random->high);
    if (status)
        return status;
    return is_float ? check_floats(random) : set_integers(random, least, range);
}

/* Of the mantissas of floats. */
static int bits_of(leat_dtype dtype, leat_distribution distribution)
{
    bool is_uniform = distribution == LEAT_DISTRIBUTION_UNIFORM;
    if (is_uniform && dtype == LEAT_FLOAT16)
        return 11;
    if (is_uniform && dtype == LEAT_BFLOAT16)
        return 8;
    return is_uniform && dtype == LEAT_FLOAT32 ? 24 : 53;
}

int leat__random_distribution_init(leat__random_distribution *random,
                                   leat_dtype dtype, const leat_args *args)
{
    random->dtype = dtype;
    random->kind = (leat_distribution)leat_args_number(args, "distribution");
    random->bits = bits_of(dtype, random->kind);
    if (random->kind == LEAT_DISTRIBUTION_UNIFORM)
        return set_uniform(random, args);
    int status = read_number(args, "mean", 0, &random->low);
    if (!status)
        status = read_number(args, "deviation", 1, &random->high);
    return status ? status : check_floats(random);
}
