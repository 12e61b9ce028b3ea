#include "layer/sampler.h"

#include <string.h>

/* This rank's first position at or after `position`. */
static int64_t first_own(const leat__sampler *sampler, int64_t position)
{
    int64_t over = position % sampler->step;
    return position + (sampler->rank - over + sampler->step) % sampler->step;
}

/* How much the batch at the window covers; all ranks find the same. */
static void begin_batch(leat__sampler *sampler)
{
    leat__position *window = &sampler->window;
    int64_t all = (int64_t)sampler->batch_size * sampler->step;
    int64_t count = sampler->count;
    sampler->in_batch = 0;
    sampler->width = all;
    sampler->size = sampler->batch_size;
    sampler->follows_gap = false;
    if (count == 0)
        return;
    window->epoch = window->position / count;
    window->index = window->position % count;
    int64_t left = count - window->index;
    if (left < all && sampler->epoch_end == LEAT_EPOCH_END_DROP) {
        *window =
            (leat__position){window->position + left, window->epoch + 1, 0};
        sampler->follows_gap = true;
    } else if (left < all) {
        sampler->width = left;
        sampler->size = (int)((first_own(sampler, window->position + left) -
                               first_own(sampler, window->position)) /
                              sampler->step);
    }
    sampler->skip = first_own(sampler, window->position) - sampler->cursor;
}

void leat__sampler_init(leat__sampler *sampler, int batch_size, int rank,
                        int step)
{
    memset(sampler, 0, sizeof(*sampler));
    sampler->batch_size = batch_size;
    sampler->rank = rank;
    sampler->step = step;
    sampler->skip = rank;
    begin_batch(sampler);
}

void leat__sampler_end_epochs(leat__sampler *sampler, leat_epoch_end epoch_end,
                              int64_t count)
{
    sampler->epoch_end = epoch_end;
    sampler->count = count;
    begin_batch(sampler);
}

/* The reader is at `index` of `epoch`, which is the position `cursor`. */
static void start_at(leat__sampler *sampler, const leat__position *start,
                     int64_t cursor, int64_t epoch, int64_t index)
{
    sampler->window = *start;
    sampler->cursor = cursor;
    sampler->epoch = epoch;
    sampler->index = index;
    sampler->skip = first_own(sampler, start->position) - cursor;
    begin_batch(sampler);
}

void leat__sampler_rewind(leat__sampler *sampler, const leat__position *start)
{
    start_at(sampler, start, start->position - start->index, start->epoch, 0);
}

void leat__sampler_at(leat__sampler *sampler, const leat__position *start)
{
    start_at(sampler, start, start->position, start->epoch, start->index);
}

void leat__sampler_seek(leat__sampler *sampler, const leat__position *start,
                        int64_t count)
{
    start_at(sampler, start, start->position, start->position / count,
             start->position % count);
}

int64_t leat__sampler_before(const leat__sampler *sampler,
                             const leat__position *start)
{
    return (first_own(sampler, start->position) - sampler->rank) /
           sampler->step;
}

int64_t leat__sampler_ordinal(const leat__sampler *sampler)
{
    return leat__sampler_before(sampler, &sampler->window) + sampler->in_batch;
}

int leat__sampler_room(const leat__sampler *sampler, int most)
{
    int room = sampler->size - sampler->in_batch;
    return room < most ? room : most;
}

static bool finds_ends(const leat__sampler *sampler)
{
    return sampler->epoch_end != LEAT_EPOCH_END_WRAP && sampler->count == 0;
}

int64_t leat__sampler_span(const leat__sampler *sampler, int had, int n)
{
    if (finds_ends(sampler) && sampler->in_batch + had + n == sampler->size)
        return sampler->window.position + sampler->width - sampler->cursor;
    return n > 0 ? sampler->skip + (int64_t)(n - 1) * sampler->step + 1 : 0;
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
    if (!finds_ends(sampler) || leat__sampler_is_cut(sampler))
        return;
    /* The batch begins in this epoch, or after it. */
    sampler->window.epoch = sampler->epoch;
    sampler->window.index = sampler->window.position - sampler->cursor;
}

bool leat__sampler_is_cut(const leat__sampler *sampler)
{
    return finds_ends(sampler) && sampler->cursor > sampler->window.position;
}

void leat__sampler_restart(leat__sampler *sampler)
{
    const leat__position here = {sampler->cursor, sampler->epoch,
                                 sampler->index};
    start_at(sampler, &here, sampler->cursor, sampler->epoch, sampler->index);
    sampler->follows_gap = true;
}

bool leat__sampler_hand_out(leat__sampler *sampler, int n,
                            leat__position *after)
{
    leat__position *window = &sampler->window;
    sampler->in_batch += n;
    if (sampler->in_batch < sampler->size)
        return false;
    window->position += sampler->width;
    if (sampler->count > 0) {
        window->index += sampler->width;
    } else {
        window->epoch = sampler->epoch;
        window->index = sampler->index + window->position - sampler->cursor;
    }
    *after = *window;
    begin_batch(sampler);
    return true;
}

void leat__sampler_end(leat__sampler *sampler, leat__position *after)
{
    int64_t position = sampler->cursor;
    if (sampler->epoch_end == LEAT_EPOCH_END_WRAP)
        position = sampler->window.position + sampler->width;
    sampler->window = (leat__position){
        position, sampler->epoch, sampler->index + position - sampler->cursor};
    *after = sampler->window;
    begin_batch(sampler);
}
