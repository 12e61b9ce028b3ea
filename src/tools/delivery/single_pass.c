#include "tools/delivery/single_pass.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An argument that is no name of a file is not there. */
static bool is_pipe(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode) &&
           !S_ISDIR(found.st_mode);
}

/* A path, or a pattern. */
static bool passes(const char *path)
{
    glob_t match = {0};
    bool found = is_pipe(path) || !strcmp(path, "-");
    if (strpbrk(path, "*?[") && !glob(path, GLOB_NOESCAPE, NULL, &match))
        for (size_t i = 0; i < match.gl_pathc && !found; i++)
            found = is_pipe(match.gl_pathv[i]);
    globfree(&match);
    return found;
}

/* A list, with a name on each line. */
static bool lists_pass(const char *path)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *list = fopen(path, "r");
    while (list && !found && getline(&line, &room, list) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        found = passes(line);
    }
    free(line);
    if (list)
        fclose(list);
    return found;
}

/* The names in the text of a source, also in a pipeline that is a value. */
static bool names_pass(const char *text)
{
    static const char ends[] = ":,|(){}'\"@= ";
    char before = 0;
    for (;;) {
        char path[PATH_MAX];
        size_t size = strcspn(text, ends);
        /* As a value - is a separator. */
        bool is_value = before == '=' && size == 1 && *text == '-';
        if (size > 0 && size < sizeof(path) && !is_value) {
            memcpy(path, text, size);
            path[size] = 0;
            if (passes(path) || (before == '@' && lists_pass(path)))
                return true;
        }
        if (!text[size])
            return false;
        before = text[size];
        text += size + 1;
    }
}

bool single_pass_reads(const leat_pipeline *pipeline)
{
    return names_pass(leat_pipeline_text(pipeline));
}
