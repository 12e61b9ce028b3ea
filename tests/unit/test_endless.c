/* Which pipelines have no end, and who refuses them. */
#include "support/record_fixture.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <string.h>

/* Ten samples, of unknown number. */
#define UNKNOWN "range:10 | where:value=0.."
#define ENDLESS UNKNOWN " | repeat"

static const struct {
    const char *text;
    int is_endless;
} cases[] = {
    {"range:10", 0},
    {"range:10 | repeat", 1},
    {"range:10 | repeat:3", 0},
    {"range:0 | repeat", 0},
    {"range:10 | repeat | repeat:0", 0},
    {"random:-1", 1},
    {"random:5", 0},
    {"random:5 | constant", 1},
    {"random:-1 | constant:4", 0},
    {UNKNOWN, 0},
    {ENDLESS, 1},
    {UNKNOWN " | repeat:3", 0},
    {ENDLESS " | repeat:3", 1},
    {ENDLESS " | repeat:0", 0},
    {"range:10 | repeat | where:value=0..", 1},
    {ENDLESS " | take:5", 0},
    {ENDLESS " | take:-1", 1},
    {ENDLESS " | skip:5", 1},
    {ENDLESS " | share", 1},
    {UNKNOWN " | share", 0},
    {ENDLESS " | batch:4 | unbatch | shuffle:3 | prefetch", 1},
    {ENDLESS " | take:8 | batch:4 | shuffle:3 | prefetch", 0},
    {"(range:3) (" ENDLESS ") | chain", 1},
    {"(range:3) (" UNKNOWN ") | chain", 0},
    {"(range:3) (" ENDLESS ") | interleave", 1},
    {"files:/dev/null | interleave:(" ENDLESS ")", 1},
    {"files:/dev/null | interleave:(" UNKNOWN ")", 0},
    {"files:/dev/null | repeat | interleave:(" UNKNOWN ")", 1},
    {"(range:3) (" ENDLESS ") | merge", 1},
    {"(range:3) (" ENDLESS ") | zip:align=0,prefix=(a,b)", 0},
    {"(" ENDLESS ") (" ENDLESS ") | zip:align=0,prefix=(a,b)", 1},
    {"(range:3) (" ENDLESS ") | mix", 0},
    {"(" ENDLESS ") (" ENDLESS ") | mix", 1},
    {"(range:3) (" ENDLESS ") | mix:on_end=DROP", 1},
    {"(range:3) (" UNKNOWN ") | mix:on_end=REPEAT", 0},
};

START_TEST(a_pipeline_tells_whether_it_has_an_end)
{
    leat_reader *reader = record_reader_open(cases[_i].text);
    ck_assert_msg(leat_reader_is_endless(reader) == cases[_i].is_endless, "%s",
                  cases[_i].text);
    leat_reader_close(reader);
}
END_TEST

/* Each input may be the endless one. */
START_TEST(merge_counts_an_endless_input)
{
    static const char *const texts[] = {"(range:5) (range:5 | repeat) | merge",
                                        "(range:5 | repeat) (range:5) | merge"};
    for (int i = 0; i < 2; i++) {
        int64_t count;
        leat_reader *reader = record_reader_open(texts[i]);
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, LEAT_ENDLESS);
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(cache_refuses_what_has_no_end)
{
    static const char *const texts[] = {ENDLESS " | cache",
                                        ENDLESS " | cache:dir=never_made",
                                        "range:5 | repeat | cache"};
    for (int i = 0; i < 3; i++) {
        leat_pipeline *pipeline;
        leat_reader *reader;
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, texts[i]), LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "have no end"));
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

/* The function may. */
static int end_soon(void *user, leat_sample *sample)
{
    (void)user, (void)sample;
    return LEAT_END;
}

START_TEST(a_function_that_may_end_has_an_end)
{
    for (int may_end = 0; may_end < 2; may_end++) {
        leat_pipeline *upstream, *pipeline;
        leat_reader *reader;
        leat_map_options options = LEAT_MAP_OPTIONS_INIT;
        options.may_end = may_end;
        ck_assert_int_eq(leat_pipeline_parse(&upstream, ENDLESS), LEAT_OK);
        ck_assert_int_eq(
            leat_pipeline_map(&pipeline, upstream, end_soon, NULL, 0, &options),
            LEAT_OK);
        leat_pipeline_unref(upstream);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        ck_assert_int_eq(leat_reader_is_endless(reader), !may_end);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("endless");
    TCase *tcase = tcase_create("endless");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_pipeline_tells_whether_it_has_an_end, 0,
                        sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, merge_counts_an_endless_input);
    tcase_add_test(tcase, cache_refuses_what_has_no_end);
    tcase_add_test(tcase, a_function_that_may_end_has_an_end);
    return suite_run(suite);
}
