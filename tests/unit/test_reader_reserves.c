/* What setup leaves readers of max_memory, whatever their threads hold. */
#include "pipeline/reader_chain.h"
#include "support/images.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_MEMORY = 1 << 20, LARGE = 500000, ROUNDS = 20 };

static leat_pipeline *pipeline;
static leat_reader *reader;

static void open_text(const char *text)
{
    leat_open_options open = {.size = sizeof(open), .max_memory = MAX_MEMORY};
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open_with(pipeline, &open, &reader);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
}

static void close_text(void)
{
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static void read_some(int n)
{
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_sample_finish(&sample);
}

static int64_t reserve_of_all(void)
{
    leat_reader_stats of[LEAT_MAX_READER_STATS];
    int64_t sum = 0;
    for (int i = leat__reader_chain_reserves(reader, of); i-- > 0;)
        sum += of[i].memory;
    return sum;
}

START_TEST(readers_that_read_ahead_share_a_quarter)
{
    static const struct {
        const char *text;
        int64_t part;
        bool has_places; /* beside its part */
    } cases[] = {{"range:99 | prefetch:4", 4, true},
                 {"range:99 | prefetch", 4, false},
                 {"range:99 | prefetch:4 | prefetch:4", 8, true},
                 {"(range:99) (range:9) | merge:buffer=2", 4, true},
                 {"(range:99) (range:9 | prefetch:2) | merge", 8, true}};
    open_text(cases[_i].text);
    /* Before its threads start it holds these alone. */
    int64_t places = cases[_i].has_places ? reader->ops->memory(reader) : 0;
    ck_assert_int_eq(reader->ops->reserves(reader),
                     MAX_MEMORY / cases[_i].part + places);
    close_text();
}
END_TEST

static void write_names(char path[32], const char *names)
{
    int fd = memfd_create("names", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, names, strlen(names)), (ssize_t)strlen(names));
    snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* They are opened on the way, more and more of them. */
START_TEST(readers_of_a_template_have_one_part)
{
    char names[32], text[128];
    write_names(names, "5\n6\n7\n8\n9\n");
    snprintf(text, sizeof(text),
             "text:%s | interleave:(range:{} | prefetch),cycle=4 | prefetch",
             names);
    open_text(text);
    int64_t reserved = reserve_of_all();
    ck_assert_int_ge(reserved, MAX_MEMORY / 4);
    ck_assert_int_lt(reserved, MAX_MEMORY / 4 + MAX_MEMORY / 8);
    read_some(20);
    /* Names of what was read are kept. */
    ck_assert_int_ge(reserve_of_all(), reserved);
    ck_assert_int_lt(reserve_of_all(), reserved + 4096);
    close_text();
}
END_TEST

START_TEST(nested_templates_have_one_part)
{
    char numbers[32], paths[3 * 32 + 1] = "", names[32], text[160];
    write_names(numbers, "5\n6\n7\n8\n9\n");
    for (int i = 0; i < 3; i++)
        strcat(strcat(paths, numbers), "\n");
    write_names(names, paths);
    snprintf(text, sizeof(text),
             "text:%s | interleave:(text:{} | interleave:(range:{} | "
             "prefetch),cycle=4),cycle=4,ahead=2",
             names);
    open_text(text);
    read_some(12);
    ck_assert_int_ge(reserve_of_all(), MAX_MEMORY / 4);
    ck_assert_int_lt(reserve_of_all(), MAX_MEMORY / 4 + MAX_MEMORY / 8);
    close_text();
}
END_TEST

/* The first one, once its samples are complete, though others are before. */
START_TEST(a_batch_reader_reserves_one_batch)
{
    enum { BATCH = 4, LENGTH = 1000 };
    leat_sample sample[2];
    int got;
    open_text(_i ? "range:99 | batch:4"
                 : "random:99,shape=1000,dtype=uint8,seed=1 | "
                   "cast:data=float32 | batch:4");
    for (int i = 0; i < 2; i++) {
        leat_sample *out = &sample[i];
        leat_sample_init(out);
        ck_assert_int_eq(leat_reader_pull(reader, &out, 1, &got), LEAT_OK);
        ck_assert(out->deferred);
    }
    for (int i = 1; i >= 0; i--) {
        leat_sample *out = &sample[i];
        ck_assert_int_eq(leat_reader_materialize(reader, &out, 1, &got),
                         LEAT_OK);
    }
    int64_t one = reader->ops->reserves(reader);
    ck_assert_int_gt(one, _i ? 0 : BATCH * LENGTH * (int)sizeof(float));
    ck_assert_int_eq(reader->ops->memory(reader), 2 * one);
    for (int i = 0; i < 2; i++)
        leat_sample_finish(&sample[i]);
    close_text();
}
END_TEST

static const char large_text[] =
    "random:40,shape=125000,dtype=uint8,seed=1 | cast:data=float32 | "
    "prefetch:8,threads=8";

/* One sample has room always. */
START_TEST(a_sample_above_its_part_is_reserved)
{
    open_text(large_text);
    int64_t places = reader->ops->memory(reader);
    read_some(1);
    int64_t reserved = reader->ops->reserves(reader);
    ck_assert_int_ge(reserved, places + LARGE);
    ck_assert_int_lt(reserved, places + 2 * LARGE);
    read_some(20);
    ck_assert_int_eq(reader->ops->reserves(reader), reserved);
    close_text();
}
END_TEST

/* Before one is complete its size is not known. */
START_TEST(threads_hold_one_large_sample)
{
    for (int i = 0; i < ROUNDS; i++) {
        open_text(large_text);
        for (int j = 0; j < 10; j++) {
            read_some(1);
            ck_assert_int_le(reader->ops->memory(reader),
                             reader->ops->reserves(reader));
        }
        close_text();
    }
}
END_TEST

START_TEST(a_merge_reserves_a_large_sample_of_each_input)
{
    open_text(
        "(random:40,shape=125000,dtype=uint8,seed=1 | cast:data=float32) "
        "(random:40,shape=125000,dtype=uint8,seed=2 | cast:data=float32) | "
        "merge:buffer=2");
    int64_t places = reader->ops->memory(reader);
    read_some(1);
    int64_t reserved = reader->ops->reserves(reader);
    ck_assert_int_ge(reserved, places + 2 * LARGE);
    ck_assert_int_lt(reserved, places + 3 * LARGE);
    read_some(20);
    ck_assert_int_eq(reader->ops->reserves(reader), reserved);
    ck_assert_int_le(reader->ops->memory(reader), reserved);
    close_text();
}
END_TEST

/* Before a sample is read, so by no seed and no thread. */
START_TEST(an_index_is_reserved_of_what_is_read_by_number)
{
    enum { RECORDS = 1000 };
    static const struct {
        const char *after; /* the first LMDB of two */
        const char *other; /* the second one */
        const char *above;
        int indices;
    } cases[] = {
        {"", "", " | mix", 2},
        {" | where:label=1", " | shuffle", " | mix", 1},
        {" | shuffle", " | take:5", " | merge", 1},
        {" | shuffle", " | take:5", " | chain | prefetch", 2},
        {"", "", " | chain | shuffle", 2},
        {"", "", " | chain | take:9 | prefetch", 0},
        {"", "", " | chain | shuffle:64", 0},
        {"", "", " | interleave | skip:1", 2},
        {" | window:2", " | window:2", " | merge", 2},
    };
    char first[FIXTURE_PATH], second[FIXTURE_PATH], text[3 * FIXTURE_PATH];
    images_write(first, images_record, RECORDS);
    images_write(second, images_record, RECORDS);
    snprintf(text, sizeof(text), "(lmdb:%s%s) (lmdb:%s%s)%s", first,
             cases[_i].after, second, cases[_i].other, cases[_i].above);
    int64_t reserved = 0;
    leat_reader_stats of[LEAT_MAX_READER_STATS];
    open_text(text);
    for (int i = leat__reader_chain_reserves(reader, of); i-- > 0;)
        if (strstr(of[i].path, "lmdb"))
            reserved += of[i].memory;
    ck_assert_int_ge(reserved, cases[_i].indices * 8 * RECORDS);
    ck_assert_int_lt(reserved, cases[_i].indices * 8 * RECORDS + 2048);
    close_text();
    fixture_remove(first);
    fixture_remove(second);
}
END_TEST

/* What the readers of a path that ends so have, as `read` says. */
static int64_t memory_of(const char *name,
                         int (*read)(leat_reader *, leat_reader_stats *))
{
    leat_reader_stats of[LEAT_MAX_READER_STATS];
    int64_t sum = 0;
    for (int i = read(reader, of); i-- > 0;) {
        const char *last = strrchr(of[i].path, '/');
        if (strcmp(last ? last + 1 : of[i].path, name) == 0)
            sum += of[i].memory;
    }
    return sum;
}

/* Whichever sample setup reads first, and whether there is a place for it. */
START_TEST(a_cache_in_memory_reserves_none_of_what_it_keeps)
{
    static const char *const texts[] = {
        "random:99,shape=500 | cache", "random:99,shape=500 | cache | shuffle",
        "random:99,shape=500 | shuffle:9 | cache"};
    open_text(texts[_i]);
    read_some(5);
    ck_assert_int_ge(memory_of("cache", leat_reader_chain_stats), 5 * 500);
    ck_assert_int_eq(memory_of("cache", leat__reader_chain_reserves), 0);
    close_text();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader_reserves");
    TCase *tcase = tcase_create("reader_reserves");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, readers_that_read_ahead_share_a_quarter, 0, 5);
    tcase_add_test(tcase, readers_of_a_template_have_one_part);
    tcase_add_test(tcase, nested_templates_have_one_part);
    tcase_add_loop_test(tcase, an_index_is_reserved_of_what_is_read_by_number,
                        0, 9);
    tcase_add_loop_test(tcase, a_batch_reader_reserves_one_batch, 0, 2);
    tcase_add_loop_test(tcase, a_cache_in_memory_reserves_none_of_what_it_keeps,
                        0, 3);
    tcase_add_test(tcase, a_sample_above_its_part_is_reserved);
    tcase_add_test(tcase, threads_hold_one_large_sample);
    tcase_add_test(tcase, a_merge_reserves_a_large_sample_of_each_input);
    return suite_run(suite);
}
