/* leat/token.h: the resume token, a position in the endless sequence. */
#ifndef LEAT_TOKEN_H
#define LEAT_TOKEN_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A resume token, written by leat_data_layer_save or leat_reader_save. Store
 * its text, which has a checksum; the bytes here have none. It is the same on
 * every rank at the same step, except over buffers of a stream
 * (leat_data_layer_save) and at a stream's end, where each leads to the same
 * samples.
 *
 * It owns its memory: init, use, finish. It has at most 64 bytes, and what the
 * readers of the chain save, at most 32 bytes each, and their mark; its text
 * has 4 letters for 3 bytes.
 */
typedef struct leat_token {
    unsigned char *bytes; /* owned by the token */
    size_t size;          /* bytes used */
    size_t capacity;      /* bytes allocated */
    size_t cursor;        /* offset of the next leat_token_get */
    char *text;           /* the printable form, created on demand */
} leat_token;

/**
 * Initialises an empty token. Owned by the caller: leat_token_finish. Cannot
 * fail. Thread safety: one caller a token.
 */
LEAT_API void leat_token_init(leat_token *token);

/** Frees the token's memory. Takes NULL. Thread safety: one caller a token. */
LEAT_API void leat_token_finish(leat_token *token);

/**
 * The token as text: letters, digits, '-' and '_' alone, ended by a NUL.
 * Borrowed until the token changes; NULL when memory is short.
 * Thread safety: one caller a token.
 */
LEAT_API const char *leat_token_text(leat_token *token);

/**
 * Parses a token's text and replaces the contents of `token`, which is
 * initialised. Trailing white space is ignored. Errors: LEAT_EINVAL for invalid
 * text (length, letters, checksum); LEAT_ENOMEM. Thread safety: one caller a
 * token.
 */
LEAT_API int leat_token_parse(leat_token *token, const char *text);

/**
 * Appends bytes; for readers' save. Errors: LEAT_ENOMEM.
 * Thread safety: one caller a token.
 */
LEAT_API int leat_token_put(leat_token *token, const void *bytes, size_t size);

/**
 * Takes the next bytes; for readers' restore. Errors: LEAT_EINVAL when the
 * token is shorter: it belongs to another chain. Thread safety: one caller a
 * token.
 */
LEAT_API int leat_token_get(leat_token *token, void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
