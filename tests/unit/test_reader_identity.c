/* What a cache on disk is made of: other than a token's, it changes whenever
   the data are written again, wherever in a chain their reader is. */
#include "support/record_fixture.h"
#include "support/record_sequence.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include "lmdb_fixture.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>
#include <leat/transform.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char value_of_last;

static void make_datum(int number, fixture_record *out)
{
    unsigned char pixels[] = {1, number == 2 ? value_of_last : 3};
    leat_datum datum = {.channels = 1,
                        .height = 1,
                        .width = 2,
                        .label = number,
                        .data = pixels,
                        .data_size = sizeof(pixels)};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void write_idx(const char *name, int ndim)
{
    static const unsigned char header[] = {0, 0, 8, 0, 0, 0, 0, 3,
                                           0, 0, 0, 1, 0, 0, 0, 1};
    unsigned char bytes[sizeof(header) + 3] = {0};
    size_t size = 4 + 4 * (size_t)ndim;
    memcpy(bytes, header, size);
    bytes[3] = (unsigned char)ndim;
    memcpy(bytes + size, "\1\2\3", 3);
    record_sequence_write(name, bytes, size + 3);
}

static void setup(void)
{
    record_sequence_begin();
    record_sequence_write("t1", "a\nb\n", 4);
    record_sequence_write("t2", "c\nd\n", 4);
    record_sequence_write("names", "t1\nt2\n", 6);
    record_sequence_pack("t1.gz", "a\nb\n", 4, 0);
    write_idx("images", 3);
    write_idx("labels", 1);
    ck_assert_int_eq(mkdir("db", 0755), 0);
    fixture_write("db", make_datum, 3);
    ck_assert_int_eq(leat_mean_save("mean", 1, 1, 2, (float[]){1, 2}), LEAT_OK);
}

static void teardown(void)
{
    record_sequence_end();
}

/* The identity of a pipeline that is opened now, or what a token has of it. */
static void identify(const char *text, int is_token, leat_token *out)
{
    leat_reader *reader = record_reader_open(text);
    leat_token_init(out);
    int status = is_token ? leat_reader_save(reader, out)
                          : leat_reader_identify(reader, out);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    leat_reader_close(reader);
}

static int is_same(const leat_token *a, const leat_token *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static void set_time(const char *path, int64_t seconds, long nanoseconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, nanoseconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(a_file_that_was_written_again_is_another_to_caches_alone)
{
    static const struct {
        const char *text, *file;
    } cases[] = {
        {"text:t1", "t1"},
        {"text:t1,t2", "t2"},
        {"text:t1.gz", "t1.gz"},
        {"text:t1.gz,t1.gz,t2", "t2"},
        {"idx:images,labels", "images"},
        {"idx:images,labels", "labels"},
        {"files:t1,t2", "t2"},
        {"lmdb:db", "db/data.mdb"},
        {"files:t1,t2 | interleave:(text:{}),cycle=2", "t2"},
        {"text:names | interleave:(text:{}),cycle=2", "t2"},
        {"files:db | interleave:(lmdb:{})", "db/data.mdb"},
        {"files:t1 | interleave:((text:{}) (text:t2) | chain)", "t2"},
        {"(text:t1) (text:t2 | prefetch:2) | zip:prefix=(a_,b_)", "t2"},
        {"lmdb:db | transform:data,mean_file=mean", "mean"},
        {"text:t1.gz | shuffle:2 | cache:1M | batch:2,ragged=line", "t1.gz"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *text = cases[i].text;
        leat_token token[2], identity[3];
        set_time(cases[i].file, 1000000000, 1);
        identify(text, 1, &token[0]);
        identify(text, 0, &identity[0]);
        identify(text, 0, &identity[1]);
        set_time(cases[i].file, 1000000000, 2);
        identify(text, 1, &token[1]);
        identify(text, 0, &identity[2]);
        ck_assert_msg(is_same(&token[0], &token[1]), "%s", text);
        ck_assert_msg(is_same(&identity[0], &identity[1]), "%s", text);
        ck_assert_msg(!is_same(&identity[0], &identity[2]), "%s", text);
        for (int k = 0; k < 3; k++) {
            leat_token_finish(&identity[k]);
            if (k < 2)
                leat_token_finish(&token[k]);
        }
    }
}
END_TEST

START_TEST(an_identity_leaves_its_reader_where_it_is)
{
    static const char *const text[] = {
        "text:names | interleave:(text:{}),cycle=1",
        "text:names | interleave:(text:{}),cycle=2,ahead=2",
        "text:names,names | repeat:2 | interleave:(text:{}),cycle=1,ahead=0",
        "text:names | interleave:(text:{}),cycle=1,ahead=5",
    };
    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
        leat_reader *reader[] = {record_reader_open(text[i]),
                                 record_reader_open(text[i])};
        leat_sample sample[2];
        int status[2] = {LEAT_OK, LEAT_OK};
        leat_sample_init(&sample[0]);
        leat_sample_init(&sample[1]);
        while (!status[0]) {
            leat_token identity;
            leat_token_init(&identity);
            ck_assert_int_eq(leat_reader_identify(reader[0], &identity),
                             LEAT_OK);
            leat_token_finish(&identity);
            for (int k = 0; k < 2; k++)
                status[k] = leat_reader_next(reader[k], &sample[k]);
            ck_assert_msg(status[0] == status[1], "%s", text[i]);
            ck_assert(status[0] || memcmp(sample[0].field[0].data,
                                          sample[1].field[0].data, 1) == 0);
        }
        ck_assert_int_eq(status[0], LEAT_END);
        for (int k = 0; k < 2; k++) {
            leat_sample_finish(&sample[k]);
            leat_reader_close(reader[k]);
        }
    }
}
END_TEST

/* Each is made by one reader at a time. */
START_TEST(readers_that_make_caches_have_an_identity)
{
    leat_token identity;
    leat_reader *reader = record_reader_open(
        "files:t1,t2 | interleave:(text:{} | cache:dir={}.kept)");
    leat_token_init(&identity);
    int status = leat_reader_identify(reader, &identity);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_token_finish(&identity);
    leat_reader_close(reader);
}
END_TEST

/* Names without an end. */
START_TEST(readers_of_endless_names_have_no_identity)
{
    leat_token identity;
    leat_reader *reader = record_reader_open(
        "files:t1 | constant | interleave:(range:1),cycle=1");
    leat_token_init(&identity);
    ck_assert_int_eq(leat_reader_identify(reader, &identity),
                     LEAT_EUNSUPPORTED);
    leat_token_finish(&identity);
    leat_reader_close(reader);
}
END_TEST

/* All of a known number tell theirs, however many they are. */
START_TEST(readers_of_many_names_have_an_identity)
{
    leat_token identity[2];
    char text[80];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "files:t1 | repeat:%d | interleave:(range:1)",
                 (IS_SANITIZED ? 4097 : 262145) + i);
        identify(text, 0, &identity[i]);
    }
    ck_assert(!is_same(&identity[0], &identity[1]));
    for (int i = 0; i < 2; i++)
        leat_token_finish(&identity[i]);
}
END_TEST

START_TEST(a_name_that_is_empty_takes_no_identity_from_the_others)
{
    leat_token identity;
    FILE *names = fopen("gaps", "w");
    ck_assert_ptr_nonnull(names);
    fputs("t1\n\nt2\n", names);
    ck_assert_int_eq(fclose(names), 0);
    identify("text:gaps | interleave:(text:{}),cycle=1", 0, &identity);
    leat_token_finish(&identity);
}
END_TEST

START_TEST(databases_of_one_time_differ_by_values_and_transactions)
{
    leat_token identity[3];
    for (int i = 0; i < 3; i++) {
        value_of_last = (unsigned char)(i == 0 ? 0 : 9);
        if (i == 1) {
            ck_assert_int_eq(remove("db/data.mdb"), 0);
            ck_assert_int_eq(remove("db/lock.mdb"), 0);
        }
        fixture_write("db", make_datum, 3);
        set_time("db/data.mdb", 1000000000, 0);
        identify("lmdb:db", 0, &identity[i]);
    }
    ck_assert(!is_same(&identity[0], &identity[1]));
    ck_assert(!is_same(&identity[1], &identity[2]));
    for (int i = 0; i < 3; i++)
        leat_token_finish(&identity[i]);
}
END_TEST

START_TEST(an_open_reader_tells_that_a_file_was_written_since)
{
    static const struct {
        const char *text, *file;
        int status;
    } cases[] = {
        {"text:t1,t2", "t2", LEAT_EIO},
        {"text:t1.gz", "t1.gz", LEAT_EIO},
        {"text:t1.gz,t2", "t2", LEAT_EIO},
        {"text:t1.gz | shuffle:2 | prefetch:2", "t1.gz", LEAT_EIO},
        {"text:t1 | shuffle | repeat:2 | batch:2,ragged=line", "t1", LEAT_EIO},
        {"(text:t1) (text:t2) | zip:prefix=(a_,b_)", "t2", LEAT_EIO},
        {"(text:t1) (text:t1.gz) | zip:prefix=(a_,b_)", "t1.gz", LEAT_EIO},
        {"(text:t1) (text:t2) | chain", "t2", LEAT_EIO},
        {"(text:t1) (text:t1.gz) | chain", "t1.gz", LEAT_EIO},
        {"(text:t1) (text:t2) | mix:1,1", "t2", LEAT_EIO},
        {"(text:t1) (text:t1.gz) | mix:1,1", "t1.gz", LEAT_EIO},
        {"(text:t1) (text:t2) | interleave", "t2", LEAT_EIO},
        {"(text:t1) (text:t1.gz) | interleave", "t1.gz", LEAT_EIO},
        {"(text:t1) (text:t2) | merge", "t2", LEAT_EIO},
        {"text:t1 | share", "t1", LEAT_EIO},
        {"text:t1,t2 | cache:1", "t2", LEAT_EIO},
        {"files:t1,t2 | cache:1", "t2", LEAT_EIO},
        {"files:t1,t2 | interleave:(text:{}) | cache:1", "t2", LEAT_EIO},
        {"files:t1,t2 | repeat:2048 | interleave:(text:{})", "t2", LEAT_EIO},
        {"files:t1,t2 | repeat:2049 | interleave:(text:{})", "t2", LEAT_OK},
        {"text:t1", "t2", LEAT_OK},
        {"files:t1,t2", "t2", LEAT_OK},
        {"lmdb:db", "db/data.mdb", LEAT_OK},
        {"idx:images,labels", "labels", LEAT_OK},
        {"range:3", "t1", LEAT_OK},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        set_time(cases[i].file, 1000000000, 1);
        leat_reader *reader = record_reader_open(cases[i].text);
        int status = leat_reader_check(reader);
        ck_assert_msg(!status, "%s: %s", cases[i].text, leat_last_error());
        set_time(cases[i].file, 1000000000, 2);
        status = leat_reader_check(reader);
        ck_assert_msg(status == cases[i].status, "%s: %s", cases[i].text,
                      leat_status_text(status));
        leat_reader_close(reader);
    }
}
END_TEST

/* Its file stays open for the next epoch. */
START_TEST(so_does_a_stream_of_which_records_were_only_skipped)
{
    int64_t skipped;
    set_time("t1.gz", 1000000000, 1);
    leat_reader *reader = record_reader_open("text:t1.gz,t2");
    ck_assert_int_eq(leat_reader_skip(reader, 1, &skipped), LEAT_OK);
    const leat_position second = {1, 0}, third = {2, 0};
    ck_assert_int_eq(leat_reader_seek(reader, second, NULL), LEAT_OK);
    set_time("t1.gz", 1000000000, 2);
    ck_assert_int_eq(leat_reader_seek(reader, third, NULL), LEAT_EIO);
    leat_reader_close(reader);
}
END_TEST

/* Reads on to the end. Returns what ended it. */
static int read_on(leat_reader *reader)
{
    leat_sample sample;
    int status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        ;
    leat_sample_finish(&sample);
    return status;
}

START_TEST(a_cache_that_lacks_samples_gives_none_of_other_data)
{
    /* By index and in order, where none, some and all are kept. */
    static const struct {
        const char *text, *file;
        int status;
    } cases[] = {
        {"text:t1,t2 | cache:1", "t2", LEAT_EIO},
        {"text:t1,t2 | cache:600", "t2", LEAT_EIO},
        {"text:t1,t2 | cache:1M", "t2", LEAT_END},
        {"text:t1.gz,t2 | cache:1", "t2", LEAT_EIO},
        {"text:t1.gz,t2 | cache:600", "t2", LEAT_EIO},
        {"text:t1.gz,t2 | cache:1M", "t2", LEAT_END},
        {"text:t1,t2 | shuffle:2 | cache:600", "t2", LEAT_EIO},
        {"text:t1,t2 | cache:600 | repeat:2", "t2", LEAT_EIO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        set_time(cases[i].file, 1000000000, 1);
        leat_reader *reader = record_reader_open(cases[i].text);
        ck_assert_int_eq(read_on(reader), LEAT_END);
        set_time(cases[i].file, 1000000000, 2);
        /* Seeking to an epoch anew begins it anew. */
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            const leat_position first = {epoch, 0};
            int status = leat_reader_seek(reader, first, NULL);
            if (!status)
                status = read_on(reader);
            ck_assert_msg(status == cases[i].status, "%s: %s, %s",
                          cases[i].text, leat_status_text(status),
                          leat_last_error());
        }
        leat_reader_close(reader);
    }
}
END_TEST

/* Which are opened anew in each. */
START_TEST(an_epoch_of_named_files_has_none_that_were_written_since)
{
    static const char *const text[] = {
        "files:t1,t2 | interleave:(text:{}),cycle=1",
        "files:t1.gz,t2 | interleave:(text:{}),cycle=2",
        "files:t1,t2 | shuffle | interleave:(text:{}),cycle=2",
    };
    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
        set_time("t2", 1000000000, 1);
        leat_reader *reader = record_reader_open(text[i]);
        ck_assert_int_eq(read_on(reader), LEAT_END);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(read_on(reader), LEAT_END);
        set_time("t2", 1000000000, 2);
        int status = leat_reader_seek(reader, (leat_position){2, 0}, NULL);
        ck_assert_msg(status == LEAT_EIO, "%s: %s", text[i],
                      leat_status_text(status));
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(a_cache_on_disk_is_not_made_of_data_that_changed)
{
    set_time("t2", 1000000000, 1);
    leat_reader *reader = record_reader_open("text:t1,t2 | cache:dir=kept");
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    set_time("t2", 1000000000, 2);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(access("kept", F_OK), -1);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_cache_on_disk_is_not_made_of_a_pipe)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "text:t1,fifo | cache:dir=kept"),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                 "cache: dir: nothing tells its samples from "
                                 "others: fifo: a pipe or device has no "
                                 "identity"));
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader_identity");
    TCase *tests = tcase_create("reader_identity");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests,
                   a_file_that_was_written_again_is_another_to_caches_alone);
    tcase_add_test(tests, an_identity_leaves_its_reader_where_it_is);
    tcase_add_test(tests, readers_that_make_caches_have_an_identity);
    tcase_add_test(tests, readers_of_endless_names_have_no_identity);
    tcase_add_test(tests, readers_of_many_names_have_an_identity);
    tcase_add_test(tests,
                   a_name_that_is_empty_takes_no_identity_from_the_others);
    tcase_add_test(tests,
                   databases_of_one_time_differ_by_values_and_transactions);
    tcase_add_test(tests, an_open_reader_tells_that_a_file_was_written_since);
    tcase_add_test(tests, so_does_a_stream_of_which_records_were_only_skipped);
    tcase_add_test(tests, a_cache_that_lacks_samples_gives_none_of_other_data);
    tcase_add_test(tests,
                   an_epoch_of_named_files_has_none_that_were_written_since);
    tcase_add_test(tests, a_cache_on_disk_is_not_made_of_data_that_changed);
    tcase_add_test(tests, a_cache_on_disk_is_not_made_of_a_pipe);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
