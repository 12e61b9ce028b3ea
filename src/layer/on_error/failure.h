/* failure.h: the error of a batch's or a chunk's sample after which nothing is
 * read. */
#ifndef LEAT_LAYER_ON_ERROR_FAILURE_H
#define LEAT_LAYER_ON_ERROR_FAILURE_H

#include "base/error.h"

typedef struct leat__failure {
    int sample;
    int status; /* LEAT_OK: there is none */
    char line[LEAT__ERROR_MAX];
} leat__failure;

/* Keeps the earliest one; LEAT_EDATA is none. */
void leat__failure_note(leat__failure *failure, int sample, int status,
                        const char *line);

#endif
