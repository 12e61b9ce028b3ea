#include "layer/whereabouts.h"

leat__behind leat__whereabouts_judge(const leat__whereabouts *now, int lane)
{
    if (now->out_of_slots >= 0 && now->out_of_slots != lane)
        return LEAT__BEHIND_MEMBER;
    if (now->copying > 0 && now->working == 0)
        return LEAT__BEHIND_COPY;
    /* Workers without work, while others work and somebody reads, starve. */
    if (now->reading > 0 && now->working < now->workers)
        return LEAT__BEHIND_READER;
    return now->working > 0 ? LEAT__BEHIND_WORKERS : LEAT__BEHIND_NOBODY;
}
