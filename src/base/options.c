#include "base/options.h"
#include "base/error.h"

#include <string.h>

/* No struct of options is larger: beyond it a size is not a struct's, and the
 * bytes it spans are not looked at. As a size_t begins each, its size is a
 * multiple of one's; any other ends within a field, such as a pointer. */
#define SIZE_LIMIT 4096

static int check_size(size_t known)
{
    if (known >= sizeof(known) && known <= SIZE_LIMIT &&
        known % sizeof(known) == 0)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "options have size %zu: expected that of their struct, "
                      "as its INIT macro sets it",
                      known);
}

int leat__options_init(void *options, const void *defaults, size_t size)
{
    size_t known;
    memcpy(&known, options, sizeof(known));
    int status = check_size(known);
    if (status)
        return status;
    size_t bytes = known < size ? known : size;
    memcpy((char *)options + sizeof(known),
           (const char *)defaults + sizeof(known), bytes - sizeof(known));
    /* Zero is the default of fields that a newer caller has. */
    memset((char *)options + bytes, 0, known - bytes);
    return LEAT_OK;
}

int leat__options_copy(void *values, const void *options, size_t size)
{
    const char *bytes = options;
    size_t known;
    if (!options)
        return LEAT_OK;
    memcpy(&known, options, sizeof(known));
    int status = check_size(known);
    if (status)
        return status;
    for (size_t i = size; i < known; i++)
        if (bytes[i])
            return leat_error(LEAT_EINVAL,
                              "options of %zu bytes ask for what this leat, "
                              "which knows %zu, does not have: the program is "
                              "newer than the library",
                              known, size);
    memcpy(values, options, known < size ? known : size);
    memcpy(values, &size, sizeof(size));
    return LEAT_OK;
}
