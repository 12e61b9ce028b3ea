/* message.h: what the tool says when something is wrong. */
#ifndef LEAT_TOOLS_MESSAGE_H
#define LEAT_TOOLS_MESSAGE_H

#include <leat/status.h>

/* The tool's exit statuses. */
enum { EXIT_FAILED = 1, EXIT_MISUSED = 2 };

/*
 * Prints `leat: ` and the text on stderr, in one line whatever it holds.
 * Returns EXIT_FAILED.
 */
int message_error(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* The same with the line of the last failed call of leat. */
int message_last_error(void);

/* Whether any message was: one line says enough. */
int message_was_printed(void);

/* Wrong usage of `command`, pointing to its --help. Returns EXIT_MISUSED. */
int message_misuse(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
