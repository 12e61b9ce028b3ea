/*
 * What goes on while the opening of an LMDB waits for another process, which
 * has locked its lock file: other databases are opened and closed, the same one
 * is opened once, and a child that is forked has no part in it.
 */
#include "base/thread.h"
#include "readers/lmdb/lmdb_environment.h"
#include "support/condition_spy.h"
#include "support/images.h"
#include "support/other_process.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>

enum { RECORDS = 10, SECONDS = 60, FORKS = 300, LOCK_BYTES = 8192 };

enum { MUTEX_AT = 8 }; /* in the lock file */

static char directory[FIXTURE_PATH];
static sem_t waits; /* an opening has waited for a second */

static void note_wait(void *user, leat_log_level level, const char *line)
{
    (void)user;
    if (level == LEAT_LOG_WARNING && strstr(line, "waiting for it"))
        sem_post(&waits);
}

static void begin(void)
{
    images_write(directory, images_record, RECORDS);
    ck_assert_int_eq(sem_init(&waits, 0, 0), 0);
    leat_log_set(note_wait, NULL, LEAT_LOG_WARNING);
}

static void end(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    sem_destroy(&waits);
    fixture_remove(directory);
}

static void await_wait(void)
{
    while (sem_wait(&waits) != 0)
        continue;
}

static int open_lock(const char *path)
{
    char lock[FIXTURE_PATH + 16];
    snprintf(lock, sizeof(lock), "%s/lock.mdb", path);
    return open(lock, O_RDWR | O_CREAT, 0644);
}

/* In another process: as one that initialises the lock file. */
static void lock_first_byte(const char *path)
{
    struct flock alone = {.l_type = F_WRLCK, .l_len = 1};
    if (fcntl(open_lock(path), F_SETLK, &alone) != 0)
        _exit(2);
}

/* In another process: as one that takes a slot. */
static void lock_mutex(const char *path)
{
    unsigned char *bytes = mmap(NULL, LOCK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_SHARED, open_lock(path), 0);
    if (bytes == MAP_FAILED ||
        pthread_mutex_lock((pthread_mutex_t *)(bytes + MUTEX_AT)) != 0)
        _exit(2);
}

/* Likewise, where nobody else uses the lock file. */
static void use_and_lock_mutex(const char *path)
{
    struct flock shared = {.l_type = F_RDLCK, .l_len = 1};
    if (fcntl(open_lock(path), F_SETLK, &shared) != 0)
        _exit(2);
    lock_mutex(path);
}

/* A thread that opens the database, and what that came to. */
typedef struct opener {
    leat__thread thread;
    leat__lmdb_environment *environment;
    leat_reader *reader;
    int status;
} opener;

static void *open_environment(void *user)
{
    opener *one = user;
    one->status = leat__lmdb_environment_open(&one->environment, directory);
    return NULL;
}

static void *open_reader(void *user)
{
    opener *one = user;
    leat_pipeline *pipeline;
    one->status = leat_pipeline_lmdb(&pipeline, directory, NULL);
    if (one->status)
        return NULL;
    one->status = leat_pipeline_open(pipeline, &one->reader);
    leat_pipeline_unref(pipeline);
    return NULL;
}

static void start(opener *one, void *(*body)(void *))
{
    *one = (opener){0};
    ck_assert_int_eq(leat__thread_start(&one->thread, "opens", body, one),
                     LEAT_OK);
}

/* It had not given up by the time that the lock file was free. */
static void finish(opener *one)
{
    leat__thread_join(&one->thread);
    ck_assert_int_eq(one->status, LEAT_OK);
    leat__lmdb_environment_close(one->environment);
    leat_reader_close(one->reader);
}

START_TEST(other_databases_are_opened_and_closed_meanwhile)
{
    char second[FIXTURE_PATH];
    opener one;
    images_write(second, images_record, RECORDS);
    leat_reader *before = images_open(second);
    other_process other = other_process_start(lock_first_byte, directory);
    start(&one, open_reader);
    await_wait();
    leat_reader *reader = images_open(second);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    leat_reader_close(before);
    other_process_stop(&other);
    finish(&one);
    fixture_remove(second);
}
END_TEST

/* The state that is open is closed while the next one waits for a slot. */
START_TEST(the_same_database_is_closed_meanwhile)
{
    opener one;
    leat_reader *before = images_open(directory);
    other_process other = other_process_start(lock_mutex, directory);
    start(&one, open_reader);
    await_wait();
    leat_reader_close(before);
    other_process_stop(&other);
    finish(&one);
}
END_TEST

START_TEST(two_openings_of_a_database_share_one_environment)
{
    opener first, next;
    other_process other = other_process_start(lock_first_byte, directory);
    start(&first, open_environment);
    await_wait();
    condition_spy_reset();
    start(&next, open_environment);
    condition_spy_await(1);
    other_process_stop(&other);
    leat__thread_join(&first.thread);
    leat__thread_join(&next.thread);
    ck_assert_int_eq(next.status, LEAT_OK);
    ck_assert_ptr_eq(next.environment, first.environment);
    finish(&first);
    finish(&next);
}
END_TEST

/* Each waits for 5 seconds in all, not for those that came before it too. */
static void give_up_together(void (*lock)(const char *path),
                             void *(*body)(void *))
{
    opener opened[4];
    struct timespec from, to;
    other_process other = other_process_start(lock, directory);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 4; i++)
        start(&opened[i], body);
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&opened[i].thread);
        ck_assert_int_eq(opened[i].status, LEAT_EIO);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_lt(to.tv_sec - from.tv_sec, 10);
    other_process_stop(&other);
    start(&opened[0], body);
    finish(&opened[0]);
}

START_TEST(openings_that_wait_for_one_another_give_up_together)
{
    give_up_together(lock_first_byte, open_environment);
    give_up_together(use_and_lock_mutex, open_environment);
    leat_reader *before = images_open(directory);
    give_up_together(lock_mutex, open_reader);
    leat_reader_close(before);
}
END_TEST

static MDB_env *open_elsewhere;

/* What a child of an opening process does: it lives on, and uses the database
 * for itself. */
static void live_on(const char *path, int go, int ready)
{
    char byte = 0;
    alarm(SECONDS);
    if (read(go, &byte, 1) != 1)
        _exit(2);
    open_elsewhere = fixture_env(path, MDB_RDONLY);
    if (write(ready, &byte, 1) != 1)
        _exit(2);
    for (;;)
        pause();
}

/* Killed with a slot, by the end of its process. */
static void fork_while_opening(const char *path)
{
    opener one;
    int go[2], ready[2];
    char byte = 0;
    other_process other = other_process_start(lock_first_byte, path);
    start(&one, open_reader);
    await_wait();
    if (pipe(go) != 0 || pipe(ready) != 0)
        _exit(2);
    if (fork() == 0)
        live_on(path, go[0], ready[1]);
    other_process_stop(&other);
    leat__thread_join(&one.thread);
    if (one.status || write(go[1], &byte, 1) != 1 ||
        read(ready[0], &byte, 1) != 1)
        _exit(2);
}

static void expect_a_dead_slot(const char *path)
{
    int dead = 0;
    MDB_env *env = fixture_env(path, MDB_RDONLY);
    ck_assert_int_eq(mdb_reader_check(env, &dead), 0);
    _exit(dead == 1 ? 0 : 2);
}

static int wait_for(pid_t child)
{
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result), "signal %d", WTERMSIG(result));
    return WEXITSTATUS(result);
}

/* A sanitizer's locks of its allocator are not free in a child of threads that
 * allocate. */
START_TEST(a_child_forked_meanwhile_does_not_keep_its_parents_slot)
{
    if (IS_SANITIZED)
        return;
    other_process_run(fork_while_opening, directory);
    pid_t counter = fork();
    if (counter == 0)
        expect_a_dead_slot(directory);
    ck_assert_int_eq(wait_for(counter), 0);
}
END_TEST

/* Descriptors and maps of the lock file in this process, which is a child. */
static int count_lock_files(void)
{
    static char text[PATH_MAX + 256];
    int n = 0;
    DIR *files = opendir("/proc/self/fd");
    if (!files)
        return -1;
    for (struct dirent *at; (at = readdir(files)) != NULL;) {
        ssize_t size =
            readlinkat(dirfd(files), at->d_name, text, sizeof(text) - 1);
        text[size > 0 ? size : 0] = 0;
        n += strstr(text, "lock.mdb") != NULL;
    }
    closedir(files);
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        return -1;
    while (fgets(text, sizeof(text), maps))
        n += strstr(text, "lock.mdb") != NULL;
    fclose(maps);
    return n;
}

static _Atomic int stopped;

static void *open_and_close(void *user)
{
    opener *one = user;
    while (!stopped) {
        one->status |=
            leat__lmdb_environment_open(&one->environment, directory);
        leat__lmdb_environment_close(one->environment);
    }
    return NULL;
}

START_TEST(a_child_has_no_lock_file_of_its_parents)
{
    if (IS_SANITIZED)
        return;
    opener one;
    start(&one, open_and_close);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            alarm(SECONDS);
            _exit(count_lock_files() == 0 ? 0 : 2);
        }
        ck_assert_int_eq(wait_for(child), 0);
    }
    stopped = 1;
    leat__thread_join(&one.thread);
    ck_assert_int_eq(one.status, LEAT_OK);
}
END_TEST

/* A program's log function may do anything. */
static pid_t forked;

static void fork_at_wait(void *user, leat_log_level level, const char *line)
{
    note_wait(user, level, line);
    if (strstr(line, "waiting for it") && !forked) {
        forked = fork();
        if (forked == 0)
            alarm(SECONDS);
    }
}

START_TEST(a_child_forked_by_the_log_ends_the_opening)
{
    other_process other = other_process_start(lock_first_byte, directory);
    leat_log_set(fork_at_wait, NULL, LEAT_LOG_WARNING);
    int status = images_status(directory);
    if (forked == 0)
        _exit(status == LEAT_EIO && count_lock_files() == 0 ? 0 : 2);
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_int_eq(wait_for(forked), 0);
    other_process_stop(&other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_opening");
    TCase *tcase = tcase_create("lmdb_opening");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, other_databases_are_opened_and_closed_meanwhile);
    tcase_add_test(tcase, the_same_database_is_closed_meanwhile);
    tcase_add_test(tcase, two_openings_of_a_database_share_one_environment);
    tcase_add_test(tcase, openings_that_wait_for_one_another_give_up_together);
    tcase_add_test(tcase,
                   a_child_forked_meanwhile_does_not_keep_its_parents_slot);
    tcase_add_test(tcase, a_child_has_no_lock_file_of_its_parents);
    tcase_add_test(tcase, a_child_forked_by_the_log_ends_the_opening);
    return suite_run(suite);
}
