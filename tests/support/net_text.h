/* net_text.h: texts of nets with a data layer, and what is read of them. */
#ifndef LEAT_SUPPORT_NET_TEXT_H
#define LEAT_SUPPORT_NET_TEXT_H

#include "config/net_param.h"

/* Each ends its line, so that what follows begins in column 1. */
#define HEAD                                                                   \
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\"\n"
#define LMDB "data_param { source: \"db\" batch_size: 64 backend: LMDB }\n"
#define OLD "layers { name: \"data\" type: DATA top: \"data\" top: \"label\"\n"

/* Of the text read last. */
extern leat__net_param net;

/* Returns the status. */
int net_parse(const char *text, leat_phase phase,
              const leat_data_layer_options *choice);

/* The options, in `net`; an error fails the test. */
const leat_data_layer_options *net_accepted(const char *text, leat_phase phase);

/* LEAT_EINVAL and that line, else the test fails. */
void net_refused(const char *text, const char *line);

#endif
