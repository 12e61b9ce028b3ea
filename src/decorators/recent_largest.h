/* recent_largest.h: the largest of the last numbers, which falls again. */
#ifndef LEAT_DECORATORS_RECENT_LARGEST_H
#define LEAT_DECORATORS_RECENT_LARGEST_H

#include <stdint.h>

/* Numbers of a window: the largest is that of 64 to 128. */
enum { LEAT__RECENT_WINDOW = 64 };

typedef struct leat__recent_largest {
    int64_t largest; /* of the last window and the current one */
    int64_t current; /* of the current one */
    int n;           /* numbers in the current one */
} leat__recent_largest;

static inline void leat__recent_largest_add(leat__recent_largest *recent,
                                            int64_t number)
{
    if (number > recent->largest)
        recent->largest = number;
    if (number > recent->current)
        recent->current = number;
    if (++recent->n < LEAT__RECENT_WINDOW)
        return;
    recent->largest = recent->current;
    recent->current = 0;
    recent->n = 0;
}

#endif
