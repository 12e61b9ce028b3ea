/* net_state.h: phase, level and stages, and the rules that ask for them. */
#ifndef LEAT_CONFIG_NET_STATE_H
#define LEAT_CONFIG_NET_STATE_H

#include <leat/data_layer.h>
#include <stdbool.h>

#include "config/prototxt.h"

typedef struct leat__net_state {
    const leat__prototxt *file;
    leat_phase phase;
    int level;
    const leat__prototxt_field *own; /* the file's state { }, or NULL */
    const char *const *stages; /* the caller's, NULL-terminated; or NULL */
} leat__net_state;

/*
 * The state of the file's net for a caller who wants `phase`. As in Caffe's
 * tools the caller's phase wins, and the stages of both count. A level other
 * than 0 wins over the file's.
 */
int leat__net_state_read(leat__net_state *out, const leat__prototxt *file,
                         leat_phase phase, const char *const *stages,
                         int level);

/*
 * Whether the layer is in the net in that state, by its include or exclude
 * rules. The layer passed its schema. Errors: LEAT_EINVAL when it has both.
 */
int leat__net_state_includes(const leat__net_state *state,
                             const leat__prototxt_field *layer, bool *out);

#endif
