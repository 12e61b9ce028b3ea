/*
 * However files of records are read ahead and dropped behind, from memory or
 * from storage, in order or not: the samples are the same.
 */
#include "base/memory.h"
#include "readers/mapped_file.h"
#include "support/record_fixture.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <sys/mman.h>

/* Some 6 MB in three files, of records of up to 30 KB. */
enum { FILES = 3, RECORDS = 400 };

static const char *const arguments[] = {
    "",
    ",read_ahead=-1",
    ",read_ahead=1",
    ",read_ahead=65536",
    ",read_ahead=9223372036854775807",
    ",drop_behind=1,keep_behind=-1,read_ahead=262144",
    ",drop_behind=1,keep_behind=-1,read_ahead=-1",
    ",drop_behind=1,keep_behind=1048576,read_ahead=262144",
};
enum { WAYS = sizeof(arguments) / sizeof(arguments[0]) };

static char folder[FIXTURE_PATH];
static char path[FILES][FIXTURE_PATH + 16];
static char text[FIXTURE_PATH + 256];
static leat_sample sample;

static size_t size_of(int64_t i)
{
    return 4 + (size_t)(i * 7919 % 30000);
}

static void set_up(void)
{
    static record_bytes file;
    static unsigned char data[30004];
    fixture_directory(folder);
    leat_sample_init(&sample);
    for (int i = 0, k = 0; k < FILES; k++) {
        file.size = 0;
        for (; i < (k + 1) * RECORDS / FILES || (k == FILES - 1 && i < RECORDS);
             i++) {
            memset(data, i, sizeof(data));
            memcpy(data, &i, sizeof(i));
            record_bytes_add_tfrecord(&file, data, size_of(i));
        }
        snprintf(path[k], sizeof(path[k]), "%s/%d", folder, k);
        record_bytes_write(&file, path[k]);
    }
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
    fixture_remove(folder);
}

/* Puts the files out of memory; false where they stay, as on a tmpfs. */
static bool cool(void)
{
    bool is_cold = true;
    for (int i = 0; i < FILES; i++) {
        leat__mapped_file map;
        struct stat about;
        ck_assert_int_eq(leat__mapped_file_open(&map, path[i], true, &about),
                         LEAT_OK);
        leat__span whole = {0, map.size};
        ck_assert_int_eq(fsync(map.fd), 0);
        leat__mapped_file_drop(&map, &whole, 1);
        is_cold &=
            leat__mapped_file_absent(&map, (leat__span){0, map.size}) > 9;
        leat__mapped_file_close(&map);
    }
    return is_cold;
}

static size_t count_absent(int i)
{
    leat__mapped_file map;
    struct stat about;
    ck_assert_int_eq(leat__mapped_file_open(&map, path[i], true, &about),
                     LEAT_OK);
    size_t absent = leat__mapped_file_absent(&map, (leat__span){0, map.size});
    leat__mapped_file_close(&map);
    return absent;
}

static leat_reader *open_with(const char *options, const char *rest)
{
    snprintf(text, sizeof(text), "tfrecord:%s/?%s%s", folder, options, rest);
    return record_reader_open(text);
}

static void check_sample(int64_t i)
{
    int number;
    const unsigned char *data = sample.field[0].data;
    ck_assert_uint_eq(sample.field[0].bytes, size_of(i));
    memcpy(&number, data, sizeof(number));
    ck_assert_int_eq(number, (int)i);
    if (size_of(i) > 4)
        ck_assert_int_eq(data[size_of(i) - 1], (unsigned char)i);
}

START_TEST(every_way_to_read_from_storage_gives_the_same)
{
    cool();
    leat_reader *reader = open_with(arguments[_i], "");
    for (int epoch = 0; epoch < 3; epoch++) {
        int64_t i = epoch == 2 ? 170 : 0;
        if (epoch > 0)
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){epoch, i}, NULL),
                LEAT_OK);
        for (; i < RECORDS; i++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            check_sample(i);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        if (epoch == 0)
            cool();
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(every_way_to_read_at_random_gives_the_same)
{
    leat_sample *out[] = {&sample};
    leat_position at[RECORDS];
    int got;
    leat_reader *reader = open_with(arguments[_i], "");
    for (int i = 0; i < RECORDS; i++)
        at[i] = (leat_position){0, i * 77 % RECORDS};
    cool();
    leat_reader_advise(reader, at, RECORDS);
    for (int i = 0; i < RECORDS; i++) {
        ck_assert_int_eq(leat_reader_read_at(reader, at + i, out, 1, &got),
                         LEAT_OK);
        check_sample(at[i].index);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(may_block_tells_memory_from_storage)
{
    leat_reader *reader = open_with("", "");
    for (int i = 0; i < RECORDS; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_may_block(reader), 0);
    leat_reader_close(reader);
    reader = open_with("", "");
    if (cool())
        ck_assert_int_eq(leat_reader_may_block(reader), 1);
    else
        printf("skipped: the files stay in memory\n");
    leat_reader_close(reader);
    reader = open_with(",drop_behind=1", "");
    ck_assert_int_eq(leat_reader_may_block(reader), 1);
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_was_read_is_dropped_and_what_follows_read_ahead)
{
    leat_reader *reader =
        open_with(",drop_behind=1,keep_behind=-1,read_ahead=524288", "");
    if (!cool()) {
        printf("skipped: the files stay in memory\n");
        leat_reader_close(reader);
        return;
    }
    size_t before = count_absent(0);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_uint_lt(count_absent(0), before);
    for (int i = 20; i < RECORDS; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_uint_gt(count_absent(0), before / 2);
    leat_reader_close(reader);
}
END_TEST

/* From the middle of a file on nothing can be read: an error, and no signal.
   Of the next file's records, and of this one's: TFRecords, and lines. */
START_TEST(a_file_cut_while_it_is_read_from_storage_is_an_error)
{
    const char *cut = path[_i == 0];
    snprintf(text, sizeof(text), "%s:%s/?,read_ahead=65536",
             _i == 2 ? "text" : "tfrecord", folder);
    leat_reader *reader = record_reader_open(text);
    void *page =
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool populates = page != MAP_FAILED && madvise(page, 4096, 22) == 0;
    if (!cool() || !populates) {
        printf("skipped: no MADV_POPULATE_READ, or no storage\n");
        leat_reader_close(reader);
        return;
    }
    munmap(page, 4096);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(truncate(cut, 4096), 0);
    int status;
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK)
        continue;
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), cut));
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    leat_reader_close(reader);
}
END_TEST

START_TEST(reading_from_storage_takes_no_memory)
{
    cool();
    leat_reader *reader =
        open_with(",drop_behind=1,keep_behind=-1,read_ahead=262144", "");
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 2 * RECORDS; i++) {
        int status = leat_reader_next(reader, &sample);
        if (status == LEAT_END)
            status = leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        ck_assert_int_eq(status, LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cold_files");
    TCase *tcase = tcase_create("cold_files");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, every_way_to_read_from_storage_gives_the_same, 0,
                        WAYS);
    tcase_add_loop_test(tcase, every_way_to_read_at_random_gives_the_same, 0,
                        WAYS);
    tcase_add_test(tcase, may_block_tells_memory_from_storage);
    tcase_add_test(tcase, what_was_read_is_dropped_and_what_follows_read_ahead);
    tcase_add_loop_test(
        tcase, a_file_cut_while_it_is_read_from_storage_is_an_error, 0, 3);
    tcase_add_test(tcase, reading_from_storage_takes_no_memory);
    return suite_run(suite);
}
