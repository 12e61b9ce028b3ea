#include "decorators/field.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "base/suggestion.h"

#include <stdio.h>
#include <string.h>

/* "data, label"; what does not fit is cut. */
static const char *list_names(const leat_field_spec spec[], int n, char *out,
                              size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "",
                                 spec[i].name);
    return out;
}

int leat__field_find(const leat_field_spec spec[], int n, const char *name,
                     int *out)
{
    char names[200], nearest[80];
    leat__suggestion suggestion = leat__suggestion_of(name);
    for (int i = 0; i < n; i++) {
        if (strcmp(spec[i].name, name) == 0) {
            *out = i;
            return LEAT_OK;
        }
        leat__suggestion_consider(&suggestion, spec[i].name);
    }
    return leat_error(
        LEAT_EINVAL, "there is no field \"%s\": expected one of %s%s", name,
        list_names(spec, n, names, sizeof(names)),
        leat__suggestion_write(&suggestion, "", nearest, sizeof(nearest)));
}

int leat__field_find_bytes(const leat_field_spec spec[], int n,
                           const char *name, int *out)
{
    char names[200];
    if (name)
        return leat__field_find(spec, n, name, out);
    for (int i = 0; i < n; i++) {
        if (spec[i].dtype == LEAT_BYTES) {
            *out = i;
            return LEAT_OK;
        }
    }
    return leat_error(LEAT_EINVAL,
                      "none of the fields %s is of bytes: expected its name",
                      list_names(spec, n, names, sizeof(names)));
}

int leat__field_split_pair(const char *pair, char name[LEAT__FIELD_NAME_MAX],
                           const char **value)
{
    const char *equals = strchr(pair, '=');
    size_t size = equals ? (size_t)(equals - pair) : strlen(pair);
    if (size == 0 || size >= LEAT__FIELD_NAME_MAX)
        return leat_error(LEAT_EINVAL,
                          "'%s': expected the name of a field, at most %d "
                          "letters",
                          pair, LEAT__FIELD_NAME_MAX - 1);
    memcpy(name, pair, size);
    name[size] = 0;
    *value = equals ? equals + 1 : NULL;
    return LEAT_OK;
}

/* An escaped equals sign makes a pair of a name that an argument has, too. */
int leat__field_write_pair(char **out, const char *field, const char *value)
{
    if (!field || !field[0])
        return leat_error(LEAT_EINVAL, "expected the name of a field");
    size_t size = leat_args_escape(field, NULL, 0);
    char *text = leat__alloc(size + strlen(value) + 2);
    if (!text)
        return LEAT_ENOMEM;
    leat_args_escape(field, text, size);
    sprintf(text + size - 1, "\\=%s", value);
    *out = text;
    return LEAT_OK;
}

int leat__field_write_argument(char **out, const char *field, const char *rest)
{
    size_t size = field ? leat_args_escape(field, NULL, 0) : 1;
    char *text = leat__alloc(size + strlen(rest) + 1);
    if (!text)
        return LEAT_ENOMEM;
    text[0] = 0;
    if (field)
        leat_args_escape(field, text, size);
    sprintf(text + size - 1, "%s%s", field && rest[0] ? "," : "", rest);
    *out = text;
    return LEAT_OK;
}

int leat__field_count(const leat_field *field, size_t *count)
{
    size_t each = leat_dtype_size(field->dtype), bytes;
    if (field->dtype == LEAT_BYTES) {
        *count = field->bytes;
        return LEAT_OK;
    }
    if (!leat__shape_bytes(field->ndim, field->shape, each, &bytes) ||
        bytes > field->bytes)
        return leat_error(LEAT_EDATA,
                          "its %zu bytes are fewer than its shape needs",
                          field->bytes);
    *count = bytes / each;
    return LEAT_OK;
}

int64_t leat__field_spec_count(const leat_field_spec *spec)
{
    int64_t count = 1;
    if (spec->varies || spec->ndim < 0)
        return -1;
    for (int i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] < 0 ||
            __builtin_mul_overflow(count, spec->shape[i], &count))
            return -1;
    }
    return count;
}

bool leat__field_fits(const leat_field *field, const leat_field_spec *spec)
{
    if (spec->varies)
        return true;
    if (spec->dtype == LEAT_BYTES && spec->content == LEAT_CONTENT_ANY)
        return true;
    bool fits = field->dtype == spec->dtype &&
                (field->ndim == spec->ndim || spec->ndim < 0);
    for (int i = 0; i < spec->ndim && fits; i++)
        fits = spec->shape[i] < 0 || field->shape[i] == spec->shape[i];
    return fits;
}
