#include "support/scripted_source.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static int source_open(void *user, void **pass)
{
    scripted_source *self = user;
    pthread_mutex_lock(&self->lock);
    self->next = 0;
    self->cancelled = 0;
    self->opened++;
    pthread_mutex_unlock(&self->lock);
    *pass = self;
    return LEAT_OK;
}

static int fill(const scripted_source *self, int64_t i, leat_sample *sample)
{
    float *values = leat_sample_take(sample, 64);
    if (!values)
        return LEAT_ENOMEM;
    int32_t *label = (int32_t *)((char *)values + 32);
    values[0] = (float)i;
    values[1] = (float)i;
    *label = (int32_t)i;
    const int64_t shape[] = {i == self->larger ? 2 : 1};
    int status = leat_sample_set(sample, 0, LEAT_FLOAT32, 1, shape, values);
    return status ? status
                  : leat_sample_set(sample, 1, LEAT_INT32, 0, NULL, label);
}

static int next_locked(scripted_source *self, leat_sample *sample)
{
    int64_t i = self->next;
    while (i == self->blocks && !self->cancelled) {
        self->blocked = 1;
        pthread_cond_broadcast(&self->changed);
        pthread_cond_wait(&self->changed, &self->lock);
    }
    if (self->cancelled)
        return leat_error(LEAT_ECANCELLED, "source: cancelled");
    if (i == self->count)
        return LEAT_END;
    if (self->broken >= 0 && i >= self->broken)
        return leat_error(LEAT_EIO, "source: the storage failed at %lld",
                          (long long)i);
    self->next++;
    if (i == self->bad)
        return leat_error(LEAT_EDATA, "source: record %lld is bad",
                          (long long)i);
    return fill(self, i, sample);
}

static int source_next(void *pass, leat_sample *sample)
{
    scripted_source *self = pass;
    pthread_mutex_lock(&self->lock);
    int status = next_locked(self, sample);
    self->given += status == LEAT_OK;
    pthread_mutex_unlock(&self->lock);
    return status;
}

static int source_reset(void *pass)
{
    scripted_source *self = pass;
    pthread_mutex_lock(&self->lock);
    bool is_bad = self->resets < self->bad_resets;
    self->next = 0;
    self->resets++;
    pthread_mutex_unlock(&self->lock);
    return is_bad ? leat_error(LEAT_EIO, "source: cannot begin again")
                  : LEAT_OK;
}

static void source_cancel(void *pass)
{
    scripted_source *self = pass;
    pthread_mutex_lock(&self->lock);
    self->cancelled = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

void scripted_source_await_blocked(scripted_source *self)
{
    pthread_mutex_lock(&self->lock);
    while (!self->blocked)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

int scripted_source_try_pipeline(leat_pipeline **out, scripted_source *self)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .ndim = 1, .shape = {-1}},
        {.name = "label", .dtype = LEAT_INT32},
    };
    leat_callbacks callbacks = {
        .size = sizeof(callbacks),
        .name = "source",
        .fields = fields,
        .nfields = 2,
        .open = source_open,
        .next = source_next,
        .reset = self->single_pass ? NULL : source_reset,
        .cancel = source_cancel,
    };
    return leat_pipeline_callback(out, &callbacks, self);
}

leat_pipeline *scripted_source_pipeline(scripted_source *self)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(scripted_source_try_pipeline(&pipeline, self), LEAT_OK);
    return pipeline;
}

int scripted_source_one_float(void *pass, leat_sample *sample)
{
    static const float value = 1;
    (void)pass;
    return leat_sample_set(sample, 0, LEAT_FLOAT32, 0, NULL, &value);
}

static int slow_next(void *pass, leat_sample *sample)
{
    static const float value = 1;
    const long *nanoseconds = pass;
    const struct timespec pause = {.tv_nsec = *nanoseconds};
    nanosleep(&pause, NULL);
    sample->nfields = 2;
    for (int i = 0; i < 2; i++)
        sample->field[i] = (leat_field){
            .dtype = LEAT_FLOAT32, .data = &value, .bytes = sizeof(value)};
    return LEAT_OK;
}

leat_pipeline *scripted_source_slow_pipeline(long *pause)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32},
        {.name = "label", .dtype = LEAT_FLOAT32},
    };
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .next = slow_next};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, pause),
                     LEAT_OK);
    return pipeline;
}
