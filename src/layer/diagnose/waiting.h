/* waiting.h: logs at intervals what forward is waiting for. */
#ifndef LEAT_LAYER_DIAGNOSE_WAITING_H
#define LEAT_LAYER_DIAGNOSE_WAITING_H

#include <leat/data_layer.h>
#include <stdbool.h>

/* Nanoseconds that a forward waits before the first line, and between two. */
#define LEAT__WAITING_PATIENCE ((int64_t)1000000000)
#define LEAT__WAITING_INTERVAL ((int64_t)10000000000)

/* Whether the log takes such lines. */
bool leat__waiting_is_logged(void);

/* The layer waits since `begin` and still does, at `now`. */
void leat__waiting_on(leat_data_layer *layer, int64_t begin, int64_t now);

/* A wait is over, maybe one of many: logs their sum, and the bottleneck. */
void leat__waiting_over(leat_data_layer *layer, int64_t now);

/* The wait from `begin` to `now` was for the copy of a batch. */
void leat__waiting_for_copy(leat_data_layer *layer, int64_t begin, int64_t now);

#endif
