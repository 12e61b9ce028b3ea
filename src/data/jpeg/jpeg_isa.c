#include "data/jpeg/jpeg_kernels.h"
#include "device/transform_rows.h"

#include <stdlib.h>
#include <string.h>

extern const leat__jpeg_kernels leat__jpeg_kernels_c;

#if defined(__x86_64__) || defined(__i386__)
extern const leat__jpeg_kernels leat__jpeg_kernels_avx2;
extern const leat__jpeg_kernels leat__jpeg_kernels_avx512;

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512vbmi");
}
#endif

const leat__jpeg_kernels *leat__jpeg_kernels_choose(void)
{
    const char *asked = getenv("LEAT_ISA");
    const leat__jpeg_kernels *kernels =
        asked && strcmp(asked, "c") == 0 ? &leat__jpeg_kernels_c : NULL;
#if defined(__x86_64__) || defined(__i386__)
    /* The set of the transform, or the best below it that there is. */
    const char *name = leat__row_kernels_choose()->name;
    if (strcmp(name, "c") != 0 && has_avx2())
        kernels = &leat__jpeg_kernels_avx2;
    if (strcmp(name, "avx512") == 0 && has_avx512())
        kernels = &leat__jpeg_kernels_avx512;
#endif
    return kernels;
}
