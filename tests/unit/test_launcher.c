#include "support/suite.h"

#include <check.h>
#include <leat.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = {"RANK",
                                    "WORLD_SIZE",
                                    "OMPI_COMM_WORLD_RANK",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_NUM_TASKS"};

/* The tests may have been started by such a launcher themselves. */
static void forget_launcher(void)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        ck_assert_int_eq(unsetenv(known[i]), 0);
}

static void put(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

static void check_ranks(int rank, int world_size)
{
    int got_rank = -1, got_size = -1;
    int status = leat_launcher_ranks(&got_rank, &got_size);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(got_rank, rank);
    ck_assert_int_eq(got_size, world_size);
}

static void check_refusal(const char *text)
{
    int rank = 7, size = 9;
    ck_assert_int_eq(leat_launcher_ranks(&rank, &size), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "%s",
                  leat_last_error());
    ck_assert_int_eq(rank, 7);
    ck_assert_int_eq(size, 9);
}

START_TEST(without_a_launcher_it_is_rank_0_of_1)
{
    check_ranks(0, 1);
    /* A batch script of Slurm, which has its tasks' number too. */
    put("SLURM_PROCID", "0");
    put("SLURM_NTASKS", "4");
    check_ranks(0, 1);
}
END_TEST

START_TEST(the_innermost_launcher_wins)
{
    put("SLURM_PROCID", "1");
    put("SLURM_STEP_NUM_TASKS", "2");
    check_ranks(1, 2);
    put("PMI_RANK", "2");
    put("PMI_SIZE", "3");
    check_ranks(2, 3);
    put("OMPI_COMM_WORLD_RANK", "3");
    put("OMPI_COMM_WORLD_SIZE", "4");
    check_ranks(3, 4);
    put("RANK", "4");
    put("WORLD_SIZE", "5");
    check_ranks(4, 5);
}
END_TEST

START_TEST(half_of_a_pair_is_refused)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        put(known[i], "1");
        check_refusal(known[i]);
        check_refusal("not ");
        forget_launcher();
    }
}
END_TEST

START_TEST(what_is_no_rank_is_refused)
{
    static const char *const ranks[] = {
        "", "x", "-1", "+0", " 0", "0 ", "1.0", "2", "99999999999999999999"};
    static const char *const sizes[] = {"", "x", "-2", "0", "2147483648"};
    put("WORLD_SIZE", "2");
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        put("RANK", ranks[i]);
        check_refusal("RANK=");
    }
    put("RANK", "0");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        put("WORLD_SIZE", sizes[i]);
        check_refusal("WORLD_SIZE=");
    }
    ck_assert_int_eq(leat_launcher_ranks(NULL, NULL), LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launcher");
    TCase *tests = tcase_create("launcher");
    tcase_add_checked_fixture(tests, forget_launcher, forget_launcher);
    tcase_add_test(tests, without_a_launcher_it_is_rank_0_of_1);
    tcase_add_test(tests, the_innermost_launcher_wins);
    tcase_add_test(tests, half_of_a_pair_is_refused);
    tcase_add_test(tests, what_is_no_rank_is_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
