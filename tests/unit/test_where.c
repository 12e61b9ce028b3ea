/* The samples whose fields have certain values. */
#include "base/memory.h"
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>
#include <leat/token.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 12 };

static int32_t labels[COUNT];
static double scores[COUNT];
static uint32_t big[COUNT];
static int64_t huge[COUNT];
static double large[COUNT];
static const float vectors[COUNT][2];
static const leat_memory_field fields[] = {
    {"label", LEAT_INT32, 0, {0}, labels},
    {"score", LEAT_FLOAT64, 1, {1}, scores},
    {"big", LEAT_UINT32, 0, {0}, big},
    {"huge", LEAT_INT64, 0, {0}, huge},
    {"large", LEAT_FLOAT64, 0, {0}, large},
    {"vector", LEAT_FLOAT32, 1, {2}, vectors},
};
enum { FIELDS = 6 };

static void begin(void)
{
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i - 2;
        scores[i] = i / 4.0;
        big[i] = UINT32_MAX - (uint32_t)i;
        huge[i] = INT64_MAX - i;
        large[i] = 0x1p53 + 2 * i;
    }
    scores[5] = (double)NAN;
}

/* Which samples come, as a text: "0 1 4 ". */
static const char *taken(const char *text)
{
    static char out[256];
    leat_sample sample;
    leat_reader *reader = map_fixture_open(fields, FIELDS, COUNT, text);
    ck_assert_msg(reader, "%s: %s", text, leat_last_error());
    leat_sample_init(&sample);
    out[0] = 0;
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        snprintf(out + strlen(out), sizeof(out) - strlen(out), "%d ",
                 (int)sample.from.record);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return out;
}

START_TEST(ranges_lists_and_negations_choose_samples)
{
    static const struct {
        const char *text;
        const char *records;
    } cases[] = {
        {"where:label=3", "5 "},
        {"where:label=0..2", "2 3 4 "},
        {"where:label=-2..-1", "0 1 "},
        {"where:label=(1,3,7..9)", "3 5 9 10 11 "},
        {"where:label=( 1 , 3 )", "3 5 "},
        {"where:label=!3", "0 1 2 3 4 6 7 8 9 10 11 "},
        {"where:label=!(0..20,-1)", "0 "},
        {"where:label=..0", "0 1 2 "},
        {"where:label=8..", "10 11 "},
        {"where:label=0..4,score=1..", "4 6 "},
        {"where:label=0..4,label=!2", "2 3 5 6 "},
        {"where:label=0..4 | where:label=3..9", "5 6 "},
        {"where:label=0.5..2.5", "3 4 "},
        {"where:label=2e0", "4 "},
        {"where:label=100", ""},
        {"where:score=1.25", ""},
        {"where:score=.5..1", "2 3 4 "},
        {"where:score=0..100", "0 1 2 3 4 6 7 8 9 10 11 "},
        {"where:score=!0..100", "5 "},
        {"where:score=-inf..0", "0 "},
        {"where:big=4294967290..", "0 1 2 3 4 5 "},
        {"where:big=-1", ""},
        {"where:huge=9223372036854775806", "1 "},
        {"where:huge=9223372036854775800..9223372036854775801", "6 7 "},
        {"where:huge=9223372036854775808", ""},
        {"where:huge=!9223372036854775808", "0 1 2 3 4 5 6 7 8 9 10 11 "},
        {"where:huge=9223372036854775808..", ""},
        {"where:huge=9223372036854775807..9223372036854775808", "0 "},
        {"where:huge=-1e30..1e30", "0 1 2 3 4 5 6 7 8 9 10 11 "},
        {"where:huge=..-9223372036854775808", ""},
        {"where:large=9007199254740993", ""},
        {"where:large=9007199254740992..", "0 1 2 3 4 5 6 7 8 9 10 11 "},
        {"where:large=9007199254740993..9007199254740996", "1 2 "},
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *records = taken(cases[i].text);
        ck_assert_msg(strcmp(records, cases[i].records) == 0, "%s: %s",
                      cases[i].text, records);
    }
}
END_TEST

START_TEST(conditions_that_are_none_are_refused)
{
    static const char *const bad[] = {
        "label=",    "label",     "label=..",   "label=a",   "label=4..0",
        "label=1,2", "label=(1",  "label=(1,)", "label=!",   "label=1..2..3",
        "label=()",  "label=nan", "label=1 2",  "label=0x10"};
    begin();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        leat_pipeline *base = NULL, *made = NULL;
        leat_reader *reader = NULL;
        ck_assert_int_eq(leat_pipeline_memory(&base, fields, FIELDS, 1),
                         LEAT_OK);
        int status = leat_pipeline_where(&made, base, bad[i]);
        if (!status)
            status = leat_pipeline_open(made, &reader);
        ck_assert_msg(status == LEAT_EINVAL, "%s", bad[i]);
        leat_pipeline_unref(made);
        leat_pipeline_unref(base);
    }
    map_fixture_refuses(fields, FIELDS, "where:lable=3",
                        "where: there is no field \"lable\"");
    map_fixture_refuses(fields, FIELDS, "where:vector=3",
                        "field \"vector\" has 2 elements: expected a scalar");
    map_fixture_refuses(fields, FIELDS,
                        "cast:label=uint8 | cast:label=bytes "
                        "| where:label=3",
                        "field \"label\" is of bytes");
}
END_TEST

START_TEST(it_is_a_stream_that_resumes_at_every_position_by_marks)
{
    leat_sample sample;
    leat_token mark;
    int64_t count;
    int kept = 0;
    const char *text = "where:label=!(0..2,7)";
    begin();
    leat_reader *reader = map_fixture_open(fields, FIELDS, COUNT, text);
    leat_reader *other = map_fixture_open(fields, FIELDS, COUNT, text);
    leat_sample_init(&sample);
    leat_token_init(&mark);
    ck_assert_int_eq(leat_reader_is_random_access(reader), 0);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_EUNSUPPORTED);
    ck_assert_int_eq(leat_reader_can_seek(reader), 0);
    ck_assert_int_eq(leat_reader_has_mark(reader), 1);
    for (int status = LEAT_OK;; kept++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(other, (leat_position){0, kept}, &mark), LEAT_OK);
        status = leat_reader_next(reader, &sample);
        int64_t record = status ? -1 : sample.from.record;
        ck_assert_int_eq(leat_reader_next(other, &sample), status);
        if (status)
            break;
        ck_assert_int_eq(sample.from.record, record);
    }
    ck_assert_int_eq(kept, COUNT - 4);
    leat_token_finish(&mark);
    leat_sample_finish(&sample);
    leat_reader_close(other);
    leat_reader_close(reader);
}
END_TEST

START_TEST(nothing_is_allocated_once_it_runs)
{
    leat_sample sample;
    begin();
    leat_reader *reader =
        map_fixture_open(fields, FIELDS, COUNT, "where:label=0..4");
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        ck_assert_int_eq(sample.stable, 1);
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("where");
    TCase *tcase = tcase_create("where");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, ranges_lists_and_negations_choose_samples);
    tcase_add_test(tcase, conditions_that_are_none_are_refused);
    tcase_add_test(tcase,
                   it_is_a_stream_that_resumes_at_every_position_by_marks);
    tcase_add_test(tcase, nothing_is_allocated_once_it_runs);
    return suite_run(suite);
}
