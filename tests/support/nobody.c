#include "support/nobody.h"

#include <check.h>
#include <unistd.h>

enum { NOBODY = 65534, ANOTHER = 65533 };

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

void nobody_enter_for_another(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(setresuid(ANOTHER, NOBODY, 0), 0);
}

void nobody_leave(void)
{
    uid_t real, effective, saved;
    ck_assert_int_eq(getresuid(&real, &effective, &saved), 0);
    if (saved == 0)
        ck_assert_int_eq(setresuid(0, 0, 0), 0);
}
