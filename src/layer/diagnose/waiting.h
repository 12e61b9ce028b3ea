/* waiting.h: a forward that waits for data says so in the log, now and then. */
#ifndef LEAT_LAYER_DIAGNOSE_WAITING_H
#define LEAT_LAYER_DIAGNOSE_WAITING_H

#include <leat/data_layer.h>

/* What a forward waits at least before it says so, and between two lines. */
#define LEAT__WAITING_PATIENCE ((int64_t)1000000000)
#define LEAT__WAITING_INTERVAL ((int64_t)10000000000)

/* Whether anybody would hear of it. */
int leat__waiting_is_heard(void);

/* The layer waits since `begin` and still does, at `now`. */
void leat__waiting_on(leat_data_layer *layer, int64_t begin, int64_t now);

/* A wait is over, one of many maybe: what they come to, and who is bound. */
void leat__waiting_over(leat_data_layer *layer, int64_t now);

/* The wait from `begin` to `now` was for the copy of a batch. */
void leat__waiting_for_copy(leat_data_layer *layer, int64_t begin, int64_t now);

#endif
