/*
 * error_context.c: lines that are built on the public functions alone, so that
 * the tool, which has its own copy of these, still shares the library's line.
 */
#define LEAT__ERROR_DEFINED_HERE
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What `format` gives, as of a path of any length, a colon and a text. */
static int set_line(int status, const char *text, const char *format,
                    va_list list)
{
    char line[9 * LEAT__ERROR_MAX];
    vsnprintf(line, sizeof(line), format, list);
    return leat_error(status, "%s: %s", line, text);
}

int leat__error_context(int status, const char *format, ...)
{
    char inner[LEAT__ERROR_MAX];
    leat__error_save(inner);
    va_list list;
    va_start(list, format);
    set_line(status, inner, format, list);
    va_end(list);
    return status;
}

int leat__error_system(int code, const char *format, ...)
{
    char text[128];
    int status = code == ENOMEM ? LEAT_ENOMEM : LEAT_EIO;
    va_list list;
    va_start(list, format);
    set_line(status, strerror_r(code, text, sizeof(text)), format, list);
    va_end(list);
    return status;
}

int leat__error_memory(size_t bytes)
{
    return leat_error(LEAT_ENOMEM, "out of memory: cannot allocate %zu bytes",
                      bytes);
}

void leat__error_save(char *out)
{
    snprintf(out, LEAT__ERROR_MAX, "%s", leat_last_error());
}

const char *leat__key_text(char out[LEAT__KEY_TEXT_MAX], const void *key,
                           size_t size)
{
    const unsigned char *bytes = key;
    size_t used = 0;
    for (size_t i = 0; i < size && i < 64; i++) {
        bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '\\';
        used += (size_t)snprintf(out + used, LEAT__KEY_TEXT_MAX - used,
                                 plain ? "%c" : "\\x%02x", bytes[i]);
    }
    out[used] = 0;
    if (size > 64)
        snprintf(out + used, LEAT__KEY_TEXT_MAX - used, "... (%zu bytes)",
                 size);
    return out;
}
