#include "support/nobody.h"

#include <check.h>
#include <unistd.h>

enum { NOBODY = 65534 };

int nobody_become(void)
{
    if (getuid() != 0)
        return 0;
    return setgid(NOBODY) || setuid(NOBODY) ? -1 : 0;
}

void nobody_enter(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
}

void nobody_leave(void)
{
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
