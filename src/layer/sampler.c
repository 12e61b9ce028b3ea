#include "layer/sampler.h"

#include <string.h>

void leat__sampler_init(leat__sampler *sampler, int batch_size, int rank,
                        int step)
{
    memset(sampler, 0, sizeof(*sampler));
    sampler->batch_size = batch_size;
    sampler->rank = rank;
    sampler->step = step;
    sampler->skip = rank;
}

/* This rank's first position at or after `position`. */
static int64_t first_own(const leat__sampler *sampler, int64_t position)
{
    int64_t over = position % sampler->step;
    return position + (sampler->rank - over + sampler->step) % sampler->step;
}

void leat__sampler_rewind(leat__sampler *sampler, const leat__position *start)
{
    sampler->window = *start;
    sampler->cursor = start->position - start->index;
    sampler->epoch = start->epoch;
    sampler->index = 0;
    sampler->skip = first_own(sampler, start->position) - sampler->cursor;
    sampler->in_batch = 0;
}

void leat__sampler_at(leat__sampler *sampler, const leat__position *start)
{
    leat__sampler_rewind(sampler, start);
    sampler->cursor = start->position;
    sampler->index = start->index;
    sampler->skip = first_own(sampler, start->position) - sampler->cursor;
}

void leat__sampler_seek(leat__sampler *sampler, const leat__position *start,
                        int64_t count)
{
    leat__sampler_at(sampler, start);
    sampler->epoch = start->position / count;
    sampler->index = start->position % count;
}

int64_t leat__sampler_before(const leat__sampler *sampler,
                             const leat__position *start)
{
    return (first_own(sampler, start->position) - sampler->rank) /
           sampler->step;
}

int leat__sampler_room(const leat__sampler *sampler, int most)
{
    int room = sampler->batch_size - sampler->in_batch;
    return room < most ? room : most;
}

void leat__sampler_drop(leat__sampler *sampler, int64_t n)
{
    sampler->index += n;
    sampler->cursor += n;
    sampler->skip -= n;
}

void leat__sampler_take(leat__sampler *sampler, int n, leat_position at[])
{
    for (int i = 0; i < n; i++)
        at[i] = (leat_position){sampler->epoch, sampler->index + i};
    sampler->index += n;
    sampler->cursor += n;
    if (n > 0)
        sampler->skip = sampler->step - 1;
}

void leat__sampler_jump(leat__sampler *sampler, int64_t count)
{
    int64_t to = sampler->index + sampler->skip;
    sampler->epoch += to / count;
    sampler->index = to % count;
    sampler->cursor += sampler->skip;
    sampler->skip = 0;
}

void leat__sampler_next_epoch(leat__sampler *sampler)
{
    sampler->epoch++;
    sampler->index = 0;
}

bool leat__sampler_hand_out(leat__sampler *sampler, int n,
                            leat__position *after)
{
    sampler->in_batch += n;
    if (sampler->in_batch < sampler->batch_size)
        return false;
    sampler->window.position += (int64_t)sampler->batch_size * sampler->step;
    sampler->window.epoch = sampler->epoch;
    sampler->window.index =
        sampler->index + sampler->window.position - sampler->cursor;
    sampler->in_batch = 0;
    *after = sampler->window;
    return true;
}

void leat__sampler_end(leat__sampler *sampler, leat__position *after)
{
    sampler->window.position += (int64_t)sampler->in_batch * sampler->step;
    sampler->window.epoch = sampler->epoch;
    sampler->window.index = sampler->index;
    sampler->in_batch = 0;
    *after = sampler->window;
}
