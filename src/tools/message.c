#include "tools/message.h"
#include "tools/plain_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_BYTES = 2048 };

static int printed; /* by the main thread, as all messages are */

/* Paths and keys may hold anything; a line break would make two messages. */
static void print_line(const char *text)
{
    char plain[4 * TEXT_BYTES];
    printed = 1;
    plain_text_write(plain, sizeof(plain), text);
    /* Where both streams go to one file, what was printed before comes first.
       What cannot be written shows at the end. */
    fflush(stdout);
    /* A terminal's line may hold a bar, which is drawn anew. */
    fprintf(stderr, "%sleat: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
            plain);
}

int message_error(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    print_line(text);
    return EXIT_FAILED;
}

int message_was_printed(void)
{
    return printed;
}

int message_last_error(void)
{
    return message_error("%s", leat_last_error());
}

int message_misuse(const char *command, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof(text))
        snprintf(text + length, sizeof(text) - (size_t)length,
                 " (see leat%s%s --help)", *command ? " " : "", command);
    print_line(text);
    return EXIT_MISUSED;
}
