#include "decorators/shuffle/shuffle_draws.h"

/* The operation of leat__random_words for draws. */
#define OPERATION 0x62

void leat__shuffle_draws_init(leat__shuffle_draws *draws, uint64_t seed,
                              int64_t epoch)
{
    draws->seed = seed;
    draws->epoch = epoch;
    draws->group = -1;
}

void leat__shuffle_draws_fetch(leat__shuffle_draws *draws, int64_t group)
{
    leat__random_words(draws->seed, draws->epoch, group, OPERATION,
                       draws->words);
    draws->group = group;
}

/*
 * The inputs in `size` slots before position `t`, up to which every input found
 * a slot: the last one drawn for each, or the one that filled it first. They
 * are found from the latest on; where[slot] is the index of each in `held`.
 */
static void walk_back(leat__shuffle_draws *draws, int64_t t, int32_t size,
                      leat__shuffle_held held[], int32_t where[])
{
    int32_t left = size;
    for (int32_t slot = 0; slot < size; slot++)
        where[slot] = -1;
    while (t > 0 && left > 0) {
        int32_t slot = (int32_t)leat__shuffle_draw(draws, --t, (uint32_t)size);
        if (where[slot] >= 0)
            continue;
        where[slot] = --left;
        held[left] = (leat__shuffle_held){size + t, slot};
    }
    for (int32_t slot = size - 1; left > 0; slot--) {
        if (where[slot] >= 0)
            continue;
        where[slot] = --left;
        held[left] = (leat__shuffle_held){slot, slot};
    }
}

/* Takes samples from position `t` to `end` without new inputs. */
static void drain(leat__shuffle_draws *draws, int64_t t, int64_t end,
                  int32_t size, leat__shuffle_held held[], int32_t where[])
{
    for (; t < end; t++) {
        int32_t slot = (int32_t)leat__shuffle_draw(draws, t, (uint32_t)size--);
        held[where[slot]].slot = -1;
        if (slot == size)
            continue;
        where[slot] = where[size];
        held[where[slot]].slot = slot;
    }
}

int32_t leat__shuffle_walk(leat__shuffle_draws *draws, int64_t t, int32_t size,
                           int64_t inputs, leat__shuffle_held held[],
                           int32_t work[])
{
    int64_t full = t; /* the buffer is full up to here */
    int32_t n = 0;
    if (inputs >= 0 && inputs < size)
        size = (int32_t)inputs;
    if (inputs >= 0 && full > inputs - size)
        full = inputs - size;
    walk_back(draws, full, size, held, work);
    drain(draws, full, t, size, held, work);
    for (int32_t i = 0; i < size; i++)
        if (held[i].slot >= 0)
            held[n++] = held[i];
    return n;
}
