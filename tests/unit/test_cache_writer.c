/* How cache:dir=PATH is written: whole or not at all, by one at a time. */
#include "decorators/cache/cache_writer.h"
#include "support/cache_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer's forks take long. */
enum { FORKS = IS_SANITIZED ? 100 : 500 };

static void *read_half(void *reader)
{
    leat_sample own;
    leat_sample *out = &own;
    leat_sample_init(&own);
    for (int i = 0; i < CACHE_SAMPLES; i++) {
        int got;
        leat_position at = {0, i * 77 % CACHE_SAMPLES};
        if (leat_reader_read_at(reader, &at, &out, 1, &got))
            return reader;
    }
    leat_sample_finish(&own);
    return NULL;
}

START_TEST(threads_write_it_in_any_order)
{
    pthread_t thread[4];
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_half, reader),
                         0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    leat_reader_close(reader);
    reader = cache_open_source(CACHE_SAMPLES);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert_int_eq(cache_source.reads, 0);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_part_of_an_epoch_leaves_nothing)
{
    for (cache_source.is_stream = 0; cache_source.is_stream < 2;
         cache_source.is_stream++) {
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        for (int i = 0; i < CACHE_SAMPLES - 1; i++)
            ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_OK);
        ck_assert(cache_is_there(".partial/data"));
        leat_reader_close(reader);
        ck_assert(!cache_is_there("") && !cache_is_there(".partial"));
    }
}
END_TEST

START_TEST(a_killed_writer_is_followed_by_another)
{
    for (cache_source.is_stream = 0; cache_source.is_stream < 2;
         cache_source.is_stream++) {
        cache_remove_all(cache_path);
        pid_t child = fork();
        if (child == 0) {
            cache_source.kills = CACHE_SAMPLES / 2;
            leat_reader *reader = cache_open_source(CACHE_SAMPLES);
            while (!leat_reader_next(reader, &cache_sample))
                ;
            _exit(0);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert(!cache_is_there("") && cache_is_there(".partial/data"));
        cache_make(CACHE_SAMPLES);
    }
}
END_TEST

START_TEST(a_forked_child_leaves_it_to_its_parent)
{
    for (cache_source.is_stream = 0; cache_source.is_stream < 2;
         cache_source.is_stream++) {
        cache_remove_all(cache_path);
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        for (int i = 0; i < 50; i++)
            ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_OK);
        pid_t child = fork();
        if (child == 0) {
            int status = leat_reader_next(reader, &cache_sample);
            leat_reader_close(reader);
            _exit(status == LEAT_ESTATE ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        for (int i = 50; i < CACHE_SAMPLES; i++)
            ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_END);
        leat_reader_close(reader);
        reader = cache_open_source(CACHE_SAMPLES);
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
        ck_assert_int_eq(cache_source.reads, 0);
        leat_reader_close(reader);
    }
}
END_TEST

/* Its child waits for the end of a pipe, as it does. */
static void write_with_child(int begun, int until)
{
    char byte = 0;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    bool is_child =
        leat_reader_next(reader, &cache_sample) == LEAT_OK && !fork();
    if (is_child && write(begun, &byte, 1) != 1)
        _exit(1);
    _exit(read(until, &byte, 1) != 0);
}

START_TEST(a_child_of_a_killed_writer_holds_no_lock)
{
    char byte = 0;
    int begun[2], until[2], status;
    ck_assert(!pipe(begun) && !pipe(until));
    pid_t writer = fork();
    if (writer == 0) {
        close(until[1]);
        write_with_child(begun[1], until[0]);
    }
    ck_assert_int_eq(read(begun[0], &byte, 1), 1);
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    cache_make(CACHE_SAMPLES);
    close(until[1]);
}
END_TEST

static _Atomic int stopped;

static void *create_and_destroy(void *status)
{
    leat_token none;
    leat_token_init(&none);
    while (!stopped) {
        leat__cache_writer *writer = NULL;
        *(int *)status |=
            leat__cache_writer_create(&writer, cache_path, &none, 0);
        leat__cache_writer_destroy(writer);
    }
    leat_token_finish(&none);
    return NULL;
}

/* Descriptors of the directory in this process, which is a child. */
static int count_partial(void)
{
    char name[32], target[PATH_MAX];
    int n = 0;
    for (int fd = 0; fd < 64; fd++) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = 0;
        n += strstr(target, "kept.partial") != NULL;
    }
    return n;
}

/* At whatever moment it was forked. */
START_TEST(a_child_has_no_file_of_its_parents)
{
    pthread_t thread;
    int status = LEAT_OK;
    ck_assert_int_eq(pthread_create(&thread, NULL, create_and_destroy, &status),
                     0);
    for (int i = 0; i < FORKS; i++) {
        int result;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            _exit(count_partial());
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert_int_eq(result, 0);
    }
    stopped = 1;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(status, LEAT_OK);
}
END_TEST

START_TEST(another_writer_is_refused)
{
    leat_reader *other = NULL;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &other),
                     LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), cache_path));
    ck_assert(cache_is_there(".partial/data"));
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    other = cache_open_source(CACHE_SAMPLES);
    cache_expect_epoch(other, 0, CACHE_SAMPLES);
    leat_reader_close(other);
    leat_reader_close(reader);
}
END_TEST

/* This is put in front of libc's by the linker. */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static int no_sync;         /* why directories cannot be synced; 0: they can */
static int kill_at_sync;    /* the call that ends the process; 0: none */
static int fail_at_sync;    /* the call that fails */
static int abandon_at_sync; /* the call during which all is abandoned */

int __wrap_fsync(int fd)
{
    struct stat about;
    if (abandon_at_sync && --abandon_at_sync == 0)
        leat_caches_abandon();
    if (kill_at_sync && --kill_at_sync == 0)
        raise(SIGKILL);
    if (fail_at_sync && --fail_at_sync == 0) {
        errno = EIO;
        return -1;
    }
    if (!no_sync || fstat(fd, &about) || !S_ISDIR(about.st_mode))
        return __real_fsync(fd);
    errno = no_sync;
    return -1;
}

/* Likewise. */
int __real_unlinkat(int at, const char *name, int flags);
int __wrap_unlinkat(int at, const char *name, int flags);

static const char *unremovable; /* a file; NULL: none */
static bool hides;              /* removed files that are open, as FUSE does */

static bool is_open(int at, const char *name)
{
    struct stat own, found;
    bool is_found = false;
    if (fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW))
        return false;
    for (int fd = 3; fd < 256 && !is_found; fd++)
        is_found = !fstat(fd, &own) && own.st_dev == found.st_dev &&
                   own.st_ino == found.st_ino;
    return is_found;
}

/* They go with their last descriptor. */
static void remove_hidden(int at, const char *directory)
{
    char name[128];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s/.fuse_hidden%d", directory, i);
        if (!is_open(at, name))
            (void)__real_unlinkat(at, name, 0);
    }
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
    if (unremovable && strcmp(name, unremovable) == 0) {
        errno = EIO;
        return -1;
    }
    if (hides && flags & AT_REMOVEDIR)
        remove_hidden(at, name);
    else if (hides && is_open(at, name))
        return renameat(at, name, at,
                        strcmp(name, "data") ? ".fuse_hidden0"
                                             : ".fuse_hidden1");
    return __real_unlinkat(at, name, flags);
}

/* Likewise. */
int __real_openat(int at, const char *name, int flags, ...);
int __wrap_openat(int at, const char *name, int flags, ...);

static const char *completed; /* moved to PATH as a writer begins; NULL: none */
static bool is_never_there;   /* PATH.partial, whoever makes it */
static bool goes_as_listed;   /* the next directory, as FUSE has it */

int __wrap_openat(int at, const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int fd = __real_openat(at, name, flags, mode);
    int code = errno;
    if (completed && strcmp(name, "kept.partial") == 0) {
        ck_assert_int_eq(rename(completed, cache_path), 0);
        completed = NULL;
    }
    if (is_never_there && strcmp(name, "kept.partial") == 0 && fd >= 0) {
        close(fd);
        fd = -1;
        code = ENOENT;
    }
    if (goes_as_listed && strcmp(name, ".") == 0 && fd >= 0) {
        close(fd);
        fd = -1;
        code = ENOENT;
        goes_as_listed = false;
    }
    errno = code;
    return fd;
}

/* What cannot be removed is known by its lock, and the next writer removes it.
 */
START_TEST(a_part_that_cannot_be_removed_is_followed_by_another)
{
    static const char *const names[] = {"data", "kept.lock"};
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_read_some(reader, 3);
    unremovable = names[_i];
    leat_reader_close(reader);
    unremovable = NULL;
    ck_assert_int_eq(cache_is_there(".partial/data"), _i == 0);
    ck_assert(cache_is_there(".partial/kept.lock"));
    cache_make(CACHE_SAMPLES);
    ck_assert(!cache_is_there(".partial"));
}
END_TEST

/* Nor does a cache that fails at its end. */
START_TEST(a_part_of_an_epoch_leaves_nothing_where_open_files_are_hidden)
{
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    hides = true;
    fail_at_sync = _i;
    if (_i == 0)
        cache_read_some(reader, 3);
    else
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    hides = false;
    ck_assert(!cache_is_there(".partial"));
}
END_TEST

/* What is hidden in it may stay. */
START_TEST(what_is_left_where_open_files_are_hidden_is_taken_over)
{
    static const char *const hidden[] = {
        NULL, ".partial/.fuse_hidden0000000100000001",
        ".partial/.nfs000000000000000100000001"};
    char partial[128];
    hides = true;
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(mkdir(partial, 0777), 0);
        if (hidden[i % 3])
            cache_put(hidden[i % 3], "removed");
        if (i / 3) {
            cache_put(".partial/kept.lock", "");
            cache_put(".partial/data", "cut short");
        }
        cache_make(CACHE_SAMPLES);
        leat_reader_close(cache_open_source(CACHE_SAMPLES));
        ck_assert_int_eq(cache_source.reads, 0);
        cache_remove_all(cache_path);
    }
    hides = false;
}
END_TEST

/* Who could read what is put there. */
START_TEST(hidden_files_in_another_users_directory_are_refused)
{
    char partial[128];
    leat_reader *reader = NULL;
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    ck_assert_int_eq(mkdir(partial, 0777), 0);
    cache_put(".partial/.fuse_hidden0000000100000001", "removed");
    if (chown(partial, 1234, (gid_t)-1)) {
        fprintf(stderr, "skipped: cannot chown: %s\n", strerror(errno));
        return;
    }
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
                     LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "may not remove"));
    cache_expect_text(".partial/.fuse_hidden0000000100000001", "removed");
    ck_assert(!cache_is_there(".partial/kept.lock"));
}
END_TEST

/* Of data, of index, of PATH.partial, and of PATH's parent. */
enum { SYNCS = 4 };

static void kill_writer_at_sync(int sync)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        kill_at_sync = sync;
        cache_make(CACHE_SAMPLES);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* While a thread is in a sync, which may take long. */
START_TEST(a_cache_that_is_abandoned_at_its_end_is_not_made)
{
    leat_reader *other = NULL;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    abandon_at_sync = _i;
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert_int_eq(abandon_at_sync, 0);
    ck_assert(!cache_is_there(".partial"));
    ck_assert_int_eq(cache_is_there("/index"), _i == SYNCS);
    ck_assert_int_eq(strstr(cache_log, "the program ends") != NULL, _i < SYNCS);
    cache_expect_epoch(reader, 1, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &other),
                     _i < SYNCS ? LEAT_ECANCELLED : LEAT_OK);
    leat_reader_close(other);
    ck_assert(!cache_is_there(".partial"));
}
END_TEST

/* While its reader, which goes on, is open. */
START_TEST(a_cache_that_fails_at_its_end_makes_room_for_another)
{
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    fail_at_sync = _i;
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert(!cache_is_there(".partial"));
    ck_assert(!cache_is_there(""));
    cache_make(CACHE_SAMPLES);
    ck_assert(cache_is_there("/index"));
    cache_expect_epoch(reader, 1, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/data"));
}
END_TEST

/* Its name is not on disk, but it is there, and stays. */
START_TEST(a_cache_whose_name_cannot_be_synced_keeps_its_data)
{
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    fail_at_sync = SYNCS;
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    reader = cache_open_source(CACHE_SAMPLES);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert_int_eq(cache_source.reads, 0);
    leat_reader_close(reader);
}
END_TEST

/* Bytes of the files of this process that have no name any more. */
static int64_t nameless_bytes(void)
{
    int64_t bytes = 0;
    struct stat about;
    for (int fd = 3; fd < 256; fd++)
        if (!fstat(fd, &about) && S_ISREG(about.st_mode) && !about.st_nlink)
            bytes += about.st_size;
    return bytes;
}

START_TEST(an_abandoned_cache_is_not_written_on)
{
    int64_t before = nameless_bytes();
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_read_some(reader, 3);
    leat_caches_abandon();
    int64_t written = nameless_bytes() - before;
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    ck_assert_int_gt(written, 0);
    ck_assert_int_lt(nameless_bytes() - before, written);
    leat_reader_close(reader);
}
END_TEST

enum { MAKERS = 3, MOMENTS = 20 };
static atomic_int caches_begun;

static void name_cache(char *out, size_t size, int maker)
{
    snprintf(out, size, "%s%d", cache_path, maker);
}

static void remove_cache(const char *path)
{
    static const char *const names[] = {"/data", "/index", ""};
    char name[160];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        (void)remove(name);
    }
}

/* Makes a cache again and again, until there are to be none. */
static void *make_caches(void *number)
{
    char path[128], text[192];
    int status = LEAT_OK;
    leat_pipeline *pipeline;
    leat_sample own;
    leat_sample_init(&own);
    name_cache(path, sizeof(path), *(const int *)number);
    snprintf(text, sizeof(text), "range:3 | cache:dir=%s", path);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    while (status != LEAT_ECANCELLED) {
        leat_reader *reader = NULL;
        status = leat_pipeline_open(pipeline, &reader);
        ck_assert_msg(!status || status == LEAT_ECANCELLED, "%d: %s", status,
                      leat_last_error());
        atomic_fetch_add(&caches_begun, 1);
        while (reader && !leat_reader_next(reader, &own))
            ;
        leat_reader_close(reader);
        if (!status)
            remove_cache(path);
    }
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&own);
    return NULL;
}

static void expect_no_partial(void)
{
    char name[32];
    for (int i = 0; i < MAKERS; i++) {
        snprintf(name, sizeof(name), "%d.partial", i);
        ck_assert_msg(!cache_is_there(name), "%s is there", name);
    }
}

START_TEST(threads_that_are_making_caches_leave_none_once_abandoned)
{
    pthread_t thread[MAKERS];
    int number[MAKERS];
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    for (int i = 0; i < MAKERS; i++) {
        number[i] = i;
        pthread_create(&thread[i], NULL, make_caches, &number[i]);
    }
    while (atomic_load(&caches_begun) < _i)
        sched_yield();
    leat_caches_abandon();
    expect_no_partial();
    for (int i = 0; i < MAKERS; i++)
        pthread_join(thread[i], NULL);
    expect_no_partial();
}
END_TEST

static void expect_refused(const char *what)
{
    leat_reader *reader = NULL;
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), ".partial: ") &&
                      strstr(leat_last_error(), what),
                  "%s", leat_last_error());
}

START_TEST(a_writer_killed_at_its_end_is_followed_by_another)
{
    for (int sync = 1; sync <= SYNCS; sync++) {
        cache_remove_all(cache_path);
        kill_writer_at_sync(sync);
        ck_assert_int_eq(cache_is_there(".partial/kept.lock"), sync < SYNCS);
        ck_assert_int_eq(cache_is_there(".partial/index"),
                         sync > 1 && sync < SYNCS);
        ck_assert_int_eq(cache_is_there("/index"), sync == SYNCS);
        cache_make(CACHE_SAMPLES);
    }
}
END_TEST

/* Before it wrote anything. */
START_TEST(so_is_one_killed_at_its_beginning)
{
    char partial[128];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    for (int has_lock = 0; has_lock < 2; has_lock++) {
        cache_remove_all(cache_path);
        ck_assert_int_eq(mkdir(partial, 0777), 0);
        if (has_lock)
            cache_put(".partial/kept.lock", "");
        cache_make(CACHE_SAMPLES);
        ck_assert(!cache_is_there("/kept.lock"));
    }
}
END_TEST

/* Whether a lock is there or not. */
START_TEST(files_of_others_in_its_partial_are_left_alone)
{
    static const char *const names[] = {".partial/data", ".partial/index",
                                        ".partial/lock", ".partial/notes"};
    char partial[128];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    for (int i = 0; i < 8; i++) {
        /* With the lock these two are leat's. */
        if (i / 4 && i % 4 < 2)
            continue;
        ck_assert_int_eq(mkdir(partial, 0777), 0);
        cache_put(names[i % 4], "mine");
        if (i / 4)
            cache_put(".partial/kept.lock", "");
        expect_refused("holds files");
        cache_expect_text(names[i % 4], "mine");
        ck_assert_int_eq(cache_is_there(".partial/kept.lock"), i / 4);
        cache_remove_all(partial);
    }
}
END_TEST

/* Also one whose writer was killed between the rename and the end. */
START_TEST(a_complete_cache_whose_name_ends_in_partial_stays)
{
    size_t size = strlen(cache_path);
    for (int is_killed = 0; is_killed < 2; is_killed++) {
        strcpy(cache_path + size, ".partial");
        if (is_killed)
            kill_writer_at_sync(SYNCS);
        else
            cache_make(CACHE_SAMPLES);
        ck_assert_int_eq(cache_is_there("/kept.partial.lock"), is_killed);
        cache_path[size] = 0;
        expect_refused("holds files");
        strcpy(cache_path + size, ".partial");
        leat_reader_close(cache_open_source(CACHE_SAMPLES));
        ck_assert_int_eq(cache_source.reads, 0);
        cache_remove_all(cache_path);
        cache_path[size] = 0;
    }
}
END_TEST

/* What goes below a writer: its directory, or one of the files. */
static void lose(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s", cache_path, name);
    cache_remove_all(path);
}

START_TEST(a_writer_whose_directory_is_anothers_leaves_it)
{
    for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
        cache_remove_all(cache_path);
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_read_some(reader, CACHE_SAMPLES / 2);
        lose(".partial");
        cache_source.identity = 2;
        leat_reader *other = cache_open_source(CACHE_SAMPLES);
        cache_read_some(other, CACHE_SAMPLES / 2);
        if (!is_stopped) {
            cache_expect_epoch(reader, 0, CACHE_SAMPLES);
            ck_assert_ptr_nonnull(strstr(cache_log, "removed or replaced"));
        }
        leat_reader_close(reader);
        ck_assert(!cache_is_there("") && cache_is_there(".partial/data"));
        cache_expect_epoch(other, 0, CACHE_SAMPLES);
        leat_reader_close(other);
        reader = cache_open_source(CACHE_SAMPLES);
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
        ck_assert_int_eq(cache_source.reads, 0);
        leat_reader_close(reader);
        cache_source.identity = 1;
    }
}
END_TEST

START_TEST(a_writer_whose_files_are_gone_makes_no_cache)
{
    static const char *const lost[] = {".partial", ".partial/kept.lock",
                                       ".partial/data"};
    for (int i = 0; i < 3; i++) {
        cache_log[0] = 0;
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_read_some(reader, CACHE_SAMPLES / 2);
        lose(lost[i]);
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
        leat_reader_close(reader);
        ck_assert(!cache_is_there(""));
        ck_assert_ptr_nonnull(strstr(cache_log, "removed or replaced"));
        lose(".partial");
    }
}
END_TEST

/* As on some network file systems, which need not. */
START_TEST(a_directory_that_cannot_be_synced_is_made)
{
    no_sync = EINVAL;
    cache_make(CACHE_SAMPLES);
    no_sync = 0;
    ck_assert_str_eq(cache_log, "");
    leat_reader_close(cache_open_source(CACHE_SAMPLES));
    ck_assert_int_eq(cache_source.reads, 0);
    cache_remove_all(cache_path);
    no_sync = EIO;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    no_sync = 0;
    ck_assert_ptr_nonnull(strstr(cache_log, "cannot sync"));
    leat_reader_close(reader);
}
END_TEST

enum { ROUNDS = 120, RIVALS = 3 };
static pthread_barrier_t round_turns;

/* Each reads all, is told of the other writer, or closes half-way. */
static void *rival(void *argument)
{
    leat_sample own;
    leat_sample_init(&own);
    for (int i = 0; i < ROUNDS; i++) {
        leat_reader *reader = NULL;
        pthread_barrier_wait(&round_turns);
        leat_pipeline *pipeline = argument;
        int status = leat_pipeline_open(pipeline, &reader);
        ck_assert_msg(!status || (status == LEAT_ESTATE &&
                                  strstr(leat_last_error(), "another reader")),
                      "%d: %s", status, leat_last_error());
        int wanted = i % 3 == 0 ? 1 : 3;
        for (int k = 0; k < wanted && !status; k++)
            status = leat_reader_next(reader, &own);
        leat_reader_close(reader);
        pthread_barrier_wait(&round_turns);
    }
    leat_sample_finish(&own);
    return NULL;
}

START_TEST(writers_that_begin_at_once_are_one)
{
    leat_pipeline *pipeline;
    pthread_t thread[RIVALS];
    char text[128];
    snprintf(text, sizeof(text), "range:3 | cache:dir=%s", cache_path);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    pthread_barrier_init(&round_turns, NULL, RIVALS + 1);
    for (int i = 0; i < RIVALS; i++)
        pthread_create(&thread[i], NULL, rival, pipeline);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_turns);
        pthread_barrier_wait(&round_turns);
        remove_cache(cache_path);
    }
    for (int i = 0; i < RIVALS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&round_turns);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(nothing_is_made_in_a_cache_that_is_completed_meanwhile)
{
    char made[sizeof(cache_path) + 8];
    snprintf(made, sizeof(made), "%s.made", cache_path);
    cache_make(CACHE_SAMPLES);
    ck_assert_int_eq(rename(cache_path, made), 0);
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    completed = made;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    ck_assert_ptr_null(completed);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert_int_eq(cache_source.reads, 0);
    ck_assert(cache_is_there("/index") && !cache_is_there("/kept.partial"));
}
END_TEST

START_TEST(a_directory_that_goes_as_it_is_listed_is_made)
{
    char partial[128];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    ck_assert_int_eq(mkdir(partial, 0777), 0);
    goes_as_listed = true;
    cache_make(CACHE_SAMPLES);
    ck_assert(!goes_as_listed);
}
END_TEST

START_TEST(a_directory_that_is_gone_each_time_is_refused)
{
    leat_reader *reader = NULL;
    is_never_there = true;
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    is_never_there = false;
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "neither be opened nor made"));
    ck_assert(!cache_is_there(".partial"));
    cache_make(CACHE_SAMPLES);
}
END_TEST

/* Which was killed before it found the first one's. */
START_TEST(what_a_second_writer_leaves_gives_way_to_the_cache)
{
    char left[sizeof(cache_path) + 16];
    snprintf(left, sizeof(left), "%s/kept.partial", cache_path);
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    ck_assert_int_eq(mkdir(left, 0777), 0);
    cache_expect_epoch(reader, 0, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert_str_eq(cache_log, "");
    ck_assert(cache_is_there("/index") && !cache_is_there("/kept.partial"));
}
END_TEST

/* Neither by a cache that cannot be made then, nor by the next one. */
START_TEST(a_file_that_takes_the_place_of_one_of_its_own_stays)
{
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    cache_read_some(reader, 3);
    cache_put("", "of another program");
    char made[sizeof(cache_path) + 16];
    snprintf(made, sizeof(made), "%s.partial/data", cache_path);
    ck_assert_int_eq(rename(cache_path, made), 0);
    cache_read_some(reader, CACHE_SAMPLES - 3);
    ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_END);
    ck_assert_ptr_nonnull(strstr(cache_log, "somebody else"));
    leat_reader_close(reader);
    cache_expect_text(".partial/data", "of another program");
    ck_assert(!cache_is_there(".partial/kept.lock"));
    expect_refused("files that are not of an unfinished cache");
    cache_expect_text(".partial/data", "of another program");
}
END_TEST

/* A file system of 64 KiB, where the test may mount one. */
START_TEST(a_full_disk_is_said_and_reading_goes_on)
{
    if (mount("none", cache_root, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        return;
    }
    for (cache_source.is_stream = 0; cache_source.is_stream < 2;
         cache_source.is_stream++) {
        cache_log[0] = 0;
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        for (int epoch = 0; epoch < 2; epoch++)
            cache_expect_epoch(reader, epoch, CACHE_SAMPLES);
        ck_assert_int_eq(cache_source.reads, 2 * CACHE_SAMPLES);
        ck_assert_ptr_nonnull(strstr(cache_log, "is not made"));
        ck_assert_ptr_nonnull(strstr(cache_log, "No space left"));
        ck_assert(!cache_is_there(".partial") && !cache_is_there(""));
        leat_reader_close(reader);
        ck_assert(!cache_is_there(".partial") && !cache_is_there(""));
    }
    ck_assert_int_eq(umount(cache_root), 0);
}
END_TEST

/* The process may write no file that large: it reads on, and lives. */
START_TEST(a_cache_beyond_the_limit_of_files_is_not_made)
{
    struct rlimit limit, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 4096;
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    int n = 0;
    /* Check writes a file, too. */
    int limited = setrlimit(RLIMIT_FSIZE, &small);
    while (leat_reader_next(reader, &cache_sample) == LEAT_OK)
        n++;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(n, CACHE_SAMPLES);
    ck_assert_ptr_nonnull(strstr(cache_log, "is not made"));
    ck_assert_ptr_nonnull(strstr(cache_log, strerror(EFBIG)));
    ck_assert(!cache_is_there(".partial") && !cache_is_there(""));
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_writer");
    TCase *tcase = tcase_create("cache_writer");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, threads_write_it_in_any_order);
    tcase_add_test(tcase, a_part_of_an_epoch_leaves_nothing);
    tcase_add_loop_test(
        tcase, a_part_that_cannot_be_removed_is_followed_by_another, 0, 2);
    tcase_add_loop_test(
        tcase, a_part_of_an_epoch_leaves_nothing_where_open_files_are_hidden, 0,
        SYNCS);
    tcase_add_test(tcase,
                   what_is_left_where_open_files_are_hidden_is_taken_over);
    tcase_add_test(tcase, hidden_files_in_another_users_directory_are_refused);
    tcase_add_test(tcase, a_killed_writer_is_followed_by_another);
    tcase_add_test(tcase, a_forked_child_leaves_it_to_its_parent);
    tcase_add_test(tcase, a_child_of_a_killed_writer_holds_no_lock);
    tcase_add_test(tcase, a_child_has_no_file_of_its_parents);
    tcase_add_test(tcase, another_writer_is_refused);
    tcase_add_test(tcase, writers_that_begin_at_once_are_one);
    tcase_add_test(tcase,
                   nothing_is_made_in_a_cache_that_is_completed_meanwhile);
    tcase_add_test(tcase, a_directory_that_goes_as_it_is_listed_is_made);
    tcase_add_test(tcase, a_directory_that_is_gone_each_time_is_refused);
    tcase_add_test(tcase, what_a_second_writer_leaves_gives_way_to_the_cache);
    tcase_add_test(tcase, a_file_that_takes_the_place_of_one_of_its_own_stays);
    tcase_add_test(tcase, a_full_disk_is_said_and_reading_goes_on);
    tcase_add_test(tcase, a_cache_beyond_the_limit_of_files_is_not_made);
    tcase_add_test(tcase, a_directory_that_cannot_be_synced_is_made);
    tcase_add_test(tcase, a_writer_killed_at_its_end_is_followed_by_another);
    tcase_add_loop_test(
        tcase, a_cache_that_fails_at_its_end_makes_room_for_another, 1, SYNCS);
    tcase_add_test(tcase, a_cache_whose_name_cannot_be_synced_keeps_its_data);
    tcase_add_test(tcase, an_abandoned_cache_is_not_written_on);
    tcase_add_loop_test(tcase, a_cache_that_is_abandoned_at_its_end_is_not_made,
                        1, SYNCS + 1);
    tcase_add_loop_test(
        tcase, threads_that_are_making_caches_leave_none_once_abandoned, 0,
        MOMENTS);
    tcase_add_test(tcase, so_is_one_killed_at_its_beginning);
    tcase_add_test(tcase, files_of_others_in_its_partial_are_left_alone);
    tcase_add_test(tcase, a_complete_cache_whose_name_ends_in_partial_stays);
    tcase_add_test(tcase, a_writer_whose_directory_is_anothers_leaves_it);
    tcase_add_test(tcase, a_writer_whose_files_are_gone_makes_no_cache);
    return suite_run(suite);
}
