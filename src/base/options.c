#include "base/options.h"
#include "base/error.h"

#include <string.h>

int leat__options_init(void *options, const void *defaults, size_t size)
{
    size_t known;
    memcpy(&known, options, sizeof(known));
    if (known < sizeof(known))
        return leat_error(LEAT_EINVAL,
                          "an options struct has size %zu: expected that of "
                          "the struct",
                          known);
    size_t bytes = known < size ? known : size;
    memcpy((char *)options + sizeof(known),
           (const char *)defaults + sizeof(known), bytes - sizeof(known));
    return LEAT_OK;
}

int leat__options_copy(void *values, const void *options, size_t size)
{
    size_t known;
    if (!options)
        return LEAT_OK;
    memcpy(&known, options, sizeof(known));
    if (known < sizeof(known))
        return leat_error(LEAT_EINVAL,
                          "options were not initialised: their size is %zu",
                          known);
    memcpy(values, options, known < size ? known : size);
    return LEAT_OK;
}
