/* output.h: what commands print on stdout. */
#ifndef LEAT_TOOLS_OUTPUT_H
#define LEAT_TOOLS_OUTPUT_H

#include <leat/status.h>

#include <jansson.h>

/* Prints the object in one line and frees it. Returns the exit status. */
int output_json(json_t *object);

/* Bytes in words, such as "12.3 MB", in one of a few buffers by turns. */
const char *output_bytes(int64_t bytes);

#endif
