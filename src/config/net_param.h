/* net_param.h: the data layer of a Caffe net file, as options. */
#ifndef LEAT_CONFIG_NET_PARAM_H
#define LEAT_CONFIG_NET_PARAM_H

#include <leat/data_layer.h>

#include "config/net_top.h"
#include "config/prototxt.h"

/*
 * What the file says, and `choice` where the file says nothing. All pointers
 * in it lead into the tree's memory or into itself, so it must not be moved.
 */
typedef struct leat__net_param {
    leat__prototxt file;
    leat_data_layer_options options;
    leat_transform_options transform;
    leat__net_tops list;           /* of leat_param */
    leat_allocator host_allocator; /* of `choice`; not used where it has none */
    leat_allocator pinned_allocator;
    int ntops;
    const char *tops[LEAT_MAX_FIELDS + 1]; /* NULL-terminated */
    const char *source;                /* an LMDB, of the file or the caller;
                                          NULL when there is a reader */
    const char *reader;                /* a pipeline's text, or NULL */
    const char *mean_file;             /* the caller's; NULL: the file's */
    bool shuffle;                      /* all records of an epoch */
    leat__prototxt_location source_at; /* in the file; line 0: the caller's */
    leat__prototxt_location mean_at; /* of mean_file; line 0: not in the file */
} leat__net_param;

/*
 * Reads the data layer for `phase` out of `size` bytes of text; `name` stands
 * for the file in errors. `choice` may be NULL. Nothing given is kept.
 * On failure nothing is left to finish.
 * Errors: LEAT_EINVAL as NAME:LINE:COLUMN, LEAT_ENOMEM.
 */
int leat__net_param_parse(leat__net_param *out, const char *name,
                          const char *text, size_t size, leat_phase phase,
                          const leat_data_layer_options *choice);
void leat__net_param_finish(leat__net_param *param);

#endif
