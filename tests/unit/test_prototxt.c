#include "base/memory.h"
#include "config/net_schema.h"
#include "config/prototxt.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <check.h>
#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat__prototxt file;

/* The whole text as transform_param's fields, as the probes have it. */
static int parse_transform(const char *text, size_t size)
{
    int status = leat__prototxt_parse(&file, "input", text, size);
    if (status)
        return status;
    status =
        leat__net_schema_check(&file, &file.root, &leat__net_schema_transform);
    if (status)
        leat__prototxt_finish(&file);
    return status;
}

static int parse(const char *text)
{
    return leat__prototxt_parse(&file, "input", text, strlen(text));
}

static const leat__prototxt_field *first(const char *text)
{
    ck_assert_msg(parse(text) == LEAT_OK, "%s", leat_last_error());
    return file.root.first;
}

static void refused(const char *text, const char *line)
{
    ck_assert_int_eq(parse_transform(text, strlen(text)), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), line);
}

/* A number as protobuf prints it: the shortest text, with a point in it. */
static void print_float(FILE *out, float value)
{
    char text[32];
    if (isnan(value) || isinf(value)) {
        fprintf(out, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtof(text, NULL) == value)
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void print_string(FILE *out, const char *text, size_t size)
{
    fputc('"', out);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c == '"')
            fputs("\\\"", out);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(out, "\\%03o", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_value(FILE *out, const leat__prototxt_field *field)
{
    const char *text;
    float number;
    uint32_t size;
    bool flag;
    if (!strcmp(field->name, "mean_file")) {
        ck_assert_int_eq(leat__prototxt_string(&file, field, &text), LEAT_OK);
        print_string(out, text, field->text_size);
    } else if (!strcmp(field->name, "crop_size")) {
        ck_assert_int_eq(leat__prototxt_uint32(&file, field, &size), LEAT_OK);
        fprintf(out, "%u", size);
    } else if (strstr("scale mean_value", field->name)) {
        ck_assert_int_eq(leat__prototxt_float(&file, field, &number), LEAT_OK);
        print_float(out, number);
    } else {
        ck_assert_int_eq(leat__prototxt_bool(&file, field, &flag), LEAT_OK);
        fputs(flag ? "true" : "false", out);
    }
}

/* All fields in the order of the schema, as protobuf's short text. */
static char *print_transform(void)
{
    static const char *const names[] = {
        "scale",      "mirror",      "crop_size", "mean_file",
        "mean_value", "force_color", "force_gray"};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *between = "";
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const leat__prototxt_field *field =
            leat__prototxt_find(&file.root, names[i]);
        for (; field; field = leat__prototxt_find_next(field)) {
            fprintf(out, "%s%s: ", between, names[i]);
            print_value(out, field);
            between = " ";
        }
    }
    fclose(out);
    return text;
}

static json_t *load_probes(void)
{
    char path[SHARED_PATH];
    if (!shared_path(path, "prototxt/lex_table.json"))
        return NULL;
    json_t *probes = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(probes);
    return probes;
}

START_TEST(protobufs_verdict_is_the_verdict_on_every_probe)
{
    json_t *probes = load_probes();
    size_t i;
    json_t *probe;
    if (!probes)
        return;
    ck_assert_uint_eq(json_array_size(probes), 69);
    json_array_foreach(probes, i, probe)
    {
        json_t *text = json_object_get(probe, "text");
        const char *bytes = json_string_value(text);
        int is_ok = json_is_true(json_object_get(probe, "cpp_ok"));
        int status = parse_transform(bytes, json_string_length(text));
        ck_assert_msg(is_ok == (status == LEAT_OK), "%s: %s", bytes,
                      status ? leat_last_error() : "accepted");
        if (status) {
            ck_assert_int_eq(status, LEAT_EINVAL);
            continue;
        }
        char *printed = print_transform();
        ck_assert_str_eq(
            printed, json_string_value(json_object_get(probe, "cpp_value")));
        free(printed);
        leat__prototxt_finish(&file);
    }
    json_decref(probes);
}
END_TEST

START_TEST(a_tree_keeps_names_values_and_places)
{
    const leat__prototxt_field *net =
        first("name: \"n\"\nlayer {\n  top: 'a' top: 'b'\n\tcrop: -7;\n}\n");
    ck_assert_str_eq(net->name, "name");
    ck_assert_int_eq(net->at.line, 1);
    ck_assert_int_eq(net->value_at.column, 7);
    const leat__prototxt_field *layer = net->next;
    ck_assert_int_eq(layer->type, LEAT__PROTOTXT_MESSAGE);
    const leat__prototxt_field *top = leat__prototxt_find(layer, "top");
    ck_assert_str_eq(top->text, "a");
    top = leat__prototxt_find_next(top);
    ck_assert_str_eq(top->text, "b");
    ck_assert_int_eq(top->at.line, 3);
    ck_assert_int_eq(top->at.column, 12);
    ck_assert_ptr_null(leat__prototxt_find_next(top));
    /* A tab goes to the next multiple of eight, as protobuf counts. */
    const leat__prototxt_field *crop = leat__prototxt_find(layer, "crop");
    ck_assert_int_eq(crop->at.column, 9);
    ck_assert_int_eq(crop->is_negative, 1);
    leat__prototxt_finish(&file);
}
END_TEST

START_TEST(errors_name_file_line_and_column)
{
    refused("scale: 1\n scale: 2",
            "input:2:2: scale is given twice in transform_param, and may be "
            "given once");
    refused("# c\nunknown_x: 1",
            "input:2:1: transform_param has no field named \"unknown_x\"");
    refused("crop_size: -5", "input:1:12: crop_size: expected an integer from "
                             "0 to 4294967295, found -5");
    refused("mean_value: [1 2]", "input:1:16: expected , or ], found 2");
    refused("scale 1", "input:1:7: expected :, found 1");
    refused("mean_file: \"a\nb\"",
            "input:1:14: expected \" before the end of the line");
    refused("m {", "input:1:4: expected }, found the end of the file");
    refused("m < }", "input:1:5: expected >, found }");
    refused("scale: }", "input:1:8: expected a value, found }");
    refused("mirror: {}", "input:1:9: mirror: expected true or false, found {");
}
END_TEST

START_TEST(messages_and_lists_have_all_their_forms)
{
    static const char *const texts[] = {
        "m { a: 1 }",   "m: { a: 1 }",      "m < a: 1 >",
        "m: < a: 1 >;", "m [{a:1},<a:1>],", "m: [ { a: 1 } ]\r\n",
        "m{a:1}m{a:1}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const leat__prototxt_field *m = first(texts[i]);
        for (; m; m = leat__prototxt_find_next(m)) {
            int32_t value = 0;
            ck_assert_int_eq(leat__prototxt_int32(
                                 &file, leat__prototxt_find(m, "a"), &value),
                             LEAT_OK);
            ck_assert_int_eq(value, 1);
        }
        leat__prototxt_finish(&file);
    }
    ck_assert_int_eq(parse("m [1]"), LEAT_EINVAL);
    ck_assert_int_eq(parse("m: [[1]]"), LEAT_EINVAL);
    ck_assert_int_eq(parse("[a.b]: 1"), LEAT_EINVAL);
}
END_TEST

START_TEST(integers_end_where_their_type_ends)
{
    int32_t i32;
    int64_t i64;
    uint64_t u64;
    const leat__prototxt_field *field =
        first("a: -2147483648 a: -2147483649 a: 2147483648 a: - 9"
              " a: -9223372036854775808 a: 18446744073709551615"
              " a: 18446744073709551616");
    ck_assert_int_eq(leat__prototxt_int32(&file, field, &i32), LEAT_OK);
    ck_assert_int_eq(i32, INT32_MIN);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_int32(&file, field, &i32), LEAT_EINVAL);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_int32(&file, field, &i32), LEAT_EINVAL);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_int32(&file, field, &i32), LEAT_OK);
    ck_assert_int_eq(i32, -9);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_int64(&file, field, &i64), LEAT_OK);
    ck_assert_int_eq(i64, INT64_MIN);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_int64(&file, field, &i64), LEAT_EINVAL);
    ck_assert_int_eq(leat__prototxt_uint64(&file, field, &u64), LEAT_OK);
    ck_assert_uint_eq(u64, UINT64_MAX);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_uint64(&file, field, &u64), LEAT_EINVAL);
    leat__prototxt_finish(&file);
}
END_TEST

START_TEST(integers_are_decimal_hexadecimal_or_octal)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {{"a: 10", 10},        {"a: 0", 0},      {"a: 0x10", 16},
                 {"a: 0xfF9a", 65434}, {"a: 0XAB", 171}, {"a: 017", 15},
                 {"a: 00", 0},         {"a: 0x0", 0},    {"a: 0x8", 8}};
    static const char *const wrong[] = {"a: 0x",   "a: 0xg", "a: 08",
                                        "a: 0xx1", "a: 1x",  "a: 0X"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t value = 77;
        ck_assert_int_eq(
            leat__prototxt_uint64(&file, first(cases[i].text), &value),
            LEAT_OK);
        ck_assert_uint_eq(value, cases[i].value);
        leat__prototxt_finish(&file);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(parse(wrong[i]), LEAT_EINVAL);
}
END_TEST

/* The largest float rounds up at the middle to infinity, but not on it. */
START_TEST(floats_round_by_way_of_double)
{
    float value;
    double wide;
    const leat__prototxt_field *field =
        first("a: 3.4028235677973366e+38 a: 3.4028235677973370e+38"
              " a: 16777216.999999999999 a: -nan a: 1e-46");
    ck_assert_int_eq(leat__prototxt_float(&file, field, &value), LEAT_OK);
    ck_assert(value == FLT_MAX);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_float(&file, field, &value), LEAT_OK);
    ck_assert(isinf(value));
    field = field->next;
    ck_assert_int_eq(leat__prototxt_double(&file, field, &wide), LEAT_OK);
    ck_assert_int_eq(leat__prototxt_float(&file, field, &value), LEAT_OK);
    ck_assert(value == (float)wide);
    field = field->next;
    ck_assert_int_eq(leat__prototxt_float(&file, field, &value), LEAT_OK);
    ck_assert(isnan(value));
    field = field->next;
    ck_assert_int_eq(leat__prototxt_float(&file, field, &value), LEAT_OK);
    ck_assert(value == 0);
    leat__prototxt_finish(&file);
}
END_TEST

START_TEST(a_locale_with_a_decimal_comma_changes_nothing)
{
    float value;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        printf("skipped: the locale de_DE.UTF-8 is not installed\n");
    ck_assert_int_eq(leat__prototxt_float(&file, first("a: 0.5"), &value),
                     LEAT_OK);
    ck_assert(value == 0.5f);
    leat__prototxt_finish(&file);
    setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(escapes_of_unicode_become_utf8)
{
    const leat__prototxt_field *field =
        first("a: \"\\ud83d\\ude00\" a: \"\\U0001F600\" a: \"\\ud83d\\u0041\""
              " a: \"\\U00110000\" a: '\\0\\18\\x414'");
    ck_assert_str_eq(field->text, "\xf0\x9f\x98\x80");
    ck_assert_str_eq(field->next->text, "\xf0\x9f\x98\x80");
    field = field->next->next;
    ck_assert_str_eq(field->text, "\xed\xa0\xbd\x41");
    ck_assert_str_eq(field->next->text, "\\U00110000");
    field = field->next->next;
    ck_assert_uint_eq(field->text_size, 5);
    ck_assert_mem_eq(field->text,
                     "\0\1"
                     "8A4",
                     5);
    leat__prototxt_finish(&file);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    refused("\xef\xbb\xbfscale: 1",
            "input:1:1: expected a field, found a byte order mark: save the "
            "file as UTF-8 without it");
    ck_assert_int_eq(parse_transform("scale: 1\0", 9), LEAT_EINVAL);
    ck_assert_int_eq(parse_transform("# c\0\n", 5), LEAT_EINVAL);
    ck_assert_int_eq(parse_transform("mean_file: \"a\0\"", 15), LEAT_EINVAL);
    ck_assert_int_eq(parse_transform("scale\xa0: 1", 9), LEAT_EINVAL);
    ck_assert_int_eq(parse_transform("\x01", 1), LEAT_EINVAL);
}
END_TEST

START_TEST(a_hundred_nested_messages_are_read_and_one_more_is_not)
{
    char text[1024];
    for (size_t depth = 100; depth <= 101; depth++) {
        for (size_t i = 0; i < depth; i++)
            memcpy(text + 2 * i, "m{", 2);
        memset(text + 2 * depth, '}', depth);
        ck_assert_int_eq(leat__prototxt_parse(&file, "input", text, 3 * depth),
                         depth == 100 ? LEAT_OK : LEAT_EINVAL);
    }
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "input:1:202: "));
    leat__prototxt_finish(&file);
}
END_TEST

START_TEST(a_hundred_thousand_open_braces_are_one_error)
{
    size_t size = 200000;
    char *text = malloc(size);
    for (size_t i = 0; i < size; i += 2)
        memcpy(text + i, "m{", 2);
    ck_assert_int_eq(leat__prototxt_parse(&file, "input", text, size),
                     LEAT_EINVAL);
    memset(text, '{', size);
    ck_assert_int_eq(leat__prototxt_parse(&file, "input", text, size),
                     LEAT_EINVAL);
    free(text);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    /* Large enough for several blocks of memory. */
    size_t size = 64 << 10;
    char *text = malloc(size);
    for (size_t i = 0; i < size; i += 8)
        memcpy(text + i, "a: 'bc' ", 8);
    int status = LEAT_ENOMEM;
    int64_t n = 0;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = leat__prototxt_parse(&file, "input", text, size);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    ck_assert_int_gt(n, 5);
    leat__prototxt_finish(&file);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prototxt");
    TCase *tcase = tcase_create("prototxt");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, protobufs_verdict_is_the_verdict_on_every_probe);
    tcase_add_test(tcase, a_tree_keeps_names_values_and_places);
    tcase_add_test(tcase, errors_name_file_line_and_column);
    tcase_add_test(tcase, messages_and_lists_have_all_their_forms);
    tcase_add_test(tcase, integers_end_where_their_type_ends);
    tcase_add_test(tcase, integers_are_decimal_hexadecimal_or_octal);
    tcase_add_test(tcase, floats_round_by_way_of_double);
    tcase_add_test(tcase, a_locale_with_a_decimal_comma_changes_nothing);
    tcase_add_test(tcase, escapes_of_unicode_become_utf8);
    tcase_add_test(tcase, bytes_that_are_no_text_are_refused);
    tcase_add_test(tcase,
                   a_hundred_nested_messages_are_read_and_one_more_is_not);
    tcase_add_test(tcase, a_hundred_thousand_open_braces_are_one_error);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
