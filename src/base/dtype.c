#include "base/error.h"

#include <string.h>

size_t leat_dtype_size(leat_dtype dtype)
{
    switch (dtype) {
#define CASE(name, text, bytes)                                                \
    case LEAT_##name:                                                          \
        return bytes;
        LEAT_DTYPE_MAP(CASE)
#undef CASE
    }
    return 0;
}

const char *leat_dtype_name(leat_dtype dtype)
{
    switch (dtype) {
#define CASE(name, text, bytes)                                                \
    case LEAT_##name:                                                          \
        return text;
        LEAT_DTYPE_MAP(CASE)
#undef CASE
    }
    return "?";
}

int leat_dtype_parse(leat_dtype *out, const char *name)
{
#define TRY(code, text, bytes)                                                 \
    if (strcmp(name, text) == 0) {                                             \
        *out = LEAT_##code;                                                    \
        return LEAT_OK;                                                        \
    }
    LEAT_DTYPE_MAP(TRY)
#undef TRY
    return leat_error(LEAT_EINVAL, "there is no element type \"%s\"", name);
}
