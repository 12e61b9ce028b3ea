#include "base/cancel.h"
#include "base/thread.h"
#include "config/net.h"

static int create(leat_data_layer **out, const char *prototxt, leat_phase phase,
                  const leat_data_layer_options *options)
{
    leat_net *net;
    int status = leat__thread_check_stack(prototxt, LEAT__STACK_MIN);
    if (!status)
        status = leat_net_open(&net, prototxt, phase, options);
    if (status)
        return status;
    status = leat_data_layer_create(out, leat_net_pipeline(net),
                                    leat_net_options(net));
    if (status < 0)
        status = leat__net_blame(net, status);
    leat_net_close(net);
    return status;
}

int leat_data_layer_create_from_net(leat_data_layer **out, const char *prototxt,
                                    leat_phase phase,
                                    const leat_data_layer_options *options)
{
    int cancel = leat__cancel_disable();
    int status = create(out, prototxt, phase, options);
    leat__cancel_restore(cancel);
    return status;
}
