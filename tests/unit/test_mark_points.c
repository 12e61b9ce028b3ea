/* Where a test ended that a signal ends: support/mark_points.c. */
#include "support/sanitizer.h"
#include "support/suite.h"

#include <signal.h>

enum { LAST = __LINE__ + 6 }; /* the assertion before the signal */

START_TEST(holds_often_and_dies)
{
    for (int i = 0; i < 1000; i++)
        ck_assert_int_ge(i, 0);
    ck_assert_int_gt(_i, 0);
    raise(_i);
}
END_TEST

START_TEST(the_last_assertion_before_a_signal_is_told)
{
    static const int numbers[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    Suite *suite = suite_create("dies");
    TCase *tcase = tcase_create("dies");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, holds_often_and_dies, numbers[_i],
                        numbers[_i] + 1);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_SILENT);
    ck_assert_int_eq(srunner_ntests_failed(runner), 1);
    TestResult **failures = srunner_failures(runner);
    ck_assert_int_eq(tr_rtype(failures[0]), CK_ERROR);
    ck_assert_int_eq(tr_lno(failures[0]), LAST);
    free(failures);
    srunner_free(runner);
}
END_TEST

int main(void)
{
    if (IS_SANITIZED) {
        printf("skipped: a sanitizer prints the stack instead\n");
        return 77;
    }
    Suite *suite = suite_create("mark_points");
    TCase *tcase = tcase_create("mark_points");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, the_last_assertion_before_a_signal_is_told, 0,
                        5);
    return suite_run(suite);
}
