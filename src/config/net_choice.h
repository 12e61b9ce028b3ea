/* net_choice.h: which of a net file's layers is the data layer wanted. */
#ifndef LEAT_CONFIG_NET_CHOICE_H
#define LEAT_CONFIG_NET_CHOICE_H

#include "config/net_state.h"

/* The three forms of Caffe's net files, the newest first. */
typedef enum leat__net_form {
    LEAT__NET_V2, /* layer { } */
    LEAT__NET_V1, /* layers { } */
    LEAT__NET_V0  /* layers { layer { } } */
} leat__net_form;

typedef struct leat__net_choice {
    const leat__prototxt_field *layer;
    const leat__prototxt_field *v0; /* the layer { } within it; else NULL */
    leat__net_form form;
} leat__net_choice;

/*
 * Finds the one data layer that the net has in `state` and that is called
 * `name`; NULL: whatever its name. The layer passed its schema. Layers of other
 * types are not looked at.
 * Errors: LEAT_EINVAL, for none, for several, and for a file that Caffe would
 * refuse.
 */
int leat__net_choice_find(leat__net_choice *out, const leat__net_state *state,
                          const char *name);

#endif
