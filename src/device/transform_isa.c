#include "base/log.h"
#include "device/transform_rows.h"

#include <stdbool.h>
#include <stdlib.h>

extern const leat__row_kernels leat__row_kernels_c;

#if defined(__x86_64__) || defined(__i386__)
extern const leat__row_kernels leat__row_kernels_avx2;
extern const leat__row_kernels leat__row_kernels_avx512;

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
    return true;
}

/* Every set of kernels, best first. */
static const struct {
    const leat__row_kernels *kernels;
    bool (*is_supported)(void);
} sets[] = {
#if defined(__x86_64__) || defined(__i386__)
    {&leat__row_kernels_avx512, has_avx512},
    {&leat__row_kernels_avx2, has_avx2},
#endif
    {&leat__row_kernels_c, always},
};

#define SETS (sizeof(sets) / sizeof(sets[0]))

const leat__row_kernels *leat__row_kernels_find(const char *name)
{
    for (size_t i = 0; i < SETS; i++) {
        if (strcmp(sets[i].kernels->name, name) == 0)
            return sets[i].is_supported() ? sets[i].kernels : NULL;
    }
    return NULL;
}

static const leat__row_kernels *best_set(void)
{
    for (size_t i = 0; i < SETS; i++) {
        if (sets[i].is_supported())
            return sets[i].kernels;
    }
    return &leat__row_kernels_c;
}

const leat__row_kernels *leat__row_kernels_choose(void)
{
    const leat__row_kernels *best = best_set();
    const char *name = getenv("LEAT_ISA");
    if (!name || !*name)
        return best;
    const leat__row_kernels *wanted = leat__row_kernels_find(name);
    if (wanted)
        return wanted;
    leat__log(LEAT_LOG_WARNING,
              "LEAT_ISA=%s names no instruction set that this processor has; "
              "using %s",
              name, best->name);
    return best;
}
