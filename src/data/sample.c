#include "base/memory.h"

#include <leat/sample.h>

#include <string.h>

void leat_sample_init(leat_sample *sample)
{
    memset(sample, 0, sizeof(*sample));
}

void leat_sample_finish(leat_sample *sample)
{
    if (!sample)
        return;
    leat__free(sample->box);
    leat_sample_init(sample);
}

int leat_sample_reserve(leat_sample *sample, size_t bytes)
{
    if (bytes <= sample->box_size)
        return LEAT_OK;
    /* Growing by half as much again lets varying sizes settle early. */
    size_t size = bytes + (bytes < SIZE_MAX / 2 ? sample->box_size / 2 : 0);
    void *box = leat__alloc_aligned(size);
    if (!box)
        return LEAT_ENOMEM;
    leat__free(sample->box);
    sample->box = box;
    sample->box_size = size;
    return LEAT_OK;
}
