#include "config/net_transform.h"
#include "config/net_option.h"

#include <limits.h>
#include <string.h>

typedef leat__prototxt_field field;

const field *leat__net_data_find(const field *data, bool is_v0,
                                 const char *name)
{
    static const char *const renamed[][2] = {{"batch_size", "batchsize"},
                                             {"crop_size", "cropsize"},
                                             {"mean_file", "meanfile"}};
    for (size_t i = 0; i < sizeof(renamed) / sizeof(*renamed); i++)
        if (is_v0 && !strcmp(name, renamed[i][0]))
            name = renamed[i][1];
    return data ? leat__prototxt_find(data, name) : NULL;
}

static const field *find_new(const leat__net_transform *from, const char *name)
{
    return from->message ? leat__prototxt_find(from->message, name) : NULL;
}

/*
 * A field of transform_param. Old files carry four of them in data_param, where
 * they win: Caffe's upgrade of such files moves them over.
 */
static const field *find(const leat__net_transform *from, const char *name)
{
    const field *old = leat__net_data_find(from->old, from->is_v0, name);
    return old ? old : find_new(from, name);
}

static int read_mean_values(const leat__net_transform *from, const field *value,
                            leat_transform_options *out)
{
    size_t n = 0;
    for (const field *f = value; f; f = leat__prototxt_find_next(f))
        n++;
    if (n > INT_MAX / sizeof(float))
        return leat__prototxt_error(from->file, value->at,
                                    "expected fewer mean values");
    float *values = leat__prototxt_alloc(from->file, n * sizeof(float));
    if (!values)
        return LEAT_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int status = leat__prototxt_float(from->file, value, &values[i]);
        if (status)
            return status;
        value = leat__prototxt_find_next(value);
    }
    out->mean_value = values;
    out->mean_values = (int)n;
    return LEAT_OK;
}

/* A mean of the file replaces the caller's, whichever form either has. */
static int read_mean(const leat__net_transform *from,
                     leat_transform_options *out)
{
    const field *file = find(from, "mean_file");
    const field *values = find_new(from, "mean_value");
    if (file && values)
        return leat__prototxt_error(
            from->file, values->at,
            "expected mean_file or mean_value, found both");
    if (file && from->mean_at)
        *from->mean_at = file->value_at;
    if (file || values) {
        out->mean_file = NULL;
        out->mean_value = NULL;
        out->mean_values = 0;
    }
    return values ? read_mean_values(from, values, out) : LEAT_OK;
}

/* If the file sets one of the two, it unsets the caller's other one. */
static int check_force(const leat__net_transform *from,
                       leat_transform_options *out)
{
    const field *color = find_new(from, "force_color");
    const field *gray = find_new(from, "force_gray");
    if (!out->force_color || !out->force_gray)
        return LEAT_OK;
    if (color && gray)
        return leat__prototxt_error(
            from->file, gray->at,
            "expected force_color or force_gray, found both");
    out->force_color = !gray;
    out->force_gray = !color;
    return LEAT_OK;
}

int leat__net_transform_read(const leat__net_transform *from,
                             leat_transform_options *out)
{
    int n, status = read_mean(from, out);
    const leat_option *list = leat_transform_option_list(&n);
    for (int i = 0; i < n && !status; i++) {
        const field *value = list[i].field ? find(from, list[i].name) : NULL;
        if (value)
            status = leat__net_option_read(from->file, &list[i], value, out);
    }
    return status ? status : check_force(from, out);
}
