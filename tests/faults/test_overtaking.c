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
#include <leat/datum.h>

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, RECORDS = 200, COMMITS_MAX = 3, CALLS_MAX = 1000 };

enum { IMAGE = 100 };

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

/* By their values: pages of an earlier transaction have others. */
static void read_records(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    int status, n = 0;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    ck_assert_msg(!leat_pipeline_open(pipeline, &reader), "%s",
                  leat_last_error());
    for (; !(status = leat_reader_next(reader, &sample)); n++) {
        ck_assert_int_eq(sample.field[0].bytes, IMAGE);
        ck_assert_int_eq(((const unsigned char *)sample.field[0].data)[0],
                         n % 256);
    }
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(n % RECORDS, 0);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static void make_image(int number, fixture_record *out)
{
    unsigned char pixels[IMAGE];
    memset(pixels, number, sizeof(pixels));
    leat_datum datum = {.channels = 1, .height = 1, .width = IMAGE};
    datum.data = pixels;
    datum.data_size = sizeof(pixels);
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static char merged[FIXTURE_PATH + 16];
static int copies[2], copied[2]; /* orders and answers of its writer */

/* The file is copied when its first writer opens it, on order. */
static void copy_on_order(void)
{
    unsigned char n;
    close(copies[1]);
    if (read(copies[0], &n, 1) != 1)
        _exit(0);
    MDB_env *env = fixture_env(merged, 0);
    for (int i = 1; i <= COMMITS_MAX; i++)
        fixture_put(env, make_image, i * RECORDS, (i + 1) * RECORDS, 0);
    mdb_env_close(env);
    _exit(write(copied[1], &n, 1) != 1);
}

/* Without waiting for it where it waits for the lock file, which is locked. */
static void order_copy(void)
{
    enum { PATIENCE_MS = 100 };
    unsigned char n = 1;
    struct pollfd answer = {.fd = copied[0], .events = POLLIN};
    fault_disarm();
    ck_assert_int_eq(write(copies[1], &n, 1), 1);
    ck_assert_int_ge(poll(&answer, 1, PATIENCE_MS), 0);
}

/* Whether there are as many calls. */
static bool copy_at(fault_call call, int64_t n, const char *place)
{
    int result;
    char options[8 * FIXTURE_PATH];
    snprintf(options, sizeof(options),
             "lowerdir=%s/lower,upperdir=%s/%lld,workdir=%s/work", place, place,
             (long long)n, place);
    ck_assert_int_eq(mount("overlay", merged, "overlay", 0, options), 0);
    ck_assert_int_eq(pipe(copies), 0);
    ck_assert_int_eq(pipe(copied), 0);
    pid_t child = fork();
    if (!child)
        copy_on_order();
    close(copies[0]);
    int64_t before = fault_count(call);
    fault_arm(call, n, FAULT_ACT, 0);
    read_records(merged);
    fault_disarm();
    bool is_called = fault_count(call) - before > n;
    close(copies[1]);
    close(copied[0]);
    close(copied[1]);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(umount(merged), 0);
    return is_called;
}

/* As in a container's image: the first write copies the file to another layer,
   of which what was opened before shows nothing in a map. */
START_TEST(an_overlay_may_copy_a_database_while_it_is_opened)
{
    static const fault_call calls[] = {FAULT_STAT, FAULT_PREAD, FAULT_MAP,
                                       FAULT_LOCK};
    char place[FIXTURE_PATH], path[4 * FIXTURE_PATH];
    fixture_directory(place);
    snprintf(path, sizeof(path), "%s/lower", place);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    fixture_write(path, make_image, RECORDS);
    snprintf(path, sizeof(path), "%s/work", place);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(merged, sizeof(merged), "%s/merged", place);
    ck_assert_int_eq(mkdir(merged, 0755), 0);
    snprintf(path, sizeof(path), "lowerdir=%s/lower:%s", place, directory);
    if (mount("overlay", merged, "overlay", 0, path)) {
        printf("skipped: cannot mount an overlay: %s\n", strerror(errno));
        fixture_remove(place);
        return;
    }
    ck_assert_int_eq(umount(merged), 0);
    fault_act(order_copy);
    for (int i = 0; i < 4; i++)
        for (int64_t n = 0;; n++) {
            snprintf(path, sizeof(path), "%s/%lld", place, (long long)n);
            ck_assert_int_eq(mkdir(path, 0755), 0);
            bool is_called = copy_at(calls[i], n, place);
            fixture_remove(path);
            ck_assert_int_lt(n, CALLS_MAX);
            if (!is_called)
                break;
        }
    fixture_remove(place);
}
END_TEST

START_TEST(a_database_may_grow_while_it_is_opened)
{
    commits = _i;
    overtake_at_each(FAULT_STAT);
    overtake_at_each(FAULT_PREAD);
    overtake_at_each(FAULT_MAP);
}
END_TEST

/* Of a meta page, written by hand. */
enum { PAGE = 4096, ENTRIES = 120, TXNID = 144 };

static int data_fd;

static void open_data(void)
{
    char path[FIXTURE_PATH + 16];
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    data_fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(data_fd, 0);
}

/* Meta page `page`'s number at `offset`. */
static uint64_t load(int page, int offset)
{
    uint64_t value;
    off_t at = (off_t)page * PAGE + offset;
    ck_assert_int_eq(pread(data_fd, &value, sizeof(value), at), sizeof(value));
    return value;
}

static void store(int page, int offset, uint64_t value)
{
    off_t at = (off_t)page * PAGE + offset;
    ck_assert_int_eq(pwrite(data_fd, &value, sizeof(value), at), sizeof(value));
}

static int latest_page(void)
{
    return load(1, TXNID) > load(0, TXNID);
}

/*
 * A commit, and the next transaction's begin: its page has all but its number,
 * which a writer stores last. That page is the one that was the latest.
 */
static void overtake_by_one_and_a_half(void)
{
    overtake();
    int page = !latest_page();
    store(page, ENTRIES, load(page, ENTRIES) + 1);
}

/* Either page may be the latest one when the reading of them begins. */
START_TEST(a_meta_page_may_be_rewritten_while_it_is_read)
{
    open_data();
    commits = 1;
    fault_act(overtake_by_one_and_a_half);
    for (int64_t n = 0;; n++) {
        int64_t before = 0;
        for (int page = 0; page < 2; page++) {
            while (latest_page() != page)
                overtake();
            before = fault_count(FAULT_PREAD);
            fault_arm(FAULT_PREAD, n, FAULT_ACT, 0);
            read_all();
            fault_disarm();
        }
        ck_assert_int_lt(n, CALLS_MAX);
        if (fault_count(FAULT_PREAD) - before <= n)
            break;
    }
    close(data_fd);
}
END_TEST

static int torn;       /* the meta page that is of another transaction, */
static uint64_t whole; /* and which it is of in truth */

static void repair(void)
{
    fault_disarm();
    store(torn, TXNID, whole);
}

/* What was read may be of transactions apart; only that page then changes. */
START_TEST(a_fault_that_is_gone_when_it_is_looked_at_again_is_none)
{
    enum { SECOND_LOOK = 2 };
    open_data();
    commits = 1;
    fault_act(repair);
    for (int page = 0; page < 2; page++) {
        while (latest_page() == page)
            overtake();
        overtake();
        overtake();
        torn = page;
        whole = load(page, TXNID);
        store(page, TXNID, whole - 2);
        fault_arm(FAULT_PREAD, SECOND_LOOK, FAULT_ACT, 0);
        read_all();
        fault_disarm();
        ck_assert_uint_eq(load(page, TXNID), whole);
    }
    close(data_fd);
}
END_TEST

/* The first reads are leat's own, of either meta page. */
START_TEST(a_read_that_was_interrupted_is_begun_again)
{
    static const int errors[] = {EINTR, FAULT_SHORT};
    for (int64_t n = 0; n < 2; n++)
        for (int k = 0; k < 2; k++) {
            fault_arm(FAULT_PREAD, n, errors[k], 0);
            read_all();
            ck_assert_int_eq(fault_disarm(), 1);
        }
}
END_TEST

/* As where an overlay file system copies a file that is opened to be written
   to. Looking at the system may fail, too, and is no part of it. */
START_TEST(an_open_that_was_interrupted_is_begun_again)
{
    bool is_called = true;
    for (int64_t n = 0; is_called; n++) {
        int64_t before = fault_count(FAULT_OPEN);
        fault_arm(FAULT_OPEN, n, EINTR, 0);
        read_all();
        fault_disarm();
        is_called = fault_count(FAULT_OPEN) - before > n;
    }
}
END_TEST

/* Each time another one, and never two in a row. */
static void tear(void)
{
    static uint64_t txnid = 11;
    store(1, TXNID, txnid += 2);
}

START_TEST(a_writer_who_is_always_faster_is_an_error_in_the_end)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    open_data();
    tear();
    fault_act(tear);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), 0);
    fault_arm(FAULT_PREAD, 0, FAULT_ACT, 1);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EFORMAT);
    fault_disarm();
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected two in a row"));
    leat_pipeline_unref(pipeline);
    close(data_fd);
}
END_TEST

/* Nobody is there: what is damaged is, and is not looked at for ever. */
START_TEST(damage_that_stays_is_told_at_the_second_look)
{
    enum { LOOKS = 4 };
    leat_pipeline *pipeline;
    leat_reader *reader;
    open_data();
    tear();
    int64_t before = fault_count(FAULT_PREAD);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), 0);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EFORMAT);
    ck_assert_int_eq(fault_count(FAULT_PREAD) - before, LOOKS);
    leat_pipeline_unref(pipeline);
    close(data_fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overtaking");
    TCase *tcase = tcase_create("overtaking");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_database_may_grow_while_it_is_opened, 1,
                        COMMITS_MAX + 1);
    tcase_add_test(tcase, a_meta_page_may_be_rewritten_while_it_is_read);
    tcase_add_test(tcase,
                   a_fault_that_is_gone_when_it_is_looked_at_again_is_none);
    tcase_add_test(tcase, a_read_that_was_interrupted_is_begun_again);
    tcase_add_test(tcase, an_open_that_was_interrupted_is_begun_again);
    tcase_add_test(tcase, an_overlay_may_copy_a_database_while_it_is_opened);
    tcase_add_test(tcase, a_writer_who_is_always_faster_is_an_error_in_the_end);
    tcase_add_test(tcase, damage_that_stays_is_told_at_the_second_look);
    tcase_set_timeout(tcase, 2 * SECONDS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
