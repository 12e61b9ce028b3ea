#include "decorators/field_list.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/opening.h"

#include <stdio.h>
#include <string.h>

/* A copy with `prefix` before it; NULL without memory. */
static char *prefixed(const char *prefix, const char *name)
{
    size_t size = strlen(prefix) + strlen(name) + 1;
    char *out = leat__alloc(size);
    if (out)
        snprintf(out, size, "%s%s", prefix, name);
    return out;
}

static int find(const leat__field_list *list, const char *name)
{
    int i = 0;
    while (i < list->n && strcmp(list->spec[i].name, name) != 0)
        i++;
    return i;
}

static int add(leat__field_list *list, const leat_field_spec *field,
               const char *prefix)
{
    int i = list->n;
    char *name = prefixed(prefix, field->name);
    if (!name)
        return LEAT_ENOMEM;
    if (field->offsets_of) {
        list->offsets_of[i] = prefixed(prefix, field->offsets_of);
        if (!list->offsets_of[i]) {
            leat__free(name);
            return LEAT_ENOMEM;
        }
    }
    list->name[i] = name;
    list->spec[i] = *field;
    list->spec[i].name = name;
    list->spec[i].offsets_of = list->offsets_of[i];
    list->n++;
    return LEAT_OK;
}

int leat__field_list_append(leat__field_list *list,
                            const leat_field_spec fields[], int n,
                            const char *prefix)
{
    int status = LEAT_OK;
    int before = list->n;
    if (list->n + n > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "%d fields after %d others: expected at most %d in "
                          "all",
                          n, list->n, LEAT_MAX_FIELDS);
    for (int i = 0; i < n && !status; i++) {
        status = add(list, &fields[i], prefix ? prefix : "");
        if (!status && find(list, list->name[before + i]) < before)
            status = leat_error(LEAT_EINVAL,
                                "another input has a field \"%s\", too: give "
                                "the inputs prefixes",
                                list->name[before + i]);
    }
    return status;
}

static int same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* What the layer's tops follow from has to agree. */
static int check_field(const leat_field_spec *a, const leat_field_spec *b)
{
    if (!same_text(a->name, b->name))
        return leat_error(LEAT_EINVAL,
                          "a field is \"%s\", but that of the first input is "
                          "\"%s\"",
                          b->name, a->name);
    if (a->dtype != b->dtype)
        return leat_error(LEAT_EINVAL,
                          "the field \"%s\" is %s, but that of the first input "
                          "is %s",
                          a->name, leat_dtype_name(b->dtype),
                          leat_dtype_name(a->dtype));
    if (!same_text(a->offsets_of, b->offsets_of) || a->is_batch != b->is_batch)
        return leat_error(LEAT_EINVAL,
                          "the field \"%s\" is of groups or batches, and that "
                          "of the first input is of others",
                          a->name);
    return LEAT_OK;
}

static void merge_field(leat_field_spec *to, const leat_field_spec *from)
{
    to->varies |= from->varies;
    if (to->content != from->content)
        to->content = LEAT_CONTENT_ANY;
    if (to->ndim != from->ndim)
        to->ndim = -1;
    for (int i = 0; i < to->ndim; i++)
        if (to->shape[i] != from->shape[i])
            to->shape[i] = -1;
}

int leat__field_list_check(const leat__field_list *list,
                           const leat_field_spec fields[], int n)
{
    int status = LEAT_OK;
    if (list->n != n)
        return leat_error(LEAT_EINVAL,
                          "it has %d fields, but the first input has %d", n,
                          list->n);
    for (int i = 0; i < n && !status; i++)
        status = check_field(&list->spec[i], &fields[i]);
    return status;
}

int leat__field_list_merge(leat__field_list *list,
                           const leat_field_spec fields[], int n)
{
    if (list->n == 0)
        return leat__field_list_append(list, fields, n, NULL);
    int status = leat__field_list_check(list, fields, n);
    for (int i = 0; i < n && !status; i++)
        merge_field(&list->spec[i], &fields[i]);
    return status;
}

static void cancel_input(void *reader)
{
    leat_reader_cancel(reader);
}

int leat__field_list_merge_all(leat__field_list *list, const char *who,
                               leat_reader *const reader[], int n)
{
    int status = LEAT_OK;
    for (int i = 0; i < n && !status; i++) {
        const leat_field_spec *fields;
        int nfields;
        leat__opening_step step;
        leat__opening_enter(&step, cancel_input, reader[i]);
        status = leat_reader_fields(reader[i], &fields, &nfields);
        leat__opening_leave(&step);
        if (!status)
            status = leat__field_list_merge(list, fields, nfields);
        if (status == LEAT_EINVAL)
            leat__error_context(status, "%s: input %d (%.80s)", who, i + 1,
                                leat__reader_text(reader[i]));
    }
    return status;
}

void leat__field_list_finish(leat__field_list *list)
{
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat__free(list->name[i]);
        leat__free(list->offsets_of[i]);
    }
    list->n = 0;
}

const char *leat__reader_text(const leat_reader *reader)
{
    return leat_pipeline_text(reader->pipeline);
}
