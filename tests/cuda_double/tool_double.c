/*
 * The whole tool on a machine that the double plays, as these say:
 * LEAT_DOUBLE_BUS=GB_PER_S,US, LEAT_DOUBLE_CALL=US of the host's time,
 * LEAT_DOUBLE_MEMORY_BUS=GB_PER_S, of what goes on
 * within the device, LEAT_DOUBLE_DEVICES=N,
 * LEAT_DOUBLE_MEMORY=BYTES of each device, LEAT_DOUBLE_L2=BYTES of its cache,
 * LEAT_DOUBLE_ONE_ENGINE=1, LEAT_DOUBLE_LAUNCH_BLOCKING=1,
 * LEAT_DOUBLE_PINNABLE=BYTES, LEAT_DOUBLE_FAIL=N, the call from the start on
 * that fails, and LEAT_DOUBLE_MUTANT=N, the rule that is broken.
 */
#include "cuda_double.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void build_machine(void)
{
    double gb_per_s;
    double us;
    const char *bus = getenv("LEAT_DOUBLE_BUS");
    const char *call = getenv("LEAT_DOUBLE_CALL");
    const char *memory = getenv("LEAT_DOUBLE_MEMORY_BUS");
    const char *bytes = getenv("LEAT_DOUBLE_MEMORY");
    const char *l2 = getenv("LEAT_DOUBLE_L2");
    const char *devices = getenv("LEAT_DOUBLE_DEVICES");
    const char *pinnable = getenv("LEAT_DOUBLE_PINNABLE");
    const char *fail = getenv("LEAT_DOUBLE_FAIL");
    const char *mutant = getenv("LEAT_DOUBLE_MUTANT");
    if (bus && sscanf(bus, "%lf,%lf", &gb_per_s, &us) == 2)
        cuda_double_set_bus(gb_per_s, us);
    if (call)
        cuda_double_set_call(strtod(call, NULL));
    if (memory)
        cuda_double_set_memory_bus(strtod(memory, NULL));
    if (bytes)
        cuda_double_set_memory((size_t)strtoull(bytes, NULL, 10));
    if (l2)
        cuda_double_set_l2((size_t)strtoull(l2, NULL, 10));
    cuda_double_set_one_engine(getenv("LEAT_DOUBLE_ONE_ENGINE") != NULL);
    cuda_double_set_launch_blocking(getenv("LEAT_DOUBLE_LAUNCH_BLOCKING") !=
                                    NULL);
    if (devices)
        cuda_double_set_devices(atoi(devices));
    if (pinnable)
        cuda_double_set_pinnable((size_t)strtoull(pinnable, NULL, 10));
    if (fail)
        cuda_double_fail_at(strtoll(fail, NULL, 10), cudaErrorUnknown);
    if (mutant)
        cuda_double_set_mutant((cuda_double_mutant)atoi(mutant));
}
