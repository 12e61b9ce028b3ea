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
#include "readers/random_distribution.h"

#include <leat/choice.h>
#include <leat/decorators.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Longest text of all arguments but the name's. */
#define ARGUMENTS_SIZE 600

typedef struct random_reader {
    leat_reader reader;
    leat_field_spec spec;
    size_t elements;
    size_t bytes;
    leat__random_distribution distribution;
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

static void make_values(const random_reader *random, leat_position at, char *to)
{
    const leat__random_distribution *distribution = &random->distribution;
    size_t size = leat_dtype_size(random->spec.dtype);
    size_t per_block = leat__random_distribution_block(distribution);
    for (size_t i = 0, block = 0; i < random->elements; i += per_block) {
        uint32_t words[4];
        size_t left = random->elements - i;
        leat_choice(random->seed, at.epoch, at.index, (uint32_t)block++, words);
        leat__random_distribution_make(distribution, words,
                                       left < per_block ? left : per_block,
                                       to + i * size);
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
    int status = LEAT_OK;
    for (; !status && *got < n; *got += !status) {
        const leat_locator *where = &out[*got]->locator;
        const leat_position at = {(int64_t)where->where, where->record};
        status = check_running(random);
        if (!status)
            status = fill(random, at, out[*got]);
    }
    return status;
}

static int random_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    const random_reader *random = (const random_reader *)reader;
    int status = LEAT_OK;
    for (; !status && *got < n; *got += !status) {
        status = check_running(random);
        if (!status)
            status = fill(random, at[*got], out[*got]);
    }
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

static int set_shape(random_reader *random, const leat_args *args)
{
    leat_field_spec *spec = &random->spec;
    const char *text = leat_args_get(args, "shape");
    spec->ndim = leat__shape_parse(text, strlen(text), spec->shape);
    bool is_shape = spec->ndim >= 0;
    for (int i = 0; i < spec->ndim; i++)
        is_shape = is_shape && spec->shape[i] > 0;
    if (!is_shape)
        return leat_error(LEAT_EINVAL,
                          "random: shape: expected up to %d dimensions of 1 or "
                          "more, such as 3x32x32, or scalar, found '%s'",
                          LEAT_MAX_DIMS, text);
    /* Blocks are numbered by 32 bits. */
    if (!leat__shape_bytes(spec->ndim, spec->shape, 1, &random->elements) ||
        random->elements > (size_t)UINT32_MAX ||
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
        status = leat__random_distribution_init(&random->distribution,
                                                random->spec.dtype, open->args);
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
