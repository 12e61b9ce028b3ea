/* command_import_pipeline.c: `leat import pipeline`, whatever readers give. */
#include "tools/cli/buffer.h"
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/database/database.h"
#include "tools/delivery/pipeline_paths.h"
#include "tools/import/importer.h"

#include <leat/datum.h>
#include <leat/pipeline.h>

#include <math.h>
#include <string.h>

struct pipeline_import {
    struct importer importer; /* first */
    leat_pipeline *pipeline;
    leat_reader *reader;
    int data;  /* index of the field */
    int label; /* likewise; -1: there is none */
    leat_sample sample;
    int64_t next; /* record to be read */
    struct buffer record;
};

static int bad_field(const struct pipeline_import *import, const char *what,
                     const leat_field *field)
{
    return leat_error(LEAT_EUNSUPPORTED,
                      "%s: record %lld: its %s has type %s and %d dimensions, "
                      "which a Datum cannot hold",
                      leat_pipeline_text(import->pipeline),
                      (long long)import->next, what,
                      leat_dtype_name(field->dtype), field->ndim);
}

/* Images have up to three dimensions; a Datum's are int32. */
static int take_shape(const struct pipeline_import *import,
                      const leat_field *field, leat_datum *datum)
{
    int32_t *out[] = {&datum->channels, &datum->height, &datum->width};
    if (field->ndim < 1 || field->ndim > 3)
        return bad_field(import, "data", field);
    datum->channels = datum->height = datum->width = 1;
    /* A plane has one channel, a vector a channel for each element. */
    int first = field->ndim == 2 ? 1 : 0;
    for (int i = 0; i < field->ndim; i++) {
        if (field->shape[i] < 1 || field->shape[i] > INT32_MAX)
            return bad_field(import, "data", field);
        *out[first + i] = (int32_t)field->shape[i];
    }
    return LEAT_OK;
}

static int take_data(const struct pipeline_import *import,
                     const leat_field *field, leat_datum *datum)
{
    if (field->dtype == LEAT_BYTES) {
        datum->encoded = 1;
        datum->data = field->data;
        datum->data_size = field->bytes;
        return LEAT_OK;
    }
    int status = take_shape(import, field, datum);
    if (status)
        return status;
    size_t count = (size_t)datum->channels;
    if (__builtin_mul_overflow(count, (size_t)datum->height, &count) ||
        __builtin_mul_overflow(count, (size_t)datum->width, &count) ||
        count > field->bytes / leat_dtype_size(field->dtype))
        return bad_field(import, "data", field);
    if (field->dtype == LEAT_UINT8) {
        datum->data = field->data;
        datum->data_size = count;
    } else if (field->dtype == LEAT_FLOAT32) {
        datum->float_data = field->data;
        datum->float_count = count;
    } else {
        return bad_field(import, "data", field);
    }
    return LEAT_OK;
}

/* Several labels take the floats, unless pixels have them. */
static int take_labels(const struct pipeline_import *import,
                       const leat_field *field, leat_datum *datum)
{
    int64_t n = field->shape[0];
    if (datum->float_data)
        return leat_error(
            LEAT_EUNSUPPORTED,
            "%s: record %lld: a Datum has no room for its %lld "
            "labels: its pixels are floats, which take float_data",
            leat_pipeline_text(import->pipeline), (long long)import->next,
            (long long)n);
    if (n < 1 || (uint64_t)n > field->bytes / sizeof(float))
        return bad_field(import, "label", field);
    datum->float_data = field->data;
    datum->float_count = (size_t)n;
    return LEAT_OK;
}

/* NAN where the type is not a number's. */
static double read_number(const leat_field *field)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value;
    size_t size = leat_dtype_size(field->dtype);
    if (field->bytes < size || size > sizeof(value))
        return NAN;
    memcpy(&value, field->data, size);
    switch (field->dtype) {
    case LEAT_UINT8:
        return value.u8;
    case LEAT_UINT16:
        return value.u16;
    case LEAT_UINT32:
        return value.u32;
    case LEAT_INT8:
        return value.i8;
    case LEAT_INT16:
        return value.i16;
    case LEAT_INT32:
        return value.i32;
    case LEAT_INT64:
        return (double)value.i64;
    case LEAT_FLOAT32:
        return (double)value.f32;
    case LEAT_FLOAT64:
        return value.f64;
    default:
        return NAN;
    }
}

static int take_label(const struct pipeline_import *import,
                      const leat_field *field, leat_datum *datum)
{
    if (field->dtype == LEAT_FLOAT32 && field->ndim == 1)
        return take_labels(import, field, datum);
    bool is_scalar =
        field->ndim == 0 || (field->ndim == 1 && field->shape[0] == 1);
    double value = is_scalar ? read_number(field) : NAN;
    /* Also refuses NAN. */
    if (!(value >= INT32_MIN && value <= INT32_MAX) || value != trunc(value))
        return bad_field(import, "label", field);
    datum->label = (int32_t)value;
    return LEAT_OK;
}

static int make_record(struct pipeline_import *import, struct record *out)
{
    const leat_sample *sample = &import->sample;
    leat_datum datum = {0};
    if (import->data >= sample->nfields || import->label >= sample->nfields)
        return leat_error(LEAT_EDATA, "%s: record %lld lacks a field",
                          leat_pipeline_text(import->pipeline),
                          (long long)import->next);
    int status = take_data(import, &sample->field[import->data], &datum);
    if (!status && import->label >= 0)
        status = take_label(import, &sample->field[import->label], &datum);
    if (status)
        return status;
    status = buffer_reserve(&import->record, leat_datum_size(&datum));
    if (status)
        return status;
    out->number = import->next++;
    out->name = NULL;
    out->value = import->record.bytes;
    out->size = leat_datum_write(&datum, import->record.bytes);
    return LEAT_OK;
}

/* No rerun resumes an import of files that were written since. */
static int check_files(const struct pipeline_import *import, int status)
{
    int changed = leat_reader_check(import->reader);
    return changed == LEAT_EIO ? LEAT_EFORMAT : changed ? changed : status;
}

static int next_record(struct importer *importer, struct record *out)
{
    struct pipeline_import *import = (struct pipeline_import *)importer;
    int status =
        interrupt_explain(leat_reader_next(import->reader, &import->sample));
    if (status == LEAT_END || status == LEAT_EIO)
        status = check_files(import, status);
    return status ? status : make_record(import, out);
}

/* A reader that cannot seek passes by what is before. */
static int seek_record(struct importer *importer, int64_t number)
{
    struct pipeline_import *import = (struct pipeline_import *)importer;
    int64_t skipped;
    int status =
        leat_reader_seek(import->reader, (leat_position){0, number}, NULL);
    if (status == LEAT_EUNSUPPORTED)
        status = leat_reader_skip(import->reader, number, &skipped);
    if (!status)
        import->next = number;
    return status < 0 ? interrupt_explain(status) : LEAT_OK;
}

/* `data` and `label` by their names; otherwise the first field is the data. */
static void find_fields(struct pipeline_import *import)
{
    const leat_field_spec *fields;
    int n;
    int status = leat_reader_fields(import->reader, &fields, &n);
    output_require(status);
    if (status == LEAT_END)
        return;
    for (int i = 0; i < n; i++) {
        if (!strcmp(fields[i].name, "data"))
            import->data = i;
        if (!strcmp(fields[i].name, "label"))
            import->label = i;
    }
    if (import->data == import->label)
        message_fail("%s: has labels, but no field 'data'",
                     leat_pipeline_text(import->pipeline));
}

/* What tells the data from others and, as far as the readers know, from what
   they were. */
static int identify(leat_reader *reader, leat_token *out)
{
    int status = leat_reader_identify(reader, out);
    if (status != LEAT_EUNSUPPORTED)
        return status;
    out->size = 0;
    return leat_reader_save(reader, out);
}

/* Adds a line of a token to the arguments. */
static int add_token(struct importer *importer, const char *what,
                     leat_token *token)
{
    const char *text = leat_token_text(token);
    return text ? importer_add(importer, "%s of token %s", what, text)
                : LEAT_ENOMEM;
}

/* What an LMDB adds to the token of a pipeline that reads it. Empty where it
   cannot be read so. */
static void identify_database(const char *path, leat_token *out)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    if (leat_pipeline_lmdb(&pipeline, path, NULL) ||
        leat_pipeline_open(pipeline, &reader) ||
        leat_reader_identify(reader, out))
        out->size = 0;
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

/* Adds a line of the token without what the target, which is to be replaced,
   adds to it. Where that is not found, as in a hash of several, the line is of
   all. */
static int add_others(struct importer *importer, const char *target,
                      const leat_token *token)
{
    leat_token own, others;
    leat_token_init(&own);
    leat_token_init(&others);
    identify_database(target, &own);
    int status = LEAT_OK;
    for (size_t at = 0; !status && at < token->size;) {
        const unsigned char *bytes = token->bytes + at;
        bool is_own = own.size > 0 && own.size <= token->size - at &&
                      !memcmp(bytes, own.bytes, own.size);
        at += is_own ? own.size : 1;
        if (!is_own)
            status = leat_token_put(&others, bytes, 1);
    }
    if (!status)
        status = add_token(importer, "other data", &others);
    leat_token_finish(&own);
    leat_token_finish(&others);
    return status;
}

/* The text, and the readers' own description of the data as they are now. */
static void add_arguments(struct pipeline_import *import, const char *target)
{
    struct importer *importer = &import->importer;
    leat_token token;
    const char *name = leat_pipeline_text(import->pipeline);
    leat_token_init(&token);
    output_require(importer_add(importer, "pipeline %s", name));
    if (pipeline_paths_pipe(import->pipeline))
        output_require(importer_add_once(importer, name));
    bool is_in_place = pipeline_paths_database(import->pipeline, target);
    if (is_in_place)
        output_require(importer_add(importer, "reads what it replaces"));
    int status = identify(import->reader, &token);
    if (!status && is_in_place)
        status = add_others(importer, target, &token);
    if (!status)
        status = add_token(importer, "data", &token);
    leat_token_finish(&token);
    if (status != LEAT_EUNSUPPORTED)
        output_require(status);
    importer->is_in_place = is_in_place && !status;
}

static void cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
}

static void close_reader(void *reader)
{
    interrupt_unwatch(reader);
    leat_reader_close(reader);
}

static void open_pipeline(struct pipeline_import *import, const char *text,
                          const char *target)
{
    output_require(database_pipeline(&import->pipeline, text));
    output_require(leat_pipeline_open(import->pipeline, &import->reader));
    interrupt_watch(cancel_reader, import->reader);
    cleanup_add(close_reader, import->reader);
    find_fields(import);
    add_arguments(import, target);
    if (leat_reader_count(import->reader, &import->importer.count))
        import->importer.count = -1;
    if (leat_reader_is_endless(import->reader))
        message_fail("the pipeline has no end: add | take:N");
}

int command_import_pipeline(int argc, char **argv)
{
    struct pipeline_import import = {.importer = {.unit = "records",
                                                  .digits = 8,
                                                  .next = next_record,
                                                  .seek = seek_record},
                                     .label = -1};
    struct usage usage = {
        .command = "import pipeline",
        .arguments = "[options] TEXT OUT",
        .about = "Makes an LMDB of one pass of a pipeline's readers, such as\n"
                 "lmdb:PATH, with keys 00000000, 00000001, ...: data of\n"
                 "uint8, of float32 or encoded, and labels that are whole\n"
                 "numbers.",
        .least_arguments = 2,
        .most_arguments = 2,
    };
    char **path = importer_parse(&import.importer, &usage, argc, argv);
    leat_sample_init(&import.sample);
    interrupt_catch_opening();
    importer_check(&import.importer, path[1]);
    open_pipeline(&import, path[0], path[1]);
    interrupt_catch();
    int status = importer_run(&import.importer, path[1]);
    leat_sample_finish(&import.sample);
    cleanup_remove(import.reader);
    close_reader(import.reader);
    leat_pipeline_unref(import.pipeline);
    free(import.record.bytes);
    return status;
}
