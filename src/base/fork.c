#include "base/fork.h"
#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered; /* written once, under `once` */

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void register_handler(void)
{
    registered = pthread_atfork(NULL, NULL, count_fork) == 0;
}

int leat__fork_watch(void)
{
    pthread_once(&once, register_handler);
    return registered ? LEAT_OK
                      : leat_error(LEAT_ENOMEM, "forks cannot be watched: "
                                                "no memory for the handler");
}

unsigned leat__fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
