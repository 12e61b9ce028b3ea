/* prefetch_fixture.h: opens readers of prefetch, and expects what they give. */
#ifndef LEAT_TESTS_PREFETCH_FIXTURE_H
#define LEAT_TESTS_PREFETCH_FIXTURE_H

#include "support/scripted_source.h"

#include <leat.h>

#include <stdbool.h>

/* A reader over `upstream`, whose reference is taken. */
leat_reader *prefetch_open_over(leat_pipeline *upstream, int64_t samples,
                                int threads, bool unordered);
leat_reader *prefetch_open_source(scripted_source *source, int64_t samples,
                                  int threads);

int prefetch_seek(leat_reader *reader, int64_t epoch, int64_t index);

/* The number in a sample's last field. */
int prefetch_label(const leat_sample *sample);

/* Reads the sample of that number; or those up to `count`, and the end. */
void prefetch_expect(leat_reader *reader, leat_sample *sample, int wanted);
void prefetch_expect_rest(leat_reader *reader, leat_sample *sample, int first,
                          int count);

/* Waits until the source has given that many. */
void prefetch_await_given(scripted_source *source, int wanted);

#endif
