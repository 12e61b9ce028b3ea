/* net.h: what the layer needs of a net file beyond leat/config.h. */
#ifndef LEAT_CONFIG_NET_H
#define LEAT_CONFIG_NET_H

#include <leat/config.h>

/*
 * A layer of the net could not be made, for `status`: puts before the error
 * line where the reason stands, the mean file's place in the net file if it is
 * that which cannot be loaded. Returns `status`.
 */
int leat__net_blame(const leat_net *net, int status);

#endif
