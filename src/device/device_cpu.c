/* The device of every build: host memory, with nothing to wait for. */
#include "base/memory.h"
#include "device/device.h"

static leat_device cpu = {.ops = &leat__cpu_device_ops};

static int cpu_open(int ordinal, leat_device **out)
{
    (void)ordinal;
    *out = &cpu;
    return LEAT_OK;
}

static int cpu_host_alloc(leat_device *device, size_t bytes, void **out)
{
    (void)device;
    void *memory = leat__alloc_pages(bytes);
    if (!memory)
        return LEAT_ENOMEM;
    *out = memory;
    return LEAT_OK;
}

static void cpu_host_free(leat_device *device, void *memory, size_t bytes)
{
    (void)device;
    leat__free_pages(memory, bytes);
}

const leat_device_ops leat__cpu_device_ops = {
    .size = sizeof(leat_device_ops),
    .name = "cpu",
    .unified = 1,
    .open = cpu_open,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_host_free,
};
