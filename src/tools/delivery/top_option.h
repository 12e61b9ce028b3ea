/* top_option.h: a top of the command line: NAME[=FIELD][,KEY[=VALUE]...]. */
#ifndef LEAT_TOOLS_DELIVERY_TOP_OPTION_H
#define LEAT_TOOLS_DELIVERY_TOP_OPTION_H

#include <leat/data_layer.h>

/*
 * Reads a text, which it splits in place and the top then borrows. The keys are
 * those of leat_top_option_list, pad_value, and shape as 3x28x28; a key without
 * a value is a flag. Errors: LEAT_EINVAL with a line.
 */
int top_option_read(leat_top *out, char *text);

#endif
