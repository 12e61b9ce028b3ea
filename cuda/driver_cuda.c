/*
 * Contexts are the driver's business. Its functions come by way of the runtime,
 * so that leat does not link libcuda, which only machines with a GPU have.
 */
#include "driver_cuda.h"
#include "base/error.h"
#include "cuda_check.h"

#include <stddef.h>
#include <string.h>

/* Of the signatures. All drivers for leat have the first version. */
#define VERSION 11040
#define VERSION_ID 12000
#define VERSION_GREEN 12050
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

leat__cuda_driver leat__cuda_driver_api;

static const struct entry {
    const char *name;
    size_t offset;
    unsigned version;
} entries[] = {
    {"cuDeviceGet", offsetof(leat__cuda_driver, device_get), VERSION},
    {"cuDevicePrimaryCtxRetain", offsetof(leat__cuda_driver, primary_retain),
     VERSION},
    {"cuDevicePrimaryCtxRelease", offsetof(leat__cuda_driver, primary_release),
     VERSION},
    {"cuCtxGetCurrent", offsetof(leat__cuda_driver, get_current), VERSION},
    {"cuCtxSetCurrent", offsetof(leat__cuda_driver, set_current), VERSION},
    {"cuCtxPushCurrent", offsetof(leat__cuda_driver, push_current), VERSION},
    {"cuCtxPopCurrent", offsetof(leat__cuda_driver, pop_current), VERSION},
    {"cuCtxGetDevice", offsetof(leat__cuda_driver, context_device), VERSION},
    {"cuStreamGetCtx", offsetof(leat__cuda_driver, stream_context), VERSION},
    {"cuStreamGetCtx", offsetof(leat__cuda_driver, stream_contexts),
     VERSION_GREEN},
    {"cuCtxGetId", offsetof(leat__cuda_driver, context_id), VERSION_ID},
};

/*
 * NULL in `out`: the driver has no such function. Older toolkits give the
 * signatures of their own version.
 */
static cudaError_t find(const struct entry *entry, void **out)
{
#if CUDART_VERSION >= 12050
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(
        entry->name, out, entry->version, cudaEnableLegacyStream, &found);
#elif CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaSuccess;
    if (entry->version <= CUDART_VERSION)
        error = cudaGetDriverEntryPoint(entry->name, out,
                                        cudaEnableLegacyStream, &found);
#else
    cudaError_t error = cudaSuccess;
    if (entry->version <= CUDART_VERSION)
        error =
            cudaGetDriverEntryPoint(entry->name, out, cudaEnableLegacyStream);
#endif
    if (error != cudaErrorInvalidValue || entry->version == VERSION)
        return error;
    /* The driver is older than that version. */
    (void)cudaGetLastError();
    return cudaSuccess;
}

int leat__cuda_driver_load(int ordinal)
{
    leat__cuda_driver api = {0};
    if (leat__cuda_driver_api.get_current)
        return LEAT_OK;
    for (size_t i = 0; i < LENGTH(entries); i++) {
        void *function = NULL;
        cudaError_t error = find(&entries[i], &function);
        if (error)
            return leat__cuda_error(ordinal, error, entries[i].name);
        if (!function && entries[i].version == VERSION)
            return leat_error(LEAT_EDEVICE,
                              "cuda:%d: the NVIDIA driver has no %s: a newer "
                              "driver is needed",
                              ordinal, entries[i].name);
        memcpy((char *)&api + entries[i].offset, &function, sizeof(function));
    }
    leat__cuda_driver_api = api;
    return LEAT_OK;
}
