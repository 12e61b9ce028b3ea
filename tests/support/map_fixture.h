/* map_fixture.h: chains of decorators over a few samples in memory. */
#ifndef LEAT_TESTS_MAP_FIXTURE_H
#define LEAT_TESTS_MAP_FIXTURE_H

#include <leat/ext/reader.h>

/*
 * Opens "name:arguments | ..." over `count` samples of the fields; NULL: it
 * failed, as leat_last_error says. What the fields describe is borrowed.
 */
leat_reader *map_fixture_open(const leat_memory_field fields[], int nfields,
                              int64_t count, const char *text);

/* The same over any pipeline, which it takes, opened with a seed. */
leat_reader *map_fixture_open_over(leat_pipeline *base, const char *text,
                                   uint64_t seed);

/* Whether the last error line has all of `parts`, which end with NULL. */
int map_fixture_line_has(const char *const parts[]);

/* Asserts that opening fails with a line that has `part`. */
void map_fixture_refuses(const leat_memory_field fields[], int nfields,
                         const char *text, const char *part);

/* Reads the sample at `index` of epoch 0. Returns the status. */
int map_fixture_read(leat_reader *reader, int64_t index, leat_sample *sample);

/* Field `i` as a number, of any type but bytes; element `k` of it. */
double map_fixture_number(const leat_sample *sample, int i, int k);

#endif
