/* jobs.h: all that leat makes, each made, used and undone in one function. */
#ifndef LEAT_TESTS_JOBS_H
#define LEAT_TESTS_JOBS_H

/* Directories and files that the jobs use; aborts the test on failure. */
void jobs_begin(void);
void jobs_end(void);

/* Where they lie. */
const char *jobs_directory(void);

/*
 * Runs a job: LEAT_OK once everything went as it should, which is looked at, or
 * the first error. Nothing is left in either case.
 */
typedef struct job {
    const char *name;
    int (*run)(void);
} job;

extern const job jobs[];
extern const int jobs_count;

#endif
