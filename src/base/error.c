#define LEAT__ERROR_DEFINED_HERE
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char line[LEAT__ERROR_MAX];
static _Thread_local unsigned lines; /* so far */

const char *leat_last_error(void)
{
    return line;
}

const char *leat_version(void)
{
    return LEAT_VERSION;
}

const char *leat_status_name(int status)
{
    switch (status) {
#define CASE(name, code, text)                                                 \
    case code:                                                                 \
        return "LEAT_" #name;
        LEAT_STATUS_MAP(CASE)
#undef CASE
    default:
        return "LEAT_?";
    }
}

const char *leat_status_text(int status)
{
    switch (status) {
#define CASE(name, code, text)                                                 \
    case code:                                                                 \
        return text;
        LEAT_STATUS_MAP(CASE)
#undef CASE
    default:
        return "unknown status";
    }
}

bool leat__status_is_error(int status)
{
    switch (status) {
#define CASE(name, code, text) case code:
        LEAT_STATUS_MAP(CASE)
#undef CASE
        return status < 0;
    default:
        return false;
    }
}

/* The arguments may be the line itself, so it is built aside. */
static void set_line(const char *format, va_list list)
{
    char next[LEAT__ERROR_MAX];
    vsnprintf(next, sizeof(next), format, list);
    memcpy(line, next, sizeof(line));
    lines++;
}

unsigned leat__error_lines(void)
{
    return lines;
}

/* Behind a colon, as far as there is room. */
static void append(const char *text)
{
    size_t used = strlen(line);
    snprintf(line + used, sizeof(line) - used, ": %s", text);
}

int leat_error(int status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    set_line(format, list);
    va_end(list);
    return status;
}

int leat__error_context(int status, const char *format, ...)
{
    char inner[LEAT__ERROR_MAX];
    leat__error_save(inner);
    va_list list;
    va_start(list, format);
    set_line(format, list);
    va_end(list);
    append(inner);
    return status;
}

int leat__error_system(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    set_line(format, list);
    va_end(list);
    char text[128];
    append(strerror_r(code, text, sizeof(text)));
    return code == ENOMEM ? LEAT_ENOMEM : LEAT_EIO;
}

int leat__error_memory(size_t bytes)
{
    return leat_error(LEAT_ENOMEM, "out of memory: %zu bytes were wanted",
                      bytes);
}

void leat__error_save(char *out)
{
    memcpy(out, line, sizeof(line));
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
