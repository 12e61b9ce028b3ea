#include "tools/delivery/single_pass.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* An argument that is no name of a file is not there. */
static bool passes(const char *name, size_t size)
{
    char path[PATH_MAX];
    struct stat found;
    if (size == 1 && *name == '-')
        return true;
    if (size == 0 || size >= sizeof(path))
        return false;
    memcpy(path, name, size);
    path[size] = 0;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode) &&
           !S_ISDIR(found.st_mode);
}

/* The names in the text of a source, also in a pipeline that is a value. */
static bool names_pass(const char *text)
{
    static const char ends[] = ":,|(){}'\"@= ";
    for (;;) {
        size_t size = strcspn(text, ends);
        if (passes(text, size))
            return true;
        if (!text[size])
            return false;
        text += size + 1;
    }
}

bool single_pass_reads(const leat_pipeline *pipeline)
{
    return names_pass(leat_pipeline_text(pipeline));
}
