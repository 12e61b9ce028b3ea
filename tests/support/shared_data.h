/* shared_data.h: real files that several projects share, where they are. */
#ifndef LEAT_TESTS_SHARED_DATA_H
#define LEAT_TESTS_SHARED_DATA_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHARED_PATH = 4096 };

static inline const char *shared_folder(void)
{
    const char *folder = getenv("LEAT_SHARED_DATA");
    return folder ? folder : LEAT_SHARED_DATA;
}

/* The path of one of them, in `out`. NULL where it is not there, having said
   so: what needs it is skipped. */
static inline const char *shared_path(char out[SHARED_PATH], const char *name)
{
    snprintf(out, SHARED_PATH, "%s/%s", shared_folder(), name);
    if (access(out, R_OK) == 0)
        return out;
    printf("skipped: %s is absent\n", out);
    return NULL;
}

#endif
