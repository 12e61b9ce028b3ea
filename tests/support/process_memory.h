/* process_memory.h: what the test's process has taken of the system. */
#ifndef LEAT_TESTS_PROCESS_MEMORY_H
#define LEAT_TESTS_PROCESS_MEMORY_H

#include <stdint.h>

/* The most that was resident so far, in KiB. */
long process_memory_most(void);

/* What malloc has, mapped blocks included; 0 under a sanitizer, which has its
   own. */
int64_t process_memory_heap(void);

#endif
