#include "tools/delivery/single_pass.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An argument that is no name of a file is not there. */
static bool passes(const char *path)
{
    struct stat found;
    return !strcmp(path, "-") ||
           (stat(path, &found) == 0 && !S_ISREG(found.st_mode) &&
            !S_ISDIR(found.st_mode));
}

/* A list, with a name on each line. */
static bool lists_pass(const char *path)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *list = fopen(path, "r");
    while (list && !found && getline(&line, &room, list) >= 0) {
        line[strcspn(line, "\n")] = 0;
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
    bool is_list = false;
    for (;;) {
        char path[PATH_MAX];
        size_t size = strcspn(text, ends);
        if (size > 0 && size < sizeof(path)) {
            memcpy(path, text, size);
            path[size] = 0;
            if (passes(path) || (is_list && lists_pass(path)))
                return true;
        }
        if (!text[size])
            return false;
        is_list = text[size] == '@';
        text += size + 1;
    }
}

bool single_pass_reads(const leat_pipeline *pipeline)
{
    return names_pass(leat_pipeline_text(pipeline));
}
