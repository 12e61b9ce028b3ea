/*
 * Check kills a test after 4 seconds, too few for a loaded machine. Part of
 * each test program, so that one run by hand has as much time as under ctest.
 */
#include <stdlib.h>

__attribute__((constructor)) static void be_patient(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "120", 0);
}
