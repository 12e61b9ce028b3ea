#include "lmdb_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"
#include "tools/database/lmdb_writer.h"

#include <leat/status.h>

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[FIXTURE_PATH];
static char path[FIXTURE_PATH + 32];
static char staged[FIXTURE_PATH + 64]; /* of the unfinished database */
static char kept[FIXTURE_PATH + 32];   /* its file, moved elsewhere */

static void begin(void)
{
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/db", directory);
    snprintf(staged, sizeof(staged), "%s.leat-part/database/data.mdb", path);
    snprintf(kept, sizeof(kept), "%s/kept", directory);
}

static void end(void)
{
    fixture_remove(directory);
}

static int open_writer(struct lmdb_writer *out)
{
    const struct staging_options options = {.target = path,
                                            .arguments = "numbers\n"};
    return lmdb_writer_open(out, &options);
}

/* A run that is stopped after its first record. */
static void stop_a_run(void)
{
    struct lmdb_writer writer;
    ck_assert_msg(!open_writer(&writer), "%s", leat_last_error());
    ck_assert_int_eq(lmdb_writer_put(&writer, "0001", 4, "one", 3), LEAT_OK);
    ck_assert_int_eq(lmdb_writer_keep(&writer), 1);
    lmdb_writer_close(&writer);
}

START_TEST(a_stopped_run_is_resumed)
{
    struct lmdb_writer writer;
    stop_a_run();
    ck_assert_msg(!open_writer(&writer), "%s", leat_last_error());
    ck_assert_int_eq(writer.records, 1);
    ck_assert_int_eq(lmdb_writer_put(&writer, "0002", 4, "two", 3), LEAT_OK);
    ck_assert_int_eq(lmdb_writer_publish(&writer, 0), LEAT_OK);
    lmdb_writer_close(&writer);
}
END_TEST

/* The link leads to somebody's database. */
START_TEST(nothing_is_written_through_a_link)
{
    struct lmdb_writer writer;
    size_t size, size_now;
    stop_a_run();
    ck_assert_int_eq(rename(staged, kept), 0);
    unsigned char *bytes = fixture_load(kept, &size);
    ck_assert_int_eq(_i ? link(kept, staged) : symlink(kept, staged), 0);
    ck_assert_int_eq(open_writer(&writer), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "remove it"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), staged));
    unsigned char *now = fixture_load(kept, &size_now);
    ck_assert_uint_eq(size_now, size);
    ck_assert_mem_eq(now, bytes, size);
    free(now);
    free(bytes);
}
END_TEST

/* What lies there by its name is not moved to the target. */
START_TEST(only_the_file_that_was_written_is_published)
{
    struct lmdb_writer writer;
    ck_assert_msg(!open_writer(&writer), "%s", leat_last_error());
    ck_assert_int_eq(lmdb_writer_put(&writer, "0001", 4, "one", 3), LEAT_OK);
    ck_assert_int_eq(rename(staged, kept), 0);
    if (_i == 1)
        ck_assert_int_eq(mkfifo(staged, 0666), 0);
    if (_i == 2)
        ck_assert_int_eq(symlink(kept, staged), 0);
    ck_assert_int_eq(lmdb_writer_publish(&writer, 0), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), staged));
    ck_assert_int_eq(lmdb_writer_keep(&writer), 0);
    lmdb_writer_close(&writer);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(access(kept, F_OK), 0);
}
END_TEST

/* Its root's alone, where that can be had. */
static int hide_proc(void)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return -1;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
                   mount("none", "/proc", "tmpfs", 0, NULL)
               ? -1
               : 0;
}

/* As in some containers. */
START_TEST(a_database_is_written_without_proc)
{
    struct lmdb_writer writer;
    if (IS_SANITIZED) /* It looks for leaks there. */
        return;
    if (hide_proc()) {
        printf("skipped: /proc cannot be hidden: %s\n", strerror(errno));
        return;
    }
    stop_a_run();
    ck_assert_msg(!open_writer(&writer), "%s", leat_last_error());
    ck_assert_int_eq(writer.records, 1);
    ck_assert_int_eq(lmdb_writer_publish(&writer, 0), LEAT_OK);
    lmdb_writer_close(&writer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_writer");
    TCase *tcase = tcase_create("lmdb_writer");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_stopped_run_is_resumed);
    tcase_add_test(tcase, a_database_is_written_without_proc);
    tcase_add_loop_test(tcase, nothing_is_written_through_a_link, 0, 2);
    tcase_add_loop_test(tcase, only_the_file_that_was_written_is_published, 0,
                        3);
    return suite_run(suite);
}
