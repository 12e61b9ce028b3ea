#include "layer/sampler.h"

#include <string.h>

void leat__sampler_init(leat__sampler *self, int batch_size, int rank, int step)
{
    memset(self, 0, sizeof(*self));
    self->batch_size = batch_size;
    self->rank = rank;
    self->step = step;
    self->skip = rank;
}

/* This rank's first position at or after `position`. */
static int64_t first_own(const leat__sampler *self, int64_t position)
{
    int64_t over = position % self->step;
    return position + (self->rank - over + self->step) % self->step;
}

void leat__sampler_rewind(leat__sampler *self, const leat__position *start)
{
    self->window = *start;
    self->cursor = start->position - start->index;
    self->epoch = start->epoch;
    self->index = 0;
    self->skip = first_own(self, start->position) - self->cursor;
    self->in_batch = 0;
}

void leat__sampler_seek(leat__sampler *self, const leat__position *start,
                        int64_t count)
{
    leat__sampler_rewind(self, start);
    self->cursor = start->position;
    self->epoch = start->position / count;
    self->index = start->position % count;
    self->skip = first_own(self, start->position) - self->cursor;
}

int64_t leat__sampler_before(const leat__sampler *self,
                             const leat__position *start)
{
    return (first_own(self, start->position) - self->rank) / self->step;
}

int leat__sampler_room(const leat__sampler *self, int most)
{
    int room = self->batch_size - self->in_batch;
    return room < most ? room : most;
}

bool leat__sampler_pass(leat__sampler *self, int64_t *epoch, int64_t *index)
{
    int64_t passed = self->index++;
    self->cursor++;
    if (self->skip > 0) {
        self->skip--;
        return false;
    }
    *epoch = self->epoch;
    *index = passed;
    self->skip = self->step - 1;
    return true;
}

void leat__sampler_drop(leat__sampler *self, int64_t n)
{
    self->index += n;
    self->cursor += n;
    self->skip -= n;
}

void leat__sampler_take(leat__sampler *self, int n, int64_t epoch[],
                        int64_t index[])
{
    for (int i = 0; i < n; i++) {
        epoch[i] = self->epoch;
        index[i] = self->index + i;
    }
    self->index += n;
    self->cursor += n;
}

void leat__sampler_jump(leat__sampler *self, int64_t count)
{
    int64_t to = self->index + self->skip;
    self->epoch += to / count;
    self->index = to % count;
    self->cursor += self->skip;
    self->skip = 0;
}

void leat__sampler_next_epoch(leat__sampler *self)
{
    self->epoch++;
    self->index = 0;
}

bool leat__sampler_hand_out(leat__sampler *self, int n, leat__position *after)
{
    self->in_batch += n;
    if (self->in_batch < self->batch_size)
        return false;
    self->window.position += (int64_t)self->batch_size * self->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index + self->window.position - self->cursor;
    self->in_batch = 0;
    *after = self->window;
    return true;
}

void leat__sampler_end(leat__sampler *self, leat__position *after)
{
    self->window.position += (int64_t)self->in_batch * self->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index;
    self->in_batch = 0;
    *after = self->window;
}
