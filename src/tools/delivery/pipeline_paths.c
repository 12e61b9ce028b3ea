#include "tools/delivery/pipeline_paths.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What ends a value of a pipeline's text, where no backslash is before it, and
   after what one may begin: a path may hold a colon. */
#define ENDS ",|()="
#define BEGINS ":" ENDS
#define BLANKS " \t\n\r"

/* What is looked for among the paths. */
struct search {
    bool (*is_found)(const struct search *search, const char *path);
    struct stat file; /* of is_database: the data of the LMDB */
};

/* Standard input, a pipe or a device. One that is no name of a file is not
   there. */
static bool is_pipe(const struct search *search, const char *path)
{
    (void)search;
    struct stat found;
    if (!strcmp(path, "-"))
        return true;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode) &&
           !S_ISDIR(found.st_mode);
}

static bool is_file(const struct search *search, const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && found.st_dev == search->file.st_dev &&
           found.st_ino == search->file.st_ino;
}

/* The file itself, or a directory with it as an LMDB's data. */
static bool is_database(const struct search *search, const char *path)
{
    char data[PATH_MAX];
    int length = snprintf(data, sizeof(data), "%s/data.mdb", path);
    return is_file(search, path) ||
           (length < (int)sizeof(data) && is_file(search, data));
}

/* A path, or a pattern. */
static bool finds(const struct search *search, const char *path)
{
    glob_t match = {0};
    bool found = search->is_found(search, path);
    if (strpbrk(path, "*?[") && !glob(path, GLOB_NOESCAPE, NULL, &match))
        for (size_t i = 0; i < match.gl_pathc && !found; i++)
            found = search->is_found(search, match.gl_pathv[i]);
    globfree(&match);
    return found;
}

/* A list, with a path on each line; one that is longer than the buffer is none.
 */
static bool finds_listed(const struct search *search, const char *path)
{
    char line[PATH_MAX + 2];
    bool found = false, begins = true;
    FILE *list = is_pipe(NULL, path) ? NULL : fopen(path, "re");
    while (list && !found && fgets(line, sizeof(line), list)) {
        bool begins_next = strchr(line, '\n') != NULL;
        size_t size = strcspn(line, "\n");
        line[size] = 0;
        if (size > 0 && line[size - 1] == '\r')
            line[size - 1] = 0;
        found = begins && search->is_found(search, line);
        begins = begins_next;
    }
    if (list)
        fclose(list);
    return found;
}

/* The value at `text` as its reader gets it, without the backslashes and the
   blanks at its edges; one that is too long for a path is empty. */
static void read_value(char out[PATH_MAX], const char *text)
{
    size_t used = 0, kept = 0;
    text += strspn(text, BLANKS);
    for (; *text && !strchr(ENDS, *text) && used < PATH_MAX; text++) {
        bool is_escaped = text[0] == '\\' && text[1];
        text += is_escaped;
        out[used++] = *text;
        if (is_escaped || !strchr(BLANKS, *text))
            kept = used;
    }
    out[used < PATH_MAX ? kept : 0] = 0;
}

/* The values in the text of a source, also in a pipeline that is one. */
static bool search_text(const struct search *search, const char *text)
{
    char value[PATH_MAX];
    for (char before = '|'; before; text += before != 0) {
        read_value(value, text);
        /* As a named value - is a separator. */
        bool is_path = before != '=' || strcmp(value, "-") != 0;
        if (value[0] == '@' ? finds_listed(search, value + 1)
                            : is_path && finds(search, value))
            return true;
        while (*text && !strchr(BEGINS, *text))
            text += 1 + (text[0] == '\\' && text[1]);
        before = *text;
    }
    return false;
}

bool pipeline_paths_pipe(const leat_pipeline *pipeline)
{
    const struct search search = {.is_found = is_pipe};
    return search_text(&search, leat_pipeline_text(pipeline));
}

bool pipeline_paths_database(const leat_pipeline *pipeline, const char *path)
{
    char data[PATH_MAX];
    struct search search = {.is_found = is_database};
    int length = snprintf(data, sizeof(data), "%s/data.mdb", path);
    return length < (int)sizeof(data) && stat(data, &search.file) == 0 &&
           search_text(&search, leat_pipeline_text(pipeline));
}
