#include "readers/lmdb/lmdb_file.h"
#include "support/images.h"
#include "support/nobody.h"
#include "support/page_image.h"
#include "support/suite.h"

#include <fcntl.h>

/* A writer sees only who locks where it does. */
START_TEST(a_data_file_is_locked_where_its_directory_is)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    leat_reader *reader = images_open(images_in(directory, "data.mdb"));
    ck_assert_int_eq(images_count(reader), 10);
    ck_assert_int_eq(access(images_in(directory, "lock.mdb"), F_OK), 0);
    ck_assert_int_ne(access(images_in(directory, "data.mdb-lock"), F_OK), 0);
    images_end(reader, directory);
}
END_TEST

START_TEST(a_file_of_another_name_has_a_lock_of_its_own)
{
    char directory[FIXTURE_PATH];
    char data[2 * FIXTURE_PATH];
    images_write(directory, images_record, 10);
    snprintf(data, sizeof(data), "%s", images_in(directory, "data.mdb"));
    ck_assert_int_eq(rename(data, images_in(directory, "images.mdb")), 0);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    leat_reader *reader = images_open(images_in(directory, "images.mdb"));
    ck_assert_int_eq(images_count(reader), 10);
    ck_assert_int_ne(access(images_in(directory, "lock.mdb"), F_OK), 0);
    ck_assert_int_eq(access(images_in(directory, "images.mdb-lock"), F_OK), 0);
    images_end(reader, directory);
}
END_TEST

static void expect_error(const char *path, int status, const char *says)
{
    ck_assert_int_eq(images_status(path), status);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s: %s", path,
                  leat_last_error());
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}

typedef struct linked {
    char directory[FIXTURE_PATH]; /* the database's */
    char other[FIXTURE_PATH];     /* where links are */
    char link[2 * FIXTURE_PATH];
} linked;

/* A database whose file is `name`, and a link to it; no locks yet. */
static linked link_to(const char *name, const char *link)
{
    linked made;
    char data[2 * FIXTURE_PATH];
    images_write(made.directory, images_record, 10);
    fixture_directory(made.other);
    ck_assert_int_eq(unlink(images_in(made.directory, "lock.mdb")), 0);
    snprintf(data, sizeof(data), "%s/data.mdb", made.directory);
    ck_assert_int_eq(rename(data, images_in(made.directory, name)), 0);
    snprintf(made.link, sizeof(made.link), "%s/%s", made.other, link);
    ck_assert_int_eq(symlink(images_in(made.directory, name), made.link), 0);
    return made;
}

static int is_there(const char *directory, const char *name)
{
    return access(images_in(directory, name), F_OK) == 0;
}

/* Wherever one comes from, there is one lock, beside the file. */
START_TEST(a_link_to_a_data_file_is_locked_beside_the_file)
{
    static const char *const links[] = {"images.mdb", "data.mdb", "data.mdb"};
    for (int i = 0; i < 3; i++) {
        linked at = link_to("data.mdb", links[i]);
        leat_reader *reader = images_open(i == 2 ? at.other : at.link);
        ck_assert_int_eq(images_count(reader), 10);
        ck_assert_int_eq(is_there(at.directory, "lock.mdb"), 1);
        ck_assert_int_eq(is_there(at.directory, "data.mdb-lock"), 0);
        ck_assert_int_eq(is_there(at.other, "lock.mdb"), 0);
        ck_assert_int_eq(is_there(at.other, "images.mdb-lock"), 0);
        images_end(reader, at.directory);
        fixture_remove(at.other);
    }
}
END_TEST

START_TEST(a_link_to_a_file_of_another_name_is_locked_beside_the_file)
{
    linked at = link_to("images.mdb", "pictures.mdb");
    leat_reader *reader = images_open(at.link);
    ck_assert_int_eq(images_count(reader), 10);
    ck_assert_int_eq(is_there(at.directory, "images.mdb-lock"), 1);
    ck_assert_int_eq(is_there(at.other, "pictures.mdb-lock"), 0);
    images_end(reader, at.directory);
    fixture_remove(at.other);
}
END_TEST

/* Also from a directory whose path is too long to be asked for. */
START_TEST(a_relative_link_is_followed_from_where_it_is)
{
    char name[201];
    linked at = link_to("data.mdb", "data.mdb");
    memset(name, 'd', 200);
    name[200] = 0;
    ck_assert_int_eq(chdir(at.other), 0);
    for (int i = 0; i < 25; i++)
        ck_assert(mkdir(name, 0700) == 0 && chdir(name) == 0);
    ck_assert_int_eq(symlink(images_in(at.directory, "data.mdb"), "one"), 0);
    ck_assert_int_eq(symlink("one", "two"), 0);
    leat_reader *reader = images_open("two");
    ck_assert_int_eq(images_count(reader), 10);
    ck_assert_int_eq(is_there(at.directory, "lock.mdb"), 1);
    ck_assert_int_ne(access("two-lock", F_OK), 0);
    images_end(reader, at.directory);
    fixture_remove(at.other);
}
END_TEST

/* As stores of files by their contents have them: nobody goes by that name. */
START_TEST(a_directory_whose_data_file_is_stored_elsewhere_keeps_its_lock)
{
    for (int i = 0; i < 2; i++) {
        linked at = link_to("5f2c", "data.mdb");
        leat_reader *reader = images_open(i ? at.other : at.link);
        ck_assert_int_eq(images_count(reader), 10);
        ck_assert_int_eq(is_there(at.other, "lock.mdb"), 1);
        ck_assert_int_eq(is_there(at.directory, "5f2c-lock"), 0);
        images_end(reader, at.directory);
        fixture_remove(at.other);
    }
}
END_TEST

START_TEST(a_link_that_leads_nowhere_is_no_database)
{
    linked at = link_to("data.mdb", "data.mdb");
    fixture_remove(at.directory);
    expect_error(at.other, LEAT_EIO, "no data.mdb in this directory");
    fixture_remove(at.other);
}
END_TEST

START_TEST(a_link_to_itself_cannot_be_opened)
{
    char directory[FIXTURE_PATH];
    fixture_directory(directory);
    ck_assert_int_eq(symlink("data.mdb", images_in(directory, "data.mdb")), 0);
    expect_error(directory, LEAT_EIO, "data.mdb: cannot be opened: ");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_map_size_of_terabytes_costs_nothing)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 100);
    size_t size;
    unsigned char *bytes =
        fixture_load(images_in(directory, "data.mdb"), &size);
    uint64_t map_size = (uint64_t)2 << 40;
    memcpy(bytes + 32, &map_size, sizeof(map_size));
    memcpy(bytes + 4096 + 32, &map_size, sizeof(map_size));
    fixture_store(images_in(directory, "data.mdb"), bytes, size);
    free(bytes);
    ck_assert_int_eq(truncate(images_in(directory, "data.mdb"), (off_t)2 << 40),
                     0);
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(images_count(reader), 100);
    images_end(reader, directory);
}
END_TEST

/* The second meta page lies where the first one says. */
START_TEST(files_of_every_page_size_are_opened)
{
    char directory[FIXTURE_PATH];
    fixture_directory(directory);
    for (size_t page_size = 256; page_size <= 65536; page_size *= 2) {
        page_image made;
        leat__lmdb_file file;
        leat__lmdb_meta meta = {0};
        page_image_build(&made, page_size, 1000);
        fixture_store(images_in(directory, "data.mdb"), made.bytes,
                      (size_t)made.pages * page_size);
        int status = leat__lmdb_file_open(&file, directory);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_int_eq(leat__lmdb_file_meta(&file, 1, page_size, &meta),
                         LEAT_OK);
        ck_assert_uint_eq(meta.page_size, page_size);
        ck_assert_uint_eq(meta.txnid, 1);
        leat__lmdb_file_close(&file);
        free(made.bytes);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(what_is_no_database_is_refused_with_a_sentence)
{
    char directory[FIXTURE_PATH];
    const char text[] = "This is a text, and not at all a database of LMDB. "
                        "It is long enough to hold a meta page, which it has "
                        "none of, and so should be told apart from one by its "
                        "magic, and by nothing else than that.";
    fixture_directory(directory);
    expect_error("/nowhere/at/all", LEAT_EIO, "No such file");
    expect_error(directory, LEAT_EIO, "no data.mdb");
    fixture_store(images_in(directory, "CURRENT"), "x", 1);
    expect_error(directory, LEAT_EIO, "LevelDB");
    fixture_store(images_in(directory, "data.mdb"), "", 0);
    expect_error(directory, LEAT_EFORMAT, "empty");
    fixture_store(images_in(directory, "data.mdb"), text, 20);
    expect_error(directory, LEAT_EFORMAT, "truncated");
    fixture_store(images_in(directory, "data.mdb"), text, sizeof(text));
    expect_error(directory, LEAT_EFORMAT, "not an LMDB");
    ck_assert_int_eq(unlink(images_in(directory, "data.mdb")), 0);
    ck_assert_int_eq(mkfifo(images_in(directory, "data.mdb"), 0644), 0);
    expect_error(directory, LEAT_EIO, "not a regular file");
    expect_error(images_in(directory, "data.mdb"), LEAT_EIO,
                 "not a regular file");
    expect_error("/dev/zero", LEAT_EIO, "not a regular file");
    ck_assert_int_ne(access(images_in(directory, "lock.mdb"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

static void as_nobody(void (*body)(const char *), const char *directory)
{
    nobody_enter();
    body(directory);
    nobody_leave();
}

static void expect_no_permission(const char *directory)
{
    expect_error(directory, LEAT_EIO, "Permission denied");
}

START_TEST(a_file_without_permission_is_refused)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(chmod(images_in(directory, "data.mdb"), 0), 0);
    as_nobody(expect_no_permission, directory);
    fixture_remove(directory);
}
END_TEST

static void expect_ten(const char *path)
{
    leat_reader *reader = images_open(path);
    ck_assert_int_eq(images_count(reader), 10);
    leat_reader_close(reader);
}

/* Whether a writer has it open is unknown, so that samples are copies. */
static void expect_ten_copies(const char *path)
{
    leat_reader *reader = images_open(path);
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(images_label(&sample), i);
        ck_assert_int_eq(sample.stable, 0);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

START_TEST(a_sealed_directory_is_read_and_left_alone)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    as_nobody(expect_ten, directory);
    as_nobody(expect_ten, images_in(directory, "data.mdb"));
    ck_assert_int_ne(access(images_in(directory, "lock.mdb"), F_OK), 0);
    ck_assert_int_ne(access(images_in(directory, "data.mdb-lock"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

/* The mode keeps no writer of the superuser out either. */
START_TEST(the_superuser_has_a_lock_in_a_directory_of_any_mode)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    expect_ten(directory);
    ck_assert_int_eq(access(images_in(directory, "lock.mdb"), F_OK),
                     geteuid() == 0 ? 0 : -1);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_database_of_someone_else_is_read_without_a_lock)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    ck_assert_int_eq(chmod(images_in(directory, "lock.mdb"), 0444), 0);
    as_nobody(expect_ten, directory);
    ck_assert_int_eq(chmod(images_in(directory, "lock.mdb"), 0), 0);
    as_nobody(expect_ten_copies, directory);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    if (geteuid() == 0) {
        as_nobody(expect_ten, directory);
        ck_assert_int_ne(access(images_in(directory, "lock.mdb"), F_OK), 0);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_lock_file_is_looked_for_by_the_effective_rights)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(directory, 65534, 65534), 0);
    ck_assert_int_eq(chmod(images_in(directory, "lock.mdb"), 0), 0);
    ck_assert_int_eq(chmod(directory, 0700), 0);
    nobody_enter_for_another();
    expect_ten_copies(directory);
    nobody_leave();
    fixture_remove(directory);
}
END_TEST

/* A lock file can be created where the directory is back. */
START_TEST(a_missing_directory_is_not_sealed)
{
    char missing[] = "/no/such/directory";
    const leat__lmdb_file file = {.lock = "/no/such/directory/lock.mdb",
                                  .directory = missing};
    ck_assert(!leat__lmdb_file_is_sealed(&file));
}
END_TEST

/* As of a file that was removed: no lock file can be beside it. */
START_TEST(a_database_without_a_name_is_read_without_a_lock)
{
    char directory[FIXTURE_PATH], name[40];
    images_write(directory, images_record, 10);
    int fd = open(images_in(directory, "data.mdb"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(images_in(directory, "data.mdb")), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    expect_ten(name);
    ck_assert_int_eq(close(fd), 0);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_truncated_database_leaves_no_lock_behind)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 500);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(truncate(images_in(directory, "data.mdb"), 3 * 4096), 0);
    expect_error(directory, LEAT_EFORMAT, "truncated");
    ck_assert_int_ne(access(images_in(directory, "lock.mdb"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_file");
    TCase *tcase = tcase_create("lmdb_file");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_sealed_directory_is_read_and_left_alone);
    tcase_add_test(tcase, the_superuser_has_a_lock_in_a_directory_of_any_mode);
    tcase_add_test(tcase, a_data_file_is_locked_where_its_directory_is);
    tcase_add_test(tcase, a_file_of_another_name_has_a_lock_of_its_own);
    tcase_add_test(tcase, a_link_to_a_data_file_is_locked_beside_the_file);
    tcase_add_test(tcase,
                   a_link_to_a_file_of_another_name_is_locked_beside_the_file);
    tcase_add_test(
        tcase, a_directory_whose_data_file_is_stored_elsewhere_keeps_its_lock);
    tcase_add_test(tcase, a_relative_link_is_followed_from_where_it_is);
    tcase_add_test(tcase, a_link_that_leads_nowhere_is_no_database);
    tcase_add_test(tcase, a_link_to_itself_cannot_be_opened);
    tcase_add_test(tcase, a_map_size_of_terabytes_costs_nothing);
    tcase_add_test(tcase, files_of_every_page_size_are_opened);
    tcase_add_test(tcase, what_is_no_database_is_refused_with_a_sentence);
    tcase_add_test(tcase, a_file_without_permission_is_refused);
    tcase_add_test(tcase, a_database_of_someone_else_is_read_without_a_lock);
    tcase_add_test(tcase, a_lock_file_is_looked_for_by_the_effective_rights);
    tcase_add_test(tcase, a_missing_directory_is_not_sealed);
    tcase_add_test(tcase, a_database_without_a_name_is_read_without_a_lock);
    tcase_add_test(tcase, a_truncated_database_leaves_no_lock_behind);
    return suite_run(suite);
}
