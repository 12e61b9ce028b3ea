#include "base/parallel_for.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

/* One call of the function. */
struct call {
    int (*function)(int i, void *context);
    void *context;
    int i;
    int status;
    leat__thread thread;
    char error[LEAT__ERROR_MAX];
};

static void *run(void *argument)
{
    struct call *call = argument;
    call->status = call->function(call->i, call->context);
    if (call->status)
        leat__error_save(call->error);
    return NULL;
}

int leat__parallel_for(const char *name, int n,
                       int (*function)(int i, void *context), void *context)
{
    struct call *calls = leat__alloc_zero((size_t)n, sizeof(*calls));
    if (!calls)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    for (int i = 0; !status && i < n; i++) {
        calls[i].function = function;
        calls[i].context = context;
        calls[i].i = i;
        status = leat__thread_start(&calls[i].thread, name, run, &calls[i]);
    }
    for (int i = 0; i < n; i++)
        leat__thread_join(&calls[i].thread);
    for (int i = 0; !status && i < n; i++)
        if (calls[i].status)
            status = leat_error(calls[i].status, "%s", calls[i].error);
    leat__free(calls);
    return status;
}
