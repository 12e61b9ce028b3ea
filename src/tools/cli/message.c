#include "tools/cli/message.h"
#include "tools/cli/plain_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_BYTES = 2048 };

/* Paths and keys may contain any byte; a line break would make two messages. */
static void print_line(const char *text)
{
    char plain[4 * TEXT_BYTES];
    plain_text_write(plain, sizeof(plain), text);
    /* Keeps the order where both streams go to one file. A failure shows at the
       end of main. */
    fflush(stdout);
    /* A terminal's line may hold a progress bar, which is redrawn. */
    fprintf(stderr, "%sleat: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
            plain);
}

int message_print(int exit_status, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    print_line(text);
    return exit_status;
}

int message_last_error(void)
{
    return message_error("%s", leat_last_error());
}

int message_version(void)
{
    printf("leat %s\n", leat_version());
    return 0;
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
