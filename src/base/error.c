#define LEAT__ERROR_DEFINED_HERE
#include "base/error.h"

#include <stdarg.h>
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

unsigned leat__error_lines(void)
{
    return lines;
}

/* A line that is too long keeps both its ends: the names in it are long, such
   as a pipeline's text, and the reason follows them. */
static void cut_middle(char *out, const char *format, va_list list)
{
    enum { WHOLE = 16 * LEAT__ERROR_MAX, TAIL = LEAT__ERROR_MAX / 2 };
    char whole[WHOLE];
    int size = vsnprintf(whole, sizeof(whole), format, list);
    size = size < WHOLE ? size : WHOLE - 1;
    memcpy(out + LEAT__ERROR_MAX - TAIL, whole + size + 1 - TAIL, TAIL);
    memcpy(out + LEAT__ERROR_MAX - TAIL - 3, "...", 3);
}

/* The arguments may be the line itself, so it is built aside. */
int leat_error(int status, const char *format, ...)
{
    char next[LEAT__ERROR_MAX];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(next, sizeof(next), format, list);
    va_end(list);
    if (size >= LEAT__ERROR_MAX) {
        va_start(list, format);
        cut_middle(next, format, list);
        va_end(list);
    }
    memcpy(line, next, sizeof(line));
    lines++;
    return status;
}
