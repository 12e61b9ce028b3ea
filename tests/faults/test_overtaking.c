/*
 * A writer commits while a database is being opened, before each of the calls
 * that look at the file, one after the other: nobody may take what is new for
 * damage.
 */
#include "faults/faults.h"
#include "lmdb_fixture.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>

#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, RECORDS = 200, COMMITS_MAX = 3, CALLS_MAX = 1000 };

static char directory[FIXTURE_PATH];
static pid_t writer;
static int orders[2], answers[2];
static int commits; /* that an order asks for */

static void make(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = 100;
    memset(out->value, number, out->value_size);
}

/* Each byte asks for one commit, which makes the file longer. */
static void write_on_order(void)
{
    unsigned char n;
    int next = RECORDS;
    MDB_env *env = fixture_env(directory, 0);
    while (read(orders[0], &n, 1) == 1) {
        for (int i = 0; i < n; i++, next += RECORDS)
            fixture_put(env, make, next, next + RECORDS, 0);
        if (write(answers[1], &n, 1) != 1)
            _exit(1);
    }
    mdb_env_close(env);
    _exit(0);
}

static void begin(void)
{
    watchdog_start(SECONDS);
    fixture_directory(directory);
    fixture_write(directory, make, RECORDS);
    ck_assert_int_eq(pipe(orders), 0);
    ck_assert_int_eq(pipe(answers), 0);
    writer = fork();
    ck_assert_int_ge(writer, 0);
    if (!writer) {
        close(orders[1]);
        write_on_order();
    }
    close(orders[0]);
}

static void end(void)
{
    int result;
    close(orders[1]);
    ck_assert_int_eq(waitpid(writer, &result, 0), writer);
    ck_assert_int_eq(result, 0);
    close(answers[0]);
    close(answers[1]);
    fixture_remove(directory);
    watchdog_stop();
}

static void overtake(void)
{
    unsigned char n = (unsigned char)commits;
    fault_disarm();
    ck_assert_int_eq(write(orders[1], &n, 1), 1);
    ck_assert_int_eq(read(answers[0], &n, 1), 1);
}

/* Opens it and reads it to the end: whole transactions, or the test fails. */
static void read_all(void)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    int64_t records;
    ck_assert_msg(!leat_pipeline_lmdb(&pipeline, directory, NULL), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_pipeline_open(pipeline, &reader), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_reader_count(reader, &records), LEAT_OK);
    ck_assert_int_ge(records, RECORDS);
    ck_assert_int_eq(records % RECORDS, 0);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static void overtake_at_each(fault_call call)
{
    int64_t n = 0;
    fault_act(overtake);
    for (;; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        int64_t before = fault_count(call);
        fault_arm(call, n, FAULT_ACT, 0);
        read_all();
        fault_disarm();
        if (fault_count(call) - before <= n)
            break;
    }
    ck_assert_int_gt(n, 1);
}

START_TEST(a_database_may_grow_while_it_is_opened)
{
    commits = _i;
    overtake_at_each(FAULT_STAT);
    overtake_at_each(FAULT_PREAD);
    overtake_at_each(FAULT_MAP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overtaking");
    TCase *tcase = tcase_create("overtaking");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_database_may_grow_while_it_is_opened, 1,
                        COMMITS_MAX + 1);
    tcase_set_timeout(tcase, 2 * SECONDS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
