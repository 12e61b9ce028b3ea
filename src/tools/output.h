/* output.h: what commands print on stdout. */
#ifndef LEAT_TOOLS_OUTPUT_H
#define LEAT_TOOLS_OUTPUT_H

#include <leat/status.h>

#include <jansson.h>

/* Whether all that was printed is written; else LEAT_EIO, with the reason. */
int output_flush(void);

/* Prints the object in one line and frees it. Returns the exit status. */
int output_json(json_t *object);

/*
 * Writes it to stdout, with further flags of Jansson's; below 0: it cannot be.
 * Characters that are not plain (plain_text.h) are written as \uXXXX, which
 * reads back as the same text.
 */
int output_json_write(const json_t *object, size_t flags);

/*
 * A text as JSON, which takes UTF-8 alone: each byte that is none becomes \xNN.
 * NULL: no memory.
 */
json_t *output_text(const char *text);

/* Bytes in words, such as "12.3 MB", in one of a few buffers by turns. */
const char *output_bytes(int64_t bytes);

/* A number and its noun, such as "1 record" or "2 records"; likewise. */
const char *output_count(int64_t n, const char *one, const char *many);

#endif
