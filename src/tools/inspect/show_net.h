/* show_net.h: a contact sheet of what a data layer's forward delivers. */
#ifndef LEAT_TOOLS_INSPECT_SHOW_NET_H
#define LEAT_TOOLS_INSPECT_SHOW_NET_H

#include "tools/delivery/layer_source_options.h"

struct show_net_options {
    const struct layer_source_options *source; /* the layer */
    const char *out;                           /* where the sheet goes */
    int64_t count;                             /* of samples */
    int64_t side;                              /* as of contact_sheet_init */
    int64_t columns;                           /* likewise */
    int rgb;
    int json;
};

/*
 * Draws the first samples with their crops and mirrors, but without means and
 * scale, so that they can be seen. Returns the tool's exit status, having
 * printed the result on stdout or the error on stderr.
 */
int show_net(const struct show_net_options *options);

#endif
