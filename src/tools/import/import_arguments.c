#include "tools/import/recipe.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int add_line(struct recipe *recipe, char *line)
{
    size_t length = strlen(line);
    char *text = realloc(recipe->text, recipe->length + length + 2);
    if (!text)
        return leat_error(LEAT_ENOMEM, "out of memory for a list of files");
    for (char *c = line; *c; c++)
        if (*c == '\n')
            *c = '?';
    memcpy(text + recipe->length, line, length);
    recipe->text = text;
    recipe->length += length + 1;
    text[recipe->length - 1] = '\n';
    text[recipe->length] = 0;
    return LEAT_OK;
}

int recipe_add(struct recipe *recipe, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (length < 0)
        return leat_error(LEAT_ENOMEM, "out of memory for a list of files");
    int status = add_line(recipe, line);
    free(line);
    return status;
}

int recipe_add_file(struct recipe *recipe, const char *path)
{
    struct stat state;
    if (stat(path, &state))
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(state.st_mode))
        return leat_error(LEAT_EFORMAT, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(state.st_mode)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return recipe_add(recipe, "%s, read once by process %ld at %lld.%09ld",
                          path, (long)getpid(), (long long)now.tv_sec,
                          now.tv_nsec);
    }
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    int status =
        recipe_add(recipe, "%s, %lld bytes of %lld.%09ld", absolute,
                   (long long)state.st_size, (long long)state.st_mtim.tv_sec,
                   state.st_mtim.tv_nsec);
    free(absolute);
    return status;
}

void recipe_finish(struct recipe *recipe)
{
    free(recipe->text);
    memset(recipe, 0, sizeof(*recipe));
}
