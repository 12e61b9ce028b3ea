/* net_schema.h: the fields of Caffe's schema that a data layer can have. */
#ifndef LEAT_CONFIG_NET_SCHEMA_H
#define LEAT_CONFIG_NET_SCHEMA_H

#include "config/prototxt.h"

typedef struct leat__net_schema leat__net_schema;

extern const leat__net_schema leat__net_schema_layer; /* layer { } */
/* layers { }, and layers { layer { } } of V0 */
extern const leat__net_schema leat__net_schema_v1_layer;
extern const leat__net_schema leat__net_schema_state; /* state { } */
extern const leat__net_schema leat__net_schema_transform;

/* The enums, for leat__prototxt_enum_value. */
extern const leat__prototxt_enum leat__net_schema_phase[];
extern const leat__prototxt_enum leat__net_schema_backend[];

/*
 * Checks every field of a message, at any level, as protobuf would: it is
 * known, is given once unless it repeats, and has a value of its type.
 * Errors: LEAT_EINVAL naming the place; LEAT_ENOMEM.
 */
int leat__net_schema_check(const leat__prototxt *file,
                           const leat__prototxt_field *message,
                           const leat__net_schema *schema);

/*
 * Warns in the log of each field, at any level, that has no effect. The message
 * passed the schema.
 */
void leat__net_schema_warn(const leat__prototxt *file,
                           const leat__prototxt_field *message,
                           const leat__net_schema *schema);

#endif
