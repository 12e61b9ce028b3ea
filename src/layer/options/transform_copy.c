#include "layer/options/transform_copy.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/transform.h"

#include <string.h>

int leat__transform_copy_init(leat__transform_copy *copy,
                              const leat_transform_options *given)
{
    leat_transform_options *options = &copy->options;
    int status = leat__transform_options_copy(options, given);
    if (status)
        return status;
    int n = options->mean_values;
    if (n < 0 || (n > 0 && !options->mean_value))
        return leat_error(LEAT_EINVAL, "mean_values is %d without values", n);
    if (n == 0 && options->mean_value)
        return leat_error(LEAT_EINVAL,
                          "mean_value has values and mean_values is 0: "
                          "expected how many they are");
    if (options->mean_file) {
        copy->mean_file = leat__strdup(options->mean_file);
        if (!copy->mean_file)
            return LEAT_ENOMEM;
        options->mean_file = copy->mean_file;
    }
    if (n == 0)
        return LEAT_OK;
    size_t bytes = (size_t)n * sizeof(copy->mean_value[0]);
    copy->mean_value = leat__alloc(bytes);
    if (!copy->mean_value)
        return LEAT_ENOMEM;
    memcpy(copy->mean_value, options->mean_value, bytes);
    options->mean_value = copy->mean_value;
    return LEAT_OK;
}

void leat__transform_copy_finish(leat__transform_copy *copy)
{
    leat__free(copy->mean_file);
    leat__free(copy->mean_value);
    memset(copy, 0, sizeof(*copy));
}
