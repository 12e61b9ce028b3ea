/* suite.h: runs a program's tests. */
#ifndef LEAT_TESTS_SUITE_H
#define LEAT_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs the suite and frees it; what main returns. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
