#include "support/system_root.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

void system_root_set_up(void)
{
    snprintf(root, sizeof(root), "/tmp/leat_root_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

void system_root_tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

const char *system_root(void)
{
    return root;
}

void system_root_write(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *c = full + strlen(root) + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        (void)mkdir(full, 0755);
        *c = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}
