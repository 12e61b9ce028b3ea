/* message.h: error messages and exit statuses. */
#ifndef LEAT_TOOLS_CLI_MESSAGE_H
#define LEAT_TOOLS_CLI_MESSAGE_H

#include <leat/status.h>

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

/* Wrong usage of `command`, pointing to its --help. Returns EXIT_MISUSED. */
int message_misuse(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
