#include "layer/tops/top_plan.h"
#include "base/error.h"
#include "data/cast.h"

#include <stdio.h>
#include <string.h>

static bool are_bytes(leat_dtype a, leat_dtype b)
{
    return (a == LEAT_BYTES || a == LEAT_UINT8) &&
           (b == LEAT_BYTES || b == LEAT_UINT8);
}

bool leat__planned_top_takes(const leat__planned_top *top, leat_dtype from,
                             leat_dtype to)
{
    if (from == to || are_bytes(from, to))
        return true;
    return leat__cast_is_possible(from, to) &&
           (top->may_lose || leat__cast_is_exact(from, to));
}

int leat__planned_top_refuse(const leat__planned_top *top, leat_dtype from)
{
    const char *to = leat_dtype_name(top->dtype);
    if (leat__cast_is_possible(from, top->dtype))
        return leat_error(LEAT_EINVAL,
                          "top %s: its field is %s, of which %s does not hold "
                          "every value; cast_lossy would cast all the same",
                          top->name, leat_dtype_name(from), to);
    return leat_error(LEAT_EINVAL,
                      "top %s: its field is %s, which cannot become %s",
                      top->name, leat_dtype_name(from), to);
}

/* Whether the spec leaves the type of the samples open. */
static bool is_any(const leat_field_spec *spec)
{
    return spec->varies ||
           (spec->dtype == LEAT_BYTES && spec->content == LEAT_CONTENT_ANY);
}

static leat__planned_top *add(leat__top_plan *plan, leat__top_kind kind,
                              const char *name)
{
    leat__planned_top *top = &plan->top[plan->n++];
    *top = (leat__planned_top){.kind = kind};
    snprintf(top->name, sizeof(top->name), "%s", name);
    return top;
}

static void add_image(leat__top_plan *plan, leat__planned_top *top)
{
    leat__planned_image *image = &plan->image[plan->images];
    top->image = plan->images;
    *image = (leat__planned_image){.top = (int)(top - plan->top),
                                   .choices = plan->images};
    plan->images++;
}

bool leat__top_plan_is_label(const leat__top_plan *plan, int i)
{
    const leat__planned_top *top = &plan->top[i];
    const leat_field_spec *spec = plan->check.spec;
    return top->kind == LEAT__TOP_NUMBERS && top->dtype == LEAT_FLOAT32 &&
           plan->check.is_promised[top->field] &&
           spec[top->field].dtype == LEAT_INT32 && spec[top->field].ndim == 0;
}

static void leave_labels(leat__top_plan *plan)
{
    for (int i = 0; i < plan->n; i++)
        if (leat__top_plan_is_label(plan, i))
            leat__field_check_leave(&plan->check, plan->top[i].field);
}

static bool has_pixels(const leat_field_spec *spec)
{
    return spec->dtype == LEAT_BYTES || spec->dtype == LEAT_UINT8 ||
           spec->dtype == LEAT_FLOAT32;
}

/* What no sample of the first field can be, none is searched for. */
static int check_first(const leat_field_spec *spec)
{
    bool is_plain =
        spec->dtype == LEAT_BYTES && spec->content == LEAT_CONTENT_PLAIN;
    if (is_plain)
        return leat_error(LEAT_EINVAL,
                          "field %s is plain bytes and no image, which the "
                          "first top is: expected a list of tops, or numbers, "
                          "as of columns or cast",
                          spec->name);
    if (has_pixels(spec))
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "field %s is of %s and no image, which the first top is: "
                      "expected a list of tops, or uint8 or float32, as of "
                      "cast",
                      spec->name, leat_dtype_name(spec->dtype));
}

int leat__top_plan_usual(leat__top_plan *plan, int ntop, leat_dtype top_type,
                         leat_dtype label_type, const leat_field_spec *spec,
                         int nfields)
{
    memset(plan, 0, sizeof(*plan));
    int status = spec ? check_first(&spec[0]) : LEAT_OK;
    if (status)
        return status;
    for (int i = 0; i < ntop; i++) {
        const char *name = spec && spec[i].name ? spec[i].name : "";
        leat__planned_top *top =
            add(plan, i ? LEAT__TOP_NUMBERS : LEAT__TOP_IMAGE, name);
        top->field = i;
        top->dtype = i ? label_type : top_type;
        top->may_lose = true;
        top->is_usual = true;
        top->is_batch = spec && spec[i].is_batch;
        if (i == 0)
            add_image(plan, top);
    }
    plan->check.nfields = ntop;
    if (spec)
        status = leat__field_check_init(&plan->check, spec, nfields);
    if (!status)
        leave_labels(plan);
    return status;
}

/* What one top of the list is planned from. */
typedef struct planning {
    leat__top_plan *plan;
    const leat_top *from;
    const leat_field_spec *spec; /* of all fields; NULL: not known yet */
    int nfields;
} planning;

static int find_field(const planning *in, int *out)
{
    char names[256] = "";
    size_t at = 0;
    for (int i = 0; i < in->nfields; i++) {
        if (strcmp(in->spec[i].name, in->from->field) == 0) {
            *out = i;
            return LEAT_OK;
        }
        if (at < sizeof(names))
            at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
                                   i ? ", " : "", in->spec[i].name);
    }
    return leat_error(LEAT_EINVAL,
                      "top %s: there is no field %s; the reader's are %s",
                      in->from->name, in->from->field, names);
}

/* Whether the field can be what the top asks of it. */
static int check_field(const planning *in, const leat__planned_top *top)
{
    const leat_field_spec *spec = &in->spec[top->field];
    bool is_plain =
        spec->dtype == LEAT_BYTES && spec->content == LEAT_CONTENT_PLAIN;
    if (top->kind == LEAT__TOP_IMAGE && is_plain)
        return leat_error(LEAT_EINVAL,
                          "top %s: field %s is plain bytes and no image",
                          top->name, spec->name);
    if (top->kind == LEAT__TOP_IMAGE && !is_any(spec) && !has_pixels(spec))
        return leat_error(LEAT_EINVAL,
                          "top %s: field %s is of %s and no image: expected "
                          "uint8 or float32, as of cast",
                          top->name, spec->name, leat_dtype_name(spec->dtype));
    if (spec->is_batch && (top->kind != LEAT__TOP_NUMBERS))
        return leat_error(LEAT_EINVAL,
                          "top %s: the samples of field %s are batches, which "
                          "are delivered as they are: expected DENSE and no "
                          "image",
                          top->name, spec->name);
    if (top->kind == LEAT__TOP_IMAGE || is_any(spec))
        return LEAT_OK;
    leat_dtype to = leat__planned_top_type(top, spec->dtype);
    return leat__planned_top_takes(top, spec->dtype, to)
               ? LEAT_OK
               : leat__planned_top_refuse(top, spec->dtype);
}

/* The axes of which there are lengths: those that vary, or else all. */
static void find_axes(leat__planned_top *lengths, const leat_field_spec *spec,
                      int ndim, bool is_known)
{
    for (int k = 0; k < ndim; k++)
        if (is_known && spec->shape[k] < 0)
            lengths->axis[lengths->nlengths++] = k;
    for (int k = 0; k < ndim && (!is_known || lengths->nlengths == 0); k++)
        lengths->axis[k] = k;
    if (lengths->nlengths == 0)
        lengths->nlengths = ndim;
    lengths->has_one_length = lengths->nlengths == 1;
}

static int plan_pad(const planning *in, leat__planned_top *top)
{
    const leat_top *from = in->from;
    const leat_field_spec *spec = &in->spec[top->field];
    bool is_known = !is_any(spec) && spec->ndim >= 0;
    int ndim = from->ndim ? from->ndim : is_known ? spec->ndim : 0;
    if (ndim == 0 || (is_known && ndim != spec->ndim))
        return leat_error(
            LEAT_EINVAL, "top %s: its shape has %d dimensions, field %s %d%s",
            top->name, from->ndim, spec->name, is_known ? spec->ndim : -1,
            is_known ? "" : ", which varies: expected a shape");
    top->ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        int64_t dim = is_known ? spec->shape[k] : -1;
        top->shape[k] = from->ndim && from->shape[k] ? from->shape[k] : dim;
        if (dim > top->shape[k])
            return leat_error(LEAT_EINVAL,
                              "top %s: dimension %d of its shape is %lld, but "
                              "field %s has %lld there",
                              top->name, k, (long long)top->shape[k],
                              spec->name, (long long)dim);
    }
    top->pad_value = from->pad_value;
    leat_dtype type = leat__planned_top_type(top, spec->dtype);
    if (!is_any(spec) && !leat__cast_holds(type, top->pad_value))
        return leat_error(LEAT_EINVAL,
                          "top %s: pad_value is %g, which %s does not hold",
                          top->name, top->pad_value, leat_dtype_name(type));
    leat__planned_top *lengths = top + 1;
    find_axes(lengths, spec, ndim, is_known);
    return LEAT_OK;
}

/* The field that divides the rows of field `i`; -1: none does. */
static int find_divider(const planning *in, int i, int *out)
{
    *out = -1;
    for (int k = 0; k < in->nfields; k++) {
        const leat_field_spec *spec = &in->spec[k];
        if (!spec->offsets_of || strcmp(spec->offsets_of, in->spec[i].name))
            continue;
        if (*out >= 0)
            return leat_error(LEAT_EINVAL,
                              "top %s: fields %s and %s both divide %s",
                              in->from->name, in->spec[*out].name, spec->name,
                              in->spec[i].name);
        if (spec->dtype != LEAT_INT64 || spec->ndim != 1)
            return leat_error(LEAT_EINVAL,
                              "top %s: field %s divides %s, but is %s of %d "
                              "dimensions: expected int64 of one",
                              in->from->name, spec->name, in->spec[i].name,
                              leat_dtype_name(spec->dtype), spec->ndim);
        *out = k;
    }
    return LEAT_OK;
}

/* The levels from the samples down to the rows. */
static int plan_levels(const planning *in, leat__planned_top *top)
{
    int found[LEAT__TOP_LEVELS_MAX], field = top->field;
    for (;;) {
        int divider;
        int status = find_divider(in, field, &divider);
        if (status)
            return status;
        if (divider < 0)
            break;
        if (top->levels == LEAT__TOP_LEVELS_MAX - 1)
            return leat_error(LEAT_EINVAL,
                              "top %s: the offsets of field %s have more than "
                              "%d levels",
                              top->name, in->spec[top->field].name,
                              LEAT__TOP_LEVELS_MAX);
        found[top->levels++] = field = divider;
    }
    for (int i = 0; i < top->levels; i++)
        top->level_field[i] = found[top->levels - 1 - i];
    return LEAT_OK;
}

static int add_offsets(const planning *in, leat__planned_top *top)
{
    char name[LEAT__TOP_NAME_MAX];
    int of = (int)(top - in->plan->top);
    int status = in->spec ? plan_levels(in, top) : LEAT_OK;
    for (int i = 0; i <= top->levels && !status; i++) {
        if (in->plan->n == LEAT_MAX_FIELDS)
            return leat_error(LEAT_EINVAL,
                              "top %s: its offsets would be more than %d tops",
                              top->name, LEAT_MAX_FIELDS);
        leat__top_name_offsets(name, top->name, i);
        leat__planned_top *offsets = add(in->plan, LEAT__TOP_OFFSETS, name);
        offsets->of = of;
        offsets->level = i;
        offsets->dtype = LEAT_INT64;
    }
    return status;
}

static int add_lengths(const planning *in, leat__planned_top *top)
{
    char name[LEAT__TOP_NAME_MAX];
    if (in->plan->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "more than %d tops with %s's lengths",
                          LEAT_MAX_FIELDS, top->name);
    leat__top_name_lengths(name, top->name);
    leat__planned_top *lengths = add(in->plan, LEAT__TOP_LENGTHS, name);
    lengths->of = (int)(top - in->plan->top);
    lengths->dtype = LEAT_INT64;
    return in->spec ? plan_pad(in, top) : LEAT_OK;
}

static leat__top_kind kind_of(const leat_top *top)
{
    if (top->is_image)
        return LEAT__TOP_IMAGE;
    if (top->form == LEAT_TOP_RAGGED)
        return LEAT__TOP_VALUES;
    if (top->form == LEAT_TOP_PAD)
        return leat__top_is_longest(top) ? LEAT__TOP_LONGEST : LEAT__TOP_PADDED;
    return LEAT__TOP_NUMBERS;
}

static int add_top(const planning *in, leat_dtype top_type)
{
    const leat_top *from = in->from;
    if (in->plan->n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "top %s would be one of more than %d",
                          from->name, LEAT_MAX_FIELDS);
    leat__planned_top *top = add(in->plan, kind_of(from), from->name);
    int status = in->spec ? find_field(in, &top->field) : LEAT_OK;
    if (status)
        return status;
    top->dtype = from->dtype;
    top->may_lose = from->cast_lossy;
    top->is_batch = in->spec && in->spec[top->field].is_batch;
    if (top->kind == LEAT__TOP_IMAGE) {
        top->dtype = from->dtype == LEAT_BYTES ? top_type : from->dtype;
        add_image(in->plan, top);
    }
    if (in->spec)
        status = check_field(in, top);
    if (!status && from->form == LEAT_TOP_PAD)
        status = add_lengths(in, top);
    if (!status && from->form == LEAT_TOP_RAGGED)
        status = add_offsets(in, top);
    return status;
}

/* The images whose choices others take. */
static void share_choices(leat__top_plan *plan, const leat__top_list *list)
{
    int image[LEAT_MAX_FIELDS] = {0};
    for (int i = 0, n = 0; i < list->n; i++)
        if (list->top[i].is_image)
            image[i] = n++;
    for (int i = 0; i < list->n; i++) {
        const leat_top *top = &list->top[i];
        if (!top->choices_of)
            continue;
        leat__planned_image *shares = &plan->image[image[i]];
        shares->choices = image[leat__top_list_find(list, top->choices_of)];
        plan->top[shares->top].shares_choices = true;
    }
}

int leat__top_plan_list(leat__top_plan *plan, const leat__top_list *list,
                        leat_dtype top_type, const leat_field_spec *spec,
                        int nfields)
{
    memset(plan, 0, sizeof(*plan));
    int status =
        spec ? leat__field_check_init(&plan->check, spec, nfields) : LEAT_OK;
    for (int i = 0; i < list->n && !status; i++) {
        const planning in = {plan, &list->top[i], spec, nfields};
        status = add_top(&in, top_type);
    }
    if (status)
        return status;
    plan->is_variable = list->is_variable;
    share_choices(plan, list);
    leave_labels(plan);
    return LEAT_OK;
}

void leat__top_plan_set_draws(leat__top_plan *plan, const int draws[])
{
    plan->draws = 0;
    for (int i = 0; i < plan->images; i++) {
        leat__planned_image *image = &plan->image[i];
        image->draws = draws[i];
        image->words = plan->draws;
        if (image->choices == i)
            plan->draws += draws[i];
    }
    for (int i = 0; i < plan->images; i++)
        plan->image[i].words = plan->image[plan->image[i].choices].words;
}
