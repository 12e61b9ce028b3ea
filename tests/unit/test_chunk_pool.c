/* How many chunks a thread may fill, by what their samples take. */
#include "data/sample.h"
#include "layer/chunk_pool.h"
#include "support/suite.h"

#include <check.h>

enum { CHUNKS = 4, SAMPLES = 3, SMALL = 256, LARGE = 1 << 16 };

static leat__chunk_pool pool;

static void set_up(void)
{
    const leat__chunk_pool_options options = {.n = CHUNKS,
                                              .capacity = SAMPLES,
                                              .sample_buffer = SMALL,
                                              .part = SAMPLES * SMALL,
                                              .most = 2 * LARGE,
                                              .least = 2};
    pool = (leat__chunk_pool){0};
    ck_assert_int_eq(leat__chunk_pool_create(&pool, &options), LEAT_OK);
    ck_assert_int_eq(leat__chunk_pool_open(&pool), LEAT_OK);
}

static void tear_down(void)
{
    leat__chunk_pool_destroy(&pool);
}

static size_t held(const leat__chunk *chunk)
{
    size_t bytes = 0;
    for (int i = 0; i < chunk->capacity; i++)
        bytes += chunk->sample[i]->buffer_size;
    return bytes;
}

/* Takes a chunk, of which a sample has so many bytes. */
static leat__chunk *fill(size_t bytes)
{
    leat__chunk *chunk;
    ck_assert_int_eq(leat__chunk_pool_take(&pool, &chunk), LEAT_OK);
    ck_assert_ptr_nonnull(leat_sample_take(chunk->sample[0], bytes));
    chunk->n = 1;
    chunk->is_used = true;
    chunk->is_full = held(chunk) > pool.part;
    leat__chunk_pool_count(&pool, chunk);
    return chunk;
}

static void give(leat__chunk *chunk)
{
    leat__chunk_recycle(chunk);
    leat__chunk_pool_give(&pool, chunk);
}

/* Whether another chunk has to come back before one is to be had. */
static bool is_empty(void)
{
    leat__chunk *chunk;
    leat__chunk_pool_close(&pool);
    return leat__chunk_pool_take(&pool, &chunk) == LEAT_ECANCELLED;
}

START_TEST(all_chunks_of_short_records_are_filled)
{
    for (int i = 0; i < CHUNKS; i++)
        ck_assert_uint_eq(held(fill(SMALL)), SAMPLES * SMALL);
    ck_assert_uint_eq(pool.held, CHUNKS * SAMPLES * SMALL);
    ck_assert(is_empty());
}
END_TEST

START_TEST(long_records_leave_chunks_empty)
{
    for (int i = 0; i < 3; i++)
        fill(LARGE);
    ck_assert_uint_gt(pool.held, pool.most);
    ck_assert(is_empty());
    /* The last one may be used next, the others have no buffers. */
    ck_assert_int_eq(pool.nspare, 1);
}
END_TEST

START_TEST(so_many_are_filled_however_long_they_are)
{
    fill(4 * LARGE);
    ck_assert(!is_empty());
    fill(4 * LARGE);
}
END_TEST

/* That one comes back lets one be filled, in its own buffers. */
START_TEST(a_chunk_that_comes_back_is_filled_again)
{
    leat__chunk *chunk[3];
    for (int i = 0; i < 3; i++)
        chunk[i] = fill(LARGE);
    for (int i = 0; i < 9; i++) {
        give(chunk[i % 3]);
        ck_assert_ptr_eq(fill(LARGE), chunk[i % 3]);
        ck_assert_int_eq(pool.nspare, 1);
        ck_assert_uint_eq(held(pool.spare[0]), 0);
    }
    size_t bytes = 0;
    for (int i = 0; i < CHUNKS; i++)
        bytes += held(pool.list.chunk[i]);
    ck_assert_uint_le(bytes, pool.held);
}
END_TEST

/* Short records again, for which the first ones after long ones have large
 * buffers, which go then. */
START_TEST(after_long_records_all_chunks_are_filled)
{
    leat__chunk *chunk[3];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 3; i++)
            chunk[i] = fill(turn == 0 ? LARGE : SMALL);
        for (int i = 0; i < 3; i++)
            give(chunk[i]);
    }
    for (int i = 0; i < CHUNKS; i++)
        fill(SMALL);
    ck_assert_uint_le(pool.held, CHUNKS * SAMPLES * SMALL);
    ck_assert(is_empty());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chunk_pool");
    TCase *tcase = tcase_create("chunk_pool");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, all_chunks_of_short_records_are_filled);
    tcase_add_test(tcase, long_records_leave_chunks_empty);
    tcase_add_test(tcase, so_many_are_filled_however_long_they_are);
    tcase_add_test(tcase, a_chunk_that_comes_back_is_filled_again);
    tcase_add_test(tcase, after_long_records_all_chunks_are_filled);
    return suite_run(suite);
}
