/* where:FIELD=VALUES, the samples whose scalar fields have certain values. */
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/cast.h"
#include "decorators/decorators.h"
#include "decorators/sample_filter.h"

#include <leat/decorators.h>

#include <math.h>
#include <string.h>

/* The most conditions, and ranges of all of them. */
enum { CONDITIONS_MAX = 64, RANGES_MAX = 1024 };

/* Whole numbers are compared as such: a double has only 53 bits. */
typedef struct number {
    bool is_whole;
    int64_t whole;
    double real;
} number;

/* From `least` to `most`, both included. */
typedef struct range {
    number least, most;
} range;

/* The field has a value in one of its ranges, or, negated, in none. */
typedef struct condition {
    int field;
    bool is_negated;
    int first, n; /* of the ranges of all conditions */
} condition;

typedef struct where_reader {
    leat__sample_filter filter;
    int n, nranges;
    condition condition[CONDITIONS_MAX];
    range range[RANGES_MAX];
} where_reader;

/* A whole number and a double are compared without rounding either: the double
 * may lie between two whole numbers, or beyond all of them. */
static bool is_at_most(const number *a, const number *b)
{
    const double end = 0x1p63;
    if (a->is_whole == b->is_whole)
        return a->is_whole ? a->whole <= b->whole : a->real <= b->real;
    if (a->is_whole)
        return b->real >= end ||
               (b->real >= -end && a->whole <= (int64_t)floor(b->real));
    return a->real < -end ||
           (a->real < end && (int64_t)ceil(a->real) <= b->whole);
}

static bool is_in(const where_reader *where, const condition *condition,
                  const number *value)
{
    const range *ranges = where->range + condition->first;
    for (int i = 0; i < condition->n; i++) {
        if (is_at_most(&ranges[i].least, value) &&
            is_at_most(value, &ranges[i].most))
            return true;
    }
    return false;
}

/* The one element of the field. */
static int read_value(const leat_field *field, const char *name, number *out)
{
    size_t count;
    int status = leat__field_count(field, &count);
    if (!status && field->dtype == LEAT_BYTES)
        status = leat_error(LEAT_EDATA, "it is of bytes, expected a number");
    else if (!status && count != 1)
        status =
            leat_error(LEAT_EDATA, "it has %zu elements, expected one", count);
    if (status)
        return leat__error_context(status, "field \"%s\"", name);
    leat__cast(&out->real, LEAT_FLOAT64, field->data, field->dtype, 1);
    out->is_whole = !leat__dtype_is_float(field->dtype);
    if (out->is_whole)
        leat__cast(&out->whole, LEAT_INT64, field->data, field->dtype, 1);
    return LEAT_OK;
}

static int where_test(leat__sample_filter *filter, leat_sample *sample,
                      int first, bool *keeps)
{
    const where_reader *where = (const where_reader *)filter;
    *keeps = true;
    for (int i = 0; i < where->n && *keeps; i++) {
        const condition *condition = &where->condition[i];
        number value;
        int status = read_value(&sample->field[first + condition->field],
                                filter->given[condition->field].name, &value);
        if (status)
            return status;
        *keeps = is_in(where, condition, &value) != condition->is_negated;
    }
    return LEAT_OK;
}

static const leat__filter_kind where_kind = {.name = "where",
                                             .test = where_test};

static bool parse_number(number *out, const char *text, size_t size)
{
    if (!leat__decimal_double(text, size, &out->real) || isnan(out->real))
        return false;
    out->is_whole = leat__decimal_integer(text, size, &out->whole);
    return true;
}

/* "3", "0..4", "..4" or "5.."; `size` letters. */
static bool parse_range(range *out, const char *text, size_t size)
{
    const char *dots = NULL;
    for (size_t i = 0; i + 1 < size && !dots; i++)
        dots = text[i] == '.' && text[i + 1] == '.' ? text + i : NULL;
    if (!dots) {
        bool is_number = parse_number(&out->least, text, size);
        out->most = out->least;
        return is_number;
    }
    const char *end = text + size;
    size_t before = (size_t)(dots - text), after = (size_t)(end - dots - 2);
    out->least = (number){.real = -(double)INFINITY};
    out->most = (number){.real = (double)INFINITY};
    return before + after > 0 &&
           (before == 0 || parse_number(&out->least, text, before)) &&
           (after == 0 || parse_number(&out->most, dots + 2, after)) &&
           is_at_most(&out->least, &out->most);
}

static int bad_values(const char *text)
{
    return leat_error(LEAT_EINVAL,
                      "'%s': expected a number, a range such as 0..4, 5.. or "
                      "..4, or several such as (1,3,7..9), with ! before it "
                      "for all others",
                      text);
}

/* "0..4", "(1,3,7..9)", "!3" */
static int parse_values(where_reader *where, condition *to, const char *text)
{
    const char *at = text;
    to->is_negated = *at == '!';
    at += to->is_negated;
    at += strspn(at, " \t");
    size_t size = strlen(at);
    bool is_group = size >= 2 && at[0] == '(' && at[size - 1] == ')';
    const char *end = at + size - is_group;
    at += is_group;
    to->first = where->nranges;
    for (;;) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, ", \t)");
        if (where->nranges == RANGES_MAX)
            return leat_error(LEAT_EINVAL, "more than %d ranges", RANGES_MAX);
        if (!parse_range(&where->range[where->nranges], at, length))
            return bad_values(text);
        where->nranges++;
        to->n++;
        at += length + strspn(at + length, " \t");
        if (at == end)
            return LEAT_OK;
        if (*at++ != ',' || !is_group)
            return bad_values(text);
    }
}

static int check_field(const leat_field_spec *spec)
{
    if (spec->varies)
        return LEAT_OK;
    if (spec->dtype == LEAT_BYTES)
        return leat_error(LEAT_EINVAL,
                          "field \"%s\" is of bytes: expected numbers",
                          spec->name);
    int64_t count = leat__field_spec_count(spec);
    if (count == 1 || count < 0)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "field \"%s\" has %lld elements: expected a scalar",
                      spec->name, (long long)count);
}

static int add_condition(where_reader *where, const char *pair)
{
    const leat__sample_filter *filter = &where->filter;
    char name[LEAT__FIELD_NAME_MAX];
    const char *values;
    if (where->n == CONDITIONS_MAX)
        return leat_error(LEAT_EINVAL, "more than %d conditions",
                          CONDITIONS_MAX);
    condition *to = &where->condition[where->n];
    int status = leat__field_split_pair(pair, name, &values);
    if (!status && !values)
        status = leat_error(LEAT_EINVAL, "'%s': expected FIELD=VALUES", pair);
    if (!status)
        status =
            leat__field_find(filter->given, filter->ngiven, name, &to->field);
    if (!status)
        status = check_field(&filter->given[to->field]);
    if (!status)
        status = parse_values(where, to, values);
    where->n += !status;
    return status;
}

static int where_open(const leat_open *open, leat_reader **out)
{
    const char *pair;
    leat__sample_filter *filter;
    int status = leat__sample_filter_new(&filter, open, &where_kind,
                                         sizeof(where_reader));
    if (status)
        return status;
    for (int i = 0; !status && filter->ngiven > 0 &&
                    (pair = leat_args_at(open->args, i)) != NULL;
         i++)
        status = add_condition((where_reader *)filter, pair);
    return leat__sample_filter_opened(filter, status, out);
}

static const leat_argument where_arguments[] = {
    {.name = "condition",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "FIELD=VALUES of a scalar field, such as label=0..4, label=(1,7) "
             "or label=!3; all have to hold"},
    {0},
};

const leat_reader_type leat__where_type = {
    .size = sizeof(leat_reader_type),
    .name = "where",
    .help = "the samples whose fields have certain values",
    .arguments = where_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = where_open,
};

int leat_pipeline_where(leat_pipeline **out, leat_pipeline *upstream,
                        const char *conditions)
{
    if (!conditions)
        return leat_error(LEAT_EINVAL, "where: the conditions are NULL");
    return leat_pipeline_create(out, &leat__where_type, conditions, NULL, NULL,
                                &upstream, 1);
}
