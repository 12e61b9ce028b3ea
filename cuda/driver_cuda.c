/*
 * Contexts are the driver's business. Its functions come by way of the runtime,
 * so that leat does not link libcuda, which only machines with a GPU have.
 */
#include "driver_cuda.h"
#include "base/error.h"
#include "cuda_check.h"

#include <stddef.h>
#include <string.h>

/* Their signatures are those of this version; all drivers for leat have it. */
#define DRIVER_VERSION 11040
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

leat__cuda_driver leat__cuda_driver_api;

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
    {"cuDeviceGet", offsetof(leat__cuda_driver, device_get)},
    {"cuDevicePrimaryCtxRetain", offsetof(leat__cuda_driver, primary_retain)},
    {"cuDevicePrimaryCtxRelease", offsetof(leat__cuda_driver, primary_release)},
    {"cuCtxGetCurrent", offsetof(leat__cuda_driver, get_current)},
    {"cuCtxSetCurrent", offsetof(leat__cuda_driver, set_current)},
    {"cuCtxPushCurrent", offsetof(leat__cuda_driver, push_current)},
    {"cuCtxPopCurrent", offsetof(leat__cuda_driver, pop_current)},
};

/* NULL in `out`: the driver has no such function. */
static cudaError_t find(const char *name, void **out)
{
#if CUDART_VERSION >= 12050
    enum cudaDriverEntryPointQueryResult found;
    return cudaGetDriverEntryPointByVersion(name, out, DRIVER_VERSION,
                                            cudaEnableLegacyStream, &found);
#elif CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found;
    return cudaGetDriverEntryPoint(name, out, cudaEnableLegacyStream, &found);
#else
    return cudaGetDriverEntryPoint(name, out, cudaEnableLegacyStream);
#endif
}

int leat__cuda_driver_load(int ordinal)
{
    leat__cuda_driver api = {0};
    if (leat__cuda_driver_api.get_current)
        return LEAT_OK;
    for (size_t i = 0; i < LENGTH(entries); i++) {
        void *function = NULL;
        cudaError_t error = find(entries[i].name, &function);
        if (error)
            return leat__cuda_error(ordinal, error, entries[i].name);
        if (!function)
            return leat_error(LEAT_EDEVICE,
                              "cuda:%d: the NVIDIA driver has no %s: a newer "
                              "driver is needed",
                              ordinal, entries[i].name);
        memcpy((char *)&api + entries[i].offset, &function, sizeof(function));
    }
    leat__cuda_driver_api = api;
    return LEAT_OK;
}
