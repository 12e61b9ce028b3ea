/* Counts in marks, which another program may have written. */
#include "data/token.h"
#include "support/record_fixture.h"
#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <string.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

#define ROWS "text:rows.gz | columns:x=uint8*3,y=uint8"

static leat_token mark;

static void set_up(void)
{
    char rows[] = "0,1,2,3\n1,1,2,3\n2,1,2,3\n3,1,2,3\n4,1,2,3\n5,1,2,3\n";
    record_sequence_begin();
    record_sequence_pack("rows.gz", rows, sizeof(rows) - 1, 0);
    leat_token_init(&mark);
}

static void tear_down(void)
{
    leat_token_finish(&mark);
    record_sequence_end();
}

static void put(int64_t count)
{
    ck_assert_int_eq(leat_token_put(&mark, &count, sizeof(count)), LEAT_OK);
}

START_TEST(counts_and_positions_are_within_bounds)
{
    int64_t counts[] = {-1, -1};
    leat_position at = {-1, -1};
    put(0);
    put(LEAT__POSITION_MAX);
    ck_assert_int_eq(leat__token_get_counts(&mark, "x", counts, 2), LEAT_OK);
    ck_assert_int_eq(counts[0], 0);
    ck_assert_int_eq(counts[1], LEAT__POSITION_MAX);
    ck_assert_uint_eq(mark.cursor, mark.size);
    mark.cursor = 0;
    ck_assert_int_eq(leat__token_get_position(&mark, "x", &at), LEAT_OK);
    ck_assert_int_eq(at.epoch, 0);
    ck_assert_int_eq(at.index, LEAT__POSITION_MAX);
}
END_TEST

START_TEST(others_are_refused_and_write_nothing)
{
    const int64_t wrong[] = {-1, INT64_MIN, LEAT__POSITION_MAX + 1, INT64_MAX};
    for (int i = 0; i < 2 * LENGTH(wrong); i++) {
        int64_t counts[] = {7, 8};
        leat_position at = {7, 8};
        mark.size = mark.cursor = 0;
        put(i % 2 ? wrong[i / 2] : 1);
        put(i % 2 ? 1 : wrong[i / 2]);
        ck_assert_int_eq(leat__token_get_counts(&mark, "x", counts, 2),
                         LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "x: the mark is none"));
        ck_assert_int_eq(leat__token_get_position(&mark, "x", &at),
                         LEAT_EINVAL);
        ck_assert(counts[0] == 7 && counts[1] == 8);
        ck_assert(at.epoch == 7 && at.index == 8);
    }
    int64_t three[] = {7, 8, 9};
    mark.size = mark.cursor = 0;
    put(1);
    put(2);
    ck_assert_int_eq(leat__token_get_counts(&mark, "x", three, 3), LEAT_EINVAL);
    ck_assert_int_eq(three[0], 7);
}
END_TEST

/* What each keeps in its mark, and the stream below it. */
static const char *const chains[] = {
    "range:6",
    "text:rows.gz",
    ROWS " | transform:x,mirror=1",
    ROWS " | where:y=!200",
    ROWS " | shard:2,1",
    ROWS " | skip:1",
    ROWS " | take:5",
    ROWS " | repeat:2",
    ROWS " | shuffle:2,seed=3",
    ROWS " | prefetch:2",
    ROWS " | batch:2 | unbatch",
    ROWS " | window:2,1",
    "(" ROWS ") (" ROWS ") | chain",
    "(" ROWS ") (" ROWS ") | zip:prefix=(,b_)",
    "(" ROWS ") (" ROWS ") | mix:even=1",
};

/* Each eight bytes of a true mark in turn. */
START_TEST(no_reader_takes_a_count_that_overflows)
{
    leat_reader *reader = record_reader_open(chains[_i]);
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    ck_assert_uint_eq(mark.size % 8, 0);
    for (size_t at = 0; at < mark.size; at += 8) {
        const int64_t count = INT64_MAX;
        int64_t before;
        memcpy(&before, mark.bytes + at, sizeof(before));
        memcpy(mark.bytes + at, &count, sizeof(count));
        mark.cursor = 0;
        int status = leat_reader_seek(reader, (leat_position){0, 3}, &mark);
        ck_assert_msg(status == LEAT_EINVAL, "%s: %zu: %d, %s", chains[_i], at,
                      status, leat_last_error());
        memcpy(mark.bytes + at, &before, sizeof(before));
        mark.cursor = 0;
        status = leat_reader_seek(reader, (leat_position){0, 3}, &mark);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mark_counts");
    TCase *tcase = tcase_create("mark_counts");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, counts_and_positions_are_within_bounds);
    tcase_add_test(tcase, others_are_refused_and_write_nothing);
    tcase_add_loop_test(tcase, no_reader_takes_a_count_that_overflows, 0,
                        LENGTH(chains));
    return suite_run(suite);
}
