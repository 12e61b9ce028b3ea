#include "layer/tops/top_list.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/option_list.h"
#include "base/options.h"
#include "data/cast.h"

#include <stdio.h>
#include <string.h>

void leat__top_name_lengths(char out[LEAT__TOP_NAME_MAX], const char *name)
{
    snprintf(out, LEAT__TOP_NAME_MAX, "%s.lengths", name);
}

void leat__top_name_offsets(char out[LEAT__TOP_NAME_MAX], const char *name,
                            int level)
{
    if (level > 0)
        snprintf(out, LEAT__TOP_NAME_MAX, "%s.offsets.%d", name, level);
    else
        snprintf(out, LEAT__TOP_NAME_MAX, "%s.offsets", name);
}

int leat__top_list_find(const leat__top_list *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->top[i].name, name) == 0)
            return i;
    return -1;
}

static const leat_option option_list[] = {
    LEAT__OPTION(leat_top, name, TEXT, STRING, .help = "the blob's"),
    LEAT__OPTION(leat_top, field, TEXT, STRING, .help = "the reader's field"),
    LEAT__OPTION(leat_top, dtype, DTYPE, WORD,
                 .words = "BYTES|UINT8|UINT16|UINT32|INT8|INT16|INT32|INT64|"
                          "FLOAT16|BFLOAT16|FLOAT32|FLOAT64"),
    LEAT__OPTION(leat_top, form, WORD, WORD, .words = "DENSE|PAD|RAGGED"),
    LEAT__OPTION(leat_top, is_image, BOOL, BOOL,
                 .help = "decoded and transformed"),
    LEAT__OPTION(leat_top, cast_lossy, BOOL, BOOL,
                 .help = "a cast may lose values"),
    LEAT__OPTION(leat_top, choices_of, TEXT, STRING,
                 .help = "the image whose choices it takes"),
};

const leat_option *leat_top_option_list(int *n)
{
    *n = sizeof(option_list) / sizeof(option_list[0]);
    return option_list;
}

bool leat__top_is_longest(const leat_top *top)
{
    bool is_open = top->ndim == 0;
    for (int i = 0; i < top->ndim; i++)
        is_open |= top->shape[i] == 0;
    return top->form == LEAT_TOP_PAD && is_open;
}

/* Copies a name of the caller's, and points to the copy. */
static int keep(char copy[LEAT__TOP_NAME_MAX], const char **name, int i,
                const char *what)
{
    if (!*name)
        return LEAT_OK;
    size_t size = strlen(*name);
    if (size == 0 || size > LEAT__TOP_NAME_MAX - sizeof(".offsets.7"))
        return leat_error(
            LEAT_EINVAL, "top %d: its %s has %zu letters, expected 1 to %zu", i,
            what, size, LEAT__TOP_NAME_MAX - sizeof(".offsets.7"));
    memcpy(copy, *name, size + 1);
    *name = copy;
    return LEAT_OK;
}

static int copy_top(leat__top_list *list, int i, const leat_top *given)
{
    leat_top *top = &list->top[i];
    int status = leat__options_copy(top, given, sizeof(*top));
    if (status)
        return leat__error_context(status, "top %d", i);
    if (!top->name)
        return leat_error(LEAT_EINVAL, "top %d has no name", i);
    status = keep(list->name[i][0], &top->name, i, "name");
    if (!status)
        status = keep(list->name[i][1], &top->field, i, "field");
    if (!status)
        status = keep(list->name[i][2], &top->choices_of, i, "choices_of");
    if (!top->field)
        top->field = top->name;
    if (status || !top->transform)
        return status;
    status = leat__transform_copy_init(&list->transform[i], top->transform);
    top->transform = &list->transform[i].options;
    return status ? leat__error_context(status, "top %s", top->name) : LEAT_OK;
}

/* PAD's shape, and the number that it pads with. */
static int check_pad(const leat_top *top)
{
    size_t bytes = 8;
    for (int i = 0; i < top->ndim; i++)
        if (top->shape[i] < 0 ||
            leat__multiply(bytes, top->shape[i] ? (size_t)top->shape[i] : 1,
                           &bytes))
            return leat_error(LEAT_EINVAL,
                              "top %s: dimension %d of its shape is %lld: "
                              "expected 0 or more, and no more elements than "
                              "memory can have",
                              top->name, i, (long long)top->shape[i]);
    if (top->dtype != LEAT_BYTES &&
        !leat__cast_holds(top->dtype, top->pad_value))
        return leat_error(
            LEAT_EINVAL, "top %s: pad_value is %g, which %s does not hold",
            top->name, top->pad_value, leat_dtype_name(top->dtype));
    return LEAT_OK;
}

static int check_top(const leat_top *top)
{
    bool pads = top->form == LEAT_TOP_PAD;
    if (leat_dtype_size(top->dtype) == 0)
        return leat_error(LEAT_EINVAL, "top %s: unknown dtype %d", top->name,
                          (int)top->dtype);
    if (top->form < LEAT_TOP_DENSE || top->form > LEAT_TOP_RAGGED)
        return leat_error(LEAT_EINVAL,
                          "top %s: form is %d: expected DENSE, PAD or RAGGED",
                          top->name, (int)top->form);
    if (top->ndim < 0 || top->ndim >= LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL,
                          "top %s: ndim is %d: expected 0 to %d dimensions",
                          top->name, top->ndim, LEAT_MAX_DIMS - 1);
    if (top->is_image && top->form != LEAT_TOP_DENSE)
        return leat_error(LEAT_EINVAL,
                          "top %s: an image's form is DENSE; leave is_image "
                          "out for the bytes of encoded images",
                          top->name);
    if (!top->is_image && (top->transform || top->choices_of))
        return leat_error(
            LEAT_EINVAL, "top %s: %s is for images: expected is_image",
            top->name, top->transform ? "transform" : "choices_of");
    if (!pads && (top->ndim || top->pad_value != 0))
        return leat_error(LEAT_EINVAL, "top %s: %s is for the form PAD",
                          top->name, top->ndim ? "shape" : "pad_value");
    return pads ? check_pad(top) : LEAT_OK;
}

/* Both images must be cropped and mirrored alike. */
static int check_choices(const leat__top_list *list, const leat_top *top,
                         const leat_transform_options *all)
{
    if (!top->choices_of)
        return LEAT_OK;
    int i = leat__top_list_find(list, top->choices_of);
    const leat_top *other = i < 0 ? NULL : &list->top[i];
    if (!other || other == top || !other->is_image || other->choices_of)
        return leat_error(LEAT_EINVAL,
                          "top %s: choices_of names %s: expected another "
                          "image with choices of its own",
                          top->name, top->choices_of);
    const leat_transform_options *one = top->transform ? top->transform : all;
    const leat_transform_options *two =
        other->transform ? other->transform : all;
    if (one->crop_size != two->crop_size || one->mirror != two->mirror)
        return leat_error(LEAT_EINVAL,
                          "top %s takes the choices of %s: expected the same "
                          "crop_size and mirror, found %d and %d, %d and %d",
                          top->name, other->name, one->crop_size,
                          two->crop_size, one->mirror, two->mirror);
    return LEAT_OK;
}

/* The name that top `i` adds to the list; "": none. */
static void name_further(const leat_top *top, char out[LEAT__TOP_NAME_MAX])
{
    out[0] = 0;
    if (top->form == LEAT_TOP_PAD)
        leat__top_name_lengths(out, top->name);
    if (top->form == LEAT_TOP_RAGGED)
        leat__top_name_offsets(out, top->name, 0);
}

/* Offsets of a further level are compared by their beginning. */
static bool is_taken(const leat_top *top, const char *name)
{
    char further[LEAT__TOP_NAME_MAX];
    name_further(top, further);
    size_t size = strlen(further);
    return size > 0 && strncmp(name, further, size) == 0 &&
           (name[size] == 0 || name[size] == '.');
}

static int check_names(const leat__top_list *list)
{
    int n = list->n;
    for (int i = 0; i < list->n; i++) {
        const leat_top *top = &list->top[i];
        if (leat__top_list_find(list, top->name) != i)
            return leat_error(LEAT_EINVAL, "two tops are called %s", top->name);
        n += top->form != LEAT_TOP_DENSE;
        for (int k = 0; k < list->n; k++)
            if (is_taken(top, list->top[k].name))
                return leat_error(LEAT_EINVAL,
                                  "top %s is called like one that top %s "
                                  "brings along",
                                  list->top[k].name, top->name);
    }
    if (n > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "%d tops, lengths and offsets included: expected at "
                          "most %d",
                          n, LEAT_MAX_FIELDS);
    return LEAT_OK;
}

static int check_size(const leat_data_layer_options *options)
{
    int n = options->ntop;
    if (n < 0 || n > LEAT_MAX_FIELDS || (n > 0 && !options->top))
        return leat_error(LEAT_EINVAL, "ntop is %d%s: expected 0 to %d tops", n,
                          n > 0 && !options->top ? " without tops" : "",
                          LEAT_MAX_FIELDS);
    if (n == 0 && options->top)
        return leat_error(LEAT_EINVAL,
                          "top has tops and ntop is 0: expected how many they "
                          "are");
    for (int i = 0; i < n; i++) {
        size_t size = options->top[0].size;
        const leat_top *top =
            (const leat_top *)(const void *)((const char *)options->top +
                                             (size_t)i * size);
        if (size < sizeof(size) || top->size != size)
            return leat_error(LEAT_EINVAL,
                              "top %d has size %zu: expected that of the "
                              "struct, the same in all tops",
                              i, size < sizeof(size) ? size : top->size);
    }
    return LEAT_OK;
}

int leat__top_list_init(leat__top_list *list,
                        const leat_data_layer_options *options)
{
    int status = check_size(options);
    if (status || options->ntop == 0)
        return status;
    size_t n = (size_t)options->ntop;
    list->transform = leat__alloc_zero(n, sizeof(*list->transform));
    list->name = leat__alloc_zero(n, sizeof(*list->name));
    if (!list->transform || !list->name)
        return LEAT_ENOMEM;
    const char *given = (const char *)options->top;
    for (; list->n < options->ntop && !status; given += options->top->size) {
        status = copy_top(list, list->n, (const leat_top *)(const void *)given);
        if (!status)
            status = check_top(&list->top[list->n++]);
    }
    if (!status)
        status = check_names(list);
    for (int i = 0; i < list->n && !status; i++) {
        const leat_top *top = &list->top[i];
        status = check_choices(list, top, options->transform);
        list->is_variable |=
            top->form == LEAT_TOP_RAGGED || leat__top_is_longest(top);
    }
    return status;
}

void leat__top_list_finish(leat__top_list *list)
{
    for (int i = 0; list->transform && i < LEAT_MAX_FIELDS; i++)
        if (list->top[i].size > 0)
            leat__transform_copy_finish(&list->transform[i]);
    leat__free(list->transform);
    leat__free(list->name);
    memset(list, 0, sizeof(*list));
}
