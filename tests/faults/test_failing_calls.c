/*
 * Every call of the system that leat makes, or liblmdb for it, fails in turn,
 * and so does every allocation: everything that can be made is made again with
 * call number 0, 1, 2 and so on failing, until none does.
 */
#include "faults/faults.h"
#include "support/life_cycles.h"
#include "support/sanitizer.h"

#include "base/memory.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Only the thread sanitizer has it; it takes conditions from libc itself. */
__attribute__((weak)) void __tsan_init(void);

/* More calls of one kind than any life cycle makes. */
#define CALLS_MAX 20000

/* A run takes milliseconds, the thousands of a test on a loaded machine more
   than this. */
enum { SECONDS = 60 };

static int count_entries(const char *path)
{
    int n = 0;
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

static int count_maps(void)
{
    char line[4096];
    int n = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, ".mdb") != NULL;
    fclose(file);
    return n;
}

/* What must be as it was after each: files, threads, maps of databases. */
typedef struct holdings {
    int files;
    int threads;
    int maps;
} holdings;

static holdings count_holdings(void)
{
    return (holdings){count_entries("/proc/self/fd"),
                      count_entries("/proc/self/task"), count_maps()};
}

/* A thread that was joined may be listed for a moment yet. */
static void await_threads(int expected)
{
    const struct timespec moment = {0, 20000};
    while (count_entries("/proc/self/task") > expected)
        nanosleep(&moment, NULL);
}

static void check_holdings(const holdings *before, const char *what)
{
    await_threads(before->threads);
    holdings now = count_holdings();
    ck_assert_msg(now.files == before->files, "%s: %d files are left open",
                  what, now.files - before->files);
    ck_assert_msg(now.maps == before->maps, "%s: %d maps are left", what,
                  now.maps - before->maps);
}

static int is_clean(int status)
{
    return status == LEAT_OK || status == LEAT_EIO || status == LEAT_ENOMEM ||
           status == LEAT_EDEVICE;
}

static void check_status(int status, int struck, const char *what)
{
    ck_assert_msg(is_clean(status), "%s: %s: %s", what,
                  leat_status_name(status), leat_last_error());
    ck_assert_msg(struck || !status, "%s: nothing failed, but: %s", what,
                  leat_last_error());
    ck_assert_msg(!status || leat_last_error()[0], "%s: no error line", what);
    ck_assert_msg(!status || !strchr(leat_last_error(), '\n'), "%s: two lines",
                  what);
}

/* Runs it with ever later calls failing, until none does. How many did. */
static int fail_in_turn(const life_cycle *one, fault_call call, int error,
                        int stays)
{
    char what[128];
    holdings before = count_holdings();
    for (int n = 0;; n++) {
        snprintf(what, sizeof(what), "%s, %s number %d is %d%s", one->name,
                 fault_name(call), n, error, stays ? " and stays" : "");
        ck_assert_msg(n < CALLS_MAX, "%s: no end", what);
        watchdog_renew();
        fault_arm(call, n, error, stays);
        int status = one->run();
        int struck = fault_disarm();
        check_status(status, struck, what);
        check_holdings(&before, what);
        if (!struck)
            return n;
    }
}

static void begin(void)
{
    watchdog_start(SECONDS);
    life_cycles_begin();
}

static void end(void)
{
    life_cycles_end();
    watchdog_stop();
}

/* Does all that is done once in a process, such as starting a device. */
static void warm_up(const life_cycle *one)
{
    ck_assert_msg(one->run() == LEAT_OK, "%s: %s", one->name,
                  leat_last_error());
}

static void check_reached(const life_cycle *one, const fault_call calls[],
                          int n)
{
    int64_t before[FAULT_CALLS];
    for (int i = 0; i < FAULT_CALLS; i++)
        before[i] = fault_count((fault_call)i);
    warm_up(one);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fault_count(calls[i]) > before[calls[i]],
                      "%s: no call of the kind %s passes by", one->name,
                      fault_name(calls[i]));
}

static const life_cycle *find_life_cycle(const char *name)
{
    int i = 0;
    while (strcmp(life_cycles[i].name, name) != 0)
        i++;
    return &life_cycles[i];
}

/* Otherwise nothing below would fail. */
START_TEST(the_calls_of_leat_and_of_its_libraries_pass_by)
{
    static const fault_call layer[] = {FAULT_OPEN,   FAULT_STAT, FAULT_PREAD,
                                       FAULT_CLOSE,  FAULT_LOCK, FAULT_MAP,
                                       FAULT_THREAD, FAULT_MUTEX};
    static const fault_call mean[] = {FAULT_OPEN, FAULT_READ, FAULT_WRITE,
                                      FAULT_SYNC, FAULT_NAME, FAULT_CLOSE};
    static const fault_call condition[] = {FAULT_CONDITION};
    check_reached(find_life_cycle("layer, merged"), layer, 8);
    if (!__tsan_init)
        check_reached(find_life_cycle("layer, merged"), condition, 1);
    check_reached(find_life_cycle("mean file"), mean, 6);
}
END_TEST

START_TEST(any_call_may_fail)
{
    const life_cycle *one = &life_cycles[_i];
    int faults = 0;
    warm_up(one);
    for (int call = 0; call < FAULT_CALLS; call++) {
        int error = fault_error((fault_call)call);
        faults += fail_in_turn(one, (fault_call)call, error, 0);
        /* One by one they take long enough under a sanitizer. */
        if (!IS_SANITIZED)
            faults += fail_in_turn(one, (fault_call)call, error, 1);
    }
    printf("%s: %d failing calls\n", one->name, faults);
}
END_TEST

/* What a signal interrupts, or what comes in pieces, is gone on with. */
START_TEST(reading_and_writing_go_on_when_interrupted_or_cut_short)
{
    static const fault_call calls[] = {FAULT_READ, FAULT_PREAD, FAULT_WRITE};
    const life_cycle *one = &life_cycles[_i];
    int faults = 0;
    warm_up(one);
    for (int i = 0; i < 3; i++) {
        faults += fail_in_turn(one, calls[i], EINTR, 0);
        faults += fail_in_turn(one, calls[i], FAULT_SHORT, 0);
        faults += fail_in_turn(one, calls[i], FAULT_SHORT, 1);
    }
    printf("%s: %d interrupted or cut short\n", one->name, faults);
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    const life_cycle *one = &life_cycles[_i];
    char what[128];
    warm_up(one);
    holdings before = count_holdings();
    /* The thread sanitizer, which is slow, sees every fourth, others each
     * second. */
    int step = IS_THREAD_SANITIZED ? 4 : IS_SANITIZED ? 2 : 1;
    for (int n = 0, done = 0; !done; n += step) {
        snprintf(what, sizeof(what), "%s, allocation %d", one->name, n);
        ck_assert_msg(n < CALLS_MAX, "%s: no end", what);
        watchdog_renew();
        leat__alloc_fail_at(n);
        int status = one->run();
        done = leat__alloc_fail_at(-1) >= 0;
        check_status(status, !done, what);
        ck_assert_msg(!status || status == LEAT_ENOMEM, "%s: %s", what,
                      leat_last_error());
        check_holdings(&before, what);
        if (done)
            printf("%s: %d allocations\n", one->name, n);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failing_calls");
    TCase *tcase = tcase_create("failing_calls");
    tcase_set_timeout(tcase, 280);
    tcase_add_checked_fixture(tcase, begin, end);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_calls_of_leat_and_of_its_libraries_pass_by);
    tcase_add_loop_test(tcase, any_call_may_fail, 0, life_cycles_count);
    tcase_add_loop_test(tcase,
                        reading_and_writing_go_on_when_interrupted_or_cut_short,
                        0, life_cycles_count);
    tcase_add_loop_test(tcase, any_allocation_may_fail, 0, life_cycles_count);
    return suite_run(suite);
}
