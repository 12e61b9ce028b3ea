#include "tools/database/staged_contents.h"

#include "base/error.h"
#include "base/file_place.h"
#include "tools/database/replaced_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int staged_contents_is_foreign(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strcmp(name, "data.mdb") != 0 && strcmp(name, "lock.mdb") != 0;
}

int staged_contents_find(int at, const char *name, const char *path,
                         int (*filter)(const struct dirent *entry),
                         enum staged_contents *out)
{
    struct stat found;
    struct dirent **foreign = NULL;
    *out = STAGED_MISSING;
    if (fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    *out = STAGED_FOREIGN;
    if (!S_ISDIR(found.st_mode))
        return LEAT_OK;
    int n = scandirat(at, name, &foreign, filter, NULL);
    if (n < 0 && errno != ENOENT)
        return leat__error_system(errno, "%s", path);
    *out = n < 0 ? STAGED_MISSING : n ? STAGED_FOREIGN : STAGED_OWN;
    while (n > 0)
        free(foreign[--n]);
    free(foreign);
    return LEAT_OK;
}

/* What gives way has to be a database's, on the mount that the new one is moved
   from; both are known before the work is done. */
static int check_replaced(const char *target, int at, const char *from)
{
    int shares = leat__file_shares_mount(at, from, target);
    if (shares < 0)
        return leat__error_system(errno, "%s", target);
    if (shares)
        return replaced_lock_check(target);
    return leat_error(
        LEAT_EINVAL,
        "%s: is a mount point, to which no database can be moved; "
        "give a name inside it",
        target);
}

int staged_contents_check_target(const char *target, int at, const char *from,
                                 bool replace)
{
    enum staged_contents found;
    int status = staged_contents_find(AT_FDCWD, target, target,
                                      staged_contents_is_foreign, &found);
    if (!status && found == STAGED_OWN && replace)
        return check_replaced(target, at, from);
    if (status || found == STAGED_MISSING)
        return status;
    return leat_error(LEAT_EINVAL,
                      found == STAGED_OWN
                          ? "%s: exists already; --force would replace it"
                          : "%s: exists and is no database directory; choose "
                            "another name",
                      target);
}
