/*
 * What a profiler does when NVTX loads it: it puts functions of its own into
 * the table of callbacks. These write down what they are told. Before that it
 * calls a function of the test, whose address an environment variable has.
 */
#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by lock. */
static char domain[MOST][64];
static int domains;
static char string[MOST][64];
static int strings;
static int begun[MOST];
static char path[MOST][64];
static int paths;
static char thread[MOST][64];
static int threads;
static int open_ranges; /* of all threads */
static int unbalanced;

static _Thread_local int depth;

static int add(char names[MOST][64], int *n, const char *name)
{
    pthread_mutex_lock(&lock);
    int i = *n;
    if (i < MOST) {
        strncpy(names[i], name, sizeof(names[i]) - 1);
        *n = i + 1;
    }
    pthread_mutex_unlock(&lock);
    return i;
}

static int count(char names[MOST][64], int n, const char *name)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++)
        found += strcmp(names[i], name) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Handles are places in the tables, and one more. */
static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)(uintptr_t)(add(domain, &domains, name) + 1);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t in,
                                          const char *name)
{
    (void)in;
    return (nvtxStringHandle_t)(uintptr_t)(add(string, &strings, name) + 1);
}

static int begin_range(nvtxDomainHandle_t in, const nvtxEventAttributes_t *what)
{
    int is_path = what->messageType == NVTX_MESSAGE_TYPE_ASCII;
    uintptr_t i = (uintptr_t)what->message.registered - 1;
    if (is_path)
        add(path, &paths, what->message.ascii);
    pthread_mutex_lock(&lock);
    if ((uintptr_t)in > (uintptr_t)domains ||
        (!is_path && (what->messageType != NVTX_MESSAGE_TYPE_REGISTERED ||
                      i >= (uintptr_t)strings)))
        unbalanced++;
    else if (!is_path)
        begun[i]++;
    open_ranges++;
    pthread_mutex_unlock(&lock);
    return depth++;
}

static int end_range(nvtxDomainHandle_t in)
{
    (void)in;
    pthread_mutex_lock(&lock);
    unbalanced += depth == 0;
    open_ranges--;
    pthread_mutex_unlock(&lock);
    return --depth;
}

static void name_thread(uint32_t id, const char *name)
{
    (void)id;
    add(thread, &threads, name);
}

int has_domain(const char *name);
int has_domain(const char *name)
{
    return count(domain, domains, name);
}

int ranges_begun(const char *name);
int ranges_begun(const char *name)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < strings; i++)
        n += strcmp(string[i], name) == 0 ? begun[i] : 0;
    pthread_mutex_unlock(&lock);
    return n;
}

int paths_begun(const char *name);
int paths_begun(const char *name)
{
    return count(path, paths, name);
}

int ranges_unbalanced(void);
int ranges_unbalanced(void)
{
    pthread_mutex_lock(&lock);
    int n = unbalanced + open_ranges;
    pthread_mutex_unlock(&lock);
    return n;
}

int threads_named(const char *name);
int threads_named(const char *name)
{
    return count(thread, threads, name);
}

static int put(NvtxFunctionTable table, unsigned int size, unsigned int i,
               NvtxFunctionPointer function)
{
    if (i >= size)
        return 1;
    *table[i] = function;
    return 0;
}

static void call_the_test(void)
{
    const char *text = getenv("LEAT_INJECTION_CALLS");
    void *address;
    void (*function)(void);
    if (!text || sscanf(text, "%p", &address) != 1)
        return;
    memcpy(&function, &address, sizeof(function));
    function();
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core;
    NvtxFunctionTable core2;
    unsigned int size;
    unsigned int size2;
    call_the_test();
    if (!callbacks ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2,
                                           &size2))
        return 0;
    return !put(core, size, NVTX_CBID_CORE_NameOsThreadA,
                (NvtxFunctionPointer)name_thread) &&
           !put(core2, size2, NVTX_CBID_CORE2_DomainCreateA,
                (NvtxFunctionPointer)create_domain) &&
           !put(core2, size2, NVTX_CBID_CORE2_DomainRegisterStringA,
                (NvtxFunctionPointer)register_string) &&
           !put(core2, size2, NVTX_CBID_CORE2_DomainRangePushEx,
                (NvtxFunctionPointer)begin_range) &&
           !put(core2, size2, NVTX_CBID_CORE2_DomainRangePop,
                (NvtxFunctionPointer)end_range);
}
