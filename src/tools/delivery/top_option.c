#include "tools/delivery/top_option.h"
#include "base/decimal.h"
#include "base/error.h"
#include "tools/cli/number.h"

#include <stdio.h>
#include <string.h>

/* Of leat_top_option_list: the first two are the name and the field. */
enum { FIRST_KEY = 2 };

static int read_pad_value(leat_top *top, const char *value)
{
    char *end;
    if (number_read_real(value, &end, &top->pad_value) || *end)
        return leat_error(LEAT_EINVAL,
                          "--top: pad_value: expected a number, found '%s'",
                          value);
    return LEAT_OK;
}

/* As 3x28x28; 0 is the length of the batch's longest sample. */
static int read_shape(leat_top *top, char *value)
{
    char *rest = value;
    char *axis;
    top->ndim = 0;
    while ((axis = strsep(&rest, "x"))) {
        int64_t length;
        if (top->ndim == LEAT_MAX_DIMS - 1)
            return leat_error(LEAT_EINVAL,
                              "--top: shape: expected at most %d dimensions",
                              LEAT_MAX_DIMS - 1);
        if (!leat__decimal_integer(axis, strlen(axis), &length) || length < 0)
            return leat_error(LEAT_EINVAL,
                              "--top: shape: expected lengths such as 3x28, "
                              "found '%s'",
                              axis);
        top->shape[top->ndim++] = length;
    }
    return LEAT_OK;
}

static int refuse_key(const char *key)
{
    char keys[256] = "";
    int n;
    const leat_option *list = leat_top_option_list(&n);
    size_t at = 0;
    for (int i = FIRST_KEY; i < n && at < sizeof(keys); i++)
        at += (size_t)snprintf(keys + at, sizeof(keys) - at, "%s, ",
                               list[i].name);
    return leat_error(LEAT_EINVAL,
                      "--top: expected %spad_value or shape, found '%s'", keys,
                      key);
}

/* `value` is empty where the key has none. */
static int set(leat_top *top, const char *key, char *value)
{
    char name[64];
    int n;
    const leat_option *list = leat_top_option_list(&n);
    if (!strcmp(key, "pad_value"))
        return read_pad_value(top, value);
    if (!strcmp(key, "shape"))
        return read_shape(top, value);
    for (int i = FIRST_KEY; i < n; i++) {
        leat_option option = list[i];
        if (strcmp(option.name, key) != 0)
            continue;
        snprintf(name, sizeof(name), "--top: %s", key);
        option.name = name; /* as the error line should call it */
        bool is_flag = option.type == LEAT_OPTION_BOOL && !*value;
        return leat_option_set(&option, top, is_flag ? "true" : value);
    }
    return refuse_key(key);
}

int top_option_read(leat_top *out, char *text)
{
    char none[] = "";
    char *rest = text;
    char *value = strsep(&rest, ",");
    int status = LEAT_OK;
    *out = (leat_top){.size = sizeof(*out)};
    out->name = strsep(&value, "=");
    out->field = value;
    if (!*out->name || (value && !*value))
        return leat_error(LEAT_EINVAL,
                          "--top: expected NAME or NAME=FIELD, found '%s%s'",
                          out->name, value ? "=" : "");
    while (!status && (value = strsep(&rest, ","))) {
        const char *key = strsep(&value, "=");
        status = set(out, key, value ? value : none);
    }
    return status;
}
