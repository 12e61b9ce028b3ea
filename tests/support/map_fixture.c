#include "support/map_fixture.h"
#include "data/cast.h"
#include "support/decorator_chain.h"

#include <check.h>
#include <string.h>

leat_reader *map_fixture_open_over(leat_pipeline *base, const char *text,
                                   uint64_t seed)
{
    leat_reader *reader = NULL;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = seed;
    leat_pipeline *pipeline = decorator_chain_make(text, base);
    if (pipeline && leat_pipeline_open_with(pipeline, &options, &reader))
        reader = NULL;
    leat_pipeline_unref(pipeline);
    return reader;
}

leat_reader *map_fixture_open(const leat_memory_field fields[], int nfields,
                              int64_t count, const char *text)
{
    leat_pipeline *base = NULL;
    ck_assert_int_eq(leat_pipeline_memory(&base, fields, nfields, count),
                     LEAT_OK);
    return map_fixture_open_over(base, text, 5);
}

int map_fixture_line_has(const char *const parts[])
{
    for (int i = 0; parts[i]; i++)
        if (!strstr(leat_last_error(), parts[i]))
            return 0;
    return 1;
}

void map_fixture_refuses(const leat_memory_field fields[], int nfields,
                         const char *text, const char *part)
{
    leat_reader *reader = map_fixture_open(fields, nfields, 1, text);
    ck_assert_msg(!reader, "%s was taken", text);
    ck_assert_msg(strstr(leat_last_error(), part), "%s: %s", text,
                  leat_last_error());
}

int map_fixture_read(leat_reader *reader, int64_t index, leat_sample *sample)
{
    const leat_position at = {0, index};
    int got;
    return leat_reader_read_at(reader, &at, &sample, 1, &got);
}

double map_fixture_number(const leat_sample *sample, int i, int k)
{
    double number;
    const leat_field *field = &sample->field[i];
    ck_assert_int_lt(i, sample->nfields);
    size_t size = leat_dtype_size(field->dtype);
    ck_assert_uint_le(((size_t)k + 1) * size, field->bytes);
    leat__cast(&number, LEAT_FLOAT64,
               (const char *)field->data + (size_t)k * size, field->dtype, 1);
    return number;
}
