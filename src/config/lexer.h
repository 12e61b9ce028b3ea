/* lexer.h: the tokens of protobuf's text format. */
#ifndef LEAT_CONFIG_LEXER_H
#define LEAT_CONFIG_LEXER_H

#include "config/prototxt_location.h"

typedef enum leat__lexeme_type {
    LEAT__LEXEME_END,
    LEAT__LEXEME_INTEGER,
    LEAT__LEXEME_FLOAT,
    LEAT__LEXEME_IDENTIFIER,
    LEAT__LEXEME_STRING, /* quotes and escapes as they stand */
    LEAT__LEXEME_SYMBOL  /* one character */
} leat__lexeme_type;

typedef struct leat__lexeme {
    leat__lexeme_type type;
    const char *text; /* in the input */
    size_t size;
    leat__prototxt_location at;
} leat__lexeme;

/* Reads borrowed text forwards; `current` is the latest lexeme. */
typedef struct leat__lexer {
    const char *name; /* of the file, for errors; borrowed */
    const char *next;
    const char *end;
    leat__prototxt_location at; /* of `next` */
    leat__lexeme current;
} leat__lexer;

void leat__lexer_init(leat__lexer *lexer, const char *name, const char *text,
                      size_t size);

/* Advances to the next lexeme. Errors: LEAT_EINVAL naming the location. */
int leat__lexer_advance(leat__lexer *lexer);

/*
 * Writes the bytes of a string lexeme, at most lexeme->size, and returns their
 * end.
 */
char *leat__lexeme_unquote(const leat__lexeme *lexeme, char *out);

/*
 * Where byte `offset` is written of the strings side by side that begin at `at`
 * of the text; that of their end is the last quote.
 */
leat__prototxt_location leat__lexer_locate(const char *text, size_t size,
                                           leat__prototxt_location at,
                                           size_t offset);

#endif
