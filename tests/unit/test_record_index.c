/* The index of files of records, and what is kept of it. */
#include "readers/record/record_index.h"
#include "readers/tfrecord.h"
#include "support/nobody.h"
#include "support/process_memory.h"
#include "support/record_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

static char folder[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static char kept[FIXTURE_PATH + 32];
static char text[FIXTURE_PATH + 64];
static record_bytes file;
static leat_sample sample;

static void set_up(void)
{
    fixture_directory(folder);
    snprintf(path, sizeof(path), "%s/data", folder);
    snprintf(kept, sizeof(kept), "%s/.data.leat-index", folder);
    snprintf(text, sizeof(text), "tfrecord:%s,index=keep", path);
    leat_sample_init(&sample);
    file.size = 0;
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
    fixture_remove(folder);
}

static void write_records(int n, size_t size)
{
    char data[100] = "";
    file.size = 0;
    for (int i = 0; i < n; i++)
        record_bytes_add_tfrecord(&file, data, size);
    record_bytes_write(&file, path);
}

static int64_t count_records(void)
{
    int64_t count = -1;
    leat_reader *reader = record_reader_open(text);
    int status = leat_reader_count(reader, &count);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_reader_close(reader);
    return count;
}

/* The inode of what is kept; 0: nothing. */
static ino_t kept_inode(void)
{
    struct stat found;
    return stat(kept, &found) == 0 ? found.st_ino : 0;
}

START_TEST(an_index_is_kept_and_used_again)
{
    struct stat found;
    write_records(50, 10);
    ck_assert_int_eq(count_records(), 50);
    ino_t inode = kept_inode();
    ck_assert(inode);
    ck_assert_int_eq(stat(kept, &found), 0);
    ck_assert_int_eq(found.st_size, 56 + 8 * 50);
    /* Used: the file's own headers are damaged, and nobody looks at them. */
    struct timespec times[2];
    ck_assert_int_eq(stat(path, &found), 0);
    times[0] = times[1] = found.st_mtim;
    FILE *data = fopen(path, "r+b");
    ck_assert_ptr_nonnull(data);
    fputc(255, data);
    fclose(data);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert(kept_inode() == inode);
    /* Where its records are bad, they are found to be. */
    leat_reader *reader = record_reader_open(text);
    leat_sample *out[] = {&sample};
    int got;
    const leat_position at[] = {{0, 0}, {0, 1}};
    ck_assert_int_eq(leat_reader_read_at(reader, at, out, 1, &got), LEAT_EDATA);
    ck_assert_int_eq(leat_reader_read_at(reader, at + 1, out, 1, &got),
                     LEAT_OK);
    leat_reader_close(reader);
}
END_TEST

/* Also where an index of other permissions was there. */
START_TEST(an_index_has_the_permissions_of_its_file)
{
    static const mode_t modes[] = {0600, 0640, 0644};
    for (int i = 0; i < 3; i++) {
        struct stat found;
        write_records(5 + i, 10);
        ck_assert_int_eq(chmod(path, modes[i]), 0);
        ck_assert_int_eq(count_records(), 5 + i);
        ck_assert_int_eq(stat(kept, &found), 0);
        ck_assert_uint_eq(found.st_size, 56 + 8 * (5 + (size_t)i));
        ck_assert_uint_eq(found.st_mode & 07777, modes[i]);
    }
}
END_TEST

/* Those of the file that a link leads to, not of the link. */
START_TEST(an_index_beside_a_link_has_the_permissions_of_its_file)
{
    struct stat found;
    char link[sizeof(kept)], beside[sizeof(kept)];
    write_records(5, 10);
    ck_assert_int_eq(chmod(path, 0600), 0);
    snprintf(link, sizeof(link), "%s/link", folder);
    snprintf(beside, sizeof(beside), "%s/.link.leat-index", folder);
    snprintf(text, sizeof(text), "tfrecord:%s,index=keep", link);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(count_records(), 5);
    ck_assert_int_eq(lstat(beside, &found), 0);
    ck_assert_uint_eq(found.st_mode & 07777, 0600);
}
END_TEST

START_TEST(a_stale_index_is_made_again)
{
    write_records(50, 10);
    ck_assert_int_eq(count_records(), 50);
    ino_t inode = kept_inode();
    /* Another size; then the same size at another time. */
    write_records(60, 10);
    ck_assert_int_eq(count_records(), 60);
    ck_assert(kept_inode() != inode);
    inode = kept_inode();
    file.size = 0;
    write_records(52, 14);
    ck_assert_uint_eq(file.size, 60 * 26);
    ck_assert_int_eq(count_records(), 52);
    ck_assert(kept_inode() != inode);
}
END_TEST

START_TEST(a_file_just_written_keeps_no_index)
{
    write_records(50, 10);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, NULL, 0), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert(!kept_inode());
}
END_TEST

static char warning[256];

static void note_warning(void *user, leat_log_level level, const char *line)
{
    (void)user;
    if (level == LEAT_LOG_WARNING)
        snprintf(warning, sizeof(warning), "%s", line);
}

/* Seconds that nanoseconds in 64 bits do not reach, on either side. */
START_TEST(a_file_of_any_time_has_its_index_kept_if_it_is_past)
{
    static const struct {
        time_t seconds;
        int is_past;
    } cases[] = {
        {99999999999, 0}, {9223372036, 0}, {-9223372037, 1}, {-99999999999, 1}};
    leat_log_set(note_warning, NULL, LEAT_LOG_WARNING);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct timespec times[2] = {{cases[i].seconds, 999999999},
                                          {cases[i].seconds, 999999999}};
        struct stat found;
        write_records(50, 10);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
        ck_assert_int_eq(stat(path, &found), 0);
        if (found.st_mtim.tv_sec != cases[i].seconds)
            continue; /* the file system has no such times */
        warning[0] = 0;
        ck_assert_int_eq(count_records(), 50);
        ck_assert_int_eq(kept_inode() != 0, cases[i].is_past);
        ck_assert_int_eq(strstr(warning, "yet to come") != NULL,
                         !cases[i].is_past);
        (void)remove(kept);
    }
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

START_TEST(every_damaged_byte_makes_it_anew)
{
    unsigned char whole[56 + 8 * 5];
    write_records(5, 10);
    ck_assert_int_eq(count_records(), 5);
    FILE *index = fopen(kept, "rb");
    ck_assert_ptr_nonnull(index);
    ck_assert_uint_eq(fread(whole, 1, sizeof(whole), index), sizeof(whole));
    fclose(index);
    for (size_t i = 0; i < 2 * sizeof(whole); i++) {
        size_t size = i < sizeof(whole) ? i : sizeof(whole);
        if (i >= sizeof(whole))
            whole[i - sizeof(whole)] ^= 1;
        index = fopen(kept, "wb");
        ck_assert_ptr_nonnull(index);
        fwrite(whole, 1, size, index);
        fclose(index);
        ino_t inode = kept_inode();
        ck_assert_int_eq(count_records(), 5);
        ck_assert(kept_inode() != inode);
        if (i >= sizeof(whole))
            whole[i - sizeof(whole)] ^= 1;
    }
}
END_TEST

static void stretch(const char *name, off_t size)
{
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    ck_assert_int_eq(truncate(name, size), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* Holes in a file of one record, whose index may be eight times as large. */
START_TEST(a_large_file_in_the_place_of_an_index_is_not_read)
{
    const uint64_t size = (uint64_t)64 << 20;
    const uint32_t sum = leat__crc32c_mask(leat__crc32c(0, &size, 8));
    file.size = 0;
    record_bytes_add(&file, &size, 8);
    record_bytes_add(&file, &sum, 4);
    record_bytes_write(&file, path);
    stretch(path, (off_t)size + 16);
    ck_assert_int_eq(count_records(), 1);
    ino_t inode = kept_inode();
    stretch(kept, 56 + 8 * (off_t)size);
    long before = process_memory_most();
    ck_assert_int_eq(count_records(), 1);
    ck_assert_int_lt(process_memory_most() - before, 64 << 10);
    ck_assert(kept_inode() != inode);
}
END_TEST

/* Of 52 records, beside a file of 60 that has its size and time. */
static void plant_index(uid_t owner)
{
    (void)remove(kept);
    write_records(52, 14);
    stretch(path, (off_t)file.size);
    ck_assert_int_eq(count_records(), 52);
    ck_assert_int_eq(chown(kept, owner, owner), 0);
    write_records(60, 10);
    stretch(path, (off_t)file.size);
}

START_TEST(anothers_index_in_a_sticky_directory_is_not_believed)
{
    enum { NOBODY = 65534, ANOTHER = 65533 };
    static const struct {
        mode_t mode;
        uid_t directory, data, index;
        bool is_nobody, is_believed;
    } cases[] = {
        {01777, 0, 0, NOBODY, false, false},
        {01777, 0, 0, 0, false, true},
        {01777, 0, NOBODY, NOBODY, false, true},
        {01777, NOBODY, 0, NOBODY, false, true},
        {0777, 0, 0, NOBODY, false, true},
        {01777, 0, 0, ANOTHER, true, false},
        {01777, 0, 0, NOBODY, true, true},
        {01777, ANOTHER, ANOTHER, 0, true, true},
    };
    if (geteuid() != 0) {
        printf("skipped: files of another user, which need root\n");
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        plant_index(cases[i].index);
        ck_assert_int_eq(chown(path, cases[i].data, cases[i].data), 0);
        ck_assert_int_eq(chown(folder, cases[i].directory, 0), 0);
        ck_assert_int_eq(chmod(folder, cases[i].mode), 0);
        if (cases[i].is_nobody)
            nobody_enter();
        int64_t count = count_records();
        nobody_leave();
        ck_assert_int_eq(count, cases[i].is_believed ? 52 : 60);
    }
}
END_TEST

static int count_within(int64_t max_memory, int64_t *count)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    options.max_memory = max_memory;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    int status = leat_reader_count(reader, count);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return status;
}

START_TEST(a_kept_index_keeps_to_the_limit_of_memory)
{
    int64_t count = -1;
    write_records(1000, 10);
    stretch(path, (off_t)file.size);
    ck_assert_int_eq(count_records(), 1000);
    ino_t inode = kept_inode();
    ck_assert_uint_ne(inode, 0);
    ck_assert_int_eq(count_within(7999, &count), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 7999"));
    ck_assert_int_eq(count, -1);
    ck_assert_int_eq(count_within(8000, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    ck_assert(kept_inode() == inode);
}
END_TEST

/* Not first where its list grows, which is up to twice as late. */
START_TEST(an_index_that_is_made_ends_soon_after_the_limit_of_memory)
{
    const long limit = 40000, pass = 1024;
    int64_t count;
    write_records(20000, 10);
    stretch(path, (off_t)file.size);
    ck_assert_int_eq(count_within(limit, &count), LEAT_ELIMIT);
    const char *takes = strstr(leat_last_error(), "records takes ");
    ck_assert_ptr_nonnull(takes);
    ck_assert_int_le(strtol(takes + strlen("records takes "), NULL, 10),
                     limit + 8 * pass);
}
END_TEST

/* One of which the offsets are damaged is not counted beside the next. */
START_TEST(an_index_that_is_made_keeps_to_the_limit_of_memory)
{
    int64_t count = -1;
    unsigned char byte = 255;
    write_records(1000, 10);
    stretch(path, (off_t)file.size);
    ck_assert_int_eq(count_within(7999, &count), LEAT_ELIMIT);
    ck_assert_uint_eq(kept_inode(), 0);
    ck_assert_int_eq(count_records(), 1000);
    ino_t inode = kept_inode();
    int fd = open(kept, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, &byte, 1, 60), 1);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(count_within(8000, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    ck_assert(kept_inode() != inode);
}
END_TEST

/* A copy of 200000 offsets would take 1.6 MB more. */
START_TEST(an_index_is_kept_without_a_copy_of_it)
{
    const int n = 200000;
    /* What is freed goes back, whatever was freed before. */
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    write_records(n, 1);
    snprintf(text, sizeof(text), "tfrecord:%s", path);
    ck_assert_int_eq(count_records(), n);
    long before = process_memory_most();
    snprintf(text, sizeof(text), "tfrecord:%s,index=keep", path);
    ck_assert_int_eq(count_records(), n);
    ck_assert_uint_ne(kept_inode(), 0);
    if (!IS_SANITIZED) /* which keeps what is freed */
        ck_assert_int_lt(process_memory_most() - before, 8 * n / 2 >> 10);
}
END_TEST

START_TEST(offsets_that_do_not_ascend_in_the_file_are_refused)
{
    static const struct {
        uint64_t offset[3];
        bool is_good;
    } cases[] = {{{0, 26, 52}, true},  {{0, 0, 52}, false},
                 {{26, 0, 52}, false}, {{0, 26, 78}, false},
                 {{0, 1, 77}, true},   {{0, UINT64_MAX, 2}, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _Alignas(8) unsigned char bytes[56 + 24] = "leatidx1tfrecord";
        uint64_t header[] = {78, 5, 3};
        leat__record_offsets offsets = {0};
        memcpy(bytes + 24, header, 24);
        memcpy(bytes + 56, cases[i].offset, 24);
        uint32_t sum = leat__crc32c(0, bytes + 56, 24);
        memcpy(bytes + 48, &sum, 4);
        sum = leat__crc32c(0, bytes, 52);
        memcpy(bytes + 52, &sum, 4);
        ck_assert_int_eq(leat__record_index_parse(bytes, sizeof(bytes),
                                                  "tfrecord", 78, 5, &offsets),
                         cases[i].is_good);
        ck_assert(!leat__record_index_parse(bytes, sizeof(bytes), "other", 78,
                                            5, &offsets));
        ck_assert(!leat__record_index_parse(bytes, sizeof(bytes), "tfrecord",
                                            79, 5, &offsets));
        ck_assert(!leat__record_index_parse(bytes, sizeof(bytes), "tfrecord",
                                            78, 6, &offsets));
    }
}
END_TEST

/* A folder that cannot be written to, or a name that is taken. */
START_TEST(what_cannot_be_kept_is_no_error)
{
    write_records(50, 10);
    ck_assert_int_eq(mkdir(kept, 0755), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_int_eq(rmdir(kept), 0);
}
END_TEST

static int warnings;

static void count_warning(void *user, leat_log_level level, const char *line)
{
    (void)user;
    warnings += level == LEAT_LOG_WARNING &&
                strstr(line, "its index cannot be kept") != NULL;
}

/* An index elsewhere, or what would be gone once it was read. */
/* A relative name, after chdir: the index would be that of another file. */
START_TEST(an_index_goes_beside_its_own_file_alone)
{
    char here[PATH_MAX];
    leat_reader *reader;
    int64_t count;
    write_records(50, 10);
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_int_eq(chdir(folder), 0);
    reader = record_reader_open("tfrecord:data,index=KEEP");
    ck_assert_int_eq(mkdir("other", 0755), 0);
    ck_assert_int_eq(chdir("other"), 0);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 50);
    leat_reader_close(reader);
    ck_assert_int_eq(rmdir("../other"), 0);
    ck_assert_int_eq(chdir(here), 0);
    ck_assert_uint_eq(kept_inode(), 0);
}
END_TEST

/* As /dev/stdin has it. */
START_TEST(the_name_of_a_descriptor_has_no_index_beside_it)
{
    char target[40], other[FIXTURE_PATH + 16];
    write_records(50, 10);
    snprintf(other, sizeof(other), "%s/moved", folder);
    ck_assert_int_eq(rename(path, other), 0);
    int fd = open(other, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_uint_eq(kept_inode(), 0);
    ck_assert_int_eq(close(fd), 0);
    /* A link to the file's own name does. */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_uint_ne(kept_inode(), 0);
}
END_TEST

START_TEST(a_link_in_the_place_of_an_index_is_not_followed)
{
    char target[FIXTURE_PATH + 32];
    int ends[2], left = 0;
    write_records(50, 10);
    leat_log_set(count_warning, NULL, LEAT_LOG_WARNING);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_int_eq(warnings, 0);
    snprintf(target, sizeof(target), "%s/elsewhere", folder);
    ck_assert_int_eq(rename(kept, target), 0);
    ck_assert_int_eq(symlink(target, kept), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_int_eq(warnings, 1);
    ck_assert_int_eq(unlink(kept), 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "bytes", 5), 5);
    ck_assert_int_eq(close(ends[1]), 0);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", ends[0]);
    ck_assert_int_eq(symlink(target, kept), 0);
    ck_assert_int_eq(count_records(), 50);
    ck_assert_int_eq(warnings, 2);
    ck_assert_int_eq(ioctl(ends[0], FIONREAD, &left), 0);
    ck_assert_int_eq(left, 5);
    ck_assert_int_eq(close(ends[0]), 0);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

/* Without SIGXFSZ, which ends the process by default. */
START_TEST(an_index_beyond_the_limit_of_files_is_not_kept)
{
    struct rlimit limit, small;
    int64_t count = 0;
    write_records(50, 10);
    leat_log_set(count_warning, NULL, LEAT_LOG_WARNING);
    leat_reader *reader = record_reader_open(text);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 100;
    int limited = setrlimit(RLIMIT_FSIZE, &small);
    /* Check writes a file, too. */
    int status = leat_reader_count(reader, &count);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    leat_reader_close(reader);
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(count, 50);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(warnings, 1);
    ck_assert_uint_eq(kept_inode(), 0);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_index");
    TCase *tcase = tcase_create("record_index");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_index_is_kept_and_used_again);
    tcase_add_test(tcase, an_index_has_the_permissions_of_its_file);
    tcase_add_test(tcase,
                   an_index_beside_a_link_has_the_permissions_of_its_file);
    tcase_add_test(tcase, a_stale_index_is_made_again);
    tcase_add_test(tcase, a_file_just_written_keeps_no_index);
    tcase_add_test(tcase, a_file_of_any_time_has_its_index_kept_if_it_is_past);
    tcase_add_test(tcase, every_damaged_byte_makes_it_anew);
    tcase_add_test(tcase, a_large_file_in_the_place_of_an_index_is_not_read);
    tcase_add_test(tcase, anothers_index_in_a_sticky_directory_is_not_believed);
    tcase_add_test(tcase, a_kept_index_keeps_to_the_limit_of_memory);
    tcase_add_test(tcase,
                   an_index_that_is_made_ends_soon_after_the_limit_of_memory);
    tcase_add_test(tcase, an_index_that_is_made_keeps_to_the_limit_of_memory);
    tcase_add_test(tcase, an_index_is_kept_without_a_copy_of_it);
    tcase_add_test(tcase, offsets_that_do_not_ascend_in_the_file_are_refused);
    tcase_add_test(tcase, what_cannot_be_kept_is_no_error);
    tcase_add_test(tcase, an_index_goes_beside_its_own_file_alone);
    tcase_add_test(tcase, the_name_of_a_descriptor_has_no_index_beside_it);
    tcase_add_test(tcase, a_link_in_the_place_of_an_index_is_not_followed);
    tcase_add_test(tcase, an_index_beyond_the_limit_of_files_is_not_kept);
    return suite_run(suite);
}
