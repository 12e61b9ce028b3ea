/*
 * Arguments of the decorators that work on each sample, and bytes for them: a
 * letter that chooses the decorator, its arguments up to a line's end, then the
 * field of bytes. What is opened writes arguments that mean the same, and gives
 * samples that are what it promised.
 */
#include "decorators/field.h"

#include <leat/ext/reader.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"cast",    "columns", "datum",     "decode",
                                    "reshape", "select",  "transform", "where"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static const leat_reader_type *type_named(const char *name)
{
    const leat_reader_type *type;
    int i = 0;
    while ((type = leat_reader_type_at(i++)) != NULL &&
           strcmp(type->name, name) != 0)
        ;
    return type;
}

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_map: %s: %s\n", what, leat_last_error());
    abort();
}

/* Each field is whole, and as the reader promised. */
static void check_sample(leat_reader *reader, const leat_sample *sample)
{
    const leat_field_spec *spec;
    int n;
    require(leat_reader_fields(reader, &spec, &n) == LEAT_OK, "fields");
    require(sample->nfields == n, "number of fields");
    for (int i = 0; i < n; i++) {
        size_t count;
        require(leat__field_fits(&sample->field[i], &spec[i]), "spec");
        require(leat__field_count(&sample->field[i], &count) == LEAT_OK,
                "size");
    }
}

static void read_one(const leat_pipeline *pipeline)
{
    leat_reader *reader;
    leat_sample sample;
    if (leat_pipeline_open(pipeline, &reader))
        return;
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    if (!status)
        check_sample(reader, &sample);
    require(status == LEAT_OK || status == LEAT_EDATA || status == LEAT_END ||
                status == LEAT_EINVAL,
            "status");
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

/* Its own arguments make the same pipeline again. */
static void check_text(const leat_pipeline *pipeline,
                       const leat_reader_type *type, leat_pipeline *base)
{
    const char *name = strstr(leat_pipeline_text(pipeline), " | ") + 3;
    const char *arguments = strchr(name, ':');
    leat_pipeline *again;
    require(leat_pipeline_create(&again, type, arguments ? arguments + 1 : "",
                                 NULL, NULL, &base, 1) == LEAT_OK,
            leat_pipeline_text(pipeline));
    require(strcmp(leat_pipeline_text(again), leat_pipeline_text(pipeline)) ==
                0,
            "text");
    leat_pipeline_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char pixels[12] = {1, 2, 3, 250};
    static const int32_t label = 7;
    const uint8_t *end = memchr(data, '\n', size);
    if (size == 0 || !end || end == data || end - data > 4096)
        return 0;
    size_t rest = size - (size_t)(end + 1 - data);
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {3, 2, 2}, pixels},
        {"label", LEAT_INT32, 0, {0}, &label},
        {"line", LEAT_BYTES, 1, {(int64_t)rest}, end + 1}};
    const leat_reader_type *type = type_named(names[data[0] % NAMES]);
    size_t length = (size_t)(end - data - 1);
    char *arguments = malloc(length + 1);
    leat_pipeline *base, *made;
    require(arguments != NULL, "memory");
    memcpy(arguments, data + 1, length);
    arguments[length] = 0;
    /* No file of the machine's is read. */
    int skips = strstr(arguments, "mean_file") != NULL;
    if (!skips && !leat_pipeline_memory(&base, fields, 3, 1)) {
        if (!leat_pipeline_create(&made, type, arguments, NULL, NULL, &base,
                                  1)) {
            check_text(made, type, base);
            read_one(made);
            leat_pipeline_unref(made);
        }
        leat_pipeline_unref(base);
    }
    free(arguments);
    return 0;
}
