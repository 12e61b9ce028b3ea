/* cache:dir=PATH where PATH.partial cannot be locked. */
#include "support/cache_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200 };

static const int unsupported[] = {ENOSYS, ENOLCK, EOPNOTSUPP};
enum { UNSUPPORTED = sizeof(unsupported) / sizeof(unsupported[0]) };

static const int full[] = {ENOSPC, EDQUOT, EFBIG};
enum { FULL = sizeof(full) / sizeof(full[0]) };

/* These are put in front of libc's by the linker. */
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_leat__file_check_limit(int64_t size);
int __wrap_leat__file_check_limit(int64_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);

static int no_lock; /* why no file can be locked; 0: it can */
static int no_room; /* why no byte can be written; EFBIG: by the limit */

int __wrap_flock(int fd, int operation)
{
    errno = no_lock;
    return no_lock ? -1 : __real_flock(fd, operation);
}

int __wrap_leat__file_check_limit(int64_t size)
{
    return no_room == EFBIG ? EFBIG : __real_leat__file_check_limit(size);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    errno = no_room;
    return no_room ? -1 : __real_pwrite(fd, bytes, n, at);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    errno = no_room;
    return no_room ? -1 : __real_write(fd, bytes, n);
}

static void expect_alone(void)
{
    struct stat found;
    char lock[128];
    snprintf(lock, sizeof(lock), "%s/kept.lock", cache_path);
    ck_assert(!cache_is_there(".partial") && stat(lock, &found) != 0);
}

static void expect_refused(int status, const char *what)
{
    leat_reader *reader = NULL;
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
                     status);
    ck_assert_msg(strstr(leat_last_error(), what) != NULL, "%s",
                  leat_last_error());
}

START_TEST(without_locks_it_is_made_with_a_warning)
{
    no_lock = unsupported[_i / 2];
    cache_source.is_stream = _i % 2;
    cache_make(CACHE_SAMPLES);
    ck_assert_msg(strstr(cache_log, ".partial: cannot be locked (") &&
                      strstr(cache_log, strerror(no_lock)),
                  "%s", cache_log);
    expect_alone();
    cache_log[0] = 0;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert_int_eq(cache_source.reads, 0);
    ck_assert_str_eq(cache_log, "");
    leat_reader_close(reader);
}
END_TEST

START_TEST(without_locks_one_that_is_not_completed_leaves_nothing)
{
    no_lock = ENOSYS;
    for (int i = 0; i < 2; i++) {
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_read_some(reader, CACHE_SAMPLES / 2);
        ck_assert(cache_is_there(".partial/data"));
        leat_reader_close(reader);
        ck_assert(!cache_is_there(""));
        expect_alone();
    }
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    leat_caches_abandon();
    expect_alone();
    leat_reader_close(reader);
}
END_TEST

/* Also one that could lock it, as another machine may. */
START_TEST(without_locks_another_writer_is_refused)
{
    no_lock = ENOSYS;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_read_some(reader, CACHE_SAMPLES / 2);
    for (int i = 0; i < 2; i++) {
        no_lock = i ? 0 : ENOLCK;
        expect_refused(LEAT_ESTATE, "kept.partial if no reader is");
    }
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index"));
    expect_alone();
}
END_TEST

/* What it left may be another machine's, which writes on. */
START_TEST(without_locks_what_a_killed_writer_left_is_the_users_to_remove)
{
    char partial[128];
    int status;
    pid_t child = fork();
    no_lock = ENOSYS;
    if (child == 0) {
        cache_read_some(cache_open_source(CACHE_SAMPLES), CACHE_SAMPLES / 2);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    for (int i = 0; i < 2; i++) {
        no_lock = i ? 0 : ENOSYS;
        expect_refused(LEAT_ESTATE, "or was killed while it did");
        ck_assert(cache_is_there(".partial/data"));
    }
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    cache_remove_all(partial);
    no_lock = ENOSYS;
    cache_make(CACHE_SAMPLES);
}
END_TEST

/* A directory without a lock is nobody's. */
START_TEST(without_locks_an_empty_directory_is_taken_over)
{
    char partial[128];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    ck_assert_int_eq(mkdir(partial, 0777), 0);
    no_lock = ENOSYS;
    cache_make(CACHE_SAMPLES);
    expect_alone();
}
END_TEST

static void *make_one(void *pipeline)
{
    leat_reader *reader = NULL;
    int status = leat_pipeline_open(pipeline, &reader);
    leat_sample sample;
    leat_sample_init(&sample);
    while (!status)
        status = leat_reader_next(reader, &sample);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status == LEAT_END || status == LEAT_ESTATE ? NULL : pipeline;
}

START_TEST(without_locks_writers_that_begin_at_once_make_one_whole_cache)
{
    no_lock = ENOSYS;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread[THREADS];
        leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
        leat_pipeline *pipeline, *upstream = cache_pipeline(CACHE_SAMPLES);
        options.dir = cache_path;
        ck_assert(!leat_pipeline_cache(&pipeline, upstream, &options));
        leat_pipeline_unref(upstream);
        for (int j = 0; j < THREADS; j++)
            ck_assert(!pthread_create(&thread[j], NULL, make_one, pipeline));
        for (int j = 0; j < THREADS; j++) {
            void *failed;
            pthread_join(thread[j], &failed);
            ck_assert_ptr_null(failed);
        }
        leat_pipeline_unref(pipeline);
        expect_alone();
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
        leat_reader_close(reader);
        cache_remove_all(cache_path);
    }
}
END_TEST

START_TEST(a_lock_that_fails_leaves_nothing)
{
    no_lock = EIO;
    expect_refused(LEAT_EIO, "kept.partial/kept.lock");
    ck_assert(!cache_is_there(""));
    expect_alone();
}
END_TEST

/* With locks or without. */
START_TEST(a_full_disk_is_said_and_reading_goes_on)
{
    no_lock = _i % 2 ? ENOSYS : 0;
    no_room = full[_i / 2];
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    for (int epoch = 0; epoch < 2; epoch++)
        cache_expect_epoch(reader, epoch, CACHE_SAMPLES);
    ck_assert_int_eq(cache_source.reads, 2 * CACHE_SAMPLES);
    ck_assert_msg(strstr(cache_log, "is not made") &&
                      strstr(cache_log, strerror(no_room)),
                  "%s", cache_log);
    ck_assert(!cache_is_there(""));
    expect_alone();
    leat_reader_close(reader);
    ck_assert(!cache_is_there(""));
    expect_alone();
}
END_TEST

/* For one that could lock it. */
START_TEST(a_lock_is_marked_on_a_full_disk)
{
    no_lock = ENOSYS;
    no_room = full[_i];
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    no_lock = no_room = 0;
    expect_refused(LEAT_ESTATE, "kept.partial if no reader is");
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index"));
    expect_alone();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_lock");
    TCase *tcase = tcase_create("cache_lock");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, without_locks_it_is_made_with_a_warning, 0,
                        2 * UNSUPPORTED);
    tcase_add_test(tcase,
                   without_locks_one_that_is_not_completed_leaves_nothing);
    tcase_add_test(tcase, without_locks_another_writer_is_refused);
    tcase_add_test(
        tcase, without_locks_what_a_killed_writer_left_is_the_users_to_remove);
    tcase_add_test(tcase, without_locks_an_empty_directory_is_taken_over);
    tcase_add_test(
        tcase, without_locks_writers_that_begin_at_once_make_one_whole_cache);
    tcase_add_test(tcase, a_lock_that_fails_leaves_nothing);
    tcase_add_loop_test(tcase, a_full_disk_is_said_and_reading_goes_on, 0,
                        2 * FULL);
    tcase_add_loop_test(tcase, a_lock_is_marked_on_a_full_disk, 0, 2);
    return suite_run(suite);
}
