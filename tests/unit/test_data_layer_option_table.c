/* The option tables, compared with what cannot be made from them: the structs
   in the headers, docs/prototxt.md and the man page. */
#include "base/option_list.h"
#include "support/suite.h"

#include <leat/data_layer.h>

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of the two tables, and where it is documented. */
static const struct table {
    const leat_option *(*list)(int *n);
    const char *header, *structure, *section;
    const char *others; /* members of the struct that are no options */
    const char *fields; /* fields of the section that are no options */
} tables[] = {
    {leat_data_layer_option_list, "include/leat/data_layer_options.h",
     "leat_data_layer_options", "\n### leat_param\n",
     " size ntop has_max_errors has_random_seed ", " reader top "},
    {leat_transform_option_list, "include/leat/transform.h",
     "leat_transform_options", "\n### transform_param\n",
     " size has_scale mean_values ", " mean_value use_gpu_transform display "},
};

/* A file of the tree. The caller frees it. */
static char *read_tree(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/../../%s", LEAT_TEST_DATA, name);
    FILE *in = fopen(path, "rb");
    ck_assert_msg(in != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, in), 0);
    fclose(in);
    return text;
}

static bool contains(const char *words, const char *word)
{
    char spaced[96];
    snprintf(spaced, sizeof(spaced), " %s ", word);
    return strstr(words, spaced) != NULL;
}

/* The part of a text from `begin` to `end`. The caller frees it. */
static char *cut(const char *text, const char *begin, const char *end)
{
    const char *from = strstr(text, begin);
    ck_assert_msg(from != NULL, "no %s", begin);
    from += strlen(begin);
    const char *to = strstr(from, end);
    return strndup(from, to ? (size_t)(to - from) : strlen(from));
}

/*
 * The next member of a struct's body: its name, and whether a comment stands
 * right before or after it. Returns what follows, NULL at the end.
 */
static const char *next_member(const char *at, char name[64],
                               bool *is_described)
{
    const char *word = NULL;
    size_t length = 0;
    *is_described = false;
    const char *before = at + strspn(at, " ");
    if (!strncmp(before, "/*", 2)) /* is of the member before */
        at = strstr(before, "*/") + 2;
    for (; *at && *at != ';'; at++) {
        if (!strncmp(at, "/*", 2)) {
            *is_described = true;
            at = strstr(at, "*/") + 1;
        } else if (isalpha((unsigned char)*at)) {
            word = at;
            length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
            at += length - (length > 0);
        }
    }
    if (!*at)
        return NULL;
    snprintf(name, 64, "%.*s", (int)length, word);
    at++;
    const char *after = at + strspn(at, " \n");
    *is_described |= !strncmp(after, "/*", 2);
    return at;
}

START_TEST(a_struct_has_the_options_in_order_with_a_comment_each)
{
    const struct table *table = &tables[_i];
    char begin[64], end[64], name[64];
    int n, i = 0;
    bool is_described;
    const leat_option *list = table->list(&n);
    char *header = read_tree(table->header);
    snprintf(begin, sizeof(begin), "typedef struct %s {", table->structure);
    snprintf(end, sizeof(end), "} %s;", table->structure);
    char *body = cut(header, begin, end);
    for (const char *at = body;
         (at = next_member(at, name, &is_described)) != NULL;) {
        ck_assert_msg(is_described, "%s has no comment", name);
        if (contains(table->others, name))
            continue;
        ck_assert_msg(i < n, "%s is not in the table", name);
        ck_assert_str_eq(name, list[i].name);
        i++;
    }
    ck_assert_int_eq(i, n);
    free(body);
    free(header);
}
END_TEST

/* What is written out as a default is the table's, and a zero stands for it. */
START_TEST(defaults_are_the_tables)
{
    leat_data_layer_options layer = {.size = sizeof(layer)}, set;
    const leat_data_layer_options macro = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_data_layer_options zeros = {.size = sizeof(zeros)};
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    const void *one = &macro, *other = &zeros;
    ck_assert(memcmp(one, other, sizeof(macro)) == 0);
    ck_assert_int_eq(leat_data_layer_options_init(&layer), LEAT_OK);
    for (int i = 0; i < n; i++) {
        if (!list[i].initial)
            continue;
        memcpy(&set, &layer, sizeof(set));
        ck_assert_int_eq(leat_option_set(&list[i], &set, list[i].initial),
                         LEAT_OK);
        if (list[i].given)
            *(bool *)((char *)&set + list[i].given) = false;
        one = &set;
        other = &layer;
        ck_assert_msg(memcmp(one, other, sizeof(set)) == 0, "%s", list[i].name);
    }
    ck_assert_int_eq(layer.prefetch, LEAT_PREFETCH_DEFAULT);
}
END_TEST

/* "LEAT|CAFFE" as "LEAT, CAFFE" */
static const char *joined(const char *words, char out[128])
{
    size_t n = 0;
    for (; *words; words++)
        n += (size_t)snprintf(out + n, 128 - n, *words == '|' ? ", " : "%c",
                              *words);
    return out;
}

/* The type of a field as the table of the document has it. */
static void write_type(const leat_option *option, char *out, size_t size)
{
    char words[128];
    if (!option->words)
        snprintf(out, size, "%s", option->field);
    else if (option->type == LEAT_OPTION_INT)
        snprintf(out, size, "int32 or %s", option->words);
    else
        snprintf(out, size, "%s", joined(option->words, words));
}

START_TEST(the_document_of_net_files_has_type_and_default_of_each_field)
{
    const struct table *table = &tables[_i];
    int n;
    const leat_option *list = table->list(&n);
    char *document = read_tree("docs/prototxt.md");
    char *section = cut(document, table->section, "\n#");
    for (int i = 0; i < n; i++) {
        char row[256], type[160];
        if (!list[i].field)
            continue;
        write_type(&list[i], type, sizeof(type));
        int length =
            snprintf(row, sizeof(row), "\n| `%s` | %s | ", list[i].name, type);
        if (list[i].initial)
            snprintf(row + length, sizeof(row) - (size_t)length, "%s | ",
                     list[i].initial);
        ck_assert_msg(strstr(section, row) != NULL, "docs/prototxt.md lacks %s",
                      row + 1);
    }
    for (const char *at = section; (at = strstr(at, "\n| `")) != NULL;) {
        char names[96];
        at += strlen("\n| ");
        snprintf(names, sizeof(names), "%.*s", (int)strcspn(at, "|"), at);
        for (char *name = strtok(names, "`, "); name;
             name = strtok(NULL, "`, ")) {
            const leat_option *option = leat__option_find(list, n, name);
            ck_assert_msg((option && option->field) ||
                              contains(table->fields, name),
                          "docs/prototxt.md: there is no field %s", name);
        }
    }
    free(section);
    free(document);
}
END_TEST

/* The default is named, and each word that the entry's head does not have. */
static void check_entry(const leat_option *option, const char *entry)
{
    char words[128], *rest = words;
    const char *initial = option->initial ? option->initial : "false";
    snprintf(words, sizeof(words), "%s", option->words ? option->words : "");
    for (char *word = strtok_r(words, "|", &rest); word;
         word = strtok_r(NULL, "|", &rest))
        ck_assert_msg(strstr(entry, word) || option->type == LEAT_OPTION_WORD,
                      "leat-dump.1: --%s: nothing on %s", option->argument,
                      word);
    ck_assert_msg(strstr(entry, initial) || !strcmp(initial, "false"),
                  "leat-dump.1: --%s: nothing on its default, %s",
                  option->argument, initial);
    if (strcmp(initial, "0") != 0 && strcmp(initial, "false") != 0)
        ck_assert_msg(strstr(option->help, initial) != NULL,
                      "--%s: help without the default", option->argument);
}

START_TEST(the_man_page_has_an_entry_for_each_option)
{
    int n;
    const leat_option *list = tables[_i].list(&n);
    char *page = read_tree("docs/leat-dump.1");
    for (int i = 0; i < n; i++) {
        char head[128] = "\n.TP\n.B";
        if (!list[i].argument)
            continue;
        bool is_flag = list[i].type == LEAT_OPTION_BOOL;
        const char *value = list[i].value ? list[i].value : list[i].words;
        size_t at = strlen(head);
        at += (size_t)snprintf(head + at, sizeof(head) - at, "%s \\-\\-",
                               is_flag ? "" : "I");
        for (const char *c = list[i].argument; *c; c++)
            at += (size_t)snprintf(head + at, sizeof(head) - at,
                                   *c == '-' ? "\\-" : "%c", *c);
        snprintf(head + at, sizeof(head) - at, is_flag ? "\n" : " \" %s\"\n",
                 value);
        ck_assert_msg(strstr(page, head) != NULL, "leat-dump.1 lacks%s", head);
        char *entry = cut(page, head, "\n.TP");
        check_entry(&list[i], entry);
        free(entry);
    }
    free(page);
}
END_TEST

START_TEST(an_option_is_found_and_set_by_its_name)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    static const struct {
        const char *name, *text, *line;
    } wrong[] = {
        {"prefetch", "x",
         "prefetch: expected 0 to 1048576 batches or AUTO, found 'x'"},
        {"prefetch", "-2",
         "prefetch: expected 0 to 1048576 batches or AUTO, found '-2'"},
        {"workers", "1.5", "workers: expected 0 to 1024 threads, found '1.5'"},
        {"workers", "", "workers: expected 0 to 1024 threads, found ''"},
        {"workers", "9223372036854775808",
         "workers: expected 0 to 1024 threads, found '9223372036854775808'"},
        {"max_memory", "1kiB2",
         "max_memory: expected 0 or more bytes, found '1kiB2'"},
        {"max_memory", "16777216T",
         "max_memory: expected 0 or more bytes, found '16777216T'"},
        {"random_seed", "seven",
         "random_seed: expected a whole number, found 'seven'"},
        {"top_type", "int32",
         "top_type: expected FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or UINT8, "
         "found 'int32'"},
        {"rng", "\n", "rng: expected LEAT or CAFFE, found '\\x0a'"},
        {"on_error", "skip",
         "on_error: SKIP is called REPLACE now; expected FAIL, ZERO or "
         "REPLACE"},
        {"shard_test", "2", "shard_test: expected true or false, found '2'"},
        {"bad_record_file", "", "bad_record_file: expected a text, found ''"},
        {"tops", "data",
         "tops: expected a list or struct, which is set in C, found "
         "'data'"},
        {"depth", "1", "the data layer has no option 'depth'"},
    };
    static const struct {
        const char *text;
        size_t bytes;
    } sizes[] = {{"0", 0},           {"64M", 64 << 20}, {"1.5KiB", 1536},
                 {"2 kB", 2000},     {"3 bytes", 3},    {"5B", 5},
                 {"+7", 7},          {"0.5k", 512},     {"1g", 1 << 30},
                 {"1.000001k", 1024}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(
            leat_data_layer_options_set(&options, wrong[i].name, wrong[i].text),
            LEAT_EINVAL);
        ck_assert_str_eq(leat_last_error(), wrong[i].line);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert_int_eq(
            leat_data_layer_options_set(&options, "max_memory", sizes[i].text),
            LEAT_OK);
        ck_assert_uint_eq(options.max_memory, sizes[i].bytes);
    }
    ck_assert_int_eq(leat_data_layer_options_set(&options, "workers", "1k"),
                     LEAT_OK);
    ck_assert_int_eq(options.workers, 1000);
    options.size = offsetof(leat_data_layer_options, rng);
    ck_assert_int_eq(leat_data_layer_options_set(&options, "rng", "CAFFE"),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "lacks it"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_layer_option_table");
    TCase *tcase = tcase_create("data_layer_option_table");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(
        tcase, a_struct_has_the_options_in_order_with_a_comment_each, 0, 2);
    tcase_add_test(tcase, defaults_are_the_tables);
    tcase_add_loop_test(
        tcase, the_document_of_net_files_has_type_and_default_of_each_field, 0,
        2);
    tcase_add_loop_test(tcase, the_man_page_has_an_entry_for_each_option, 0, 2);
    tcase_add_test(tcase, an_option_is_found_and_set_by_its_name);
    return suite_run(suite);
}
