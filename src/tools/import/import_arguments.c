#include "tools/import/import_arguments.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int add_line(struct import_arguments *arguments, char *line)
{
    size_t length = strlen(line);
    char *text = realloc(arguments->text, arguments->length + length + 2);
    if (!text)
        return leat_error(LEAT_ENOMEM, "out of memory for a list of files");
    for (char *c = line; *c; c++)
        if (*c == '\n')
            *c = '?';
    memcpy(text + arguments->length, line, length);
    arguments->text = text;
    arguments->length += length + 1;
    text[arguments->length - 1] = '\n';
    text[arguments->length] = 0;
    return LEAT_OK;
}

int import_arguments_add(struct import_arguments *arguments, const char *format,
                         ...)
{
    char *line = NULL;
    va_list values;
    va_start(values, format);
    int length = vasprintf(&line, format, values);
    va_end(values);
    if (length < 0)
        return leat_error(LEAT_ENOMEM, "out of memory for a list of files");
    int status = add_line(arguments, line);
    free(line);
    return status;
}

int import_arguments_add_file(struct import_arguments *arguments,
                              const char *path)
{
    struct stat state;
    if (stat(path, &state))
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(state.st_mode))
        return leat_error(LEAT_EFORMAT, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(state.st_mode)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return import_arguments_add(
            arguments, "%s, read once by process %ld at %lld.%09ld", path,
            (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
    }
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    int status = import_arguments_add(arguments, "%s, %lld bytes of %lld.%09ld",
                                      absolute, (long long)state.st_size,
                                      (long long)state.st_mtim.tv_sec,
                                      state.st_mtim.tv_nsec);
    free(absolute);
    return status;
}

void import_arguments_finish(struct import_arguments *arguments)
{
    free(arguments->text);
    memset(arguments, 0, sizeof(*arguments));
}
