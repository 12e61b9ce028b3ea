/* Shapes laid out in a batch's memory, and what a batch records. */
#include "base/thread.h"
#include "data/blob.h"
#include "layer/batch.h"
#include "support/recording_device.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

enum { SIZE = 4, BYTES = 4096 };

static leat__slab *slab;
static leat__batch batch;
static leat__batch_budget budget; /* without a limit, unless a test sets one */

static void set_up(void)
{
    leat_device *cpu;
    ck_assert_int_eq(leat_device_find(&cpu, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat__slab_create(&slab, cpu, BYTES), LEAT_OK);
    ck_assert_int_eq(leat__slab_ensure_host(slab), LEAT_OK);
    ck_assert_int_eq(leat__batch_init(&batch, slab, 0, BYTES, SIZE, true),
                     LEAT_OK);
    budget = (leat__batch_budget){.name = "train"};
    ck_assert_int_eq(leat__batch_budget_init(&budget), LEAT_OK);
    batch.budget = &budget;
    leat__batch_begin(&batch, 0);
}

static void tear_down(void)
{
    leat__batch_finish(&batch);
    leat__batch_budget_finish(&budget);
    leat__slab_unref(slab);
}

static leat__batch_shape lay_out(leat__top one, leat__top other,
                                 bool is_cropped)
{
    leat__batch_shape shape = {.ntop = 2, .is_cropped = is_cropped};
    shape.top[0] = one;
    shape.top[1] = other;
    ck_assert_int_eq(leat__batch_shape_lay_out(&shape, SIZE), LEAT_OK);
    return shape;
}

static const leat__top image = {
    .dtype = LEAT_FLOAT32, .ndim = 3, .shape = {3, 5, 7}};
static const leat__top label = {.dtype = LEAT_INT32, .ndim = 0, .shape = {0}};

START_TEST(each_top_begins_at_an_aligned_address_after_the_one_before)
{
    static const struct {
        leat__top top[2];
        size_t bytes[2]; /* of a sample */
        size_t second;   /* where top 1 begins */
    } cases[] = {
        {{{.dtype = LEAT_FLOAT32, .ndim = 3, .shape = {3, 5, 7}},
          {.dtype = LEAT_INT32, .ndim = 0, .shape = {0}}},
         {420, 4},
         1792},
        {{{.dtype = LEAT_UINT8, .ndim = 1, .shape = {64}},
          {.dtype = LEAT_FLOAT64, .ndim = 1, .shape = {2}}},
         {64, 16},
         256},
        {{{.dtype = LEAT_UINT8, .ndim = 1, .shape = {65}},
          {.dtype = LEAT_UINT8, .ndim = 1, .shape = {1}}},
         {65, 1},
         512},
        {{{.dtype = LEAT_UINT8, .ndim = 1, .shape = {0}},
          {.dtype = LEAT_FLOAT16, .ndim = 1, .shape = {3}}},
         {0, 6},
         0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const leat__batch_shape shape =
            lay_out(cases[i].top[0], cases[i].top[1], false);
        for (int k = 0; k < 2; k++)
            ck_assert_uint_eq(shape.top[k].bytes, cases[i].bytes[k]);
        ck_assert_uint_eq(shape.top[0].offset, 0);
        ck_assert_uint_eq(shape.top[1].offset, cases[i].second);
        ck_assert_uint_eq(shape.bytes, cases[i].second + LEAT__TOP_ALIGNMENT);
        ck_assert_uint_eq(shape.top_bytes, 0);
    }
}
END_TEST

START_TEST(crops_are_bytes_and_the_top_of_a_device_lies_elsewhere)
{
    const leat__batch_shape shape = lay_out(image, label, true);
    ck_assert_uint_eq(shape.top[0].bytes, 3 * 5 * 7);
    ck_assert_uint_eq(shape.top[1].offset, 512);
    ck_assert_uint_eq(shape.choices, 768);
    ck_assert_uint_eq(shape.bytes, 1024);
    ck_assert_uint_eq(shape.top_bytes, 1792);
}
END_TEST

START_TEST(a_shape_whose_size_overflows_is_refused)
{
    static const struct {
        leat__top top[2];
        bool is_cropped;
        const char *line;
    } cases[] = {
        {{{.dtype = LEAT_UINT8, .ndim = 2, .shape = {INT64_MAX, 3}},
          {.dtype = LEAT_INT32, .ndim = 0, .shape = {0}}},
         false,
         "top 0: a batch of 4 takes more than 9223372036854775807 bytes"},
        {{{.dtype = LEAT_UINT8, .ndim = 1, .shape = {-1}},
          {.dtype = LEAT_INT32, .ndim = 0, .shape = {0}}},
         false,
         "top 0: a batch of 4 takes more than 9223372036854775807 bytes"},
        {{{.dtype = LEAT_INT32, .ndim = 0, .shape = {0}},
          {.dtype = LEAT_FLOAT64, .ndim = 1, .shape = {INT64_MAX / 8}}},
         false,
         "top 1: a batch of 4 takes more than 9223372036854775551 bytes"},
        {{{.dtype = LEAT_FLOAT32, .ndim = 1, .shape = {(int64_t)1 << 31}},
          {.dtype = LEAT_INT32, .ndim = 0, .shape = {0}}},
         true,
         "top 0: a crop takes 2147483648 bytes: expected at most 2147483647"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat__batch_shape shape = {.ntop = 2,
                                   .is_cropped = cases[i].is_cropped};
        memcpy(shape.top, cases[i].top, sizeof(cases[i].top));
        ck_assert_int_eq(leat__batch_shape_lay_out(&shape, SIZE), LEAT_EINVAL);
        ck_assert_str_eq(leat_last_error(), cases[i].line);
    }
}
END_TEST

START_TEST(shapes_differ_by_what_their_tops_look_like)
{
    const leat__batch_shape shape = lay_out(image, label, false);
    leat__batch_shape other = shape;
    ck_assert(leat__batch_shape_is_same(&shape, &other));
    for (int i = 0; i < 4; i++) {
        other = shape;
        other.ntop -= i == 0;
        other.top[0].dtype = i == 1 ? LEAT_INT32 : LEAT_FLOAT32;
        other.top[0].shape[1] += i == 2;
        other.top[0].image[0] += i == 3;
        ck_assert(!leat__batch_shape_is_same(&shape, &other));
    }
}
END_TEST

START_TEST(the_earliest_failure_is_kept)
{
    static const int order[] = {2, 3, 1, 1, 3};
    static const char lines[][LEAT__ERROR_MAX] = {"two", "three", "one",
                                                  "again", "late"};
    for (int i = 0; i < 5; i++)
        leat__batch_fail(&batch, order[i], i == 2 ? LEAT_EDATA : LEAT_EIO, NULL,
                         lines[i]);
    ck_assert_int_eq(batch.failed, 1);
    ck_assert_int_eq(batch.status, LEAT_EDATA);
    ck_assert_int_eq(batch.culprit.sample, 1);
    ck_assert_str_eq(batch.culprit.line, "one");
}
END_TEST

START_TEST(bad_records_are_listed_by_their_index_in_the_batch)
{
    const leat_provenance from = {.record = 8};
    leat__bad_list bad = {0};
    leat_error(LEAT_EDATA, "a bad one");
    ck_assert_int_eq(leat__bad_list_add(&bad, 1, &from), LEAT_OK);
    ck_assert_int_eq(leat__batch_note_bad(&batch, &bad, 2), LEAT_OK);
    ck_assert_int_eq(batch.bad.n, 1);
    ck_assert_int_eq(batch.bad.item[0].sample, 3);
    ck_assert_int_eq(batch.bad.item[0].from.record, 8);
    ck_assert_str_eq(batch.bad.item[0].line, "a bad one");
    ck_assert_int_eq(batch.failed, -1);
    leat__bad_list_finish(&bad);
}
END_TEST

START_TEST(nothing_of_the_contents_before_is_left)
{
    static const char line[LEAT__ERROR_MAX] = "of the batch before";
    leat__batch_fail(&batch, 0, LEAT_EIO, NULL, line);
    batch.n = 1;
    batch.bad.n = 0;
    leat__batch_set_shape(&batch, NULL, true);
    ck_assert(batch.populates);
    leat__batch_begin(&batch, 7);
    ck_assert_int_eq(batch.number, 7);
    ck_assert_int_eq(batch.n, SIZE);
    ck_assert_int_eq(atomic_load(&batch.outstanding), SIZE);
    ck_assert_int_eq(batch.failed, -1);
    ck_assert_int_eq(batch.status, LEAT_OK);
    ck_assert_int_eq(batch.state, LEAT__SHAPE_OPEN);
    /* Only the first contents populate lazy memory. */
    ck_assert(!batch.populates);
}
END_TEST

START_TEST(a_key_that_does_not_last_is_copied)
{
    char bytes[] = "0042";
    leat_sample sample = {.from = {.key = bytes, .key_size = 4}};
    for (int i = 0; i < 3; i++) {
        sample.stable = i > 0;
        /* Its own buffer is filled again, however stable the rest is. */
        sample.buffer = i > 1 ? bytes : NULL;
        sample.buffer_size = i > 1 ? sizeof(bytes) : 0;
        leat__batch_note(&batch, i, &sample);
    }
    bytes[0] = 'x';
    ck_assert_mem_eq(batch.from[0].key, "0042", 4);
    ck_assert_ptr_eq(batch.from[1].key, bytes);
    ck_assert_mem_eq(batch.from[2].key, "0042", 4);
}
END_TEST

static int reserve(size_t bytes)
{
    const leat__batch_shape shape = {.bytes = bytes};
    return leat__batch_reserve(&batch, &shape);
}

static int64_t grown_bytes(void)
{
    return atomic_load(&budget.grown.bytes);
}

/* Blobs may still be lent what it had. */
START_TEST(a_batch_that_is_too_small_gets_memory_of_its_own)
{
    leat__batch_shape shape = lay_out(image, label, false);
    ck_assert_int_eq(leat__batch_reserve(&batch, &shape), LEAT_OK);
    ck_assert_ptr_eq(batch.slab, slab);
    ck_assert_int_eq(atomic_load(&budget.growths), 0);
    memset(slab->host, 0x5a, BYTES);
    ck_assert_int_eq(reserve(BYTES + 1), LEAT_OK);
    ck_assert_ptr_ne(batch.slab, slab);
    ck_assert_uint_eq(batch.capacity, BYTES + 1);
    ck_assert_int_eq(atomic_load(&budget.growths), 1);
    ck_assert_int_eq(grown_bytes(), BYTES + 1);
    ck_assert_int_eq(((unsigned char *)slab->host)[BYTES - 1], 0x5a);
    /* And keeps it, as there is no limit. */
    ck_assert_int_eq(reserve(1), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, BYTES + 1);
}
END_TEST

START_TEST(a_batch_gives_back_what_it_grew_to_under_a_limit)
{
    budget.limit = 10 * BYTES;
    budget.share = 4 * BYTES;
    ck_assert_int_eq(reserve(4 * BYTES), LEAT_OK);
    ck_assert_int_eq(reserve(2 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 4 * BYTES);
    ck_assert_uint_eq(budget.in_use, 4 * BYTES);
    memset(batch.slab->host, 0x5a, 100);
    if (_i == 0)
        ck_assert_int_eq(reserve(BYTES), LEAT_OK);
    else
        ck_assert_int_eq(leat__batch_extend(&batch, BYTES, 100), LEAT_OK);
    ck_assert_ptr_eq(batch.slab, slab);
    ck_assert_uint_eq(batch.capacity, BYTES);
    if (_i > 0)
        ck_assert_int_eq(((unsigned char *)slab->host)[99], 0x5a);
    /* It is there for the next one, and counts until there is no room. */
    ck_assert_uint_eq(budget.in_use, 4 * BYTES);
    ck_assert_int_eq(reserve(3 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 4 * BYTES);
    ck_assert_int_eq(atomic_load(&budget.growths), 1);
    ck_assert_int_eq(reserve(BYTES), LEAT_OK);
    ck_assert_int_eq(reserve(8 * BYTES), LEAT_OK);
    ck_assert_uint_eq(budget.in_use, 8 * BYTES);
    ck_assert_int_eq(grown_bytes(), 8 * BYTES);
    ck_assert_int_eq(atomic_load(&budget.most.bytes), 8 * BYTES);
    ck_assert_int_eq(atomic_load(&budget.growths), 2);
}
END_TEST

/* What it has to keep has no room in the memory that it had first. */
START_TEST(a_batch_that_keeps_much_moves_to_less)
{
    budget.limit = 8 * BYTES;
    ck_assert_int_eq(reserve(7 * BYTES), LEAT_OK);
    memset(batch.slab->host, 0x5a, 2 * BYTES);
    /* Without room for both it stays. */
    ck_assert_int_eq(leat__batch_extend(&batch, 3 * BYTES, 2 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 7 * BYTES);
    budget.limit = 10 * BYTES;
    ck_assert_int_eq(leat__batch_extend(&batch, 3 * BYTES, 2 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 3 * BYTES);
    ck_assert_int_eq(((unsigned char *)batch.slab->host)[2 * BYTES - 1], 0x5a);
}
END_TEST

/* It leaves its own memory first. */
START_TEST(a_batch_grows_to_all_that_there_is)
{
    budget.limit = 10 * BYTES;
    for (size_t n = 2; n <= 10; n++)
        ck_assert_int_eq(reserve(n * BYTES), LEAT_OK);
    ck_assert_uint_eq(budget.in_use, 10 * BYTES);
    ck_assert_int_eq(leat__batch_extend(&batch, 11 * BYTES, 10), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                 "which take 0, and one of larger samples "
                                 "needs 45056 more"));
    ck_assert_int_eq(reserve(10 * BYTES), LEAT_OK);
}
END_TEST

/* A quarter more is a reserve that all must have room for. */
START_TEST(variable_tops_grow_by_more_where_all_may)
{
    static const size_t share[] = {5 * BYTES, 5 * BYTES - 1};
    static const size_t expected[] = {5 * BYTES, 4 * BYTES};
    budget.limit = 10 * BYTES;
    budget.share = share[_i];
    ck_assert_int_eq(leat__batch_extend(&batch, 4 * BYTES, 0), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, expected[_i]);
}
END_TEST

/* Tops of fixed sizes are reserved before variable ones are measured. */
START_TEST(what_variable_tops_took_last_is_reserved_for_them)
{
    budget.limit = 10 * BYTES;
    ck_assert_int_eq(leat__batch_make_variable(&batch, 2), LEAT_OK);
    ck_assert_int_eq(leat__batch_extend(&batch, 300, 100), LEAT_OK);
    ck_assert_int_eq(reserve(6 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 6 * BYTES + 200);
    ck_assert_int_eq(leat__batch_extend(&batch, 6 * BYTES + 200, 6 * BYTES),
                     LEAT_OK);
    ck_assert_int_eq(atomic_load(&budget.growths), 1);
    /* If there is room. */
    atomic_store(&budget.variable, 4 * BYTES);
    ck_assert_int_eq(reserve(9 * BYTES), LEAT_OK);
    ck_assert_uint_eq(batch.capacity, 9 * BYTES);
}
END_TEST

static leat__batch other;

static void trim_other(void *owner)
{
    ck_assert_ptr_eq(owner, &other);
    ck_assert_int_eq(leat__batch_trim(&other), LEAT_OK);
}

START_TEST(a_free_batch_gives_back_what_another_needs)
{
    const leat__batch_shape large = {.bytes = 6 * BYTES};
    leat_blob *blob;
    static const int64_t shape[] = {6 * BYTES};
    ck_assert_int_eq(leat__batch_init(&other, slab, 0, BYTES, SIZE, true),
                     LEAT_OK);
    other.budget = &budget;
    budget.limit = 10 * BYTES;
    budget.owner = &other;
    ck_assert_int_eq(leat__batch_reserve(&other, &large), LEAT_OK);
    ck_assert_int_eq(reserve(6 * BYTES), LEAT_ELIMIT);
    /* A blob that it was lent to keeps no memory. */
    ck_assert_int_eq(leat_blob_create(&blob, slab->device), LEAT_OK);
    ck_assert_int_eq(leat__blob_lend(blob, LEAT_UINT8, 1, shape, other.slab, 0,
                                     LEAT_HEAD_AT_CPU, NULL),
                     LEAT_OK);
    leat__slab *lent = other.slab;
    leat__slab_recall(lent);
    budget.trim = trim_other;
    ck_assert_int_eq(reserve(6 * BYTES), LEAT_OK);
    ck_assert_ptr_eq(other.slab, slab);
    ck_assert_int_eq(grown_bytes(), 6 * BYTES);
    ck_assert_ptr_null(lent->host);
    ck_assert_ptr_null(leat_blob_cpu_data(blob));
    leat_blob_destroy(blob);
    leat__batch_finish(&other);
}
END_TEST

START_TEST(so_it_does_the_top_that_a_device_computes)
{
    leat__batch_shape shape = {.top_bytes = 4 * BYTES};
    leat__batch_set_top(&batch, slab, 0, BYTES);
    budget.limit = 10 * BYTES;
    ck_assert_int_eq(leat__batch_reserve(&batch, &shape), LEAT_OK);
    ck_assert_ptr_ne(batch.top_slab, slab);
    ck_assert_uint_eq(budget.in_use, 4 * BYTES);
    shape.top_bytes = 9 * BYTES;
    ck_assert_int_eq(leat__batch_reserve(&batch, &shape), LEAT_OK);
    ck_assert_uint_eq(budget.in_use, 9 * BYTES);
    shape.top_bytes = BYTES;
    ck_assert_int_eq(leat__batch_reserve(&batch, &shape), LEAT_OK);
    ck_assert_ptr_eq(batch.top_slab, slab);
    ck_assert_uint_eq(batch.top_capacity, BYTES);
    ck_assert_uint_eq(budget.in_use, 0);
}
END_TEST

/* Growth goes no further here: it is only asked what it waits for. */
START_TEST(a_growing_batch_waits_for_the_streams_that_use_its_memory)
{
    recording_device device;
    recording_device_init(&device);
    leat__slab there = {.device = &device.base};
    leat__batch one = {.budget = &budget,
                       .slab = &there,
                       .ready = 52,
                       .consumed = {61, 62},
                       .nconsumed = 2,
                       .is_transformed = true,
                       .is_awaited = true};
    device.fail_at = 1;
    ck_assert_int_eq(leat__batch_extend(&one, BYTES, 0), LEAT_EDEVICE);
    ck_assert_str_eq(recording_device_look(&device), "sync 61; sync 62; ");
    /* Its consumers say nothing of a transform for which none waited. */
    one.is_awaited = false;
    device.fail_at = 2;
    ck_assert_int_eq(leat__batch_extend(&one, BYTES, 0), LEAT_EDEVICE);
    ck_assert_str_eq(recording_device_look(&device),
                     "sync 52; sync 61; sync 62; ");
    /* What is given back is freed, too. */
    one.home = (leat__batch_home){slab, 0, BYTES};
    one.capacity = 8 * BYTES;
    budget.limit = 9 * BYTES;
    device.fail_at = 2;
    ck_assert_int_eq(leat__batch_extend(&one, BYTES, 0), LEAT_EDEVICE);
    ck_assert_str_eq(recording_device_look(&device),
                     "sync 52; sync 61; sync 62; ");
    device.fail_at = 2;
    ck_assert_int_eq(leat__batch_trim(&one), LEAT_EDEVICE);
    ck_assert_str_eq(recording_device_look(&device),
                     "sync 52; sync 61; sync 62; ");
}
END_TEST

static void *await_shape(void *out)
{
    *(int *)out = leat__batch_wait_shape(&batch);
    return NULL;
}

/* Whether the threads wait first is left to chance: both orders must do. */
START_TEST(those_who_wait_for_a_shape_learn_whether_there_is_one)
{
    const leat__batch_shape shape = lay_out(image, label, false);
    for (int has_shape = 0; has_shape <= 1; has_shape++) {
        leat__thread thread[2] = {{0}};
        int result[2] = {-1, -1};
        leat__batch_begin(&batch, has_shape);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(leat__thread_start(&thread[i], "waits",
                                                await_shape, &result[i]),
                             LEAT_OK);
        leat__batch_set_shape(&batch, has_shape ? &shape : NULL, false);
        for (int i = 0; i < 2; i++) {
            leat__thread_join(&thread[i]);
            ck_assert_int_eq(result[i], has_shape);
        }
    }
    ck_assert_ptr_eq(leat__batch_at(&batch, 1, 2),
                     (char *)slab->host + 1792 + 2 * 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tcase = tcase_create("batch");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase,
                   each_top_begins_at_an_aligned_address_after_the_one_before);
    tcase_add_test(tcase,
                   crops_are_bytes_and_the_top_of_a_device_lies_elsewhere);
    tcase_add_test(tcase, a_shape_whose_size_overflows_is_refused);
    tcase_add_test(tcase, shapes_differ_by_what_their_tops_look_like);
    tcase_add_test(tcase, the_earliest_failure_is_kept);
    tcase_add_test(tcase, bad_records_are_listed_by_their_index_in_the_batch);
    tcase_add_test(tcase, nothing_of_the_contents_before_is_left);
    tcase_add_test(tcase, a_key_that_does_not_last_is_copied);
    tcase_add_test(tcase, a_batch_that_is_too_small_gets_memory_of_its_own);
    tcase_add_loop_test(tcase, a_batch_gives_back_what_it_grew_to_under_a_limit,
                        0, 2);
    tcase_add_test(tcase, a_batch_that_keeps_much_moves_to_less);
    tcase_add_test(tcase, a_batch_grows_to_all_that_there_is);
    tcase_add_loop_test(tcase, variable_tops_grow_by_more_where_all_may, 0, 2);
    tcase_add_test(tcase, what_variable_tops_took_last_is_reserved_for_them);
    tcase_add_test(tcase, a_free_batch_gives_back_what_another_needs);
    tcase_add_test(tcase, so_it_does_the_top_that_a_device_computes);
    tcase_add_test(tcase,
                   a_growing_batch_waits_for_the_streams_that_use_its_memory);
    tcase_add_test(tcase,
                   those_who_wait_for_a_shape_learn_whether_there_is_one);
    return suite_run(suite);
}
