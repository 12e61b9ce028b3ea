/* decorator_chain.h: chains of decorators over a pipeline made by code. */
#ifndef LEAT_TESTS_DECORATOR_CHAIN_H
#define LEAT_TESTS_DECORATOR_CHAIN_H

#include <leat.h>

/*
 * The pipeline of a text such as "shuffle | take:3" over `base`, which it
 * takes. The base is written {} where it does not come first: "({}) ({} |
 * take:3) | chain". NULL, with a line of leat_last_error, if it cannot be made.
 */
leat_pipeline *decorator_chain_make(const char *text, leat_pipeline *base);

#endif
