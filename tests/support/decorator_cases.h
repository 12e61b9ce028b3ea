/* decorator_cases.h: a text for each form of each decorator of leat. */
#ifndef LEAT_TESTS_DECORATOR_CASES_H
#define LEAT_TESTS_DECORATOR_CASES_H

/* Over one upstream reader of samples with `data` and `label`. */
static const char *const decorator_cases[] = {
    "take:20",
};

#endif
