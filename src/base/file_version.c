#include "base/file_version.h"
#include "base/error.h"

int leat__file_version_check(leat__file_version opened, leat__file_version now,
                             const char *name)
{
    if (leat__file_version_is_same(now, opened))
        return LEAT_OK;
    if (opened.size < 0 || now.size < 0)
        return leat_error(LEAT_EIO,
                          "%s: changed while it was read: it is %s regular "
                          "file now; open it again",
                          name, now.size < 0 ? "no" : "a");
    return leat_error(LEAT_EIO,
                      "%s: changed while it was read: it had %lld bytes, and "
                      "has %lld now; open it again",
                      name, (long long)opened.size, (long long)now.size);
}
