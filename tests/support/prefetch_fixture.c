#include "support/prefetch_fixture.h"

#include <leat/decorators.h>

#include <check.h>
#include <sched.h>
#include <string.h>

leat_reader *prefetch_open_over(leat_pipeline *upstream, int64_t samples,
                                int threads, bool unordered)
{
    leat_prefetch_options options = LEAT_PREFETCH_OPTIONS_INIT;
    leat_pipeline *pipeline;
    leat_reader *reader;
    options.samples = samples;
    options.threads = threads;
    options.unordered = unordered;
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    ck_assert_msg(leat_pipeline_open(pipeline, &reader) == LEAT_OK, "%s",
                  leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

leat_reader *prefetch_open_source(scripted_source *source, int64_t samples,
                                  int threads)
{
    return prefetch_open_over(scripted_source_pipeline(source), samples,
                              threads, false);
}

int prefetch_label(const leat_sample *sample)
{
    int32_t value;
    memcpy(&value, sample->field[sample->nfields - 1].data, sizeof(value));
    return value;
}

void prefetch_expect(leat_reader *reader, leat_sample *sample, int wanted)
{
    int status = leat_reader_next(reader, sample);
    ck_assert_msg(status == LEAT_OK, "%d: %s", wanted, leat_last_error());
    ck_assert_int_eq(prefetch_label(sample), wanted);
}

void prefetch_expect_rest(leat_reader *reader, leat_sample *sample, int first,
                          int count)
{
    for (int i = first; i < count; i++)
        prefetch_expect(reader, sample, i);
    ck_assert_int_eq(leat_reader_next(reader, sample), LEAT_END);
    ck_assert_int_eq(leat_reader_next(reader, sample), LEAT_END);
}

int prefetch_seek(leat_reader *reader, int64_t epoch, int64_t index)
{
    return leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
}

void prefetch_await_given(scripted_source *source, int wanted)
{
    int given = 0;
    while (given < wanted) {
        sched_yield();
        pthread_mutex_lock(&source->lock);
        given = source->given;
        pthread_mutex_unlock(&source->lock);
    }
}
