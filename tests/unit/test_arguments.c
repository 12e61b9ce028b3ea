/* The arguments of a reader: described by a table, read by kind. */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int open_nothing(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static const leat_argument arguments[] = {
    {.name = "first", .positional = 1, .required = 1, .help = "a path"},
    {.name = "more", .positional = 1, .repeated = 1},
    {.name = "text", .initial = "plain"},
    {.name = "none"},
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "10k",
     .min = -5,
     .max = 20000},
    {.name = "any", .kind = LEAT_ARGUMENT_NUMBER},
    {.name = "cache",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "1M",
     .max = INT64_MAX},
    {.name = "wait",
     .kind = LEAT_ARGUMENT_TIME,
     .initial = "1.5",
     .max = INT64_C(7200000000000)},
    {.name = "mode",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "slow",
     .words = "FAST|SLOW|OFF"},
    {.name = "fields", .kind = LEAT_ARGUMENT_LIST},
    {.name = "inner", .kind = LEAT_ARGUMENT_PIPELINE},
    {0},
};

static const leat_reader_type probe = {
    .size = sizeof(leat_reader_type),
    .name = "probe",
    .arguments = arguments,
    .argument_size = sizeof(leat_argument),
    .open = open_nothing,
};

/* Over it, by code, with `text` as its arguments. */
static leat_pipeline *make(const char *text)
{
    leat_pipeline *pipeline = NULL;
    int status =
        leat_pipeline_create(&pipeline, &probe, text, NULL, NULL, NULL, 0);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

START_TEST(values_are_read_without_their_escapes)
{
    static const struct {
        const char *text;
        const char *name;
        const char *value;
    } cases[] = {
        {"a", "first", "a"},
        {"a", "text", "plain"},
        {"a", "none", NULL},
        {"a", "unknown", NULL},
        {"a,text=", "text", ""},
        {"a,text=b c", "text", "b c"},
        {"a, text = b c ", "text", "b c"},
        {"a,\n\ttext\t=\n b\tc\r\n", "text", "b\tc"},
        {"a,text=\\ b\\ ", "text", " b "},
        {"a,text=b\\", "text", "b\\"},
        {"a,text=b\\,c\\=d\\|\\\\", "text", "b,c=d|\\"},
        {"a,text=b=c", "text", "b=c"},
        {"a,text=(b)", "text", "(b)"},
        {"a,text=b)", "text", "b)"},
        {"a,text=\"b\"", "text", "\"b\""},
        {"a,text={}", "text", "{}"},
        {"a,text=\\{}", "text", "{}"},
        {"a|b", "first", "a|b"},
        {" a ", "first", "a"},
        {"a\\=b", "first", "a=b"},
        {"(a)", "first", "(a)"},
        {",b", "first", ""},
        {"a,inner=( probe:{} )", "inner", "probe:{}"},
        {"a,inner=(probe:{}\\ )", "inner", "probe:{}\\ "},
        {"a,inner=(probe:\\\\ )", "inner", "probe:\\\\"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = make(cases[i].text);
        const char *value = leat_args_get(&pipeline->args, cases[i].name);
        ck_assert_msg((value == NULL) == (cases[i].value == NULL), "%s",
                      cases[i].text);
        if (value)
            ck_assert_str_eq(value, cases[i].value);
        ck_assert_int_eq(leat_args_has(&pipeline->args, "text"),
                         strstr(cases[i].text, "text") != NULL);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

static const leat_argument pair_arguments[] = {
    {.name = "field", .positional = 1, .repeated = 1, .pairs = 1},
    {.name = "sep"},
    {0},
};

static const leat_reader_type pairing = {
    .size = sizeof(leat_reader_type),
    .name = "pairing",
    .arguments = pair_arguments,
    .argument_size = sizeof(leat_argument),
    .open = open_nothing,
};

START_TEST(pairs_are_values_of_names_that_no_argument_has)
{
    static const struct {
        const char *text;
        const char *value[3];
        const char *written; /* NULL: the text */
    } cases[] = {
        {"a=int32", {"a=int32"}, NULL},
        {"a=int32,b,c=0..4", {"a=int32", "b", "c=0..4"}, NULL},
        {"a = int32 ,sep=;, b", {"a=int32", "b"}, "a=int32,sep=;,b"},
        {"a=(3,32,-1),b=1", {"a=(3,32,-1)", "b=1"}, NULL},
        {"a=!(0,2..5)", {"a=!(0,2..5)"}, NULL},
        {"a=()", {"a=()"}, NULL},
        {"a=(1,(2,3)),b", {"a=(1,(2,3))", "b"}, "a=\\(1\\,\\(2\\,3\\)\\),b"},
        {"a=b=c", {"a=b=c"}, "a=b\\=c"},
        {"a\\=b", {"a=b"}, "a=b"},
        {"sep\\=int8,sep=\\,", {"sep=int8"}, NULL},
        {"a\\,b=c\\|d", {"a,b=c|d"}, NULL},
        {"a=", {"a="}, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *made = NULL, *again = NULL;
        int status = leat_pipeline_create(&made, &pairing, cases[i].text, NULL,
                                          NULL, NULL, 0);
        ck_assert_msg(!status, "%s: %s", cases[i].text, leat_last_error());
        int n = 0;
        for (; n < 3 && cases[i].value[n]; n++)
            ck_assert_str_eq(leat_args_at(&made->args, n), cases[i].value[n]);
        ck_assert_ptr_null(leat_args_at(&made->args, n));
        const char *written = leat_pipeline_text(made) + strlen("pairing:");
        ck_assert_str_eq(written,
                         cases[i].written ? cases[i].written : cases[i].text);
        ck_assert_int_eq(leat_pipeline_create(&again, &pairing, written, NULL,
                                              NULL, NULL, 0),
                         LEAT_OK);
        ck_assert_str_eq(leat_pipeline_text(again), leat_pipeline_text(made));
        for (int k = 0; k < n; k++)
            ck_assert_str_eq(leat_args_at(&again->args, k), cases[i].value[k]);
        ck_assert_uint_eq(leat__pipeline_hash(again),
                          leat__pipeline_hash(made));
        leat_pipeline_unref(again);
        leat_pipeline_unref(made);
    }
}
END_TEST

START_TEST(numbers_are_read_by_their_kind)
{
    static const struct {
        const char *text;
        const char *name;
        int64_t value;
    } cases[] = {
        {"a", "count", 10000},
        {"a,count=7", "count", 7},
        {"a,count=-5", "count", -5},
        {"a,count=+7", "count", 7},
        {"a,count=1.5k", "count", 1500},
        {"a,count=20K", "count", 20000},
        {"a", "any", 0},
        {"a,any=-9223372036854775808", "any", INT64_MIN},
        {"a", "cache", 1 << 20},
        {"a,cache=10K", "cache", 10240},
        {"a,cache=10kB", "cache", 10000},
        {"a,cache=1.5 GiB", "cache", INT64_C(1610612736)},
        {"a,cache=9223372036854775807", "cache", INT64_MAX},
        {"a", "wait", 1500000000},
        {"a,wait=2", "wait", 2000000000},
        {"a,wait=2s", "wait", 2000000000},
        {"a,wait=500ms", "wait", 500000000},
        {"a,wait=500 us", "wait", 500000},
        {"a,wait=7ns", "wait", 7},
        {"a,wait=1.5min", "wait", INT64_C(90000000000)},
        {"a,wait=2h", "wait", INT64_C(7200000000000)},
        {"a,wait=0.000001", "wait", 1000},
        {"a", "mode", 1},
        {"a,mode=FAST", "mode", 0},
        {"a,mode=off", "mode", 2},
        {"a", "unknown", 0},
        {"a", "inner", 0},
        {"a", "fields", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = make(cases[i].text);
        ck_assert_msg(
            leat_args_number(&pipeline->args, cases[i].name) == cases[i].value,
            "%s: %lld", cases[i].text,
            (long long)leat_args_number(&pipeline->args, cases[i].name));
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(what_does_not_fit_the_table_is_refused_with_a_reason)
{
    static const struct {
        const char *text;
        const char *line;
    } cases[] = {
        {"", "probe: first is missing: a path"},
        {"text=b", "probe: first is missing: a path"},
        {"a,text=1,text=2", "probe: \"text\" is given twice"},
        {"a,txet=1", "no argument \"txet\"; did you mean text?; an equals"},
        {"a,frobnicate=1", "no argument \"frobnicate\"; an equals sign in a "
                           "path is written \\="},
        {"a,first=1", "has no argument \"first\""},
        {"a,=1", "has no argument \"\""},
        {"a,count=20001", "probe: count: expected -5 to 20000, found '20001'"},
        {"a,count=-6", "probe: count: expected -5 to 20000, found '-6'"},
        {"a,count=", "probe: count: expected -5 to 20000, found ''"},
        {"a,count=7x", "found '7x'"},
        {"a,count=0x7", "found '0x7'"},
        {"a,count=1.5", "found '1.5'"},
        {"a,any=9223372036854775808",
         "probe: any: expected a whole number, found '9223372036854775808'"},
        {"a,cache=-1", "probe: cache: expected 0 or more bytes, found '-1'"},
        {"a,cache=many", "found 'many'"},
        {"a,wait=3h",
         "probe: wait: expected a time such as 2, 500ms or 1.5h, from 0s to "
         "7200s, found '3h'"},
        {"a,wait=1 ", NULL},
        {"a,wait=0.5ns", "found '0.5ns'"},
        {"a,wait=0.0000001", "found '0.0000001'"},
        {"a,wait=99999999999999999999", "found '99999999999999999999'"},
        {"a,wait=9999999999h", "found '9999999999h'"},
        {"a,wait=1.", "found '1.'"},
        {"a,wait=s", "found 's'"},
        {"a,mode=medium",
         "probe: mode: expected FAST, SLOW or OFF, found 'medium'"},
        {"a,inner=probe:b", "probe: inner: expected a pipeline in "
                            "parentheses, such as (lmdb:{})"},
        {"a,inner=(nothing:{})", "there is no reader \"nothing\""},
        {"a,inner=()", "expected the name of a reader"},
        {"a,inner=(probe:{}", "this parenthesis is not closed"},
        {"a,inner=(probe:{})b", "expected a comma, | or the end, found 'b'"},
        {"a,inner=(probe:{},count=x)", "found 'x'"},
        {"a,fields=(b,c", "this parenthesis is not closed"},
        {"a,fields=(b|c)", "expected ), found '|'"},
        {"a,fields=(b)c", "expected a comma, | or the end, found 'c'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = NULL;
        int status = leat_pipeline_create(&pipeline, &probe, cases[i].text,
                                          NULL, NULL, NULL, 0);
        ck_assert_msg(status == (cases[i].line ? LEAT_EINVAL : LEAT_OK), "%s",
                      cases[i].text);
        if (cases[i].line)
            ck_assert_msg(strstr(leat_last_error(), cases[i].line) != NULL,
                          "%s: %s", cases[i].text, leat_last_error());
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(positional_values_follow_one_another)
{
    leat_pipeline *pipeline = make("a,text=t,b,count=1,any=2, c ,,\\,");
    static const char *const wanted[] = {"a", "b", "c", "", ","};
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(leat_args_at(&pipeline->args, i), wanted[i]);
    ck_assert_ptr_null(leat_args_at(&pipeline->args, 5));
    ck_assert_ptr_null(leat_args_at(&pipeline->args, -1));
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Each is found at once: a quadratic search would take minutes. */
START_TEST(there_may_be_a_million_values)
{
    enum { VALUES = 1000000 };
    char *text = malloc(2 * VALUES);
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < VALUES; i++)
        memcpy(text + (size_t)2 * i, "a,", 2);
    text[2 * VALUES - 1] = 0;
    leat_pipeline *pipeline = make(text);
    int found = 0;
    for (int i = 0; i < VALUES; i++)
        found += strcmp(leat_args_at(&pipeline->args, i), "a") == 0;
    ck_assert_int_eq(found, VALUES);
    ck_assert_ptr_null(leat_args_at(&pipeline->args, VALUES));
    leat_pipeline_unref(pipeline);
    free(text);
}
END_TEST

START_TEST(a_list_has_elements)
{
    static const struct {
        const char *text;
        const char *element[4];
    } cases[] = {
        {"a", {NULL}},
        {"a,fields=b", {"b"}},
        {"a,fields=", {""}},
        {"a,fields=()", {""}},
        {"a,fields=(b)", {"b"}},
        {"a,fields=( b , c d,e )", {"b", "c d", "e"}},
        {"a,fields=(b,,\\))", {"b", "", ")"}},
        {"a,fields=((b),c=d)", {"(b)", "c=d"}},
        {"a,fields=(b,c),text=d", {"b", "c"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = make(cases[i].text);
        int n = 0;
        for (; cases[i].element[n]; n++) {
            const char *element = leat_args_list(&pipeline->args, "fields", n);
            ck_assert_msg(element != NULL, "%s", cases[i].text);
            ck_assert_str_eq(element, cases[i].element[n]);
        }
        ck_assert_ptr_null(leat_args_list(&pipeline->args, "fields", n));
        ck_assert_ptr_null(leat_args_list(&pipeline->args, "fields", -1));
        ck_assert_ptr_null(leat_args_list(&pipeline->args, "text", 0));
        ck_assert_ptr_null(leat_args_list(&pipeline->args, "unknown", 0));
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(a_pipeline_is_made_for_each_element)
{
    static const struct {
        const char *text;
        const char *element;
        const char *made; /* its text, or the end of an error's line */
    } cases[] = {
        {"(probe:{})", "x", "probe:x"},
        {"(probe:{})", "x,y=(z)|{} \\", "probe:x\\,y\\=\\(z\\)\\|\\{} \\\\"},
        {"(probe:{})", " ", "probe:\\ "},
        {"(probe:a{}b{})", "x", "probe:axbx"},
        {"(probe:{ })", "x", "probe:{ }"},
        {"(probe:\\{})", "x", "probe:\\{}"},
        {"(probe:b,count={})", "7", "probe:b,count=7"},
        {"(probe:b,count={})", "x", "expected -5 to 20000, found 'x'"},
        {"(probe:b,fields=({},c))", "x,y", "probe:b,fields=(x\\,y,c)"},
        {"(probe:b)", NULL, "probe:b"},
        {"(probe:{})", NULL, "(probe:{}): there is no element for {}"},
        {"(probe:{})", "", "probe: inner: an element is empty"},
        /* The braces of an inner pipeline are its own. */
        {"(probe:{},inner=(probe:{}))", "x", "probe:x,inner=(probe:{})"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128] = "a,inner=";
        strcat(text, cases[i].text);
        leat_pipeline *pipeline = make(text);
        leat_pipeline *made = NULL;
        int status = leat_args_pipeline(&pipeline->args, "inner",
                                        cases[i].element, &made);
        const char *found =
            status ? leat_last_error() : leat_pipeline_text(made);
        ck_assert_msg(strstr(found, cases[i].made) != NULL, "%s: %s", text,
                      found);
        if (!status)
            ck_assert_str_eq(found, cases[i].made);
        leat_pipeline_unref(made);
        leat_pipeline_unref(pipeline);
    }
    leat_pipeline *without = make("a");
    leat_pipeline *none = NULL;
    ck_assert_int_eq(leat_args_pipeline(&without->args, "inner", "x", &none),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_args_pipeline(&without->args, "first", "x", &none),
                     LEAT_EINVAL);
    ck_assert_ptr_null(none);
    leat_pipeline_unref(without);
}
END_TEST

START_TEST(what_is_escaped_is_one_value)
{
    static const char *const texts[] = {
        "plain", "a,b",  "a=b", "a|b",        "a\\b",     "a\\",      "\\",
        " a ",   "  ",   " ",   "\\ ",        "a\\ ",     "=,|\\=,|", "\n\t",
        "(a)",   "a(b)", ")",   "\xc3\xa4 b", "{}",       "{a}",      "\"a\"",
        "{{}}",  "\ta",  "a\n", "a\nb",       "(a) (b) |"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char escaped[64];
        size_t size = leat_args_escape(texts[i], NULL, 0);
        ck_assert_uint_eq(leat_args_escape(texts[i], escaped, size), size);
        ck_assert_uint_eq(strlen(escaped) + 1, size);
        leat_pipeline *pipeline = make(escaped);
        ck_assert_str_eq(leat_args_at(&pipeline->args, 0), texts[i]);
        ck_assert_ptr_null(leat_args_at(&pipeline->args, 1));
        leat_pipeline_unref(pipeline);
    }
    char small[4] = "abc";
    ck_assert_uint_eq(leat_args_escape("a,b", small, sizeof(small)), 5);
    ck_assert_str_eq(small, "abc");
    char edges[16];
    leat_args_escape(" a b ", edges, sizeof(edges));
    ck_assert_str_eq(edges, "\\ a b\\ ");
}
END_TEST

START_TEST(the_text_is_that_of_the_values)
{
    leat_pipeline *pipeline = make(
        " b , cache = 10K,\n( c ) , fields=d, inner = ( probe : {} ) ,text=");
    ck_assert_str_eq(leat_pipeline_text(pipeline),
                     "probe:b,cache=10K,\\( c \\),fields=(d),"
                     "inner=(probe : {}),text=");
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(making_survives_every_failing_allocation)
{
    leat_pipeline *pipeline = NULL;
    int status;
    int n = 0;
    do {
        leat__alloc_fail_at(n++);
        status = leat_pipeline_create(
            &pipeline, &probe,
            "a,b,c,d,text=e,fields=(f,g),inner=((probe:{}) | test_any:h)", NULL,
            NULL, NULL, 0);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status);
    ck_assert_int_ge(n, 20);
    leat_pipeline *made = NULL;
    n = 0;
    do {
        leat__alloc_fail_at(n++);
        status = leat_args_pipeline(&pipeline->args, "inner", "x", &made);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status);
    ck_assert_int_ge(n, 8);
    leat_pipeline_unref(made);
    leat_pipeline_unref(pipeline);
}
END_TEST

static const leat_argument any_arguments[] = {
    {.name = "all", .positional = 1, .repeated = 1}, {0}};

static const leat_reader_type any_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_any",
    .arguments = any_arguments,
    .argument_size = sizeof(leat_argument),
    .max_upstream = 9,
    .open = open_nothing,
};

static void set_up(void)
{
    ck_assert_int_eq(leat_reader_register(&probe), LEAT_OK);
    ck_assert_int_eq(leat_reader_register(&any_type), LEAT_OK);
}

int main(void)
{
    Suite *suite = suite_create("arguments");
    TCase *tcase = tcase_create("arguments");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, values_are_read_without_their_escapes);
    tcase_add_test(tcase, pairs_are_values_of_names_that_no_argument_has);
    tcase_add_test(tcase, numbers_are_read_by_their_kind);
    tcase_add_test(tcase, what_does_not_fit_the_table_is_refused_with_a_reason);
    tcase_add_test(tcase, positional_values_follow_one_another);
    tcase_add_test(tcase, there_may_be_a_million_values);
    tcase_add_test(tcase, a_list_has_elements);
    tcase_add_test(tcase, a_pipeline_is_made_for_each_element);
    tcase_add_test(tcase, what_is_escaped_is_one_value);
    tcase_add_test(tcase, the_text_is_that_of_the_values);
    tcase_add_test(tcase, making_survives_every_failing_allocation);
    return suite_run(suite);
}
