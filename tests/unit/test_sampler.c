/* The samples of each rank, against positions counted one by one. */
#include "layer/sampler.h"
#include "support/suite.h"

#include <check.h>

enum { MOST = 4000 };

static void check_at(leat_position at, int64_t position, int64_t count)
{
    ck_assert_int_eq(at.epoch, position / count);
    ck_assert_int_eq(at.index, position % count);
}

/* One record: whether it is this rank's. */
static bool pass(leat__sampler *self, leat_position *at)
{
    bool is_own = self->skip == 0;
    if (is_own)
        leat__sampler_take(self, 1, at);
    else
        leat__sampler_drop(self, 1);
    return is_own;
}

/* Reads on from where the sampler stands, epoch by epoch, record by record. */
static void check_in_order(leat__sampler *self, int64_t count, int64_t wanted)
{
    for (int n = 0; n < 200; n++) {
        leat_position at;
        while (!pass(self, &at))
            if (self->index == count)
                leat__sampler_next_epoch(self);
        check_at(at, wanted, count);
        wanted += self->step;
        if (self->index == count)
            leat__sampler_next_epoch(self);
    }
}

static void check_by_index(leat__sampler *self, int64_t count, int64_t wanted)
{
    for (int n = 0; n < 200; n++) {
        leat_position at;
        leat__sampler_jump(self, count);
        ck_assert(pass(self, &at));
        check_at(at, wanted, count);
        wanted += self->step;
    }
}

/* The position of batch `k`, and where it stands in its epoch. */
static leat__position begin_of(int k, int batch, int step, int64_t count)
{
    int64_t position = (int64_t)k * batch * step;
    return (leat__position){position, position / count, position % count};
}

static const struct {
    int batch;
    int step;
    int count;
} cases[] = {{1, 1, 1}, {4, 1, 10}, {3, 2, 10}, {3, 2, 7},
             {5, 3, 4}, {2, 4, 64}, {7, 5, 1}};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

START_TEST(each_rank_takes_its_positions_from_any_batch_on)
{
    int batch = cases[_i].batch, step = cases[_i].step;
    int count = cases[_i].count;
    for (int rank = 0; rank < step; rank++)
        for (int k = 0; k < 12; k++) {
            leat__sampler self;
            leat__sampler_init(&self, batch, rank, step);
            leat__position start = begin_of(k, batch, step, count);
            int64_t first = start.position + rank;
            ck_assert_int_eq(leat__sampler_before(&self, &start),
                             start.position / step);
            leat__sampler_seek(&self, &start, count);
            check_in_order(&self, count, first);
            leat__sampler_seek(&self, &start, count);
            check_by_index(&self, count, first);
            leat__sampler_rewind(&self, &start);
            ck_assert_int_eq(self.index, 0);
            ck_assert_int_eq(self.epoch, start.epoch);
            check_in_order(&self, count, first);
        }
}
END_TEST

START_TEST(every_rank_agrees_where_a_batch_ends)
{
    int batch = cases[_i].batch, step = cases[_i].step;
    int count = cases[_i].count;
    for (int rank = 0; rank < step; rank++) {
        leat__sampler self;
        leat__sampler_init(&self, batch, rank, step);
        for (int k = 1; k < 20; k++) {
            leat__position after = {-1, -1, -1};
            for (int n = 0; n < batch; n++) {
                leat_position at;
                ck_assert_int_eq(leat__sampler_room(&self, MOST), batch - n);
                ck_assert_int_eq(leat__sampler_room(&self, 1), 1);
                leat__sampler_jump(&self, count);
                ck_assert(pass(&self, &at));
                ck_assert(leat__sampler_hand_out(&self, 1, &after) ==
                          (n == batch - 1));
            }
            int64_t wanted = (int64_t)k * batch * step;
            ck_assert_int_eq(after.position, wanted);
            /* Epoch and index may be those of the rank's last sample. */
            ck_assert_int_eq(after.epoch * count + after.index, wanted);
        }
    }
}
END_TEST

/* The model: what the batch after `place` covers, of all ranks. */
static void batch_after(int i, leat_epoch_end epoch_end, int64_t place,
                        int64_t *begin, int64_t *end)
{
    int64_t all = (int64_t)cases[i].batch * cases[i].step;
    int64_t left = cases[i].count - place % cases[i].count;
    *begin = place;
    if (left < all && epoch_end == LEAT_EPOCH_END_DROP)
        *begin = place + left;
    *end = *begin + all;
    if (left < all && epoch_end != LEAT_EPOCH_END_DROP)
        *end = place + left;
}

/* One batch by index, from `begin` to `end`; where the model says it ends. */
static void check_own(leat__sampler *self, int64_t count, int64_t begin,
                      int64_t end)
{
    leat__position after = {-1, -1, -1};
    leat_position at;
    bool is_over = self->size == 0;
    if (is_over)
        ck_assert(leat__sampler_hand_out(self, 0, &after));
    for (int64_t p = begin; p < end; p++) {
        if (p % self->step != self->rank)
            continue;
        ck_assert(!is_over);
        ck_assert_int_eq(leat__sampler_ordinal(self), p / self->step);
        leat__sampler_jump(self, count);
        leat__sampler_take(self, 1, &at);
        check_at(at, p, count);
        is_over = leat__sampler_hand_out(self, 1, &after);
    }
    ck_assert(is_over);
    ck_assert_int_eq(after.position, end);
    ck_assert_int_eq(after.epoch * count + after.index, end);
    ck_assert_int_gt(after.index, 0);
}

START_TEST(batches_end_with_their_epoch)
{
    int step = cases[_i].step, count = cases[_i].count;
    for (int end_of = LEAT_EPOCH_END_DROP; end_of <= LEAT_EPOCH_END_PAD;
         end_of++) {
        if (end_of == LEAT_EPOCH_END_DROP && count < cases[_i].batch * step)
            continue;
        for (int rank = 0; rank < step; rank++) {
            leat__sampler self;
            int64_t begin, end = 0;
            leat__sampler_init(&self, cases[_i].batch, rank, step);
            leat__sampler_end_epochs(&self, (leat_epoch_end)end_of, count);
            for (int k = 0; k < 20; k++) {
                int64_t place = end;
                batch_after(_i, (leat_epoch_end)end_of, place, &begin, &end);
                ck_assert_int_eq(self.window.position, begin);
                ck_assert(self.follows_gap == (begin > place));
                check_own(&self, count, begin, end);
            }
        }
    }
}
END_TEST

/* Every rank reads up to the same record of each batch, or the epoch's end. */
START_TEST(where_the_length_is_unknown_all_ranks_find_the_end_in_one_batch)
{
    int step = cases[_i].step, count = cases[_i].count;
    for (int rank = 0; rank < step; rank++) {
        leat__sampler self;
        leat__position after;
        leat_position at;
        int64_t begin, end = 0;
        leat__sampler_init(&self, cases[_i].batch, rank, step);
        leat__sampler_end_epochs(&self, LEAT_EPOCH_END_PARTIAL, 0);
        for (int k = 0; k < 20; k++) {
            int n = 0;
            bool is_cut = false;
            batch_after(_i, LEAT_EPOCH_END_PARTIAL, end, &begin, &end);
            while (!is_cut && leat__sampler_span(&self, n, self.size - n) > 0) {
                if (self.index == count) {
                    is_cut = leat__sampler_is_cut(&self);
                    leat__sampler_next_epoch(&self);
                } else if (self.skip > 0) {
                    leat__sampler_drop(&self, 1);
                } else {
                    leat__sampler_take(&self, 1, &at);
                    n++;
                }
            }
            if (is_cut)
                leat__sampler_end(&self, &after);
            else
                ck_assert(leat__sampler_hand_out(&self, n, &after));
            ck_assert_int_eq(self.cursor, end);
            ck_assert_int_eq(after.position, end);
            ck_assert_int_eq(after.epoch * count + after.index, end);
        }
    }
}
END_TEST

START_TEST(records_taken_or_dropped_together_are_those_one_by_one)
{
    leat__sampler one, many;
    leat_position at[8], single;
    const leat__position start = {100, 3, 10};
    leat__sampler_init(&one, 10, 0, 1);
    leat__sampler_rewind(&one, &start);
    many = one;
    leat__sampler_drop(&many, 7);
    leat__sampler_drop(&many, 3);
    leat__sampler_take(&many, 8, at);
    for (int n = 0; n < 10; n++)
        ck_assert(!pass(&one, &single));
    for (int n = 0; n < 8; n++) {
        ck_assert(pass(&one, &single));
        ck_assert_int_eq(at[n].epoch, single.epoch);
        ck_assert_int_eq(at[n].index, single.index);
    }
    ck_assert_int_eq(many.cursor, one.cursor);
    ck_assert_int_eq(many.index, one.index);
    ck_assert_int_eq(many.skip, one.skip);
}
END_TEST

START_TEST(a_pass_that_ends_is_found_ended_again)
{
    leat__sampler self;
    leat__position after;
    leat_position at;
    leat__sampler_init(&self, 4, 1, 2);
    for (int n = 0; n < 7; n++)
        if (pass(&self, &at))
            (void)leat__sampler_hand_out(&self, 1, &after);
    leat__sampler_end(&self, &after);
    /* Where the other rank stands, whose last batch may be whole. */
    ck_assert_int_eq(after.position, 2 * 4);
    ck_assert_int_eq(after.epoch, 0);
    ck_assert_int_eq(after.index, 2 * 4);
    ck_assert_int_eq(self.in_batch, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *tcase = tcase_create("sampler");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_rank_takes_its_positions_from_any_batch_on,
                        0, CASES);
    tcase_add_loop_test(tcase, every_rank_agrees_where_a_batch_ends, 0, CASES);
    tcase_add_loop_test(tcase, batches_end_with_their_epoch, 0, CASES);
    tcase_add_loop_test(
        tcase, where_the_length_is_unknown_all_ranks_find_the_end_in_one_batch,
        0, CASES);
    tcase_add_test(tcase,
                   records_taken_or_dropped_together_are_those_one_by_one);
    tcase_add_test(tcase, a_pass_that_ends_is_found_ended_again);
    return suite_run(suite);
}
