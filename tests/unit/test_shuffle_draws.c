#include "base/clock.h"
#include "decorators/shuffle/shuffle_draws.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { SIZE_MAX_TESTED = 64 };

/* A buffer that is played from its begin. */
typedef struct model {
    leat__shuffle_draws draws;
    int64_t slot[SIZE_MAX_TESTED];
    int64_t inputs, taken, t;
    int n;
} model;

static void begin(model *self, int size, int64_t inputs, int64_t epoch)
{
    leat__shuffle_draws_init(&self->draws, 99, epoch);
    self->inputs = inputs;
    self->taken = self->t = 0;
    for (self->n = 0; self->n < size && self->taken < inputs; self->n++)
        self->slot[self->n] = self->taken++;
}

static int64_t take(model *self)
{
    uint32_t at =
        leat__shuffle_draw(&self->draws, self->t++, (uint32_t)self->n);
    int64_t given = self->slot[at];
    if (self->taken < self->inputs)
        self->slot[at] = self->taken++;
    else
        self->slot[at] = self->slot[--self->n];
    return given;
}

static void compare(const model *self, int size, int64_t inputs)
{
    leat__shuffle_held held[SIZE_MAX_TESTED];
    int32_t work[SIZE_MAX_TESTED];
    leat__shuffle_draws draws;
    leat__shuffle_draws_init(&draws, 99, self->draws.epoch);
    int n = leat__shuffle_walk(&draws, self->t, size, inputs, held, work);
    ck_assert_int_eq(n, self->n);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(self->slot[held[i].slot], held[i].input);
        ck_assert(i == 0 || held[i - 1].input < held[i].input);
    }
}

START_TEST(walking_back_finds_what_playing_gives)
{
    static const int sizes[] = {1, 2, 3, 7, 16, SIZE_MAX_TESTED};
    static const int lengths[] = {0, 1, 2, 6, 7, 8, 30, 64, 65, 500};
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 10; i++) {
            model self;
            begin(&self, sizes[k], lengths[i], i);
            for (int t = 0; t <= lengths[i]; t++) {
                compare(&self, sizes[k], lengths[i]);
                if (self.taken < self.inputs && self.t + sizes[k] < lengths[i])
                    compare(&self, sizes[k], -1);
                if (t < lengths[i])
                    take(&self);
            }
        }
    }
}
END_TEST

START_TEST(every_input_comes_once_within_the_window)
{
    for (int size = 1; size <= SIZE_MAX_TESTED; size += 9) {
        char seen[300] = {0};
        model self;
        begin(&self, size, 300, 4);
        for (int64_t k = 0; k < 300; k++) {
            int64_t given = take(&self);
            ck_assert_int_lt(given, k + size);
            ck_assert_int_eq(seen[given]++, 0);
        }
    }
}
END_TEST

START_TEST(a_large_buffer_is_found_soon)
{
    enum { SIZE = 100000 };
    leat__shuffle_held *held = malloc(SIZE * sizeof(*held));
    int32_t *work = malloc(SIZE * sizeof(*work));
    leat__shuffle_draws draws;
    leat__shuffle_draws_init(&draws, 5, 0);
    double begun = leat__clock_seconds();
    ck_assert_int_eq(
        leat__shuffle_walk(&draws, 100000000, SIZE, -1, held, work), SIZE);
    double took = leat__clock_seconds() - begun;
    ck_assert_int_lt(held[SIZE - 1].input, 100000000 + SIZE);
    ck_assert_int_gt(held[0].input, 100000000 - 40 * SIZE);
    /* 20 ms are the aim, on a machine that has nothing else to do. */
    ck_assert_msg(took < 2, "%g s", took);
    free(held);
    free(work);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shuffle_draws");
    TCase *all = tcase_create("shuffle_draws");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, walking_back_finds_what_playing_gives);
    tcase_add_test(all, every_input_comes_once_within_the_window);
    tcase_add_test(all, a_large_buffer_is_found_soon);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
