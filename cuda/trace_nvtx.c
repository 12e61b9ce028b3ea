/*
 * The tracer over NVTX, for Nsight Systems and what else listens: ranges of the
 * calling thread in a domain of leat's own, and the names of its threads.
 *
 * NVTX is headers alone. The first call looks for a tool, which an environment
 * variable names; where none is attached the domain is NULL, and all that comes
 * later is a look at it.
 *
 * In a child that is forked amid that call NVTX waits for its parent's thread
 * for ever, and so may `once`: such a child traces nothing.
 */
#include "base/fork.h"
#include "base/trace.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[] = {
    [LEAT__SPAN_READ] = "read",     [LEAT__SPAN_TRANSFORM] = "transform",
    [LEAT__SPAN_UPLOAD] = "upload", [LEAT__SPAN_KERNEL] = "kernel",
    [LEAT__SPAN_WAIT] = "wait",
};

_Static_assert(sizeof(names) / sizeof(names[0]) == LEAT__SPANS,
               "each span has a name");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint begun; /* 1 + the fork generation that opens it, or 0 */
static atomic_bool is_open;
/* Written before is_open. */
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t registered[LEAT__SPANS];

static void open_domain(void)
{
    nvtxDomainHandle_t own = nvtxDomainCreateA("leat");
    for (int i = 0; own && i < LEAT__SPANS; i++)
        registered[i] = nvtxDomainRegisterStringA(own, names[i]);
    domain = own;
    atomic_store_explicit(&is_open, true, memory_order_release);
}

/* Returns false in a child that was forked while its parent opened it. */
static bool open_once(void)
{
    unsigned first = 0, here = leat__fork_generation() + 1;
    if (!atomic_compare_exchange_strong(&begun, &first, here) && first != here)
        return false;
    pthread_once(&once, open_domain);
    return true;
}

static bool is_heard(void)
{
    return (atomic_load_explicit(&is_open, memory_order_acquire) ||
            open_once()) &&
           domain != NULL;
}

static void nvtx_begin(leat__span span)
{
    if (!is_heard())
        return;
    nvtxEventAttributes_t what = {0};
    what.version = NVTX_VERSION;
    what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    what.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    what.message.registered = registered[span];
    nvtxDomainRangePushEx(domain, &what);
}

static void nvtx_begin_named(const char *name)
{
    if (!is_heard())
        return;
    nvtxEventAttributes_t what = {0};
    what.version = NVTX_VERSION;
    what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    what.messageType = NVTX_MESSAGE_TYPE_ASCII;
    what.message.ascii = name;
    nvtxDomainRangePushEx(domain, &what);
}

static void nvtx_end(void)
{
    if (is_heard())
        nvtxDomainRangePop(domain);
}

static void nvtx_name_thread(const char *name)
{
    if (is_heard())
        nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

static const leat__trace_ops nvtx_ops = {
    .begin = nvtx_begin,
    .begin_named = nvtx_begin_named,
    .end = nvtx_end,
    .name_thread = nvtx_name_thread,
};

const leat__trace_ops *const leat__tracer = &nvtx_ops;
