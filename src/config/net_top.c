#include "config/net_top.h"
#include "base/error.h"
#include "base/memory.h"
#include "config/net_option.h"
#include "config/net_transform.h"
#include "data/transform.h"
#include "layer/tops/top_plan.h"

#include <string.h>

typedef leat__prototxt_field field;

static int read_shape(const leat__prototxt *file, const field *value,
                      leat_top *top)
{
    for (; value; value = leat__prototxt_find_next(value)) {
        if (top->ndim == LEAT_MAX_DIMS - 1)
            return leat__prototxt_error(file, value->at,
                                        "shape: expected at most %d dimensions",
                                        LEAT_MAX_DIMS - 1);
        int status =
            leat__prototxt_int64(file, value, &top->shape[top->ndim++]);
        if (status)
            return status;
    }
    return LEAT_OK;
}

static int read_top(leat__net_tops *out, leat__prototxt *file,
                    const field *message)
{
    leat_top *top = &out->top[out->n];
    const field *value;
    int n, status = LEAT_OK;
    const leat_option *list = leat_top_option_list(&n);
    top->size = sizeof(*top);
    for (int i = 0; i < n && !status; i++) {
        value = leat__prototxt_find(message, list[i].name);
        if (value)
            status = leat__net_option_read(file, &list[i], value, top);
    }
    if (!status && !top->name)
        return leat__prototxt_error(file, message->at,
                                    "top: expected a name, found none");
    float pad;
    value = leat__prototxt_find(message, "pad_value");
    if (value && !status) {
        status = leat__prototxt_float(file, value, &pad);
        top->pad_value = status ? 0 : (double)pad;
    }
    if (!status)
        status = read_shape(file, leat__prototxt_find(message, "shape"), top);
    value = leat__prototxt_find(message, "transform_param");
    if (status || !value)
        return status;
    const leat__net_transform from = {.file = file, .message = value};
    top->transform = &out->transform[out->n];
    status = leat__transform_options_copy(&out->transform[out->n], NULL);
    return status ? status
                  : leat__net_transform_read(&from, &out->transform[out->n]);
}

/* The names of all tops; further levels of offsets the lines may add. */
static int name_tops(leat__net_tops *out, leat__prototxt *file,
                     const leat__top_plan *plan)
{
    for (int i = 0; i < plan->n; i++) {
        size_t size = strlen(plan->top[i].name) + 1;
        char *name = leat__prototxt_alloc(file, size);
        if (!name)
            return LEAT_ENOMEM;
        out->name[i] = memcpy(name, plan->top[i].name, size);
    }
    out->nnames = plan->n;
    return LEAT_OK;
}

/* Whether a line names a further level of the offsets that `name` is. */
static bool is_level(const char *line, const char *name)
{
    size_t size = strlen(name);
    const char *offsets = strrchr(name, '.');
    return offsets && strcmp(offsets, ".offsets") == 0 &&
           strncmp(line, name, size) == 0 && line[size] == '.';
}

static int check_lines(const leat__net_tops *out, const leat__prototxt *file,
                       const field *line)
{
    int i = 0;
    for (const field *value = line; value;
         value = leat__prototxt_find_next(value)) {
        const char *text;
        int status = leat__net_option_text(file, value, &text);
        if (status)
            return status;
        if (i > 0 && is_level(text, out->name[i - 1]))
            continue;
        if (i == out->nnames || strcmp(text, out->name[i]) != 0)
            return leat__prototxt_error(
                file, value->value_at,
                "top: expected %s, as leat_param lists the tops, found %s",
                i < out->nnames ? out->name[i] : "no further one", text);
        i++;
    }
    return i == 0 || i == out->nnames
               ? LEAT_OK
               : leat__prototxt_error(file, line->at,
                                      "the layer lacks top: \"%s\", which "
                                      "leat_param lists",
                                      out->name[i]);
}

/* Checks the list as a whole, at the location of its first top. */
static int plan(leat__net_tops *out, leat__prototxt *file,
                const leat_transform_options *transform, const field *first)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .transform = transform,
                                             .top = out->top,
                                             .ntop = out->n};
    leat__top_list *owned = leat__alloc_zero(1, sizeof(*owned));
    leat__top_plan *names = leat__alloc_zero(1, sizeof(*names));
    int status = owned && names ? LEAT_OK : LEAT_ENOMEM;
    if (!status)
        status = leat__top_list_init(owned, &options);
    if (!status)
        status = leat__top_plan_list(names, owned, LEAT_FLOAT32, NULL, 0);
    if (status == LEAT_EINVAL)
        status = leat__error_context(status, "%s:%d:%d", file->name,
                                     first->at.line, first->at.column);
    if (!status)
        status = name_tops(out, file, names);
    if (owned)
        leat__top_list_finish(owned);
    leat__free(owned);
    leat__free(names);
    return status;
}

int leat__net_tops_read(leat__net_tops *out, leat__prototxt *file,
                        const leat_transform_options *transform,
                        const field *first, const field *line)
{
    if (!first)
        return LEAT_OK;
    for (const field *value = first; value;
         value = leat__prototxt_find_next(value)) {
        if (out->n == LEAT_MAX_FIELDS)
            return leat__prototxt_error(
                file, value->at, "expected at most %d tops", LEAT_MAX_FIELDS);
        int status = read_top(out, file, value);
        if (status)
            return status;
        out->n++;
    }
    int status = plan(out, file, transform, first);
    return status ? status : check_lines(out, file, line);
}
