/*
 * pipeline_lexer.h: the texts, blanks and parentheses that a pipeline's text is
 * made of.
 *
 * Blanks count inside names and values only; a backslash takes the next letter
 * as it is, also a blank. Where a group is open, a parenthesis that a text
 * itself has not opened closes the group.
 */
#ifndef LEAT_PIPELINE_PIPELINE_LEXER_H
#define LEAT_PIPELINE_PIPELINE_LEXER_H

#include <leat/status.h>

#include <stdbool.h>
#include <stddef.h>

/* What becomes of {} in values. */
typedef enum leat__braces {
    LEAT__BRACES_ARE_LETTERS,
    LEAT__BRACES_ARE_OPEN,    /* they stand for an element yet to come */
    LEAT__BRACES_ARE_ELEMENT, /* they are replaced by it */
} leat__braces;

/* Reads borrowed text forwards. */
typedef struct leat__pipeline_lexer {
    const char *text;
    const char *at;
    const char *fault; /* where an error is; NULL: nowhere in the text */
    int depth;         /* open parentheses */
    bool is_arguments; /* the text is arguments alone: bars are letters */
    bool is_pair;      /* commas in parentheses are letters */
    leat__braces braces;
    const char *element; /* for BRACES_ARE_ELEMENT; NULL: there is none */
} leat__pipeline_lexer;

/* LEAT_EINVAL, with the line, at `where`. */
int leat__pipeline_lexer_fail(leat__pipeline_lexer *in, const char *where,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__
/* The analyzer does not look into it, and assumes that it may return LEAT_OK.
 */
#define leat__pipeline_lexer_fail(...)                                         \
    ((void)leat__pipeline_lexer_fail(__VA_ARGS__), LEAT_EINVAL)
#endif

/* The error of an inner function is at `where`, unless it is inside. Returns
 * `status`. */
static inline int leat__pipeline_lexer_locate(leat__pipeline_lexer *in,
                                              const char *where, int status)
{
    if (status == LEAT_EINVAL && !in->fault)
        in->fault = where;
    return status;
}

void leat__pipeline_lexer_skip_blanks(leat__pipeline_lexer *in);

/* Whether the reader ends before this letter; `opened` parentheses are those of
 * the text itself. */
bool leat__pipeline_lexer_is_end(const leat__pipeline_lexer *in, int opened);

/*
 * Reads a text up to one of `stops` or the reader's end, without its escapes
 * and the blanks at its edges; sets *is_open if a {} in it has no replacement
 * yet. `out` NULL: only its size, without the NUL.
 */
size_t leat__pipeline_lexer_scan(leat__pipeline_lexer *in, const char *stops,
                                 char *out, bool *is_open);

/* The same into memory of its own, freed by the caller. Errors: LEAT_EINVAL,
 * LEAT_ENOMEM. */
int leat__pipeline_lexer_take(leat__pipeline_lexer *in, const char *stops,
                              char **out, bool *is_open);

/* Passes over a parenthesis; `opened` is where the one closed was opened. */
int leat__pipeline_lexer_open(leat__pipeline_lexer *in);
int leat__pipeline_lexer_close(leat__pipeline_lexer *in, const char *opened);

#endif
