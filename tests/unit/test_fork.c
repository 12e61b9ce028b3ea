/* test_fork.c: a forked child is told from its parent. */
#include "base/fork.h"
#include "support/suite.h"

#include <leat/status.h>

#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_child_is_of_another_generation)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    unsigned parent = leat__fork_generation();
    pid_t child = fork();
    if (child == 0)
        _exit(leat__fork_generation() == parent + 1 ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(leat__fork_generation(), parent);
}
END_TEST

START_TEST(watching_twice_counts_once)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    unsigned parent = leat__fork_generation();
    pid_t child = fork();
    if (child == 0)
        _exit(leat__fork_generation() == parent + 1 ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tcase = tcase_create("fork");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_child_is_of_another_generation);
    tcase_add_test(tcase, watching_twice_counts_once);
    return suite_run(suite);
}
