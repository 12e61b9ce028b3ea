#include "config/net_option.h"
#include "base/option_list.h"

#include <stdbool.h>
#include <string.h>

int leat__net_option_text(const leat__prototxt *file,
                          const leat__prototxt_field *value, const char **out)
{
    int status = leat__prototxt_string(file, value, out);
    if (!status && memchr(value->text, 0, value->text_size))
        return leat__prototxt_error(file, value->value_at,
                                    "%s: expected no NUL byte, found one",
                                    value->name);
    return status;
}

int leat__net_option_path(const leat__prototxt *file,
                          const leat__prototxt_field *value, const char **out)
{
    int status = leat__net_option_text(file, value, out);
    if (!status && !value->text_size)
        return leat__prototxt_error(file, value->value_at,
                                    "%s: expected a text, found an empty one",
                                    value->name);
    return status;
}

/* A number, or a word in any case, quoted or not. */
static int take_number_or_word(const leat__prototxt *file,
                               const leat_option *option,
                               const leat__prototxt_field *value, void *options,
                               bool *taken)
{
    int64_t number = INT64_MAX;
    uint64_t bytes;
    int status = LEAT_OK;
    if (value->type == LEAT__PROTOTXT_IDENTIFIER ||
        value->type == LEAT__PROTOTXT_STRING) {
        *taken = !value->is_negative &&
                 leat__option_take_word(option, options, value->text);
        return LEAT_OK;
    }
    if (value->type != LEAT__PROTOTXT_INTEGER)
        return LEAT_OK;
    if (option->type != LEAT_OPTION_BYTES)
        status = leat__prototxt_int64(file, value, &number);
    else if ((status = leat__prototxt_uint64(file, value, &bytes)) == 0 &&
             bytes < INT64_MAX)
        number = (int64_t)bytes;
    *taken = !status && leat__option_take_number(option, options, number);
    return status;
}

static int take_value(const leat__prototxt *file, const leat_option *option,
                      const leat__prototxt_field *value, void *options,
                      bool *taken)
{
    const char *text;
    float real;
    bool flag;
    int status;
    switch (option->type) {
    case LEAT_OPTION_TEXT:
        status = leat__net_option_path(file, value, &text);
        *taken = !status && leat__option_take_text(option, options, text);
        return status;
    case LEAT_OPTION_BOOL:
        status = leat__prototxt_bool(file, value, &flag);
        *taken = !status && leat__option_take_number(option, options, flag);
        return status;
    case LEAT_OPTION_FLOAT:
        status = leat__prototxt_float(file, value, &real);
        if (!status)
            leat__option_take_float(option, options, real);
        *taken = !status;
        return status;
    default:
        return take_number_or_word(file, option, value, options, taken);
    }
}

int leat__net_option_read(const leat__prototxt *file, const leat_option *option,
                          const leat__prototxt_field *value, void *options)
{
    char shown[LEAT__PROTOTXT_SHOWN_MAX], fault[LEAT__OPTION_FAULT_MAX];
    bool taken = false;
    int status = take_value(file, option, value, options, &taken);
    if (status || taken)
        return status;
    return leat__prototxt_error(
        file, value->value_at, "%s: %s", value->name,
        leat__option_fault(option, value->text ? value->text : "",
                           leat__prototxt_show(shown, value), fault));
}
