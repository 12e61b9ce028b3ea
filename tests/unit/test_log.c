#include "base/log.h"
#include "base/thread.h"
#include "support/fork_steps.h"
#include "support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last line heard, and how many. */
typedef struct ear {
    int lines;
    leat_log_level level;
    char line[1024];
} ear;

static void hear(void *user, leat_log_level level, const char *line)
{
    ear *self = user;
    self->lines++;
    self->level = level;
    snprintf(self->line, sizeof(self->line), "%s", line);
}

static void set_up(void)
{
    unsetenv("LEAT_LOG_LEVEL");
}

static void tear_down(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}

START_TEST(nobody_hears_anything_by_default)
{
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_ERROR), 0);
    leat__log(LEAT_LOG_ERROR, "nobody");
}
END_TEST

START_TEST(a_listener_hears_its_level_and_what_is_graver)
{
    for (int level = LEAT_LOG_NONE; level <= LEAT_LOG_DEBUG; level++) {
        ear listener = {0};
        leat_log_set(hear, &listener, (leat_log_level)level);
        for (int said = LEAT_LOG_ERROR; said <= LEAT_LOG_DEBUG; said++) {
            ck_assert_int_eq(leat__log_is_enabled((leat_log_level)said),
                             said <= level);
            leat__log((leat_log_level)said, "line %d of %s", said, "four");
        }
        ck_assert_int_eq(listener.lines, level);
        ck_assert_int_eq(listener.level, level);
        if (level == LEAT_LOG_INFO)
            ck_assert_str_eq(listener.line, "line 3 of four");
    }
}
END_TEST

START_TEST(the_environment_has_the_last_word)
{
    ear listener = {0};
    setenv("LEAT_LOG_LEVEL", "Warning", 1);
    leat_log_set(hear, &listener, LEAT_LOG_DEBUG);
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_WARNING), 1);
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_INFO), 0);
    setenv("LEAT_LOG_LEVEL", "debug", 1);
    leat_log_set(hear, &listener, LEAT_LOG_NONE);
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_DEBUG), 1);
    ck_assert_int_eq(listener.lines, 0);
    setenv("LEAT_LOG_LEVEL", "", 1);
    leat_log_set(hear, &listener, LEAT_LOG_ERROR);
    ck_assert_int_eq(listener.lines, 0);
    setenv("LEAT_LOG_LEVEL", "loud", 1);
    leat_log_set(NULL, NULL, LEAT_LOG_ERROR);
    leat_log_set(hear, &listener, LEAT_LOG_ERROR);
    ck_assert_int_eq(listener.lines, 1);
    ck_assert_int_eq(listener.level, LEAT_LOG_WARNING);
    ck_assert_str_eq(listener.line,
                     "LEAT_LOG_LEVEL=loud: expected none, error, warning, "
                     "info or debug; the level is error");
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_ERROR), 1);
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_WARNING), 0);
}
END_TEST

START_TEST(a_listener_that_left_hears_nothing_whatever_the_environment)
{
    ear listener = {0};
    setenv("LEAT_LOG_LEVEL", "debug", 1);
    leat_log_set(hear, &listener, LEAT_LOG_DEBUG);
    leat_log_set(NULL, NULL, LEAT_LOG_DEBUG);
    leat__log(LEAT_LOG_ERROR, "nobody");
    ck_assert_int_eq(listener.lines, 0);
    ck_assert_int_eq(leat__log_is_enabled(LEAT_LOG_ERROR), 0);
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut)
{
    char text[2000];
    ear listener = {0};
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    leat_log_set(hear, &listener, LEAT_LOG_INFO);
    leat__log(LEAT_LOG_INFO, "%s", text);
    ck_assert_uint_eq(strlen(listener.line), 511);
}
END_TEST

static void count(void *user, leat_log_level level, const char *line)
{
    (void)level;
    (void)line;
    atomic_fetch_add((atomic_int *)user, 1);
}

static void *talk(void *unused)
{
    for (int i = 0; i < 500; i++)
        leat__log(LEAT_LOG_INFO, "line %d", i);
    return unused;
}

START_TEST(threads_talk_while_the_listener_changes)
{
    static atomic_int first;
    static atomic_int second;
    leat__thread threads[4] = {{0}};
    leat_log_set(count, &first, LEAT_LOG_INFO);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(leat__thread_start(&threads[i], "talk", talk, NULL),
                         LEAT_OK);
    for (int i = 0; i < 100; i++)
        leat_log_set(count, i % 2 ? &first : &second, LEAT_LOG_INFO);
    for (int i = 0; i < 4; i++)
        leat__thread_join(&threads[i]);
    ck_assert_int_eq(first + second, 2000);
}
END_TEST

START_TEST(a_reader_of_others_logs_too)
{
    ear listener = {0};
    leat_log_set(hear, &listener, LEAT_LOG_WARNING);
    leat_log_line(LEAT_LOG_INFO, "not asked for");
    leat_log_line(LEAT_LOG_NONE, "of no level");
    ck_assert_int_eq(listener.lines, 0);
    leat_log_line(LEAT_LOG_WARNING, "%s: %d", "a.tfr", 7);
    ck_assert_int_eq(listener.lines, 1);
    ck_assert_int_eq(listener.level, LEAT_LOG_WARNING);
    ck_assert_str_eq(listener.line, "a.tfr: 7");
}
END_TEST

#if HAS_FORK_STEPS

static ear first, second;

/* Each listener has an ear of its own. */
static void hear_first(void *user, leat_log_level level, const char *line)
{
    if (user != &first || level != LEAT_LOG_WARNING)
        _exit(1);
    hear(user, level, line);
}

static void hear_second(void *user, leat_log_level level, const char *line)
{
    if (user != &second)
        _exit(2);
    hear(user, level, line);
}

static void set_first(void)
{
    leat_log_set(hear_first, &first, LEAT_LOG_WARNING);
}

static void set_second(void)
{
    leat_log_set(hear_second, &second, LEAT_LOG_INFO);
}

static void speak(void)
{
    leat__log(LEAT_LOG_WARNING, "a warning");
    leat__log(LEAT_LOG_INFO, "a line");
    if (first.lines + second.lines != (first.lines ? 1 : 2))
        _exit(3);
}

START_TEST(a_child_has_the_listener_of_before_or_after)
{
    set_first();
    ck_assert_int_gt(fork_at_each_step(set_second, speak), 0);
    ck_assert_int_gt(fork_at_each_step(set_first, speak), 0);
}
END_TEST

#endif

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tcase = tcase_create("log");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, nobody_hears_anything_by_default);
    tcase_add_test(tcase, a_listener_hears_its_level_and_what_is_graver);
    tcase_add_test(tcase, the_environment_has_the_last_word);
    tcase_add_test(tcase,
                   a_listener_that_left_hears_nothing_whatever_the_environment);
    tcase_add_test(tcase, a_line_that_is_too_long_is_cut);
    tcase_add_test(tcase, threads_talk_while_the_listener_changes);
    tcase_add_test(tcase, a_reader_of_others_logs_too);
#if HAS_FORK_STEPS
    tcase_add_test(tcase, a_child_has_the_listener_of_before_or_after);
#endif
    return suite_run(suite);
}
