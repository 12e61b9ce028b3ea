/* Several files of a format as one sequence, by TFRecord: order, positions,
 * identity, faults. */
#include "base/memory.h"
#include "support/record_fixture.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

/* Four files, the second and the last of them empty. */
enum { FILES = 4, RECORDS = 700 };
static const int count_of[FILES] = {300, 0, 400, 0};

static char folder[FIXTURE_PATH];
static char path[FILES][FIXTURE_PATH + 16];
static char text[FIXTURE_PATH + 128];
static record_bytes file;
static leat_sample buffers[64];
static leat_sample *out[64];

/* What a file system does not have: shared pages, nor any. */
static bool has_no_shared, has_no_pages;
static int code_of_map;

void *__real_mmap(void *at, size_t size, int access, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int access, int flags, int fd,
                  off_t offset);

void *__wrap_mmap(void *at, size_t size, int access, int flags, int fd,
                  off_t offset)
{
    bool is_refused = has_no_pages || (has_no_shared && flags & MAP_SHARED);
    if (fd < 0 || !is_refused)
        return __real_mmap(at, size, access, flags, fd, offset);
    errno = code_of_map;
    return MAP_FAILED;
}

/* Record i: its number, and i mod 50 bytes more. */
static void add_record(int i)
{
    unsigned char data[64];
    memset(data, i, sizeof(data));
    memcpy(data, &i, sizeof(i));
    record_bytes_add_tfrecord(&file, data, 4 + (uint64_t)i % 50);
}

static void write_files(void)
{
    int record = 0;
    for (int i = 0; i < FILES; i++) {
        file.size = 0;
        for (int k = 0; k < count_of[i]; k++)
            add_record(record++);
        record_bytes_write(&file, path[i]);
    }
}

static void set_up(void)
{
    has_no_shared = has_no_pages = false;
    code_of_map = ENODEV;
    fixture_directory(folder);
    for (int i = 0; i < FILES; i++)
        snprintf(path[i], sizeof(path[i]), "%s/part-%d", folder, i);
    snprintf(text, sizeof(text), "tfrecord:%s/part-*", folder);
    for (int i = 0; i < 64; i++) {
        leat_sample_init(&buffers[i]);
        out[i] = &buffers[i];
    }
    write_files();
}

static void tear_down(void)
{
    for (int i = 0; i < 64; i++)
        leat_sample_finish(&buffers[i]);
    fixture_remove(folder);
}

static int is_record(const leat_sample *sample, int64_t i)
{
    int number;
    if (sample->nfields != 1 || sample->field[0].bytes != 4 + (size_t)i % 50)
        return 0;
    memcpy(&number, sample->field[0].data, sizeof(number));
    return number == i && sample->from.record == (i < 300 ? i : i - 300) &&
           strcmp(sample->from.source, path[i < 300 ? 0 : 2]) == 0;
}

/* From record `i` to the end, `n` at a time. */
static void read_to_end(leat_reader *reader, int64_t i, int n)
{
    int got, status;
    while ((status = leat_reader_next_batch(reader, out, n, &got)) == LEAT_OK)
        for (int k = 0; k < got; k++)
            ck_assert(is_record(out[k], i++));
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(i, RECORDS);
}

static void seek_to(leat_reader *reader, int64_t epoch, int64_t i)
{
    const leat_position at = {epoch, i};
    ck_assert_msg(leat_reader_seek(reader, at, NULL) == LEAT_OK, "%s",
                  leat_last_error());
}

START_TEST(files_are_read_one_after_the_other)
{
    static const int sizes[] = {1, 7, 64};
    leat_reader *reader = record_reader_open(text);
    for (int i = 0; i < 3; i++) {
        read_to_end(reader, 0, sizes[i]);
        seek_to(reader, i + 1, 0);
    }
    leat_reader_close(reader);
}
END_TEST

/* As FUSE with direct_io. */
START_TEST(files_without_shared_pages_are_read)
{
    has_no_shared = true;
    leat_reader *reader = record_reader_open(text);
    read_to_end(reader, 0, 7);
    leat_reader_close(reader);
}
END_TEST

static void refuse_to_open(const char *words)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path[0]));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), words));
    leat_pipeline_unref(pipeline);
}

START_TEST(files_without_pages_are_refused_with_another_way)
{
    has_no_pages = true;
    refuse_to_open("its file system maps no files: read it through a pipe");
    code_of_map = EPERM;
    refuse_to_open("bytes cannot be mapped: Operation not permitted");
    /* Nor is another way tried then. */
    has_no_pages = false;
    has_no_shared = true;
    refuse_to_open("bytes cannot be mapped: Operation not permitted");
}
END_TEST

START_TEST(too_many_files_are_refused_with_another_way)
{
    char list[FIXTURE_PATH + 16];
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    snprintf(list, sizeof(list), "%s/list", folder);
    snprintf(text, sizeof(text), "tfrecord:@%s", list);
    FILE *names = fopen(list, "w");
    for (int i = 0; i < 65536; i++)
        ck_assert_int_gt(fprintf(names, "%s\n", path[0]), 0);
    ck_assert_int_eq(fclose(names), 0);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "at most 60000 files"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "interleave"));
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(every_position_is_found)
{
    leat_reader *reader = record_reader_open(text);
    int64_t count, skipped;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, RECORDS);
    for (int64_t i = RECORDS; i >= 0; i--) {
        seek_to(reader, 2, i);
        if (i == RECORDS || i % 23 == 0)
            read_to_end(reader, i, 50);
        else
            ck_assert(leat_reader_next(reader, out[0]) == LEAT_OK &&
                      is_record(out[0], i));
    }
    ck_assert_int_eq(
        leat_reader_seek(reader, (leat_position){0, RECORDS + 1}, NULL),
        LEAT_EINVAL);
    for (int64_t i = 0; i <= RECORDS; i += 50) {
        seek_to(reader, 0, 0);
        ck_assert_int_eq(leat_reader_skip(reader, i, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, i);
        read_to_end(reader, i, 64);
    }
    leat_reader_close(reader);
    /* Without an index it walks. */
    reader = record_reader_open(text);
    ck_assert_int_eq(leat_reader_skip(reader, 310, &skipped), LEAT_OK);
    read_to_end(reader, 310, 64);
    ck_assert_int_eq(leat_reader_skip(reader, 1, &skipped), LEAT_END);
    seek_to(reader, 0, RECORDS);
    ck_assert_int_eq(leat_reader_skip(reader, 1, &skipped), LEAT_END);
    ck_assert_int_eq(skipped, 0);
    leat_reader_close(reader);
}
END_TEST

/* What a thread does: reads at random, and counts what is wrong. */
static void *read_at_random(void *opened)
{
    leat_reader *reader = opened;
    leat_sample samples[70];
    leat_sample *to[70];
    leat_position at[70];
    uint32_t drawn = 7;
    intptr_t wrong = 0;
    for (int i = 0; i < 70; i++) {
        leat_sample_init(&samples[i]);
        to[i] = &samples[i];
    }
    for (int round = 0; round < 50; round++) {
        int done = 0;
        for (int i = 0; i < 70; i++) {
            drawn = drawn * 1664525 + 1013904223;
            at[i] = (leat_position){0, (drawn >> 8) % RECORDS};
        }
        leat_reader_advise(reader, at, 70);
        while (done < 70) {
            int got;
            if (leat_reader_read_at(reader, at + done, to + done, 70 - done,
                                    &got) != LEAT_OK)
                return (void *)-1;
            for (int i = 0; i < got; i++)
                wrong += !is_record(to[done + i], at[done + i].index);
            done += got;
        }
    }
    for (int i = 0; i < 70; i++)
        leat_sample_finish(&samples[i]);
    return (void *)wrong;
}

START_TEST(threads_read_at_random_beside_a_walk)
{
    leat_reader *reader = record_reader_open(text);
    pthread_t thread[3];
    void *wrong;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, read_at_random, reader), 0);
    for (int i = 0; i < 20; i++) {
        read_to_end(reader, 0, 64);
        seek_to(reader, i, 0);
        ck_assert_int_ge(leat_reader_may_block(reader), 0);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    leat_reader_close(reader);
}
END_TEST

static int restore_into(const char *other, leat_token *token)
{
    leat_reader *reader = record_reader_open(other);
    token->cursor = 0;
    int status = leat_reader_restore(reader, token);
    leat_reader_close(reader);
    return status;
}

START_TEST(a_token_knows_its_files_wherever_they_are)
{
    leat_token token;
    char moved[FIXTURE_PATH + 32];
    leat_token_init(&token);
    leat_reader *reader = record_reader_open(text);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_uint_le(token.size, 32);
    leat_reader_close(reader);
    ck_assert_int_eq(restore_into(text, &token), LEAT_OK);
    snprintf(moved, sizeof(moved), "%s/other-0", folder);
    ck_assert_int_eq(rename(path[0], moved), 0);
    char other[4 * FIXTURE_PATH + 128];
    snprintf(other, sizeof(other), "tfrecord:%s,%s,%s,%s", moved, path[1],
             path[2], path[3]);
    ck_assert_int_eq(restore_into(other, &token), LEAT_OK);
    /* Other files, another order, another byte. */
    ck_assert_int_eq(restore_into(text, &token), LEAT_EINVAL);
    snprintf(other, sizeof(other), "tfrecord:%s,%s,%s,%s", path[2], path[1],
             moved, path[3]);
    ck_assert_int_eq(restore_into(other, &token), LEAT_EINVAL);
    ck_assert_int_eq(rename(moved, path[0]), 0);
    ck_assert_int_eq(restore_into(text, &token), LEAT_OK);
    file.size = 0;
    for (int i = 300; i < 700; i++)
        add_record(i);
    file.bytes[file.size - 1] ^= 1;
    record_bytes_write(&file, path[2]);
    ck_assert_int_eq(restore_into(text, &token), LEAT_EINVAL);
    leat_token_finish(&token);
}
END_TEST

START_TEST(a_file_that_changes_is_an_error_when_it_is_begun)
{
    leat_reader *reader = record_reader_open(text);
    int status = LEAT_OK;
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
    file.size = 0;
    add_record(300);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(truncate(path[2], 100), 0);
        while (!status)
            status = leat_reader_next(reader, out[0]);
        ck_assert_int_eq(status, LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), path[2]));
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "changed while it was read"));
        int64_t count;
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_EIO);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_file_that_changed_is_an_error_by_index_in_each_later_epoch)
{
    leat_reader *reader = record_reader_open(text);
    int got;
    for (int epoch = 0; epoch < 4; epoch++) {
        const leat_position at[] = {{epoch, 7}, {epoch, 307}, {epoch, 8}};
        int expected = epoch == 0 ? LEAT_OK : LEAT_EIO;
        ck_assert_int_eq(leat_reader_read_at(reader, at, out, 3, &got),
                         expected);
        ck_assert_int_eq(got, expected ? 1 : 3);
        ck_assert(is_record(out[0], 7));
        if (expected)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), path[2]));
        /* Its records are as they were, and its time is not. */
        ck_assert_int_eq(utimensat(AT_FDCWD, path[2], NULL, 0), 0);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_bad_record_of_a_file_that_changed_is_the_files_error)
{
    const leat_position at = {0, 307};
    leat_reader *reader = record_reader_open(text);
    int got;
    ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got), LEAT_OK);
    file.size = 0;
    for (int i = 300; i < RECORDS; i++)
        add_record(i);
    memset(file.bytes, 255, file.size);
    record_bytes_write(&file, path[2]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_EIO);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "changed while it was read"));
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    leat_reader *reader;
    char other[2 * FIXTURE_PATH + 128];
    snprintf(other, sizeof(other), "tfrecord:%s/none", folder);
    ck_assert_int_eq(record_reader_try(&reader, other), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "/none: "));
    snprintf(other, sizeof(other), "tfrecord:%s,%s", path[0], folder);
    ck_assert_int_eq(record_reader_try(&reader, other), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), folder));
}
END_TEST

/* As a file of no bytes it would be empty, without a word. */
START_TEST(a_file_with_contents_and_no_size_is_refused)
{
    struct stat about;
    leat_reader *reader;
    if (stat("/proc/self/status", &about) || about.st_size != 0) {
        printf("skipped: there is no /proc\n");
        return;
    }
    ck_assert_int_eq(record_reader_try(&reader, "text:/proc/self/status"),
                     LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "no size"));
}
END_TEST

/* Opens, counts and reads all, with allocation `n` failing; 1 if it did. */
static int read_with_fault(int64_t n)
{
    leat_reader *reader;
    int got;
    int64_t count;
    int failures = 0;
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    leat_pipeline *pipeline;
    while (leat_pipeline_parse(&pipeline, text) == LEAT_ENOMEM)
        failures++;
    while (leat_pipeline_open(pipeline, &reader) == LEAT_ENOMEM)
        failures++;
    leat_pipeline_unref(pipeline);
    while (leat_reader_count(reader, &count) == LEAT_ENOMEM)
        failures++;
    int status = LEAT_OK;
    while (status == LEAT_OK)
        status = leat_reader_next_batch(reader, out, 8, &got);
    leat__alloc_fail_at(-1);
    ck_assert_int_le(failures, 1);
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_int_eq(count, RECORDS);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

START_TEST(every_failing_allocation_is_survived)
{
    int64_t n = 0;
    while (read_with_fault(n))
        n++;
    ck_assert_int_ge(n, 5);
}
END_TEST

START_TEST(nothing_is_allocated_once_it_runs)
{
    leat_reader *reader = record_reader_open(text);
    leat_position at[64];
    int got;
    for (int i = 0; i < 64; i++)
        at[i] = (leat_position){0, i * 10};
    read_to_end(reader, 0, 64);
    ck_assert_int_eq(leat_reader_read_at(reader, at, out, 64, &got), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 3; i++) {
        seek_to(reader, i, 10);
        read_to_end(reader, 10, 64);
        ck_assert_int_eq(leat_reader_read_at(reader, at, out, 64, &got),
                         LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
}
END_TEST

START_TEST(the_index_counts_as_memory_once_it_is_there)
{
    leat_reader *reader = record_reader_open(text);
    int64_t count;
    ck_assert_int_eq(reader->ops->memory(reader), 0);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_ge(reader->ops->memory(reader), 8 * RECORDS);
    ck_assert_int_le(reader->ops->memory(reader), 8 * RECORDS + 400);
    leat_reader_close(reader);
}
END_TEST

START_TEST(the_first_record_of_each_file_is_known)
{
    static const int64_t expected[] = {0, 300, 300, 700, 700};
    const int64_t *first;
    int64_t n;
    leat_reader *reader = record_reader_open(text);
    ck_assert_int_eq(leat_reader_parts(reader, &first, &n), LEAT_OK);
    ck_assert_int_eq(n, FILES);
    ck_assert_int_eq(memcmp(first, expected, sizeof(expected)), 0);
    leat_reader_close(reader);
    char packed[FIXTURE_PATH + 128];
    snprintf(packed, sizeof(packed), "tfrecord:%s,compression=GZIP", path[0]);
    reader = record_reader_open(packed);
    ck_assert_int_eq(leat_reader_parts(reader, &first, &n), LEAT_EUNSUPPORTED);
    leat_reader_close(reader);
}
END_TEST

START_TEST(cancel_stops_every_way_to_read)
{
    leat_reader *reader = record_reader_open(text);
    const leat_position at = {0, 3};
    int got;
    int64_t n;
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_count(reader, &n), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_skip(reader, 1, &n), LEAT_ECANCELLED);
    leat_reader_close(reader);
}
END_TEST

/* More files than descriptors stay open for: they are closed again. */
START_TEST(many_files_need_no_descriptors)
{
    char other[FIXTURE_PATH + 128];
    char name[FIXTURE_PATH + 32];
    int64_t count;
    for (int i = 0; i < 1200; i++) {
        file.size = 0;
        add_record(i);
        snprintf(name, sizeof(name), "%s/many-%04d", folder, i);
        record_bytes_write(&file, name);
    }
    snprintf(other, sizeof(other), "tfrecord:%s/many-*,drop_behind=1", folder);
    leat_reader *reader = record_reader_open(other);
    int fd = dup(0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_lt(fd, 64);
    close(fd);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1200);
    for (int i = 0; i < 1200; i++) {
        int number;
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
        memcpy(&number, out[0]->field[0].data, sizeof(number));
        ck_assert_int_eq(number, i);
    }
    leat_reader_close(reader);
}
END_TEST

/* With the descriptors of all files, and with more files than have one. */
START_TEST(a_file_that_is_replaced_stays_what_it_was)
{
    const int files = 128 + _i;
    char other[FIXTURE_PATH + 128], name[FIXTURE_PATH + 32];
    int64_t skipped;
    for (int i = 0; i <= files; i++) {
        file.size = 0;
        add_record(i);
        snprintf(name, sizeof(name), "%s/%s-%03d", folder,
                 i < files ? "some" : "new", i % files);
        record_bytes_write(&file, name);
    }
    snprintf(other, sizeof(other), "tfrecord:%s/some-*", folder);
    leat_reader *reader = record_reader_open(other);
    snprintf(other, sizeof(other), "%s/some-003", folder);
    ck_assert_int_eq(rename(name, other), 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        const leat_position at = {epoch, 3};
        int got;
        seek_to(reader, epoch, 0);
        ck_assert_int_eq(leat_reader_skip(reader, 3, &skipped), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
        ck_assert_mem_eq(out[0]->field[0].data, &(int){3}, sizeof(int));
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        ck_assert_mem_eq(out[0]->field[0].data, &(int){3}, sizeof(int));
        /* Then it is removed. */
        ck_assert_int_eq(unlink(other), epoch == 0 ? 0 : -1);
    }
    /* One that is written in place is another. */
    snprintf(other, sizeof(other), "%s/some-005", folder);
    ck_assert_int_eq(utimensat(AT_FDCWD, other, NULL, 0), 0);
    seek_to(reader, 2, 0);
    int status = LEAT_OK;
    while (!status)
        status = leat_reader_next(reader, out[0]);
    ck_assert_int_eq(status, LEAT_EIO);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_mapped");
    TCase *tcase = tcase_create("record_mapped");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, files_are_read_one_after_the_other);
    tcase_add_test(tcase, files_without_shared_pages_are_read);
    tcase_add_test(tcase, files_without_pages_are_refused_with_another_way);
    tcase_add_test(tcase, too_many_files_are_refused_with_another_way);
    tcase_add_test(tcase, every_position_is_found);
    tcase_add_test(tcase, threads_read_at_random_beside_a_walk);
    tcase_add_test(tcase, a_token_knows_its_files_wherever_they_are);
    tcase_add_test(tcase, a_file_that_changes_is_an_error_when_it_is_begun);
    tcase_add_test(
        tcase, a_file_that_changed_is_an_error_by_index_in_each_later_epoch);
    tcase_add_test(tcase,
                   a_bad_record_of_a_file_that_changed_is_the_files_error);
    tcase_add_test(tcase, what_is_no_file_is_refused);
    tcase_add_test(tcase, a_file_with_contents_and_no_size_is_refused);
    tcase_add_test(tcase, every_failing_allocation_is_survived);
    tcase_add_test(tcase, nothing_is_allocated_once_it_runs);
    tcase_add_test(tcase, the_index_counts_as_memory_once_it_is_there);
    tcase_add_test(tcase, the_first_record_of_each_file_is_known);
    tcase_add_test(tcase, cancel_stops_every_way_to_read);
    tcase_add_test(tcase, many_files_need_no_descriptors);
    tcase_add_loop_test(tcase, a_file_that_is_replaced_stays_what_it_was, 0, 2);
    return suite_run(suite);
}
