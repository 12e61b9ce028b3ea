/* token.h: positions and counts in a resume token. */
#ifndef LEAT_DATA_TOKEN_H
#define LEAT_DATA_TOKEN_H

#include <leat/sample.h>
#include <leat/token.h>

/* No run gets further, and sums of a few of them still fit. */
#define LEAT__POSITION_MAX ((int64_t)1 << 60)

/*
 * leat_token_get for `n` counts, or indices, of a mark: each has to be from 0
 * to LEAT__POSITION_MAX, whoever wrote it. `name`, of the reader, is for the
 * error. Errors: LEAT_EINVAL; nothing is written then.
 */
int leat__token_get_counts(leat_token *token, const char *name, int64_t out[],
                           int n);

/* The same for a position. */
int leat__token_get_position(leat_token *token, const char *name,
                             leat_position *out);

#endif
