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

/* With `caller_helps` the first call is the caller's. */
static int run_all(const char *name, int n, bool caller_helps,
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
        if (i > 0 || !caller_helps)
            status = leat__thread_start(&calls[i].thread, name, run, &calls[i]);
    }
    if (!status && n > 0 && caller_helps)
        run(&calls[0]);
    for (int i = 0; i < n; i++)
        leat__thread_join(&calls[i].thread);
    for (int i = 0; !status && i < n; i++)
        if (calls[i].status)
            status = leat_error(calls[i].status, "%s", calls[i].error);
    leat__free(calls);
    return status;
}

int leat__parallel_for(const char *name, int n,
                       int (*function)(int i, void *context), void *context)
{
    return run_all(name, n, false, function, context);
}

int leat__parallel_for_helped(const char *name, int n,
                              int (*function)(int i, void *context),
                              void *context)
{
    return run_all(name, n, true, function, context);
}
