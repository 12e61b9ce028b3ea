/* output.h: the commands' output on stdout, and messages on stderr. */
#ifndef LEAT_TOOLS_CLI_OUTPUT_H
#define LEAT_TOOLS_CLI_OUTPUT_H

#include <leat/ext/reader.h>

#include <jansson.h>

/*
 * The tool's exit statuses, beside 0. As with cmp, diff and grep, 1 is an
 * answer and 2 is trouble; wrong usage is EX_USAGE of sysexits.h. The manual
 * has them in one table, which test_tool_manners compares with the tool.
 */
enum {
    EXIT_FOUND = 1,   /* the sides differ, or there are bad records */
    EXIT_FAILED = 2,  /* the command could not do what it was asked */
    EXIT_MISUSED = 64 /* the command line is wrong; nothing was begun */
};

/*
 * Prints `leat: ` and the text on stderr, in one line whatever it holds.
 * Returns `exit_status`.
 */
int message_print(int exit_status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Of a command that failed, and of a fault found in the data. */
#define message_error(...) message_print(EXIT_FAILED, __VA_ARGS__)
#define message_found(...) message_print(EXIT_FOUND, __VA_ARGS__)

/* message_error with the line of the last failed call of leat. */
int message_last_error(void);

/* Prints the version on stdout. Returns 0. */
int message_version(void);

/* Wrong usage of `command`, pointing to its --help. Ends the program. */
_Noreturn void message_misuse(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the program, after cleanup_run: by the signal that arrived, or with that
   status if all output could be written. */
_Noreturn void output_exit(int status);

/*
 * Where there is nothing to clean up an error ends the program, with
 * EXIT_FAILED and a line: that of the last error if `status` is below 0, or a
 * message.
 */
static inline void output_require(int status)
{
    if (status < 0)
        output_exit(message_last_error());
}
/* The same of reading: damage that ends it is a fault found in the data. */
static inline void output_require_sound(int status)
{
    if (status == LEAT_EFORMAT)
        output_exit(message_found("%s", leat_last_error()));
    output_require(status);
}
#define message_fail(...) output_exit(message_error(__VA_ARGS__))

/* Called first: from then on output_exit ends in trouble (2) where JSON lacked
 * memory, as it may have left out values without an error. */
void output_begin(void);

/* Ends the program in that trouble at once, where JSON lacked memory so far. */
void output_require_json(void);

/* Whether all output is written; else LEAT_EIO, with the reason. */
int output_flush(void);

/* Whether output has failed; right after it did, so that the reason is known.
 */
bool output_has_failed(void);

/* Ends a JSON object that output_json_write could not write. Returns the exit
 * status. */
int output_json_fail(void);

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
