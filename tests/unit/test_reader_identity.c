/* What a cache on disk is made of: other than a token's, it changes whenever
   the data are written again, wherever in a chain their reader is. */
#include "support/record_sequence.h"
#include "support/suite.h"

#include "lmdb_fixture.h"

#include <leat/datum.h>
#include <leat/transform.h>

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_token_init(out);
    int status = leat_pipeline_parse(&pipeline, text);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    status = is_token ? leat_reader_save(reader, out)
                      : leat_reader_identify(reader, out);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
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

int main(void)
{
    Suite *suite = suite_create("reader_identity");
    TCase *tests = tcase_create("reader_identity");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests,
                   a_file_that_was_written_again_is_another_to_caches_alone);
    tcase_add_test(tests,
                   databases_of_one_time_differ_by_values_and_transactions);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
