/*
 * A link above a cache is moved to another directory before each of the calls
 * that open it, or that complete it: the samples are those of one cache, and
 * all good.
 */
#include "faults/faults.h"
#include "support/cache_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLS_MAX = 1000 };

/* What the new directory has. */
typedef enum contents {
    SAME_SAMPLES, /* in another order in the file */
    OTHER_DATA_SET,
    NO_CACHE,
    CONTENTS
} contents;

static bool is_moved;

static const char *in(const char *name)
{
    static char paths[2][128];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s", cache_root, name);
    return path;
}

static void lead_to(const char *directory)
{
    ck_assert_int_eq(symlink(directory, in("link")), 0);
    ck_assert_int_eq(rename(in("link"), in("now")), 0);
}

static void move(void)
{
    fault_disarm();
    lead_to("new");
    is_moved = true;
}

static void make_backwards(void)
{
    leat_sample *out = &cache_sample;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    for (int i = CACHE_SAMPLES; i-- > 0;) {
        int got;
        leat_position at = {0, i};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got),
                         LEAT_OK);
    }
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index"));
}

static void make_new(contents new)
{
    cache_remove_all(in("new"));
    ck_assert_int_eq(mkdir(in("new"), 0777), 0);
    lead_to("new");
    cache_source.identity = new == OTHER_DATA_SET ? 2 : 1;
    if (new != NO_CACHE)
        make_backwards();
    cache_source.identity = 1;
}

/* Whether `move` was called meanwhile. */
static bool open_moved(fault_call call, int n, contents new)
{
    leat_reader *reader = NULL;
    is_moved = false;
    lead_to("old");
    fault_arm(call, n, FAULT_ACT, 0);
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    fault_disarm();
    if (new == OTHER_DATA_SET && status) {
        ck_assert_int_eq(status, LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "another data set"));
        return is_moved;
    }
    ck_assert_msg(status == LEAT_OK, "%s %d: %s", fault_name(call), n,
                  leat_last_error());
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    if (new == SAME_SAMPLES)
        ck_assert_int_eq(cache_source.reads, 0);
    leat_reader_close(reader);
    return is_moved;
}

START_TEST(a_cache_that_a_link_leads_from_is_read_whole)
{
    const fault_call call = _i % 2 ? FAULT_STAT : FAULT_OPEN;
    int n = 0;
    snprintf(cache_path, sizeof(cache_path), "%s", in("now/kept"));
    ck_assert_int_eq(mkdir(in("old"), 0777), 0);
    lead_to("old");
    cache_make(CACHE_SAMPLES);
    fault_act(move);
    for (make_new(_i / 2); open_moved(call, n, _i / 2); n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        if (_i / 2 == NO_CACHE)
            make_new(NO_CACHE);
    }
    ck_assert_int_gt(n, 3);
}
END_TEST

/* The files of the cache that is completed, once it is. */
static void replace_files(void)
{
    const char *const names[] = {"data", "index"};
    fault_disarm();
    is_moved = true;
    for (int i = 0; i < 2 && cache_is_there("/index"); i++) {
        char from[128], to[128];
        snprintf(from, sizeof(from), "%s/new/kept/%s", cache_root, names[i]);
        snprintf(to, sizeof(to), "%s/%s", cache_path, names[i]);
        ck_assert_int_eq(rename(from, to), 0);
    }
}

/* Of the same identity. */
static void make_shorter(void)
{
    cache_remove_all(in("new"));
    ck_assert_int_eq(mkdir(in("new"), 0777), 0);
    lead_to("new");
    cache_make(CACHE_SAMPLES / 2);
}

/* Whether something was moved meanwhile. */
static bool complete_moved(fault_call call, int n, bool is_link)
{
    make_shorter();
    cache_remove_all(in("old"));
    ck_assert_int_eq(mkdir(in("old"), 0777), 0);
    lead_to("old");
    is_moved = false;
    cache_log[0] = 0;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_read_some(reader, CACHE_SAMPLES - 1);
    fault_arm(call, n, FAULT_ACT, 0);
    cache_read_some(reader, 1);
    ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_END);
    fault_disarm();
    cache_expect_epoch(reader, 1, CACHE_SAMPLES);
    bool is_read_on = cache_source.reads > CACHE_SAMPLES;
    ck_assert(!is_read_on || !is_link);
    ck_assert_int_eq(is_read_on,
                     strstr(cache_log, "is made, but cannot") != NULL);
    leat_reader_close(reader);
    return is_moved;
}

START_TEST(a_cache_that_is_completed_is_the_one_that_was_made)
{
    const fault_call call = _i & 1 ? FAULT_STAT : FAULT_OPEN;
    bool is_link = _i & 2;
    int n = 0;
    cache_source.is_stream = _i & 4;
    snprintf(cache_path, sizeof(cache_path), "%s", in("now/kept"));
    fault_act(is_link ? move : replace_files);
    while (complete_moved(call, n, is_link))
        ck_assert_int_lt(n++, CALLS_MAX);
    ck_assert_int_gt(n, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replaced_cache");
    TCase *tcase = tcase_create("replaced_cache");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_cache_that_a_link_leads_from_is_read_whole, 0,
                        2 * CONTENTS);
    tcase_add_loop_test(
        tcase, a_cache_that_is_completed_is_the_one_that_was_made, 0, 8);
    return suite_run(suite);
}
