/* living.h: that nothing of a device lives any more. */
#ifndef LEAT_TESTS_LIVING_H
#define LEAT_TESTS_LIVING_H

#include "cuda_double.h"

#include <check.h>

/* Streams of cuda_double_stream do not count. Fails the test otherwise. */
static inline void living_check_none(void)
{
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.streams, 0);
    ck_assert_int_eq(living.events, 0);
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

#endif
