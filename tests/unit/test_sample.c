#include "base/memory.h"
#include "data/sample.h"
#include "support/suite.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static leat_sample sample;

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

START_TEST(a_new_sample_is_empty_and_owns_nothing)
{
    leat_sample nothing;
    memset(&nothing, 0, sizeof(nothing));
    ck_assert_mem_eq(&sample, &nothing, sizeof(sample));
    leat_sample_finish(NULL);
}
END_TEST

/* Where each taken piece begins, behind the last one. */
static char *take(size_t bytes)
{
    size_t before = sample.taken;
    char *at = leat_sample_take(&sample, bytes);
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq((uintptr_t)at % 64, 0);
    ck_assert_ptr_eq(at, (char *)sample.buffer + before);
    ck_assert_uint_eq(sample.taken % 64, 0);
    ck_assert_uint_ge(sample.taken - before, bytes);
    ck_assert_uint_le(sample.taken, sample.buffer_size);
    memset(at, (int)(bytes % 251), bytes);
    return at;
}

START_TEST(memory_is_taken_aligned_piece_by_piece)
{
    static const size_t sizes[] = {1, 0, 64, 65, 0, 1000, 63, 4096, 1};
    size_t at[9];
    for (int i = 0; i < 9; i++)
        at[i] = (size_t)(take(sizes[i]) - (char *)sample.buffer);
    /* Also one of no bytes has an address of its own. */
    ck_assert_uint_lt(at[1], at[2]);
    for (int i = 0; i < 9; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            ck_assert_int_eq(((unsigned char *)sample.buffer)[at[i] + k],
                             (int)(sizes[i] % 251));
}
END_TEST

START_TEST(a_cleared_sample_keeps_its_buffer_and_position)
{
    char *first = take(1000);
    size_t size = sample.buffer_size;
    sample.nfields = 3;
    sample.stable = 0;
    sample.deferred = 1;
    sample.route = 5;
    sample.from = (leat_provenance){.source = "s",
                                    .record = 9,
                                    .key = first,
                                    .key_size = 4,
                                    .epoch = 2,
                                    .position = 7,
                                    .key_cut = 8};
    leat_sample_clear(&sample);
    ck_assert_int_eq(sample.nfields, 0);
    ck_assert_int_eq(sample.stable, 1);
    ck_assert_int_eq(sample.deferred, 0);
    ck_assert_uint_eq(sample.route, 0);
    ck_assert_uint_eq(sample.taken, 0);
    ck_assert_ptr_null(sample.from.key);
    ck_assert_uint_eq(sample.from.key_size, 0);
    ck_assert_uint_eq(sample.from.key_cut, 0);
    ck_assert_int_eq(sample.from.epoch, 2);
    ck_assert_int_eq(sample.from.position, 7);
    ck_assert_uint_eq(sample.buffer_size, size);
    int64_t before = leat__alloc_count();
    ck_assert_ptr_eq(take(1000), first);
    ck_assert_int_eq(leat__alloc_count(), before);
}
END_TEST

START_TEST(a_buffer_that_is_large_enough_stays)
{
    ck_assert_int_eq(leat__sample_reserve(&sample, 0), LEAT_OK);
    ck_assert_ptr_null(sample.buffer);
    ck_assert_int_eq(leat__sample_reserve(&sample, 1000), LEAT_OK);
    void *buffer = sample.buffer;
    ck_assert_uint_eq(sample.taken, 0);
    ck_assert_int_eq(leat__sample_reserve(&sample, 1000), LEAT_OK);
    ck_assert_int_eq(leat__sample_reserve(&sample, 1), LEAT_OK);
    ck_assert_ptr_eq(sample.buffer, buffer);
    for (int i = 0; i < 15; i++)
        take(64);
    ck_assert_ptr_eq(sample.buffer, buffer);
}
END_TEST

START_TEST(sizes_that_creep_up_settle_early)
{
    int64_t before = leat__alloc_count();
    for (size_t bytes = 1000; bytes < 10000; bytes += 10) {
        leat_sample_clear(&sample);
        take(bytes);
    }
    ck_assert_int_le(leat__alloc_count() - before, 10);
}
END_TEST

/* Views into the buffer go along, at any offset; the others stay. */
START_TEST(views_move_with_a_buffer_that_grows)
{
    static const char elsewhere[] = "elsewhere";
    char *piece = take(100);
    strcpy(piece, "piece");
    strcpy(piece + 90, "key");
    sample.nfields = 3;
    sample.field[0] = (leat_field){LEAT_BYTES, 1, piece, 6, {6}};
    sample.field[1] = (leat_field){LEAT_BYTES, 1, elsewhere, 10, {10}};
    sample.field[2] = (leat_field){LEAT_BYTES, 1, piece + 2, 4, {4}};
    sample.from.key = piece + 90;
    sample.from.key_size = 4;
    const void *old = sample.buffer;
    for (size_t bytes = 200; bytes < 300000; bytes *= 7)
        take(bytes);
    ck_assert_ptr_ne(sample.buffer, old);
    ck_assert_ptr_eq(sample.field[0].data, sample.buffer);
    ck_assert_str_eq(sample.field[0].data, "piece");
    ck_assert_ptr_eq(sample.field[1].data, elsewhere);
    ck_assert_str_eq(sample.field[2].data, "ece");
    ck_assert_str_eq(sample.from.key, "key");
}
END_TEST

START_TEST(short_memory_leaves_the_sample_as_it_was)
{
    char *piece = take(10);
    strcpy(piece, "piece");
    sample.nfields = 1;
    sample.field[0] = (leat_field){LEAT_BYTES, 1, piece, 6, {6}};
    const leat_sample before = sample;
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat_sample_take(&sample, 100000));
    leat__alloc_fail_at(-1);
    ck_assert_ptr_null(leat_sample_take(&sample, SIZE_MAX));
    ck_assert_ptr_null(leat_sample_take(&sample, SIZE_MAX - 63));
    ck_assert_ptr_null(leat_sample_take(&sample, SIZE_MAX - 64));
    ck_assert_mem_eq(&sample, &before, sizeof(sample));
    ck_assert_str_eq(sample.field[0].data, "piece");
}
END_TEST

/* One view in the buffer, one elsewhere, and a key. */
static void fill_mixed(const char *elsewhere)
{
    strcpy(take(8), "buffer");
    sample.nfields = 2;
    sample.field[0].data = sample.buffer;
    sample.field[0].bytes = 7;
    sample.field[1].data = elsewhere;
    sample.field[1].bytes = 10;
    sample.from.key = elsewhere + 10;
    sample.from.key_size = 4;
}

START_TEST(a_sample_that_owns_its_views_needs_nothing_else)
{
    char elsewhere[] = "elsewhere\0key";
    fill_mixed(elsewhere);
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_OK);
    memset(elsewhere, 'x', sizeof(elsewhere));
    ck_assert_str_eq(sample.field[0].data, "buffer");
    ck_assert_str_eq(sample.field[1].data, "elsewhere");
    ck_assert_str_eq(sample.from.key, "key");
    ck_assert_uint_eq((uintptr_t)sample.field[1].data % 64, 0);
    const void *buffer = sample.buffer;
    size_t taken = sample.taken;
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_OK);
    ck_assert_ptr_eq(sample.buffer, buffer);
    ck_assert_uint_eq(sample.taken, taken);
    ck_assert_str_eq(sample.field[1].data, "elsewhere");
    /* What is taken now lies after them. */
    memset(take(100), 'x', 100);
    ck_assert_str_eq(sample.field[1].data, "elsewhere");
    ck_assert_str_eq(sample.from.key, "key");
}
END_TEST

START_TEST(a_sample_that_cannot_own_its_views_stays_as_it_was)
{
    char elsewhere[] = "elsewhere\0key";
    fill_mixed(elsewhere);
    const leat_sample before = sample;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_mem_eq(&sample, &before, sizeof(sample));
    sample.field[1].bytes = SIZE_MAX - 8;
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_ENOMEM);
    sample.field[1].bytes = SIZE_MAX - 64;
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_ENOMEM);
    sample.field[1].bytes = SIZE_MAX / 2;
    sample.from.key_size = SIZE_MAX / 2 + 1;
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_ENOMEM);
}
END_TEST

START_TEST(views_of_no_bytes_take_nothing)
{
    sample.nfields = 2;
    sample.field[0] = (leat_field){LEAT_BYTES, 1, NULL, 0, {0}};
    sample.field[1] = (leat_field){LEAT_BYTES, 1, "", 0, {0}};
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_OK);
    ck_assert_ptr_null(sample.buffer);
}
END_TEST

START_TEST(swapped_samples_exchange_all_but_their_positions)
{
    leat_sample other;
    leat_sample_init(&other);
    fill_mixed("elsewhere\0key");
    sample.from.source = "one";
    sample.from.record = 1;
    sample.from.epoch = 2;
    sample.from.position = 3;
    sample.stable = 0;
    sample.route = 4;
    other.deferred = 1;
    other.locator = (leat_locator){5, 6};
    other.from = (leat_provenance){
        .source = "other", .record = 7, .epoch = 8, .position = 9};
    other.allocator = NULL;
    ck_assert_ptr_nonnull(leat_sample_take(&other, 500));
    const void *first = sample.buffer;
    const void *second = other.buffer;
    int64_t before = leat__alloc_count();
    leat_sample_swap(&sample, &other);
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_ptr_eq(sample.buffer, second);
    ck_assert_ptr_eq(other.buffer, first);
    ck_assert_int_eq(sample.nfields, 0);
    ck_assert_int_eq(sample.deferred, 1);
    ck_assert_int_eq(sample.locator.record, 5);
    ck_assert_uint_eq(sample.locator.where, 6);
    ck_assert_uint_eq(sample.taken, 512);
    ck_assert_str_eq(sample.from.source, "other");
    ck_assert_int_eq(sample.from.epoch, 2);
    ck_assert_int_eq(sample.from.position, 3);
    ck_assert_int_eq(other.nfields, 2);
    ck_assert_str_eq(other.field[0].data, "buffer");
    ck_assert_str_eq(other.field[1].data, "elsewhere");
    ck_assert_str_eq(other.from.key, "key");
    ck_assert_int_eq(other.stable, 0);
    ck_assert_uint_eq(other.route, 4);
    ck_assert_int_eq(other.from.record, 1);
    ck_assert_int_eq(other.from.epoch, 8);
    ck_assert_int_eq(other.from.position, 9);
    leat_sample_swap(&other, &other);
    ck_assert_str_eq(other.field[1].data, "elsewhere");
    leat_sample_finish(&other);
}
END_TEST

START_TEST(a_sample_that_is_moved_to_itself_stays)
{
    uint8_t byte = 7;
    for (int n = 0; n < 3; n++) {
        if (n > 0)
            ck_assert_int_eq(
                leat_sample_set(&sample, n - 1, LEAT_UINT8, 0, NULL, &byte),
                LEAT_OK);
        const leat_sample before = sample;
        ck_assert_int_eq(leat_sample_move(&sample, &sample), LEAT_OK);
        ck_assert_mem_eq(&sample, &before, sizeof(sample));
    }
}
END_TEST

static const int64_t three = 3, four = 4;

/* Contents: a field and a key in the buffer, and a field elsewhere. */
static void fill_small(leat_sample *one, const char *field, const char *key)
{
    char *bytes = leat_sample_take(one, 128);
    ck_assert_ptr_nonnull(bytes);
    char *name = bytes + 64;
    memcpy(bytes, field, 4);
    memcpy(name, key, 4);
    one->from.key = name;
    one->from.key_size = 4;
    ck_assert_int_eq(leat_sample_set(one, 0, LEAT_BYTES, 1, &four, bytes),
                     LEAT_OK);
    ck_assert_int_eq(leat_sample_set(one, 1, LEAT_BYTES, 1, &three, "far"),
                     LEAT_OK);
}

static void check_small(const leat_sample *one, const char *field,
                        const char *key)
{
    ck_assert_int_eq(one->nfields, 2);
    ck_assert_str_eq(one->field[0].data, field);
    ck_assert_str_eq(one->field[1].data, "far");
    ck_assert_str_eq(one->from.key, key);
    ck_assert_ptr_eq(one->field[0].data, one->buffer);
    ck_assert_uint_eq(one->taken, 128);
}

/* The caller's empty sample with a large buffer, whose address it returns. */
static const void *make_large(void)
{
    ck_assert_ptr_nonnull(leat_sample_take(&sample, 1 << 20));
    leat_sample_clear(&sample);
    return sample.buffer;
}

START_TEST(a_large_buffer_stays_with_whom_a_small_sample_is_moved_to)
{
    leat_sample held;
    leat_sample_init(&held);
    fill_small(&held, "abc", "key");
    const void *small = held.buffer;
    const void *large = make_large();
    int64_t before = leat__alloc_count();
    ck_assert_int_eq(leat_sample_move(&sample, &held), LEAT_OK);
    ck_assert_int_eq(leat__alloc_count(), before);
    ck_assert_ptr_eq(sample.buffer, large);
    ck_assert_ptr_eq(held.buffer, small);
    check_small(&sample, "abc", "key");
    ck_assert_int_eq(held.nfields, 0);
    leat_sample_finish(&held);
}
END_TEST

START_TEST(a_large_buffer_stays_where_small_samples_are_exchanged)
{
    leat_sample held;
    leat_sample_init(&held);
    if (_i)
        fill_small(&held, "abc", "key");
    const void *large = make_large();
    fill_small(&sample, "xyz", "yek");
    /* A buffer that is not there, or too small for the other's contents. */
    if (_i == 2)
        ck_assert_ptr_nonnull(leat_sample_take(&sample, 5000));
    leat__sample_exchange(&held, &sample);
    ck_assert_ptr_eq(sample.buffer, large);
    ck_assert_uint_lt(held.buffer_size, 10000);
    if (_i)
        check_small(&sample, "abc", "key");
    if (_i == 2)
        held.taken -= 5056;
    check_small(&held, "xyz", "yek");
    leat_sample_finish(&held);
}
END_TEST

/* As a group's is, which another sample's would else be taken for. */
START_TEST(a_buffer_that_a_reader_knows_goes_along)
{
    leat_sample held;
    leat_sample_init(&held);
    fill_small(&held, "abc", "key");
    const void *small = held.buffer;
    const void *large = make_large();
    (_i ? &held : &sample)->idle = LEAT__SAMPLE_BOUND;
    leat__sample_exchange(&held, &sample);
    ck_assert_ptr_eq(sample.buffer, small);
    ck_assert_ptr_eq(held.buffer, large);
    check_small(&sample, "abc", "key");
    leat_sample_finish(&held);
}
END_TEST

START_TEST(an_exchange_that_memory_is_short_for_is_a_swap)
{
    leat_sample held;
    leat_sample_init(&held);
    const void *large = make_large();
    fill_small(&sample, "xyz", "yek");
    leat__alloc_fail_at(0);
    leat__sample_exchange(&held, &sample);
    leat__alloc_fail_at(-1);
    ck_assert_ptr_eq(held.buffer, large);
    check_small(&held, "xyz", "yek");
    ck_assert_int_eq(sample.nfields, 0);
    leat_sample_finish(&held);
}
END_TEST

/* Of a record that could not be read only the provenance counts. */
START_TEST(a_sample_of_any_number_of_fields_is_swapped)
{
    static const int wrong[] = {-1, INT_MIN, LEAT_MAX_FIELDS + 1, INT_MAX};
    leat_sample other;
    leat_sample_init(&other);
    other.nfields = -3;
    for (int i = 0; i < 4; i++) {
        sample.nfields = wrong[i];
        sample.from.record = 7;
        leat_sample_swap(&sample, &other);
        ck_assert_int_eq(other.nfields, wrong[i]);
        ck_assert_int_eq(other.from.record, 7);
    }
    leat_sample_finish(&other);
}
END_TEST

/* Each buffer goes back to the allocator that gave it. */
typedef struct ledger {
    leat_allocator allocator;
    int held;
} ledger;

static void *ledger_alloc(void *user, size_t bytes, size_t alignment)
{
    ((ledger *)user)->held++;
    return aligned_alloc(alignment, bytes);
}

static void ledger_free(void *user, void *memory, size_t bytes,
                        size_t alignment)
{
    (void)bytes;
    (void)alignment;
    ((ledger *)user)->held--;
    free(memory);
}

START_TEST(swapped_buffers_keep_their_allocators)
{
    ledger ledgers[2];
    leat_sample pair[2];
    for (int i = 0; i < 2; i++) {
        ledgers[i].held = 0;
        ledgers[i].allocator = (leat_allocator){.size = sizeof(leat_allocator),
                                                .user = &ledgers[i],
                                                .alloc = ledger_alloc,
                                                .free = ledger_free};
        leat_sample_init(&pair[i]);
        pair[i].allocator = &ledgers[i].allocator;
    }
    ck_assert_ptr_nonnull(leat_sample_take(&pair[0], 100));
    leat_sample_swap(&pair[0], &pair[1]);
    ck_assert_int_eq(ledgers[0].held, 1);
    ck_assert_ptr_nonnull(leat_sample_take(&pair[1], 100000));
    ck_assert_int_eq(ledgers[0].held, 1);
    ck_assert_ptr_nonnull(leat_sample_take(&pair[0], 100));
    ck_assert_int_eq(ledgers[1].held, 1);
    leat_sample_finish(&pair[1]);
    ck_assert_int_eq(ledgers[0].held, 0);
    leat_sample_finish(&pair[0]);
    ck_assert_int_eq(ledgers[1].held, 0);
}
END_TEST

START_TEST(a_finished_sample_can_be_used_again)
{
    take(10);
    sample.nfields = 2;
    leat_sample_finish(&sample);
    ck_assert_ptr_null(sample.buffer);
    ck_assert_int_eq(sample.nfields, 0);
    take(10);
}
END_TEST

/* A buffer with one field set, to be left as it is. */
static void set_one(const uint8_t *data)
{
    const int64_t shape[] = {2, 3};
    ck_assert_int_eq(leat_sample_set(&sample, 0, LEAT_UINT8, 2, shape, data),
                     LEAT_OK);
}

START_TEST(fields_are_set_in_order_with_the_bytes_of_their_shape)
{
    static const uint8_t data[6];
    static const int32_t label = 7;
    const int64_t none[] = {0};
    sample.nfields = 5; /* of another reader's last sample */
    set_one(data);
    ck_assert_int_eq(sample.nfields, 1);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(sample.field[0].ndim, 2);
    ck_assert_int_eq(sample.field[0].shape[1], 3);
    ck_assert_ptr_eq(sample.field[0].data, data);
    ck_assert_uint_eq(sample.field[0].bytes, 6);
    ck_assert_int_eq(leat_sample_set(&sample, 1, LEAT_INT32, 0, NULL, &label),
                     LEAT_OK);
    ck_assert_int_eq(sample.nfields, 2);
    ck_assert_uint_eq(sample.field[1].bytes, sizeof(label));
    ck_assert_int_eq(leat_sample_set(&sample, 2, LEAT_BYTES, 1, none, NULL),
                     LEAT_OK);
    ck_assert_uint_eq(sample.field[2].bytes, 0);
}
END_TEST

START_TEST(a_field_that_cannot_be_is_refused_and_changes_nothing)
{
    static const uint8_t data[6];
    const int64_t one[] = {1};
    const int64_t negative[] = {2, -1};
    const int64_t huge[] = {INT64_MAX, INT64_MAX};
    const int64_t half[] = {(int64_t)1 << 62, 2};
    const struct {
        int i;
        int dtype;
        int ndim;
        const int64_t *shape;
        const void *data;
        const char *line;
    } wrong[] = {
        {-1, LEAT_UINT8, 1, one, data, "in order"},
        {2, LEAT_UINT8, 1, one, data, "in order"},
        {LEAT_MAX_FIELDS, LEAT_UINT8, 1, one, data, "in order"},
        {1, 99, 1, one, data, "field 1: unknown dtype 99"},
        {1, LEAT_UINT8, -1, one, data, "ndim is -1"},
        {1, LEAT_UINT8, LEAT_MAX_DIMS + 1, one, data, "ndim is 9"},
        {1, LEAT_UINT8, 1, NULL, data, "without a shape"},
        {1, LEAT_UINT8, 2, negative, data, "dimension 1 is -1"},
        {1, LEAT_UINT8, 2, huge, data, "dimension 1"},
        {1, LEAT_UINT8, 2, half, data, "dimension 1"},
        {1, LEAT_UINT8, 1, one, NULL, "data is NULL"},
    };
    set_one(data);
    const leat_sample before = sample;
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        ck_assert_int_eq(
            leat_sample_set(&sample, wrong[k].i, (leat_dtype)wrong[k].dtype,
                            wrong[k].ndim, wrong[k].shape, wrong[k].data),
            LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), wrong[k].line) != NULL,
                      "%zu: %s", k, leat_last_error());
        ck_assert_mem_eq(&sample, &before, sizeof(sample));
    }
}
END_TEST

/* A buffer for a rare huge sample. Smaller ones stay, and so does one of which
 * samples take an eighth now and then. */
START_TEST(a_large_buffer_that_holds_little_is_freed)
{
    static const struct {
        size_t size, often;
        bool stays;
    } cases[] = {{(size_t)4 << 20, 100, true},
                 {(size_t)16 << 20, 100, false},
                 {(size_t)16 << 20, (size_t)2 << 20, true}};
    for (int i = 0; i < 3; i++) {
        leat_sample one;
        leat_sample_init(&one);
        ck_assert_ptr_nonnull(leat_sample_take(&one, cases[i].size));
        for (int n = 0; n < 100; n++) {
            leat_sample_clear(&one);
            ck_assert_ptr_nonnull(leat_sample_take(
                &one, n % 10 == 9 ? cases[i].often : (size_t)100));
        }
        ck_assert_int_eq(one.buffer_size >= cases[i].size, cases[i].stays);
        leat_sample_finish(&one);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sample");
    TCase *tcase = tcase_create("sample");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_new_sample_is_empty_and_owns_nothing);
    tcase_add_test(tcase, memory_is_taken_aligned_piece_by_piece);
    tcase_add_test(tcase, a_cleared_sample_keeps_its_buffer_and_position);
    tcase_add_test(tcase, a_buffer_that_is_large_enough_stays);
    tcase_add_test(tcase, sizes_that_creep_up_settle_early);
    tcase_add_test(tcase, views_move_with_a_buffer_that_grows);
    tcase_add_test(tcase, short_memory_leaves_the_sample_as_it_was);
    tcase_add_test(tcase, views_of_no_bytes_take_nothing);
    tcase_add_test(tcase, swapped_samples_exchange_all_but_their_positions);
    tcase_add_test(tcase, a_sample_that_is_moved_to_itself_stays);
    tcase_add_test(tcase,
                   a_large_buffer_stays_with_whom_a_small_sample_is_moved_to);
    tcase_add_loop_test(
        tcase, a_large_buffer_stays_where_small_samples_are_exchanged, 0, 3);
    tcase_add_loop_test(tcase, a_buffer_that_a_reader_knows_goes_along, 0, 2);
    tcase_add_test(tcase, an_exchange_that_memory_is_short_for_is_a_swap);
    tcase_add_test(tcase, a_sample_of_any_number_of_fields_is_swapped);
    tcase_add_test(tcase, swapped_buffers_keep_their_allocators);
    tcase_add_test(tcase, a_finished_sample_can_be_used_again);
    tcase_add_test(tcase, a_sample_that_owns_its_views_needs_nothing_else);
    tcase_add_test(tcase, a_sample_that_cannot_own_its_views_stays_as_it_was);
    tcase_add_test(tcase,
                   fields_are_set_in_order_with_the_bytes_of_their_shape);
    tcase_add_test(tcase,
                   a_field_that_cannot_be_is_refused_and_changes_nothing);
    tcase_add_test(tcase, a_large_buffer_that_holds_little_is_freed);
    return suite_run(suite);
}
