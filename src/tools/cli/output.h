/* output.h: the commands' output on stdout. */
#ifndef LEAT_TOOLS_CLI_OUTPUT_H
#define LEAT_TOOLS_CLI_OUTPUT_H

#include <leat/status.h>

#include <jansson.h>

/* Whether all output is written; else LEAT_EIO, with the reason. */
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

/*
 * Numbers for people, in one of a few buffers in turn: three digits and a unit;
 * 999 and less stand without a factor. number.h reads them back. In JSON
 * numbers are plain.
 */
const char *output_bytes(int64_t bytes);          /* "12.3 MB" */
const char *output_size(int64_t bytes);           /* "64 MiB", exactly */
const char *output_scaled(double value);          /* "4.43 M" */
const char *output_time(double seconds);          /* "28.0 ms" */
const char *output_bandwidth(double bytes_per_s); /* "12.3 GB/s" */

/* A number and its noun, such as "1 record" or "2 records"; likewise. */
const char *output_count(int64_t n, const char *one, const char *many);

#endif
