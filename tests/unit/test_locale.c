/*
 * Words and numbers mean the same whatever locale the program has set. In a
 * Turkish one the small letter of I is another than i, and numbers have a
 * comma; in a Pashto one their point is no letter of ASCII. Ranges of patterns
 * are those of bytes.
 */
#include "base/ascii.h"
#include "base/decimal.h"
#include "readers/file_list.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static char folder[] = "/tmp/leat-locale-XXXXXX";

/* Whether the C library, and nobody else, follows the Turkish rules. */
static bool set_turkish(void)
{
    char command[256];
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof(command),
             "(localedef -i tr_TR -f UTF-8 %s/tr_TR.UTF-8;"
             " localedef -c -i ps_AF -f UTF-8 %s/ps_AF.UTF-8) >/dev/null 2>&1",
             folder, folder);
    if (system(command) == -1)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "tr_TR.UTF-8") != NULL;
}

static void remove_folder(void)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        puts("the locale's folder stays");
}

START_TEST(letters_are_those_of_ascii)
{
    ck_assert(leat__ascii_is_same("INFINITY", "infinity"));
    ck_assert(!leat__ascii_is_same("info", "inf"));
    ck_assert(!leat__ascii_is_same("inf", "info"));
    ck_assert(leat__ascii_is_same("", ""));
    ck_assert(leat__ascii_begins_same("MiB/s", "mib", 3));
    ck_assert(!leat__ascii_begins_same("Mi", "mib", 3));
    ck_assert(!leat__ascii_is_same("\xc4\xb0nfo", "info"));
    for (int c = 1; c < 256; c++) {
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        ck_assert_int_eq(leat__ascii_is_letter((char)c), is_letter);
        ck_assert_int_eq(leat__ascii_lower((char)c),
                         (char)(is_letter ? c | 0x20 : c));
        ck_assert_int_eq(leat__ascii_is_letter_or_digit((char)c),
                         is_letter || (c >= '0' && c <= '9'));
    }
}
END_TEST

START_TEST(decimal_numbers_have_a_point)
{
    double out;
    ck_assert(leat__decimal_double("1.5e1", 5, &out) && out == 15);
    ck_assert(leat__decimal_double("1.5", 3, &out) && out == 1.5);
    ck_assert(!leat__decimal_double("1,5e1", 5, &out));
    ck_assert(!leat__decimal_double("1,5", 3, &out));
}
END_TEST

/* Sets an option to each of its words, in large and small letters. */
static void check_words(const leat_option *option, void *options)
{
    char words[512], word[64];
    snprintf(words, sizeof(words), "%s", option->words);
    for (char *at = strtok(words, "|"); at; at = strtok(NULL, "|"))
        for (int is_small = 0; is_small < 2; is_small++) {
            snprintf(word, sizeof(word), "%s", at);
            for (char *c = word; *c && is_small; c++)
                *c = leat__ascii_lower(*c);
            ck_assert_msg(leat_option_set(option, options, word) == LEAT_OK,
                          "%s", leat_last_error());
        }
}

START_TEST(options_take_their_words_in_any_case)
{
    int n;
    leat_data_layer_options options = {.size = sizeof(options)};
    const leat_option *option = leat_data_layer_option_list(&n);
    for (int i = 0; i < n; i++)
        if (option[i].words)
            check_words(&option[i], &options);
    leat_transform_options transform = {.size = sizeof(transform)};
    option = leat_transform_option_list(&n);
    for (int i = 0; i < n; i++)
        if (option[i].words)
            check_words(&option[i], &transform);
}
END_TEST

START_TEST(numbers_have_points_and_units)
{
    static const struct {
        const char *text;
        size_t bytes;
    } sizes[] = {{"10MIB", 10 << 20},
                 {"10mib", 10 << 20},
                 {"1.5gib", (size_t)3 << 29},
                 {"3KiB", 3 << 10}};
    leat_data_layer_options options = {.size = sizeof(options)};
    leat_transform_options transform = {.size = sizeof(transform)};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert_int_eq(
            leat_data_layer_options_set(&options, "max_memory", sizes[i].text),
            LEAT_OK);
        ck_assert_uint_eq(options.max_memory, sizes[i].bytes);
    }
    ck_assert_int_eq(leat_transform_options_set(&transform, "scale", "0.5"),
                     LEAT_OK);
    ck_assert_float_eq(transform.scale, 0.5F);
}
END_TEST

START_TEST(code_makes_texts_with_points)
{
    static const float mean[] = {0.5F, 1.25F};
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_pipeline *base, *made;
    transform.scale = 0.00390625F;
    transform.has_scale = 1;
    transform.mean_value = mean;
    transform.mean_values = 2;
    ck_assert_int_eq(leat_pipeline_range(&base, 0, 3, 1), LEAT_OK);
    ck_assert_ptr_nonnull(
        setlocale(LC_ALL, _i ? "ps_AF.UTF-8" : "tr_TR.UTF-8"));
    ck_assert_int_eq(leat_pipeline_transform(&made, base, &transform, NULL),
                     LEAT_OK);
    setlocale(LC_ALL, "tr_TR.UTF-8");
    ck_assert_msg(strstr(leat_pipeline_text(made),
                         "scale=0.00390625,mean_value=(0.5,1.25),") != NULL,
                  "%s", leat_pipeline_text(made));
    leat_pipeline_unref(made);
    leat_pipeline_unref(base);
}
END_TEST

static void keep_line(void *user, leat_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 256, "%s", line);
}

START_TEST(a_log_level_is_a_word_in_any_case)
{
    char line[256] = "";
    setenv("LEAT_LOG_LEVEL", "INFO", 1);
    leat_log_set(keep_line, line, LEAT_LOG_NONE);
    ck_assert_str_eq(line, "");
    setenv("LEAT_LOG_LEVEL", "WARNING", 1);
    leat_log_set(keep_line, line, LEAT_LOG_NONE);
    ck_assert_str_eq(line, "");
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

START_TEST(a_net_file_is_read_as_everywhere)
{
    static const char *const words[] = {
        "on_error: fail", "transform_on: device", "label_type: 'int32'",
        "top_type: uint8"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char text[512];
        leat_net *net;
        snprintf(text, sizeof(text),
                 "layer { name: 'd' type: 'Data' top: 'data' transform_param { "
                 "scale: 0.5 } data_param { source: 'x' batch_size: 4 backend: "
                 "LMDB } leat_param { %s } }",
                 words[i]);
        int status =
            leat_net_parse(&net, "net", text, strlen(text), LEAT_TRAIN, NULL);
        ck_assert_msg(!status, "%s", leat_last_error());
        leat_net_close(net);
    }
}
END_TEST

START_TEST(a_range_of_a_pattern_has_all_letters_of_ascii)
{
    char path[64];
    leat__file_list list = {0};
    for (char c = 'a'; c <= 'z'; c++) {
        snprintf(path, sizeof(path), "%s/%c.x", folder, c);
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        fclose(file);
    }
    snprintf(path, sizeof(path), "%s/[a-z].x", folder);
    ck_assert_int_eq(leat__file_list_add(&list, path), LEAT_OK);
    ck_assert_int_eq(list.n, 26);
    leat__file_list_close(&list);
}
END_TEST

int main(void)
{
    if (!set_turkish()) {
        remove_folder();
        puts("skipped: no Turkish locale can be made here (localedef)");
        return SKIPPED;
    }
    Suite *suite = suite_create("locale");
    TCase *tcase = tcase_create("locale");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, letters_are_those_of_ascii);
    tcase_add_test(tcase, decimal_numbers_have_a_point);
    tcase_add_test(tcase, options_take_their_words_in_any_case);
    tcase_add_test(tcase, numbers_have_points_and_units);
    tcase_add_loop_test(tcase, code_makes_texts_with_points, 0, 2);
    tcase_add_test(tcase, a_log_level_is_a_word_in_any_case);
    tcase_add_test(tcase, a_net_file_is_read_as_everywhere);
    tcase_add_test(tcase, a_range_of_a_pattern_has_all_letters_of_ascii);
    int status = suite_run(suite);
    remove_folder();
    return status;
}
