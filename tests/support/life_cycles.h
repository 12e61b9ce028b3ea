/* life_cycles.h: all that leat makes, each made, used and undone in one
 * function. */
#ifndef LEAT_TESTS_LIFE_CYCLES_H
#define LEAT_TESTS_LIFE_CYCLES_H

/* Directories and files that they use; aborts the test on failure. */
void life_cycles_begin(void);
void life_cycles_end(void);

/* Where they lie. */
const char *life_cycles_directory(void);

/*
 * Runs one: LEAT_OK once everything went as it should, which is looked at, or
 * the first error. Nothing is left in either case.
 */
typedef struct life_cycle {
    const char *name;
    int (*run)(void);
} life_cycle;

extern const life_cycle life_cycles[];
extern const int life_cycles_count;

#endif
