#include "config/prototxt_location.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int leat__prototxt_location_error(const char *name, leat__prototxt_location at,
                                  const char *format, ...)
{
    char text[LEAT__ERROR_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    return leat_error(LEAT_EINVAL, "%s:%d:%d: %s", name, at.line, at.column,
                      text);
}
