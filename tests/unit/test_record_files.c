/* Several files of records as one sequence: they are opened as they are named.
 */
#include "pipeline/opening.h"
#include "readers/record/record_files.h"
#include "support/record_fixture.h"
#include "support/suite.h"

#include <check.h>

enum { FILES = 3 };

static char folder[FIXTURE_PATH];
static char paths[FILES][FIXTURE_PATH + 8];
static char *path[FILES];
static const leat__file_list list = {.n = FILES, .path = path};
static void (*meanwhile)(const char *); /* done to `victim` between openings */
static int victim;
static int begun; /* files */

static int begin_file(leat__record_format *format,
                      const leat__record_window *window, uint64_t size,
                      leat__record_file *out)
{
    (void)format;
    (void)window;
    (void)size;
    begun++;
    if (out->number == 1 && meanwhile)
        meanwhile(path[victim]);
    return LEAT_OK;
}

/* Never sees enough. */
static int walk_on(const leat__record_format *of, const leat__record_file *file,
                   const leat__record_window *window, leat__record_walk *walk,
                   leat__record_span out[], int n, int *got)
{
    (void)of;
    (void)file;
    (void)walk;
    (void)out;
    (void)n;
    *got = 0;
    ck_assert_uint_lt(window->size, 1 << 30);
    walk->needed = window->size + 1;
    return LEAT_AGAIN;
}

static const leat__record_format_ops ops = {
    .name = "files", .begin = begin_file, .walk = walk_on};
static leat__record_format format = {.ops = &ops};
static leat__record_files files;

static void set_up(void)
{
    fixture_directory(folder);
    for (int i = 0; i < FILES; i++) {
        path[i] = paths[i];
        snprintf(path[i], sizeof(paths[i]), "%s/%d", folder, i);
        fixture_store(path[i], "bytes", 5);
    }
    meanwhile = NULL;
}

static void tear_down(void)
{
    fixture_remove(folder);
}

static void replace(const char *name)
{
    char other[FIXTURE_PATH + 16];
    snprintf(other, sizeof(other), "%s/other", folder);
    fixture_store(other, "other", 5);
    ck_assert_int_eq(rename(other, name), 0);
}

static void remove_it(const char *name)
{
    ck_assert_int_eq(unlink(name), 0);
}

/* The first is open by then, the second is being opened. */
START_TEST(files_replaced_while_they_are_opened_are_refused)
{
    meanwhile = _i / 2 ? remove_it : replace;
    victim = _i % 2;
    ck_assert_int_eq(leat__record_files_open(&files, &list, &format, NULL),
                     LEAT_EIO);
    ck_assert_msg(strstr(leat_last_error(), path[victim]) &&
                      strstr(leat_last_error(), "removed or replaced while"),
                  "%s", leat_last_error());
}
END_TEST

static atomic_bool is_cancelled;

static void cancel(const char *name)
{
    (void)name;
    atomic_store(&is_cancelled, true);
}

START_TEST(no_more_files_are_opened_after_a_cancel)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    leat__opening opening = {.lock = &lock, .cancelled = &is_cancelled};
    leat__opening *outer = leat__opening_begin(&opening);
    meanwhile = cancel;
    ck_assert_int_eq(leat__record_files_open(&files, &list, &format, NULL),
                     LEAT_ECANCELLED);
    leat__opening_end(outer);
    ck_assert_int_eq(begun, 2);
}
END_TEST

START_TEST(a_file_that_is_replaced_later_is_what_it_was)
{
    ck_assert_int_eq(leat__record_files_open(&files, &list, &format, NULL),
                     LEAT_OK);
    replace(path[0]);
    ck_assert_int_eq(leat__record_files_check_versions(&files), LEAT_OK);
    ck_assert_mem_eq(files.source[0].map.base, "bytes", 5);
    ck_assert_uint_eq(files.bytes, FILES * 5);
    leat__record_files_close(&files);
}
END_TEST

/* Though its record goes on for long; also where its bytes are awaited. */
START_TEST(a_walk_ends_soon_after_it_is_cancelled)
{
    atomic_bool cancelled = false;
    uint64_t awaited = 0;
    leat__record_walk walk = {0};
    leat__record_span span;
    int got;
    ck_assert_int_eq(truncate(path[0], (off_t)1 << 40), 0);
    ck_assert_int_eq(
        leat__record_files_open(&files, &list, &format, &cancelled), LEAT_OK);
    cancelled = true;
    ck_assert_int_eq(leat__record_source_walk(&files.source[0], &format,
                                              _i ? &awaited : NULL, &walk,
                                              &span, 1, &got),
                     LEAT_ECANCELLED);
    const leat__record_span whole = {0, (uint64_t)1 << 40};
    ck_assert_int_eq(leat__record_source_await(&files.source[0], &whole, 1),
                     LEAT_ECANCELLED);
    leat__record_files_close(&files);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_files");
    TCase *tcase = tcase_create("record_files");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, files_replaced_while_they_are_opened_are_refused,
                        0, 4);
    tcase_add_test(tcase, no_more_files_are_opened_after_a_cancel);
    tcase_add_test(tcase, a_file_that_is_replaced_later_is_what_it_was);
    tcase_add_loop_test(tcase, a_walk_ends_soon_after_it_is_cancelled, 0, 2);
    return suite_run(suite);
}
