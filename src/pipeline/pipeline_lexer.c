#include "pipeline/pipeline_lexer.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The deepest parentheses; each takes up to 1 KiB of stack. */
#define PARENTHESES_MAX 32

/* As the analyzer sees it elsewhere. */
#undef leat__pipeline_lexer_fail

int leat__pipeline_lexer_fail(leat__pipeline_lexer *in, const char *where,
                              const char *format, ...)
{
    char line[LEAT__ERROR_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    in->fault = where;
    return leat_error(LEAT_EINVAL, "%s", line);
}

void leat__pipeline_lexer_skip_blanks(leat__pipeline_lexer *in)
{
    while (leat__is_blank(*in->at))
        in->at++;
}

bool leat__pipeline_lexer_is_end(const leat__pipeline_lexer *in, int opened)
{
    char c = *in->at;
    return c == 0 || (c == '|' && !(in->is_arguments && in->depth == 0)) ||
           (c == ')' && in->depth > 0 && opened == 0);
}

/* Appends to a text that is only measured where `out` is NULL. */
static size_t put(char *out, size_t used, const char *text, size_t size)
{
    if (out)
        memcpy(out + used, text, size);
    return used + size;
}

/*
 * Appends what {} is replaced by; sets *is_open if that is unknown. Returns the
 * new size of `out`.
 */
static size_t put_braces(const leat__pipeline_lexer *in, char *out, size_t used,
                         bool *is_open)
{
    if (in->braces == LEAT__BRACES_ARE_ELEMENT && in->element)
        return put(out, used, in->element, strlen(in->element));
    *is_open = in->braces != LEAT__BRACES_ARE_LETTERS;
    return put(out, used, "{}", 2);
}

/* Whether the text ends here; inside of its parentheses a pair does not. */
static bool is_stop(const leat__pipeline_lexer *in, const char *stops,
                    int opened)
{
    return !(in->is_pair && opened > 0) && strchr(stops, *in->at);
}

size_t leat__pipeline_lexer_scan(leat__pipeline_lexer *in, const char *stops,
                                 char *out, bool *is_open)
{
    size_t used = 0;
    int opened = 0;
    leat__pipeline_lexer_skip_blanks(in);
    const char *done = in->at; /* blanks after it count if more follows */
    while (!leat__pipeline_lexer_is_end(in, opened) &&
           !is_stop(in, stops, opened)) {
        const char *start = in->at;
        bool is_escaped = start[0] == '\\' && start[1];
        in->at++;
        if (leat__is_blank(*start))
            continue;
        used = put(out, used, done, (size_t)(start - done));
        if (start[0] == '{' && start[1] == '}') {
            used = put_braces(in, out, used, is_open);
            in->at++;
        } else {
            used = put(out, used, start + is_escaped, 1);
            in->at += is_escaped;
            opened += *start == '(';
            opened -= *start == ')' && opened > 0;
        }
        done = in->at;
    }
    if (out)
        out[used] = 0;
    return used;
}

int leat__pipeline_lexer_take(leat__pipeline_lexer *in, const char *stops,
                              char **out, bool *is_open)
{
    const char *start = in->at;
    size_t size = leat__pipeline_lexer_scan(in, stops, NULL, is_open);
    if (*is_open && in->braces == LEAT__BRACES_ARE_ELEMENT)
        return leat__pipeline_lexer_fail(in, start,
                                         "there is no element for {}");
    char *text = leat__alloc(size + 1);
    if (!text)
        return LEAT_ENOMEM;
    in->at = start;
    leat__pipeline_lexer_scan(in, stops, text, is_open);
    *out = text;
    return LEAT_OK;
}

int leat__pipeline_lexer_open(leat__pipeline_lexer *in)
{
    if (in->depth == PARENTHESES_MAX)
        return leat__pipeline_lexer_fail(
            in, in->at, "more than %d parentheses in each other",
            PARENTHESES_MAX);
    in->at++;
    in->depth++;
    return LEAT_OK;
}

int leat__pipeline_lexer_close(leat__pipeline_lexer *in, const char *opened)
{
    if (*in->at == 0)
        return leat__pipeline_lexer_fail(in, opened,
                                         "this parenthesis is not closed");
    if (*in->at != ')')
        return leat__pipeline_lexer_fail(in, in->at, "expected ), found '%c'",
                                         *in->at);
    in->at++;
    in->depth--;
    leat__pipeline_lexer_skip_blanks(in);
    return LEAT_OK;
}
