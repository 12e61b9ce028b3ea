/*
 * random:N, samples of random numbers. Each is a function of the seed, the
 * epoch and its position: block b of its elements is made of the words of
 * operation b there (leat_choice). next leaves the work to materialize.
 */
#include "readers/random_data.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/shape.h"
#include "data/cast.h"

#include <leat/choice.h>
#include <leat/decorators.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Elements of one block: one word each, or two. */
#define BLOCK 4

/* Longest text of all arguments but the name's. */
#define ARGUMENTS_SIZE 600

typedef struct random_reader {
    leat_reader reader;
    leat_field_spec spec;
    size_t elements;
    size_t bytes;
    leat_distribution distribution;
    double low, high; /* of UNIFORM; or mean and deviation */
    int bits;         /* of a choice of a float */
    uint64_t range;   /* of UNIFORM integers, from `low` on; 0: 2^64 */
    uint64_t seed;
    int64_t count;
    leat_position next; /* used by one caller at a time */
    atomic_bool cancelled;
} random_reader;

static int random_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    *out = &((random_reader *)reader)->spec;
    *n = 1;
    return LEAT_OK;
}

static int check_running(const random_reader *random)
{
    if (!atomic_load_explicit(&random->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "random: reading was cancelled");
}

/* In [0, 1), of as many bits as a float has: none is rounded to 1. */
static double unit(int bits, const uint32_t words[2])
{
    uint64_t word = (uint64_t)words[0] << 32 | words[1];
    return ldexp((double)(word >> (64 - bits)), -bits);
}

/* Two words each: the two halves of a block. */
static void make_floats(const random_reader *random, const uint32_t words[4],
                        double out[2])
{
    double u = unit(random->bits, words), v = unit(random->bits, words + 2);
    if (random->distribution == LEAT_DISTRIBUTION_UNIFORM) {
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

static void make_integers(const random_reader *random, const uint32_t words[4],
                          int64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        uint64_t choice = random->range == 0
                              ? (uint64_t)words[2 * i] << 32 | words[2 * i + 1]
                              : leat_choice_below(words + 2 * i, random->range);
        out[i] = (int64_t)((uint64_t)(int64_t)random->low + choice);
    }
}

/* Bytes of which all values are equally likely need no arithmetic. */
static bool is_raw(const random_reader *random)
{
    return leat_dtype_size(random->spec.dtype) == 1 && random->range == 256;
}

static void make_values(const random_reader *random, leat_position at, char *to)
{
    size_t size = leat_dtype_size(random->spec.dtype);
    size_t per_block = is_raw(random) ? 16 : 2;
    bool is_integer = !leat__dtype_is_float(random->spec.dtype) &&
                      random->distribution == LEAT_DISTRIBUTION_UNIFORM;
    for (size_t i = 0, block = 0; i < random->elements; i += per_block) {
        uint32_t words[4];
        double floats[2];
        int64_t integers[2];
        size_t left = random->elements - i;
        size_t n = left < per_block ? left : per_block;
        leat_choice(random->seed, at.epoch, at.index, (uint32_t)block++, words);
        if (is_raw(random)) {
            memcpy(to + i, words, n);
        } else if (is_integer) {
            make_integers(random, words, integers);
            leat__cast(to + i * size, random->spec.dtype, integers, LEAT_INT64,
                       n);
        } else {
            make_floats(random, words, floats);
            leat__cast(to + i * size, random->spec.dtype, floats, LEAT_FLOAT64,
                       n);
        }
    }
}

static int fill(const random_reader *random, leat_position at,
                leat_sample *sample)
{
    sample->from.source = "random";
    sample->from.record = at.index;
    void *data = leat_sample_take(sample, random->bytes);
    if (!data)
        return LEAT_ENOMEM;
    sample->stable = 0;
    make_values(random, at, data);
    return leat_sample_set(sample, sample->nfields, random->spec.dtype,
                           random->spec.ndim, random->spec.shape, data);
}

static int random_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    random_reader *random = (random_reader *)reader;
    int status = check_running(random);
    if (status)
        return status;
    for (; *got < n && random->next.index < random->count; ++*got) {
        out[*got]->deferred = 1;
        out[*got]->from.source = "random";
        out[*got]->from.record = random->next.index;
        out[*got]->locator =
            (leat_locator){random->next.index++, (uint64_t)random->next.epoch};
    }
    return *got == n ? LEAT_OK : LEAT_END;
}

static int random_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    const random_reader *random = (const random_reader *)reader;
    int status = check_running(random);
    for (; !status && *got < n; *got += !status) {
        const leat_locator *where = &out[*got]->locator;
        const leat_position at = {(int64_t)where->where, where->record};
        status = fill(random, at, out[*got]);
    }
    return status;
}

static int random_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    const random_reader *random = (const random_reader *)reader;
    int status = check_running(random);
    for (; !status && *got < n; *got += !status)
        status = fill(random, at[*got], out[*got]);
    return status;
}

static int random_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    random_reader *random = (random_reader *)reader;
    int64_t left = random->count - random->next.index;
    int status = check_running(random);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    random->next.index += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int random_count(leat_reader *reader, int64_t *out)
{
    *out = ((random_reader *)reader)->count;
    return LEAT_OK;
}

static int random_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    random_reader *random = (random_reader *)reader;
    (void)mark;
    if (position.index > random->count)
        return leat_error(LEAT_EINVAL,
                          "random: sample %lld is out of range: there are %lld",
                          (long long)position.index, (long long)random->count);
    random->next = position;
    return LEAT_OK;
}

/* Arguments and seed, which the token has anyway, are all there is. */
static int random_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return LEAT_OK;
}

static int random_restore(leat_reader *reader, leat_token *token)
{
    (void)token;
    ((random_reader *)reader)->next = (leat_position){0, 0};
    return LEAT_OK;
}

static void random_cancel(leat_reader *reader)
{
    atomic_store(&((random_reader *)reader)->cancelled, true);
}

static void random_close(leat_reader *reader)
{
    leat__free(reader);
}

static const leat_reader_ops random_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "random",
    .fields = random_fields,
    .next = random_next,
    .seek = random_seek,
    .cancel = random_cancel,
    .close = random_close,
    .materialize = random_materialize,
    .count = random_count,
    .read_at = random_read_at,
    .skip = random_skip,
    .save = random_save,
    .restore = random_restore,
};

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
static int set_integers(random_reader *random, double least, uint64_t range)
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

static int set_uniform(random_reader *random, const leat_args *args)
{
    leat_dtype dtype = random->spec.dtype;
    bool is_float = leat__dtype_is_float(dtype);
    double least = 0;
    uint64_t range = range_of(dtype, &least);
    double end = range ? least + (double)range : 0x1p63;
    int status = read_number(args, "low", is_float ? 0 : least, &random->low);
    if (!status)
        status = read_number(args, "high", is_float ? 1 : end, &random->high);
    if (status || !is_float)
        return status ? status : set_integers(random, least, range);
    if (random->low <= random->high)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "random: low %g, high %g: expected low to high",
                      random->low, random->high);
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

static int set_distribution(random_reader *random, const leat_args *args)
{
    random->distribution =
        (leat_distribution)leat_args_number(args, "distribution");
    random->bits = bits_of(random->spec.dtype, random->distribution);
    if (random->distribution == LEAT_DISTRIBUTION_UNIFORM)
        return set_uniform(random, args);
    int status = read_number(args, "mean", 0, &random->low);
    if (!status)
        status = read_number(args, "deviation", 1, &random->high);
    if (!status && random->high < 0)
        status =
            leat_error(LEAT_EINVAL, "random: deviation %g: expected 0 or more",
                       random->high);
    return status;
}

static int set_shape(random_reader *random, const leat_args *args)
{
    leat_field_spec *spec = &random->spec;
    const char *text = leat_args_get(args, "shape");
    spec->ndim = leat__shape_parse(text, strlen(text), spec->shape);
    if (!leat__shape_bytes(spec->ndim, spec->shape, 1, &random->elements) ||
        random->elements == 0)
        return leat_error(LEAT_EINVAL,
                          "random: shape: expected up to %d dimensions of 1 or "
                          "more, such as 3x32x32, or scalar, found '%s'",
                          LEAT_MAX_DIMS, text);
    /* Blocks are numbered by 32 bits. */
    if (random->elements > (size_t)UINT32_MAX ||
        leat__multiply(random->elements, leat_dtype_size(spec->dtype),
                       &random->bytes))
        return leat_error(LEAT_EINVAL,
                          "random: shape: expected at most %u elements",
                          UINT32_MAX);
    return LEAT_OK;
}

static int set_field(random_reader *random, const leat_args *args)
{
    const char *dtype = leat_args_get(args, "dtype");
    int status = leat_dtype_parse(&random->spec.dtype, dtype);
    if (!status && random->spec.dtype == LEAT_BYTES)
        status = leat_error(LEAT_EINVAL, "expected a type of numbers");
    if (status)
        return leat__error_context(status, "random: dtype");
    random->spec.name = leat_args_get(args, "name");
    return set_shape(random, args);
}

static int random_open(const leat_open *open, leat_reader **out)
{
    random_reader *random = leat__alloc_zero(1, sizeof(*random));
    if (!random)
        return LEAT_ENOMEM;
    random->reader.ops = &random_ops;
    random->count = leat_args_number(open->args, "count");
    if (random->count < 0)
        random->count = LEAT_ENDLESS;
    random->seed = leat_open_seed(open);
    int status = set_field(random, open->args);
    if (!status)
        status = set_distribution(random, open->args);
    if (status) {
        leat__free(random);
        return status;
    }
    *out = &random->reader;
    return LEAT_OK;
}

static const leat_argument random_arguments[] = {
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .initial = "-1",
     .min = -1,
     .max = INT64_MAX,
     .help = "samples of each epoch; -1: without an end"},
    {.name = "shape",
     .initial = "scalar",
     .help = "of a sample, such as 3x32x32"},
    {.name = "dtype", .initial = "float32", .help = "float32, uint8, ..."},
    {.name = "distribution",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "UNIFORM",
     .words = "UNIFORM|NORMAL",
     .help = "numbers equally likely from low to high, or around mean"},
    {.name = "low",
     .help = "the least of UNIFORM; unless given, 0 of floats, of integers "
             "that of the type"},
    {.name = "high",
     .help = "the end of UNIFORM, which is not reached; unless given, 1, or "
             "all that the type has"},
    {.name = "mean", .initial = "0", .help = "of NORMAL"},
    {.name = "deviation", .initial = "1", .help = "the standard one of NORMAL"},
    {.name = "name", .initial = "data", .help = "of the field"},
    {.name = "seed",
     .kind = LEAT_ARGUMENT_NUMBER,
     .min = INT64_MIN,
     .max = INT64_MAX,
     .help = "of the choices; else drawn or the layer's"},
    {0},
};

const leat_reader_type leat__random_type = {
    .size = sizeof(leat_reader_type),
    .name = "random",
    .help = "samples of random numbers",
    .arguments = random_arguments,
    .argument_size = sizeof(leat_argument),
    .open = random_open,
};

int leat_random_options_init(leat_random_options *options)
{
    const leat_random_options defaults = LEAT_RANDOM_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static char *write_number(char *to, const char *name, double number)
{
    char text[LEAT__DECIMAL_TEXT_MAX];
    return to + sprintf(to, ",%s=%s", name, leat__decimal_text(text, number));
}

/* All arguments but the name of the field. */
static char *write_arguments(char *to, int64_t count,
                             const leat_random_options *options)
{
    bool is_normal = options->distribution == LEAT_DISTRIBUTION_NORMAL;
    char shape[LEAT__SHAPE_TEXT_MAX];
    to += sprintf(to, "%lld", (long long)count);
    if (options->ndim)
        to += sprintf(to, ",shape=%s",
                      leat__shape_text(shape, options->ndim, options->shape));
    if (options->dtype != LEAT_BYTES)
        to += sprintf(to, ",dtype=%s", leat_dtype_name(options->dtype));
    if (is_normal)
        to += sprintf(to, ",distribution=NORMAL");
    if (options->has_bounds && !is_normal) {
        to = write_number(to, "low", options->low);
        to = write_number(to, "high", options->high);
    }
    if (options->mean != 0)
        to = write_number(to, "mean", options->mean);
    if (options->deviation != 0)
        to = write_number(to, "deviation", options->deviation);
    if (options->has_seed)
        to += sprintf(to, ",seed=%lld", (long long)options->seed);
    return to;
}

int leat_pipeline_random(leat_pipeline **out, int64_t count,
                         const leat_random_options *options)
{
    leat_random_options values = LEAT_RANDOM_OPTIONS_INIT;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (!status && (values.ndim < 0 || values.ndim > LEAT_MAX_DIMS ||
                    !leat_dtype_size(values.dtype)))
        status = leat_error(LEAT_EINVAL,
                            "random: ndim is %d, dtype %d: expected 0 to %d "
                            "dimensions of a known type",
                            values.ndim, (int)values.dtype, LEAT_MAX_DIMS);
    if (status)
        return status;
    const char *name = values.name ? values.name : "data";
    size_t size = leat_args_escape(name, NULL, 0);
    char *text = leat__alloc(ARGUMENTS_SIZE + size);
    if (!text)
        return LEAT_ENOMEM;
    char *end = write_arguments(text, count, &values);
    if (values.name)
        leat_args_escape(name, end + sprintf(end, ",name="), size);
    status = leat_pipeline_create(out, &leat__random_type, text, NULL, NULL,
                                  NULL, 0);
    leat__free(text);
    return status;
}
