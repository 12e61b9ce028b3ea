/*
 * A file is a header, records of one size and a footer. Fields are views of a
 * record's bytes, or copies where their byte order is not the machine's.
 */
#include "readers/fixed.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/shape.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters of a field's name, with its NUL. */
#define NAME_MAX_SIZE 64

/* No record, header or footer is larger. */
#define BYTES_MAX ((int64_t)1 << 40)

typedef struct fixed_field {
    char name[NAME_MAX_SIZE];
    size_t offset; /* in the record */
    size_t bytes;
    bool is_swapped; /* it is not in the machine's byte order */
} fixed_field;

typedef struct fixed_format {
    leat__record_format format; /* first */
    uint64_t header;            /* bytes, as the next two */
    uint64_t record;
    uint64_t footer;
    size_t swapped; /* bytes of all swapped fields */
    fixed_field field[LEAT_MAX_FIELDS];
} fixed_format;

static const fixed_format *fixed_of(const leat__record_format *format)
{
    return (const fixed_format *)format;
}

/* TensorFlow's words. */
static int bad_body(const fixed_format *fixed, uint64_t body)
{
    return leat_error(
        LEAT_EFORMAT,
        "Excluding the header (%llu bytes) and footer (%llu "
        "bytes), the file has body length %llu bytes, which is "
        "not an exact multiple of the record length (%llu bytes)",
        (unsigned long long)fixed->header, (unsigned long long)fixed->footer,
        (unsigned long long)body, (unsigned long long)fixed->record);
}

static int too_short(const fixed_format *fixed, uint64_t size)
{
    return leat_error(LEAT_EFORMAT,
                      "the header (%llu bytes) and footer (%llu bytes) are "
                      "more than the file, of %llu bytes",
                      (unsigned long long)fixed->header,
                      (unsigned long long)fixed->footer,
                      (unsigned long long)size);
}

static int fixed_begin(leat__record_format *format,
                       const leat__record_window *window, uint64_t size,
                       leat__record_file *out)
{
    const fixed_format *fixed = fixed_of(format);
    uint64_t around = fixed->header + fixed->footer;
    (void)window;
    out->first = fixed->header;
    if (size == UINT64_MAX)
        return LEAT_OK;
    if (size < around)
        return too_short(fixed, size);
    if ((size - around) % fixed->record)
        return bad_body(fixed, size - around);
    out->stride = fixed->record;
    out->count = (int64_t)((size - around) / fixed->record);
    return LEAT_OK;
}

/* For streams: the footer is known by the end that follows it. */
static int fixed_walk(const leat__record_format *format,
                      const leat__record_file *file,
                      const leat__record_window *window,
                      leat__record_walk *walk, leat__record_span out[], int n,
                      int *got)
{
    const fixed_format *fixed = fixed_of(format);
    uint64_t left = window->offset + window->size - walk->offset;
    uint64_t whole = fixed->record + fixed->footer;
    int found = 0;
    for (; found < n && left >= whole; found++) {
        out[found] = (leat__record_span){walk->offset, fixed->record};
        walk->offset += fixed->record;
        left -= fixed->record;
    }
    walk->record += found;
    *got = found;
    if (found > 0)
        return LEAT_OK;
    if (!window->is_last) {
        walk->needed = (size_t)whole;
        return LEAT_AGAIN;
    }
    if (left == fixed->footer)
        return LEAT_END;
    out[0].offset = walk->offset;
    /* Of the last record, or of the footer, some is missing. */
    uint64_t size = walk->offset + left, body = size - file->first;
    return body < fixed->footer ? too_short(fixed, size)
                                : bad_body(fixed, body - fixed->footer);
}

static void swap_elements(unsigned char *out, const unsigned char *from,
                          size_t bytes, size_t element)
{
    for (size_t at = 0; at < bytes; at += element)
        for (size_t i = 0; i < element; i++)
            out[at + i] = from[at + element - 1 - i];
}

static inline bool is_inside(const fixed_format *fixed,
                             const leat__record_window *window,
                             const leat__record_span *span)
{
    uint64_t at = span->offset - window->offset;
    return at <= window->size && window->size - at >= fixed->record;
}

/* All fields are views. */
static inline int read_views(const fixed_format *fixed,
                             const unsigned char *record, leat_sample *sample)
{
    const int n = fixed->format.nspec;
    int status = LEAT_OK;
    for (int i = 0; !status && i < n; i++)
        status = leat__record_append_as(sample, &fixed->format.spec[i],
                                        record + fixed->field[i].offset,
                                        fixed->field[i].bytes);
    return status;
}

static int read_swapped(const fixed_format *fixed, leat__record_window *window,
                        const leat__record_span *span, leat_sample *sample)
{
    unsigned char *swapped = leat__record_take(sample, window, fixed->swapped);
    if (!swapped)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    for (int i = 0; !status && i < fixed->format.nspec; i++) {
        const leat_field_spec *spec = &fixed->format.spec[i];
        const fixed_field *field = &fixed->field[i];
        const unsigned char *data =
            window->bytes + (span->offset - window->offset) + field->offset;
        if (field->is_swapped) {
            swap_elements(swapped, data, field->bytes,
                          leat_dtype_size(spec->dtype));
            data = swapped;
            swapped += field->bytes;
        }
        status = leat__record_append_as(sample, spec, data, field->bytes);
    }
    return status;
}

static int fixed_read(const leat__record_format *format,
                      const leat__record_file *file,
                      leat__record_window *window,
                      const leat__record_span span[], leat_sample *const out[],
                      int n, int *got)
{
    const fixed_format *fixed = fixed_of(format);
    int status = LEAT_OK, i = 0;
    (void)file;
    for (; !status && i < n; i += !status) {
        if (!is_inside(fixed, window, &span[i]))
            status = leat_error(LEAT_EDATA, "it is beyond the end of the file");
        else if (fixed->swapped > 0)
            status = read_swapped(fixed, window, &span[i], out[i]);
        else
            status = read_views(
                fixed, window->bytes + (span[i].offset - window->offset),
                out[i]);
    }
    *got = i;
    return status;
}

static const leat__record_format_ops fixed_ops = {
    .name = "fixed",
    .begin = fixed_begin,
    .walk = fixed_walk,
    .read = fixed_read,
};

static int bad_field(const char *text, const char *why)
{
    return leat_error(LEAT_EINVAL,
                      "fixed: fields: \"%s\": %s; expected NAME=TYPE@OFFSET or "
                      "NAME=TYPE@OFFSET:SHAPE, such as data=uint8@1:3x32x32, "
                      "with be after the TYPE for big-endian",
                      text, why);
}

/* A number at `*at`, which is moved past it. */
static bool read_number(const char **at, int64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    long long value = strtoll(*at, &end, 10);
    if (value > BYTES_MAX)
        return false;
    *at = end;
    *out = value;
    return true;
}

/* NAME= at `*at`. */
static bool read_name(const char **at, fixed_field *field)
{
    size_t size = strcspn(*at, "=");
    if (size == 0 || size >= NAME_MAX_SIZE || (*at)[size] != '=')
        return false;
    memcpy(field->name, *at, size);
    *at += size + 1;
    return true;
}

/* TYPE, and its byte order, before the @. */
static bool read_type(const char **at, leat_field_spec *spec,
                      fixed_field *field)
{
    char type[16] = "";
    size_t size = strcspn(*at, "@");
    if (size >= sizeof(type) || (*at)[size] != '@')
        return false;
    memcpy(type, *at, size);
    *at += size + 1;
    bool is_big = size > 2 && strcmp(type + size - 2, "be") == 0;
    if (is_big || (size > 2 && strcmp(type + size - 2, "le") == 0))
        type[size - 2] = 0;
    if (leat_dtype_parse(&spec->dtype, type))
        return false;
    bool is_machine_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    field->is_swapped =
        is_big != is_machine_big && leat_dtype_size(spec->dtype) > 1;
    return true;
}

/* :3x32x32 to the end of the text; nothing is a scalar. */
static bool read_shape(const char *at, leat_field_spec *spec,
                       fixed_field *field)
{
    field->bytes = leat_dtype_size(spec->dtype);
    if (!*at && spec->dtype != LEAT_BYTES)
        return true;
    spec->ndim = *at == ':'
                     ? leat__shape_parse(at + 1, strlen(at + 1), spec->shape)
                     : -1;
    for (int i = 0; i < spec->ndim; i++)
        if (spec->shape[i] < 1 || spec->shape[i] > BYTES_MAX ||
            leat__multiply(field->bytes, (size_t)spec->shape[i], &field->bytes))
            return false;
    return spec->ndim >= 0 && (spec->dtype != LEAT_BYTES || spec->ndim == 1);
}

static int add_field(fixed_format *fixed, const char *text)
{
    leat__record_format *format = &fixed->format;
    if (format->nspec == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "fixed: expected at most %d fields",
                          LEAT_MAX_FIELDS);
    leat_field_spec *spec = &format->spec[format->nspec];
    fixed_field *field = &fixed->field[format->nspec];
    const char *at = text;
    int64_t offset;
    if (!read_name(&at, field))
        return bad_field(text, "no name");
    if (!read_type(&at, spec, field))
        return bad_field(text, "no such type");
    if (!read_number(&at, &offset))
        return bad_field(text, *at >= '0' && *at <= '9'
                                   ? "the offset is out of range"
                                   : "no offset");
    if (!read_shape(at, spec, field))
        return bad_field(text, *at ? "no such shape" : "no shape");
    for (int i = 0; i < format->nspec; i++)
        if (strcmp(fixed->field[i].name, field->name) == 0)
            return bad_field(text, "there is one of that name");
    field->offset = (size_t)offset;
    spec->name = field->name;
    fixed->swapped += field->is_swapped ? field->bytes : 0;
    format->nspec++;
    return LEAT_OK;
}

/* The record has all fields, and ends with them where nothing says its size. */
static int set_record(fixed_format *fixed)
{
    uint64_t end = 0;
    for (int i = 0; i < fixed->format.nspec; i++) {
        const fixed_field *field = &fixed->field[i];
        if (field->bytes > (size_t)BYTES_MAX)
            return leat_error(LEAT_EINVAL,
                              "fixed: the field \"%s\" is too "
                              "large",
                              field->name);
        if (field->offset + field->bytes > end)
            end = field->offset + field->bytes;
    }
    if (fixed->record == 0)
        fixed->record = end;
    if (fixed->record == 0)
        return leat_error(LEAT_EINVAL, "fixed: expected record=BYTES, or "
                                       "fields=(NAME=TYPE@OFFSET,...)");
    if (end > fixed->record)
        return leat_error(LEAT_EINVAL,
                          "fixed: the fields end at byte %llu, beyond the "
                          "record of %llu",
                          (unsigned long long)end,
                          (unsigned long long)fixed->record);
    return LEAT_OK;
}

static int take_arguments(fixed_format *fixed, const leat_args *args)
{
    const char *text;
    int status = LEAT_OK;
    fixed->header = (uint64_t)leat_args_number(args, "header");
    fixed->footer = (uint64_t)leat_args_number(args, "footer");
    fixed->record = (uint64_t)leat_args_number(args, "record");
    for (int i = 0; (text = leat_args_list(args, "fields", i)) && !status; i++)
        status = add_field(fixed, text);
    if (!status)
        status = set_record(fixed);
    if (!status && fixed->format.nspec == 0) {
        char whole[64];
        snprintf(whole, sizeof(whole), "record=bytes@0:%llu",
                 (unsigned long long)fixed->record);
        status = add_field(fixed, whole);
    }
    fixed->format.defers = fixed->swapped > 0;
    return status;
}

static int fixed_open(const leat_open *open, leat_reader **out)
{
    fixed_format *fixed = leat__alloc_zero(1, sizeof(*fixed));
    if (!fixed)
        return LEAT_ENOMEM;
    fixed->format.ops = &fixed_ops;
    int status = take_arguments(fixed, open->args);
    if (status) {
        leat__free(fixed);
        return status;
    }
    return leat__record_reader_open(open, &fixed->format, out);
}

static const leat_argument fixed_arguments[] = {
    LEAT__RECORD_ARGUMENTS,
    {.name = "record",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "0",
     .max = BYTES_MAX,
     .help = "bytes of a record; 0: up to the last field's end"},
    {.name = "header",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "0",
     .max = BYTES_MAX,
     .help = "bytes before the first record of each file"},
    {.name = "footer",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "0",
     .max = BYTES_MAX,
     .help = "bytes after the last record of each file"},
    {.name = "fields",
     .kind = LEAT_ARGUMENT_LIST,
     .help = "NAME=TYPE@OFFSET:SHAPE each, be after the TYPE for big-endian: "
             "(label=uint8@0,data=uint8@1:3x32x32); else one field, record, "
             "of bytes"},
    {0},
};

const leat_reader_type leat__fixed_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "fixed",
    .help = "records of one size, with fields by their place in them",
    .arguments = fixed_arguments,
    .argument_size = sizeof(leat_argument),
    .open = fixed_open,
};

int leat_fixed_options_init(leat_fixed_options *options)
{
    const leat_fixed_options defaults = LEAT_FIXED_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/* Letters of a text beside its fields' names, and of each beside its name. */
#define TEXT_SIZE 128
#define FIELD_SIZE 256

/* NAME=TYPE@OFFSET:SHAPE, whose parts open checks; returns its end. */
static char *write_field(char *to, const leat_fixed_field *field)
{
    char shape[LEAT__SHAPE_TEXT_MAX];
    to += leat_args_escape(field->name, to, SIZE_MAX) - 1;
    to += sprintf(to, "=%s%s@%lld", leat_dtype_name(field->dtype),
                  field->is_big_endian ? "be" : "", (long long)field->offset);
    if (field->ndim)
        to += sprintf(to, ":%s",
                      leat__shape_text(shape, field->ndim, field->shape));
    return to;
}

/* The options as arguments, each after a comma. */
static void write_options(char *to, const leat_fixed_options *options)
{
    *to = 0;
    if (options->record)
        to += sprintf(to, ",record=%lld", (long long)options->record);
    if (options->header)
        to += sprintf(to, ",header=%lld", (long long)options->header);
    if (options->footer)
        to += sprintf(to, ",footer=%lld", (long long)options->footer);
    for (int i = 0; i < options->nfields; i++) {
        to = stpcpy(to, i ? "," : ",fields=(");
        to = write_field(to, &options->fields[i]);
    }
    if (options->nfields > 0)
        stpcpy(to, ")");
}

static int copy_options(leat_fixed_options *out,
                        const leat_fixed_options *options, size_t *letters)
{
    *out = (leat_fixed_options)LEAT_FIXED_OPTIONS_INIT;
    *letters = TEXT_SIZE;
    int status = leat__options_copy(out, options, sizeof(*out));
    if (status)
        return leat__error_context(status, "fixed");
    if (out->nfields < 0 || out->nfields > LEAT_MAX_FIELDS ||
        (out->nfields > 0 && !out->fields))
        return leat_error(LEAT_EINVAL, "fixed: expected 0 to %d fields, got %d",
                          LEAT_MAX_FIELDS, out->nfields);
    for (int i = 0; i < out->nfields; i++) {
        const leat_fixed_field *field = &out->fields[i];
        if (!field->name || field->ndim < 0 || field->ndim > LEAT_MAX_DIMS)
            return leat_error(LEAT_EINVAL,
                              "fixed: field %d has no name, or %d dimensions; "
                              "expected at most %d",
                              i, field->ndim, LEAT_MAX_DIMS);
        *letters += leat_args_escape(field->name, NULL, 0) + FIELD_SIZE;
    }
    return LEAT_OK;
}

int leat_pipeline_fixed(leat_pipeline **out, const char *const path[], int n,
                        const leat_fixed_options *fixed,
                        const leat_file_options *options)
{
    leat_fixed_options values;
    size_t letters;
    int status = copy_options(&values, fixed, &letters);
    char *text = status ? NULL : leat__alloc(letters);
    if (!status && !text)
        status = LEAT_ENOMEM;
    if (status)
        return status;
    write_options(text, &values);
    status = leat__record_pipeline(out, &leat__fixed_reader_type, path, n, text,
                                   options);
    leat__free(text);
    return status;
}
