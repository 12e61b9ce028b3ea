#include "layer/diagnose/activity.h"

leat__bottleneck leat__activity_judge(const leat__activity *now, int i)
{
    if (now->out_of_batches >= 0 && now->out_of_batches != i)
        return LEAT__BOTTLENECK_MEMBER;
    if (now->copying > 0 && now->working == 0)
        return LEAT__BOTTLENECK_COPY;
    /* Workers without work, while others work and somebody reads, starve. */
    if (now->reading > 0 && now->working < now->workers)
        return LEAT__BOTTLENECK_READER;
    return now->working > 0 ? LEAT__BOTTLENECK_WORKERS
                            : LEAT__BOTTLENECK_NOBODY;
}
