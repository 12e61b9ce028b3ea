#include "support/process_memory.h"

#include <check.h>
#include <malloc.h>
#include <sys/resource.h>

long process_memory_most(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

int64_t process_memory_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.arena + info.hblkhd);
}
