/* The columns of lines of text. */
#include "base/memory.h"
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Lines, given one after the other, in the sample's own buffer or not. */
typedef struct lines {
    const char *const *line;
    int at;
    int is_stable;
} lines;

static int give(void *pass, leat_sample *sample)
{
    lines *all = pass;
    const char *line = all->line[all->at++];
    if (!line)
        return LEAT_END;
    const int64_t shape[] = {(int64_t)strlen(line)};
    sample->stable = all->is_stable;
    if (!all->is_stable) {
        char *copy = leat_sample_take(sample, strlen(line));
        if (!copy)
            return LEAT_ENOMEM;
        line = memcpy(copy, line, strlen(line));
    }
    return leat_sample_set(sample, 0, LEAT_BYTES, 1, shape, line);
}

static int restart(void *pass)
{
    ((lines *)pass)->at = 0;
    return LEAT_OK;
}

static leat_reader *open_lines(lines *all, const char *text)
{
    static const leat_field_spec spec = {.name = "line",
                                         .dtype = LEAT_BYTES,
                                         .ndim = 1,
                                         .shape = {-1},
                                         .content = LEAT_CONTENT_PLAIN};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .name = "lines.txt",
                                      .fields = &spec,
                                      .nfields = 1,
                                      .next = give,
                                      .reset = restart};
    leat_pipeline *base = NULL;
    ck_assert_int_eq(leat_pipeline_callback(&base, &callbacks, all), LEAT_OK);
    return map_fixture_open_over(base, text, 0);
}

/* The fields of a line as a text: "7|1.5 2|abc". */
static const char *split(const char *line, const char *text, int is_stable)
{
    static char out[512];
    const char *const both[] = {line, NULL};
    lines all = {both, 0, is_stable};
    leat_sample sample;
    leat_sample_init(&sample);
    leat_reader *reader = open_lines(&all, text);
    ck_assert_msg(reader, "%s: %s", text, leat_last_error());
    out[0] = 0;
    int status = leat_reader_next(reader, &sample);
    if (status)
        snprintf(out, sizeof(out), "%s", leat_last_error());
    for (int i = 0; i < sample.nfields && !status; i++) {
        const leat_field *field = &sample.field[i];
        size_t used = strlen(out);
        if (i)
            used += (size_t)sprintf(out + used, "|");
        if (field->dtype == LEAT_BYTES) {
            ck_assert_int_eq(field->ndim, 1);
            ck_assert_int_eq(field->shape[0], (int64_t)field->bytes);
            sprintf(out + used, "%.*s", (int)field->bytes,
                    (const char *)field->data);
            continue;
        }
        int n = field->ndim ? (int)field->shape[0] : 1;
        for (int k = 0; k < n; k++)
            used += (size_t)sprintf(out + used, k ? " %g" : "%g",
                                    map_fixture_number(&sample, i, k));
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return out;
}

START_TEST(columns_become_typed_fields)
{
    static const struct {
        const char *text, *line, *fields;
    } cases[] = {
        {"columns:a=int32,b=float32", "7,1.5", "7|1.5"},
        {"columns:a=int32,b=float32,sep=;", "7;1.5", "7|1.5"},
        {"columns:a=int32,b=float32,sep=tab", "7\t1.5\r", "7|1.5"},
        {"columns:a=int32,b=float32,sep=space", "  7 \t 1.5 ", "7|1.5"},
        {"columns:a=int32,sep=space", "7", "7"},
        {"columns:a=int8,x=uint8*3,z=float64", "-1,1,2,255,1e300",
         "-1|1 2 255|1e+300"},
        {"columns:_,a=int32,_*2,b=int32", "x,1,,y,2", "1|2"},
        {"columns:name=bytes,a=int64", " a b ,9223372036854775807",
         "a b|9.22337e+18"},
        {"columns:name=bytes,b=bytes", ",", "|"},
        {"columns:name=bytes", "", ""},
        {"columns:x=float32 * 2", "1, 2 ", "1 2"},
        {"columns:h=float16,b=bfloat16,i=int16,u=uint16,v=uint32",
         "0.5,0.25,-32768,65535,4294967295",
         "0.5|0.25|-32768|65535|4.29497e+09"},
        {"columns:x=float32*3", "nan,inf,-inf", "nan inf -inf"},
        {"columns:line=bytes,n=int32", "a,3", "a|3"},
        {"columns:sep\\=int32,sep=;", "4", "4"},
        {"columns:a=int32,field=line", "4", "4"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int is_stable = 0; is_stable < 2; is_stable++) {
            const char *fields = split(cases[i].line, cases[i].text, is_stable);
            ck_assert_msg(strcmp(fields, cases[i].fields) == 0,
                          "%s of '%s': %s", cases[i].text, cases[i].line,
                          fields);
        }
}
END_TEST

START_TEST(errors_name_the_record_and_the_column)
{
    static const struct {
        const char *text, *line, *error;
    } cases[] = {
        {"columns:a=int32,b=float32", "7,x",
         "columns: lines.txt: record 0: column 2 (b): expected float32, found "
         "'x'"},
        {"columns:a=int32,b=float32", "7",
         "the line has 1 columns: expected more, for b"},
        {"columns:a=int32", "7,8", "the line has more than the 1 columns"},
        {"columns:a=int32", "", "column 1 (a): expected int32, found ''"},
        {"columns:a=int32,sep=space", " ",
         "the line has 0 columns: expected more, for a"},
        {"columns:a=uint8", "256", "column 1 (a): expected uint8, found '256'"},
        {"columns:a=uint8", "-1", "expected uint8"},
        {"columns:a=int32", "1.5", "expected int32"},
        {"columns:a=int64", "9223372036854775808", "expected int64"},
        {"columns:a=float32", "1,5", "more than the 1 columns"},
        {"columns:x=int32*3", "1,2,z", "column 3 (x)"},
        {"columns:a=float32", "0x10", "expected float32"},
        {"columns:_*2,a=int32", "1,2", "has 2 columns"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *error = split(cases[i].line, cases[i].text, 0);
        ck_assert_msg(strstr(error, cases[i].error), "%s of '%s': %s",
                      cases[i].text, cases[i].line, error);
    }
}
END_TEST

START_TEST(a_bad_line_is_passed_by_and_nothing_is_allocated)
{
    static const char *const text[] = {"1,2", "1,x", "3,4", "5,6", NULL};
    lines all = {text, 0, 0};
    leat_sample sample;
    int64_t before = 0;
    leat_sample_init(&sample);
    leat_reader *reader = open_lines(&all, "columns:a=int32,b=int32*1");
    for (int epoch = 0; epoch < 3; epoch++) {
        const int expected[] = {LEAT_OK, LEAT_EDATA, LEAT_OK, LEAT_OK,
                                LEAT_END};
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), expected[i]);
        if (epoch == 0)
            before = leat__alloc_count();
        ck_assert_int_eq(leat__alloc_count(), before);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL),
            LEAT_OK);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(other_fields_stay_around_the_columns)
{
    static const int32_t ids[] = {7};
    static const leat_memory_field fields[] = {
        {"id", LEAT_INT32, 0, {0}, ids},
        {"line", LEAT_BYTES, 1, {3}, "1,2"},
        {"after", LEAT_INT32, 0, {0}, ids}};
    const leat_field_spec *spec;
    leat_sample sample;
    int n;
    leat_sample_init(&sample);
    leat_reader *reader =
        map_fixture_open(fields, 3, 1, "columns:a=int32,b=uint8*1");
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 4);
    const char *const names[] = {"id", "a", "b", "after"};
    const double values[] = {7, 1, 2, 7};
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(spec[i].name, names[i]);
        ck_assert_double_eq(map_fixture_number(&sample, i, 0), values[i]);
        ck_assert_int_eq(sample.field[i].ndim, spec[i].ndim);
    }
    leat_reader_close(reader);
    map_fixture_refuses(fields, 3, "columns:id=int32", "two fields are \"id\"");
    map_fixture_refuses(fields, 3, "columns:a=int32,field=id",
                        "field \"id\" is int32: expected text");
    map_fixture_refuses(fields, 3, "columns:a", "expected NAME=TYPE");
    map_fixture_refuses(fields, 3, "columns:a=int33", "no element type");
    map_fixture_refuses(fields, 3, "columns:a=int32*0", "expected 1 to");
    map_fixture_refuses(fields, 3, "columns:a=int32*x", "expected 1 to");
    map_fixture_refuses(fields, 3, "columns:_*-1,a=int32",
                        "'_*-1': expected 1 to");
    map_fixture_refuses(fields, 3, "columns:a=bytes*2", "a single column");
    map_fixture_refuses(fields, 3, "columns:_", "0 fields are made");
    map_fixture_refuses(fields, 3, "columns:a=int8,sep=ab", "sep: 'ab'");
    map_fixture_refuses(fields, 3, "columns:a=int8,sep=", "sep: ''");
    leat_sample_finish(&sample);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("columns");
    TCase *tcase = tcase_create("columns");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, columns_become_typed_fields);
    tcase_add_test(tcase, errors_name_the_record_and_the_column);
    tcase_add_test(tcase, a_bad_line_is_passed_by_and_nothing_is_allocated);
    tcase_add_test(tcase, other_fields_stay_around_the_columns);
    return suite_run(suite);
}
