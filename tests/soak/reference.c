#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extent reference_batch(const rules *rules, int64_t place)
{
    int64_t all = rules->batch_size * rules->step;
    int64_t left = rules->count - place % rules->count;
    extent batch = {place, place + all};
    if (rules->single_pass && place >= rules->count)
        return (extent){place, place};
    if (rules->epoch_end == ENDS_WRAP && !rules->single_pass)
        return batch;
    if (left >= all)
        return batch;
    if (rules->epoch_end != ENDS_DROP)
        return (extent){place, place + left};
    place += left;
    return (extent){place, rules->single_pass ? place : place + all};
}

int64_t reference_position(const rules *rules, int64_t place, int64_t i)
{
    int64_t first = place;
    while (first % rules->step != rules->rank % rules->step)
        first++;
    return first + i * rules->step;
}

/* The Mersenne twister as Matsumoto and Nishimura define it: a recurrence. */
static uint32_t *twister(uint32_t seed, int64_t n)
{
    int64_t length = n + 624;
    uint32_t *x = malloc((size_t)length * sizeof(*x));
    if (!x)
        abort();
    x[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        x[i] = 1812433253U * (x[i - 1] ^ x[i - 1] >> 30) + i;
    for (int64_t k = 624; k < length; k++) {
        uint32_t y = (x[k - 624] & 0x80000000U) | (x[k - 623] & 0x7fffffffU);
        x[k] = x[k - 227] ^ y >> 1;
        if (y % 2 == 1)
            x[k] ^= 0x9908b0dfU;
    }
    for (int64_t k = 0; k < n; k++) {
        uint32_t y = x[k + 624];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680U;
        y ^= y << 15 & 0xefc60000U;
        x[k] = y ^ y >> 18;
    }
    return x;
}

static int draws_each(const rules *rules)
{
    int n = 0;
    if (rules->mirror)
        n++;
    if (rules->crop && rules->is_train)
        n += 2;
    return n;
}

draws reference_draws(const rules *rules, int64_t end)
{
    draws draws = {NULL, 0};
    int each = draws_each(rules);
    if (!rules->is_caffe_rng || each == 0)
        return draws;
    /* The second word of the parent seeds the transformer's generator. */
    uint32_t *parent =
        twister((uint32_t)rules->seed + (uint32_t)rules->rank, 2);
    draws.n = (end / rules->step + 1) * each;
    draws.word = twister(parent[1], draws.n);
    free(parent);
    return draws;
}

/* Philox4x32-10, from the paper's description. */
static void philox(const uint32_t counter[4], const uint32_t key[2],
                   uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c[0] * 0xD2511F53U;
        uint64_t p1 = (uint64_t)c[2] * 0xCD9E8D57U;
        uint32_t next[4] = {
            (uint32_t)(p1 >> 32) ^ c[1] ^ (key[0] + round * 0x9E3779B9U),
            (uint32_t)p1,
            (uint32_t)(p0 >> 32) ^ c[3] ^ (key[1] + round * 0xBB67AE85U),
            (uint32_t)p0};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

/* Whether the record there may replace a later one. */
static int is_at_hand(const rules *rules, int64_t position)
{
    int64_t all = rules->batch_size * rules->step;
    return rules->epoch_end != ENDS_DROP || rules->reads_back ||
           position % rules->count < rules->count / all * all;
}

int64_t reference_record(const rules *rules, int64_t position)
{
    const record *own = &rules->records[position % rules->count];
    if (!own->is_bad)
        return position % rules->count;
    if (rules->policy == BAD_ZEROS)
        return -1;
    for (int64_t p = position; p >= 0; p--) {
        if (!rules->records[p % rules->count].is_bad && is_at_hand(rules, p))
            return p % rules->count;
    }
    return -1;
}

typedef struct choice {
    int mirror;
    int row;
    int column;
} choice;

static choice choose_as_caffe(const rules *rules, const uint32_t *word,
                              const record *record)
{
    choice choice = {0, 0, 0};
    if (rules->mirror)
        choice.mirror = *word++ % 2 == 1;
    if (rules->crop && rules->is_train) {
        choice.row =
            (int)(word[0] % (uint32_t)(record->height - rules->crop + 1));
        choice.column =
            (int)(word[1] % (uint32_t)(record->width - rules->crop + 1));
    }
    return choice;
}

/* A word as a fraction of 2^32, times n. */
static int scaled(uint32_t word, int n)
{
    return (int)((uint64_t)word * (uint64_t)n / 4294967296U);
}

static choice choose(const rules *rules, const draws *draws, int64_t position,
                     const record *record)
{
    choice choice = {0, 0, 0};
    int each = draws_each(rules);
    if (each > 0 && rules->is_caffe_rng) {
        choice = choose_as_caffe(
            rules, draws->word + position / rules->step * each, record);
    } else if (each > 0) {
        uint64_t index = (uint64_t)(position % rules->count);
        uint64_t epoch = (uint64_t)(position / rules->count);
        uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0,
                               (uint32_t)epoch};
        uint32_t key[2] = {(uint32_t)rules->seed,
                           (uint32_t)(rules->seed >> 32)};
        uint32_t word[4];
        philox(counter, key, word);
        choice.mirror = rules->mirror && scaled(word[0], 2);
        if (rules->crop && rules->is_train) {
            choice.row = scaled(word[1], record->height - rules->crop + 1);
            choice.column = scaled(word[2], record->width - rules->crop + 1);
        }
    }
    if (rules->crop && !rules->is_train) {
        choice.row = (record->height - rules->crop) / 2;
        choice.column = (record->width - rules->crop) / 2;
    }
    return choice;
}

/*
 * The nearest number of so many bits after the leading one, and of no smaller
 * exponent; ties go to the even one.
 */
static double nearest(double x, int bits, int least, double infinite_from)
{
    if (x == 0 || isinf(x))
        return x;
    int exponent = ilogb(x);
    double step = ldexp(1, (exponent < least ? least : exponent) - bits);
    double rounded = nearbyint(x / step) * step;
    return fabs(rounded) >= infinite_from ? copysign(INFINITY, x) : rounded;
}

static double round_to(top_kind kind, double x)
{
    switch (kind) {
    case TOP_HALF:
        return nearest(x, 10, -14, 65536);
    case TOP_BFLOAT:
        return nearest(x, 7, -126, ldexp(1, 128));
    case TOP_FLOAT:
        return (double)(float)x;
    default:
        return x;
    }
}

/* A whole number in a top of labels. */
static double round_whole(top_kind kind, int32_t value)
{
    if (kind == TOP_UINT8)
        return value < 0 ? 0 : value > 255 ? 255 : value;
    return round_to(kind, value);
}

/* One element: the mean is taken off, then it is scaled; each rounds. */
static double transform(const rules *rules, const record *record, int c, int h,
                        int w)
{
    int at = (c * record->height + h) * record->width + w;
    double x = record->pixels ? record->pixels[at] : record->values[at];
    double mean = 0;
    if (rules->mean_image)
        mean = rules->mean_image[at];
    else if (rules->mean_values > 0)
        mean = rules->mean_value[rules->mean_values > 1 ? c : 0];
    if (rules->top == TOP_UINT8)
        return x;
    if (rules->top == TOP_DOUBLE)
        return (x - mean) * (double)rules->scale;
    volatile float centred = (float)x - (float)mean;
    volatile float scaled_value = centred * rules->scale;
    return round_to(rules->top, (double)scaled_value);
}

void reference_pixels(const rules *rules, const draws *draws, int64_t position,
                      double *pixels)
{
    const record *shape = &rules->records[0];
    int height = rules->crop ? rules->crop : shape->height;
    int width = rules->crop ? rules->crop : shape->width;
    int channels = shape->channels;
    int64_t i = reference_record(rules, position);
    const record *record = i < 0 ? NULL : &rules->records[i];
    choice choice = {0, 0, 0};
    if (record)
        choice = choose(rules, draws, position, record);
    for (int c = 0; c < channels; c++)
        for (int h = 0; h < height; h++)
            for (int w = 0; w < width; w++) {
                int to_w = choice.mirror ? width - 1 - w : w;
                int to = rules->is_nhwc ? (h * width + to_w) * channels + c
                                        : (c * height + h) * width + to_w;
                pixels[to] = record
                                 ? transform(rules, record, c, h + choice.row,
                                             w + choice.column)
                                 : 0;
            }
}

void reference_labels(const rules *rules, int64_t position, double label[3])
{
    int64_t i = reference_record(rules, position);
    const record *record = i < 0 ? NULL : &rules->records[i];
    label[0] = record ? round_whole(rules->label, record->label) : 0;
    for (int k = 0; k < 2; k++)
        label[1 + k] = record ? round_whole(rules->label, record->more[k]) : 0;
}

static double load_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double x = exponent == 31  ? INFINITY
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -x : x;
}

static double load_bfloat(uint16_t bits)
{
    uint32_t whole = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &whole, sizeof(x));
    return (double)x;
}

double reference_load(const void *data, top_kind kind, int64_t i)
{
    switch (kind) {
    case TOP_UINT8:
        return ((const unsigned char *)data)[i];
    case TOP_FLOAT:
        return (double)((const float *)data)[i];
    case TOP_DOUBLE:
        return ((const double *)data)[i];
    case TOP_HALF:
        return load_half(((const uint16_t *)data)[i]);
    case TOP_BFLOAT:
        return load_bfloat(((const uint16_t *)data)[i]);
    case TOP_INT32:
        return ((const int32_t *)data)[i];
    default:
        return (double)((const int64_t *)data)[i];
    }
}
