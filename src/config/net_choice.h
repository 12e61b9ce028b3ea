/* net_choice.h: which of a net file's layers is the data layer wanted. */
#ifndef LEAT_CONFIG_NET_CHOICE_H
#define LEAT_CONFIG_NET_CHOICE_H

#include "config/net_state.h"

/*
 * Finds the one data layer that the net has in `state` and that is called
 * `name`; NULL: whatever its name. `*out` passed its schema, and `*is_v1` says
 * which: layers { } or layer { }. Layers of other types are not looked at.
 * Errors: LEAT_EINVAL, for none, for several, and for a file that Caffe would
 * refuse.
 */
int leat__net_choice_find(const leat__prototxt_field **out, int *is_v1,
                          const leat__net_state *state, const char *name);

#endif
