#include "support/net_text.h"

#include <check.h>
#include <string.h>

leat__net_param net;

int net_parse(const char *text, leat_phase phase,
              const leat_data_layer_options *choice)
{
    return leat__net_param_parse(&net, "net", text, strlen(text), phase,
                                 choice);
}

const leat_data_layer_options *net_accepted(const char *text, leat_phase phase)
{
    int status = net_parse(text, phase, NULL);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return &net.options;
}

void net_refused(const char *text, const char *line)
{
    ck_assert_msg(net_parse(text, LEAT_TRAIN, NULL) == LEAT_EINVAL, "%s", text);
    ck_assert_str_eq(leat_last_error(), line);
}
