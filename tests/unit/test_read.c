/* The next sample as blobs. */
#include "base/memory.h"
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat/blob.h>
#include <leat/decorators.h>

#include <check.h>
#include <string.h>

enum { COUNT = 3 };

static const float vectors[COUNT][6] = {{1, 2, 3, 4, 5, 6}, {7}, {8}};
static const int32_t labels[COUNT] = {10, 11, 12};
static const leat_memory_field fields[] = {
    {"x", LEAT_FLOAT32, 2, {2, 3}, vectors},
    {"label", LEAT_INT32, 0, {0}, labels},
    {"name", LEAT_BYTES, 1, {4}, "abcdefghijkl"},
};

static leat_blob *blobs[3];

static void begin(void)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_blob_create(&blobs[i], NULL), LEAT_OK);
}

static void end(void)
{
    for (int i = 0; i < 3; i++)
        leat_blob_destroy(blobs[i]);
}

START_TEST(an_instance_is_split_into_blobs)
{
    begin();
    leat_reader *reader = map_fixture_open(fields, 3, COUNT, "take:-1");
    int64_t before = 0;
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_OK);
            ck_assert_int_eq(leat_blob_dtype(blobs[0]), LEAT_FLOAT32);
            ck_assert_int_eq(leat_blob_ndim(blobs[0]), 2);
            ck_assert_int_eq(leat_blob_dim(blobs[0], 0), 2);
            ck_assert_int_eq(leat_blob_dim(blobs[0], 1), 3);
            ck_assert_mem_eq(leat_blob_cpu_data(blobs[0]), vectors[i],
                             sizeof(vectors[i]));
            ck_assert_int_eq(leat_blob_count(blobs[1]), 1);
            ck_assert_int_eq(*(const int32_t *)leat_blob_cpu_data(blobs[1]),
                             labels[i]);
            ck_assert_int_eq(leat_blob_dtype(blobs[2]), LEAT_BYTES);
            ck_assert_int_eq(leat_blob_count(blobs[2]), 4);
            ck_assert_mem_eq(leat_blob_cpu_data(blobs[2]),
                             &"abcdefghijkl"[4 * i], 4);
            if (epoch == 0 && i == 0)
                before = leat__alloc_count();
        }
        ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_END);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL),
            LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(blobs_may_be_left_out_and_their_number_is_checked)
{
    begin();
    leat_blob *const some[] = {NULL, blobs[1], NULL};
    leat_reader *reader = map_fixture_open(fields, 3, COUNT, "take:-1");
    ck_assert_int_eq(leat_read(reader, some, 2), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "2 blobs for 3 fields"));
    ck_assert_int_eq(leat_read(reader, some, 3), LEAT_OK);
    ck_assert_int_eq(*(const int32_t *)leat_blob_cpu_data(blobs[1]), 10);
    ck_assert_int_eq(leat_blob_count(blobs[0]), 0);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(a_bad_sample_is_passed_by)
{
    begin();
    leat_reader *reader =
        map_fixture_open(fields, 3, COUNT, "columns:name=float32");
    ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 0: column 1"));
    ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 1: column 1"));
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_ECANCELLED);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(every_failing_allocation_is_an_error)
{
    int status = LEAT_ENOMEM;
    for (int64_t n = 0; status; n++) {
        leat_reader *reader =
            map_fixture_open(fields, 3, COUNT, "cast:x=float64,label=int64");
        begin();
        leat__alloc_fail_at(n);
        status = leat_read(reader, blobs, 3);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        end();
        leat_reader_close(reader);
    }
}
END_TEST

/* Also the axes of bytes. */
START_TEST(a_group_keeps_its_axes)
{
    begin();
    leat_reader *reader = map_fixture_open(fields, 3, COUNT, "batch:2");
    for (int rows = 2; rows > 0; rows--) {
        ck_assert_int_eq(leat_read(reader, blobs, 3), LEAT_OK);
        ck_assert_int_eq(leat_blob_ndim(blobs[0]), 3);
        ck_assert_int_eq(leat_blob_dtype(blobs[2]), LEAT_BYTES);
        ck_assert_int_eq(leat_blob_ndim(blobs[2]), 2);
        ck_assert_int_eq(leat_blob_dim(blobs[2], 0), rows);
        ck_assert_int_eq(leat_blob_dim(blobs[2], 1), 4);
        ck_assert_mem_eq(leat_blob_cpu_data(blobs[2]),
                         rows == 2 ? "abcdefgh" : "ijkl", 4 * rows);
    }
    leat_reader_close(reader);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("read");
    TCase *tcase = tcase_create("read");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, an_instance_is_split_into_blobs);
    tcase_add_test(tcase, blobs_may_be_left_out_and_their_number_is_checked);
    tcase_add_test(tcase, a_bad_sample_is_passed_by);
    tcase_add_test(tcase, every_failing_allocation_is_an_error);
    tcase_add_test(tcase, a_group_keeps_its_axes);
    return suite_run(suite);
}
