/* example_oracle.h: what protobuf-c reads of an Example, as the fields that a
 * plan makes of it. */
#ifndef LEAT_TESTS_EXAMPLE_ORACLE_H
#define LEAT_TESTS_EXAMPLE_ORACLE_H

#include "data/example_plan.h"

/* What became of a comparison. */
typedef enum oracle_verdict {
    ORACLE_DISAGREES, /* a fault of leat's, or of protobuf-c's */
    ORACLE_BOTH_READ, /* the same values */
    ORACLE_BOTH_REFUSE,
    ORACLE_IS_NONE /* protobuf-c reads such a message in a way of its own */
} oracle_verdict;

/*
 * Reads the message by the plan and by protobuf-c, and compares. *what is where
 * they disagree, or else what leat says.
 *
 * Only the entries that the plan asks for are given to protobuf-c, of each key
 * the last, as leat reads no other. It is none where a Feature has two kinds or
 * lists, which protobuf-c does not merge; where there is a group, which it does
 * not know; and for field number 0, which it takes.
 */
oracle_verdict example_oracle_compare(const leat__example_plan *plan,
                                      int is_sequence, const void *message,
                                      size_t size, const char **what);

/*
 * Whether the list of the message's features is one that can be: as long for
 * any room, each within the message and found by its name. *what: where not.
 */
int example_oracle_lists(const void *message, size_t size, const char **what);

#endif
