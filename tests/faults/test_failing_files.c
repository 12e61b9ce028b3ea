/*
 * Files of records are opened, indexed and read while a call fails: an error
 * with a line, or the right samples; no descriptor and no index half written
 * stays behind.
 */
#include "faults/faults.h"
#include "support/record_fixture.h"
#include "support/suite.h"

#include <leat/log.h>

#include <check.h>
#include <dirent.h>

enum { FILES = 3, RECORDS = 60 };

static char folder[FIXTURE_PATH];
static char text[FIXTURE_PATH + 64];
static leat_sample sample;

static void drop_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

static void set_up(void)
{
    static record_bytes file;
    fixture_directory(folder);
    snprintf(text, sizeof(text), "tfrecord:%s/part-*,index=KEEP", folder);
    leat_sample_init(&sample);
    leat_log_set(drop_line, NULL, LEAT_LOG_WARNING);
    for (int k = 0, i = 0; k < FILES; k++) {
        char path[FIXTURE_PATH + 16];
        file.size = 0;
        for (; i < (k + 1) * RECORDS / FILES; i++)
            record_bytes_add_tfrecord(&file, &i, sizeof(i));
        snprintf(path, sizeof(path), "%s/part-%d", folder, k);
        record_bytes_write(&file, path);
    }
}

static void tear_down(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    leat_sample_finish(&sample);
    fixture_remove(folder);
}

/* Entries of a folder that do not begin with `but`. */
static int count_entries(const char *name, const char *but)
{
    int n = 0;
    DIR *entries = opendir(name);
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        n += strncmp(entry->d_name, but, strlen(but)) != 0;
    closedir(entries);
    return n;
}

static void remove_indices(void)
{
    for (int k = 0; k < FILES; k++) {
        char path[FIXTURE_PATH + 32];
        snprintf(path, sizeof(path), "%s/.part-%d.leat-index", folder, k);
        (void)unlink(path);
    }
}

/* Opens, counts and reads all, by order and by index. */
static int read_all(void)
{
    leat_reader *reader;
    leat_sample *out[] = {&sample};
    int64_t count = 0;
    int number, got;
    int status = record_reader_try(&reader, text);
    if (status)
        return status;
    for (int i = 0; !status && i < RECORDS; i++) {
        status = leat_reader_next(reader, &sample);
        if (!status)
            memcpy(&number, sample.field[0].data, sizeof(number));
        ck_assert(status || number == i);
    }
    if (!status)
        status = leat_reader_count(reader, &count);
    for (int i = 0; !status && i < RECORDS; i++) {
        const leat_position at = {0, RECORDS - 1 - i};
        ck_assert_int_eq(count, RECORDS);
        status = leat_reader_read_at(reader, &at, out, 1, &got);
        if (!status)
            memcpy(&number, sample.field[0].data, sizeof(number));
        ck_assert(status || number == RECORDS - 1 - i);
    }
    leat_reader_close(reader);
    return status;
}

START_TEST(every_call_may_fail)
{
    fault_call call = (fault_call)_i;
    if (call == FAULT_STREAM)
        return; /* no FILE is used, but by the test itself */
    /* Of the folder: ".", "..", the files; indices are complete or not there.
     */
    int files = count_entries("/proc/self/fd", "-");
    for (int64_t n = 0; n < 500; n++) {
        remove_indices();
        fault_arm(call, n, fault_error(call), 0);
        int status = read_all();
        int failed = fault_disarm();
        ck_assert_msg(status == LEAT_OK || status == LEAT_EIO ||
                          status == LEAT_ENOMEM || status == LEAT_ELIMIT,
                      "%s %d: %d, %s", fault_name(call), (int)n, status,
                      leat_last_error());
        ck_assert(status == LEAT_OK || leat_last_error()[0]);
        ck_assert_int_eq(count_entries("/proc/self/fd", "-"), files);
        if (call != FAULT_REMOVE && call != FAULT_CLOSE)
            ck_assert_int_eq(count_entries(folder, ".part-"), FILES + 2);
        ck_assert_int_eq(read_all(), LEAT_OK);
        if (!failed)
            return;
    }
}
END_TEST

/* That a file is gzip is known by its first bytes. */
START_TEST(a_short_read_hides_no_gzip)
{
    /* A line, "a". */
    static const unsigned char packed[] = {
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x03, 0x01, 0x02, 0x00, 0xfd, 0xff, 0x61, 0x0a, 0x07,
        0xa1, 0xea, 0xdd, 0x02, 0x00, 0x00, 0x00};
    leat_reader *reader;
    char path[FIXTURE_PATH + 16];
    int failed;
    record_bytes file = {0};
    record_bytes_add(&file, packed, sizeof(packed));
    snprintf(path, sizeof(path), "%s/packed", folder);
    record_bytes_write(&file, path);
    snprintf(text, sizeof(text), "text:%s", path);
    for (int64_t n = 0; n < 20; n++) {
        fault_arm(FAULT_PREAD, n, FAULT_SHORT, 0);
        ck_assert_int_eq(record_reader_try(&reader, text), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        failed = fault_disarm();
        ck_assert(failed || n > 0);
        ck_assert_uint_eq(sample.field[0].bytes, 1);
        ck_assert_int_eq(*(const char *)sample.field[0].data, 'a');
        leat_reader_close(reader);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failing_files");
    TCase *tcase = tcase_create("failing_files");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, every_call_may_fail, 0, FAULT_CONDITION);
    tcase_add_test(tcase, a_short_read_hides_no_gzip);
    return suite_run(suite);
}
