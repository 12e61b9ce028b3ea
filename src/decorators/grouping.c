#include "decorators/grouping.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/shape.h"
#include "data/cast.h"
#include "pipeline/arguments.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a list says of a field: the text after "NAME=", or of all, a bare one;
 * NULL: nothing. */
static const char *find_value(const leat_args *args, const char *list,
                              const char *field, bool *is_named)
{
    int n;
    const char *element = leat__args_elements(args, list, &n), *bare = NULL;
    size_t size = strlen(field);
    *is_named = false;
    for (; n > 0; n--, element += strlen(element) + 1) {
        if (!strchr(element, '='))
            bare = element;
        else if (strncmp(element, field, size) == 0 && element[size] == '=') {
            *is_named = true;
            return element + size + 1;
        }
    }
    return bare;
}

static bool is_listed(const leat_args *args, const char *list,
                      const char *field)
{
    int n;
    const char *element = leat__args_elements(args, list, &n);
    for (; n > 0; n--, element += strlen(element) + 1)
        if (strcmp(element, field) == 0)
            return true;
    return false;
}

/* Whether the list element names field `spec`: up to its equals sign. */
static bool names(const char *element, const char *field)
{
    size_t size = strcspn(element, "=");
    return strlen(field) == size && strncmp(element, field, size) == 0;
}

/* Each element of the lists has to name a field; `needs_value`: "NAME=...". */
static int check_names(const leat__grouping *grouping, const char *list,
                       bool needs_value)
{
    int n;
    const char *element = leat__args_elements(grouping->args, list, &n);
    for (; n > 0; n--, element += strlen(element) + 1) {
        bool is_bare = needs_value && !strchr(element, '=');
        int k = 0;
        while (!is_bare && k < grouping->nin &&
               !names(element, grouping->in[k].name))
            k++;
        if (!is_bare && k == grouping->nin)
            return leat_error(LEAT_EINVAL,
                              "%s: %s: \"%s\" names no field of its samples",
                              grouping->name, list, element);
    }
    return LEAT_OK;
}

/* Whether the text is a whole number that became another one in a double. The
 * greatest int64 does, too, but is what a cast makes of that. */
static bool is_rounded(const char *text, double number)
{
    int64_t whole;
    return leat__decimal_integer(text, strlen(text), &whole) &&
           whole != INT64_MAX && (number >= 0x1p63 || (int64_t)number != whole);
}

static int read_value(const leat__grouping *grouping, const char *field,
                      const char *text, double *out)
{
    char *end = NULL;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return leat_error(LEAT_ENOMEM, "no memory for a locale");
    *out = strtod_l(text, &end, c);
    freelocale(c);
    bool is_number = end != text && *end == 0;
    if (is_number && !is_rounded(text, *out))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: pad: field %s is padded with \"%s\": expected a "
                      "number%s",
                      grouping->name, field, text,
                      is_number ? " that a float64 holds" : "");
}

/* "128", "-1x4". */
static int read_shape(const leat__grouping *grouping, const char *field,
                      const char *text, leat__grouped_field *out)
{
    out->ndim = leat__shape_parse(text, strlen(text), out->shape);
    if (out->ndim > 0 && out->ndim < LEAT_MAX_DIMS)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: pad_to: the shape of field %s is \"%s\": expected "
                      "1 to %d dimensions, as in 128 or -1x4",
                      grouping->name, field, text, LEAT_MAX_DIMS - 1);
}

/* The field that divides the rows of field `i`; -1: none does. */
static int find_divider(const leat__grouping *grouping, int i)
{
    for (int k = 0; k < grouping->nin; k++) {
        const char *of = grouping->in[k].offsets_of;
        if (of && strcmp(of, grouping->in[i].name) == 0)
            return k;
    }
    return -1;
}

static int find_field(const leat__grouping *grouping, const char *name)
{
    for (int i = 0; i < grouping->nin; i++)
        if (strcmp(grouping->in[i].name, name) == 0)
            return i;
    return -1;
}

/* Whether the promised shape leaves something open. */
static bool is_open(const leat_field_spec *spec)
{
    bool open = spec->varies || spec->ndim < 0;
    for (int k = 0; k < spec->ndim && !open; k++)
        open = spec->shape[k] < 0;
    return open;
}

/* Whether the number of dimensions is promised. */
static bool has_ndim(const leat_field_spec *spec)
{
    return !spec->varies && spec->ndim >= 0;
}

static int check_pad(const leat__grouping *grouping,
                     const leat_field_spec *spec,
                     const leat__grouped_field *field)
{
    char text[LEAT__FIELD_TEXT_MAX];
    bool is_any =
        spec->dtype == LEAT_BYTES && spec->content == LEAT_CONTENT_ANY;
    leat__field_text(text, spec->dtype, spec->ndim, spec->shape);
    if (!spec->varies && !is_any && spec->dtype != LEAT_BYTES &&
        !leat__cast_holds(spec->dtype, field->pad_value))
        return leat_error(LEAT_EINVAL,
                          "%s: field %s is %s, which does not hold the "
                          "padding %g",
                          grouping->name, spec->name, text, field->pad_value);
    if (field->ndim < 0 || !has_ndim(spec))
        return LEAT_OK;
    if (field->ndim != spec->ndim)
        return leat_error(LEAT_EINVAL,
                          "%s: field %s is %s, but is padded to %d dimensions",
                          grouping->name, spec->name, text, field->ndim);
    for (int k = 0; k < field->ndim; k++)
        if (field->shape[k] >= 0 && spec->shape[k] > field->shape[k])
            return leat_error(LEAT_EINVAL,
                              "%s: field %s is %s, but dimension %d is padded "
                              "to %lld",
                              grouping->name, spec->name, text, k,
                              (long long)field->shape[k]);
    return LEAT_OK;
}

/* STACK or PAD. */
static int plan_stacked(const leat__grouping *grouping,
                        const leat_field_spec *spec, leat__grouped_field *field)
{
    bool has_value, has_shape;
    const char *value =
        find_value(grouping->args, "pad", spec->name, &has_value);
    const char *shape =
        find_value(grouping->args, "pad_to", spec->name, &has_shape);
    bool pads_open = (value || grouping->pads_all) && is_open(spec);
    bool has_length =
        grouping->length_of && strcmp(grouping->length_of, spec->name) == 0;
    if (!has_value && !shape && !pads_open && !has_length)
        return LEAT_OK;
    field->form = LEAT__GROUPING_PAD;
    int status = LEAT_OK;
    if (value)
        status = read_value(grouping, spec->name, value, &field->pad_value);
    if (shape && !status)
        status = read_shape(grouping, spec->name, shape, field);
    return status ? status : check_pad(grouping, spec, field);
}

static int refuse_ragged(const leat__grouping *grouping,
                         const leat_field_spec *spec)
{
    char text[LEAT__FIELD_TEXT_MAX];
    return leat_error(
        LEAT_EINVAL, "%s: field %s is %s: it has no rows to put end to end",
        grouping->name, spec->name,
        leat__field_text(text, spec->dtype, spec->ndim, spec->shape));
}

/* How a field of the samples comes into the group. */
static int plan_form(const leat__grouping *grouping, int i,
                     leat__grouped_field *field)
{
    const leat_field_spec *spec = &grouping->in[i];
    *field = (leat__grouped_field){.from = i, .of = -1, .ndim = -1};
    if (spec->offsets_of) {
        field->form = LEAT__GROUPING_DIVIDER;
        field->of = find_field(grouping, spec->offsets_of);
        if (field->of >= 0 && spec->dtype == LEAT_INT64 && spec->ndim == 1)
            return LEAT_OK;
        return leat_error(LEAT_EINVAL,
                          "%s: field %s divides %s, which is no field, or is "
                          "not int64 of one dimension",
                          grouping->name, spec->name, spec->offsets_of);
    }
    if (is_listed(grouping->args, "ragged", spec->name) ||
        find_divider(grouping, i) >= 0) {
        field->form = LEAT__GROUPING_ROWS;
        return has_ndim(spec) && spec->ndim == 0 ? refuse_ragged(grouping, spec)
                                                 : LEAT_OK;
    }
    return plan_stacked(grouping, spec, field);
}

/* What the group promises of a field. */
static int describe(const leat__grouping *grouping,
                    const leat__grouped_field *field, leat_field_spec *out)
{
    const leat_field_spec *in = &grouping->in[field->from];
    bool stacks = field->form == LEAT__GROUPING_STACK ||
                  field->form == LEAT__GROUPING_PAD;
    bool has_shape = field->form == LEAT__GROUPING_PAD && field->ndim >= 0;
    *out = *in;
    out->is_batch = true;
    if (out->content == LEAT_CONTENT_IMAGE)
        out->content = LEAT_CONTENT_ANY;
    if (!stacks) {
        out->shape[0] = -1;
        return LEAT_OK;
    }
    int ndim = has_shape ? field->ndim : in->ndim;
    if (ndim >= LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL,
                          "%s: field %s has %d dimensions, and one more would "
                          "be too many",
                          grouping->name, in->name, ndim);
    if (ndim < 0)
        return LEAT_OK;
    out->ndim = ndim + 1;
    out->shape[0] = grouping->samples;
    for (int k = 0; k < ndim; k++) {
        int64_t dim = has_ndim(in) ? in->shape[k] : -1;
        if (has_shape && field->shape[k] >= 0)
            dim = field->shape[k];
        else if (in->varies && !has_shape)
            dim = in->shape[k];
        out->shape[k + 1] = dim;
    }
    if (grouping->length_of && strcmp(grouping->length_of, in->name) == 0)
        out->shape[1] = -1;
    return LEAT_OK;
}

static int add(leat__grouping *grouping, const leat__grouped_field *field)
{
    if (grouping->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "%s: with offsets a group would have more than %d "
                          "fields",
                          grouping->name, LEAT_MAX_FIELDS);
    grouping->field[grouping->n] = *field;
    return describe(grouping, field, &grouping->spec[grouping->n++]);
}

/* NAME.offsets, which divides the rows of field `of` of the samples. */
static int add_offsets(leat__grouping *grouping, int of)
{
    const char *name = grouping->in[of].name;
    const leat__grouped_field field = {
        .form = LEAT__GROUPING_OFFSETS, .from = of, .of = of};
    if (grouping->n == LEAT_MAX_FIELDS)
        return add(grouping, &field);
    char *offsets = grouping->offsets[grouping->n];
    int size = snprintf(offsets, LEAT__GROUPED_NAME_MAX, "%s.offsets", name);
    if (size >= LEAT__GROUPED_NAME_MAX || find_field(grouping, offsets) >= 0)
        return leat_error(LEAT_EINVAL,
                          "%s: %s.offsets is taken, or too long for the field "
                          "of offsets",
                          grouping->name, name);
    grouping->field[grouping->n] = field;
    grouping->spec[grouping->n++] = (leat_field_spec){
        .name = offsets,
        .dtype = LEAT_INT64,
        .ndim = 1,
        .shape = {grouping->samples < 0 ? -1 : grouping->samples + 1},
        .offsets_of = name,
        .is_batch = true};
    return LEAT_OK;
}

int leat__grouping_plan(leat__grouping *grouping, const leat_field_spec *in,
                        int n)
{
    grouping->in = in;
    grouping->nin = n;
    grouping->n = 0;
    int status = check_names(grouping, "pad", true);
    if (!status)
        status = check_names(grouping, "pad_to", true);
    if (!status)
        status = check_names(grouping, "ragged", false);
    for (int i = 0; i < n && !status; i++) {
        leat__grouped_field field;
        status = plan_form(grouping, i, &field);
        /* Only what nothing divides yet gets offsets; the outermost first. */
        bool is_outermost = find_divider(grouping, i) < 0;
        bool is_divider = field.form == LEAT__GROUPING_DIVIDER;
        bool is_rows = field.form == LEAT__GROUPING_ROWS;
        if (!status && is_divider && is_outermost)
            status = add_offsets(grouping, i);
        if (!status)
            status = add(grouping, &field);
        if (!status && is_rows && is_outermost)
            status = add_offsets(grouping, i);
    }
    return status;
}
