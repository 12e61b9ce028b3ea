/*
 * DESIGN
 *
 * Handlers of pthread_atfork are registered under `once`. In each child, while
 * it has a single thread, one counts the generation, resets the mutexes that
 * were announced, and calls the functions that were. It is registered before
 * the application's, which may then use leat in the child. Both lists only
 * grow, by compare and exchange, so they need no lock, and a child sees each
 * entry whole or not at all.
 *
 * A thread has `held` while it forks, and while no other may. No lock is taken
 * within it, and no signal handler runs in that thread, which might fork.
 */
#include "base/fork.h"
#include "base/error.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The logger's lock, and those of the registries. */
enum { LOCKS_MAX = 8 };

/* Those of LMDB, caches and workspaces. */
enum { FUNCTIONS_MAX = 4 };

static atomic_uint generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool registered; /* written once, under `once` */

typedef void child_function(void);

static _Atomic(pthread_mutex_t *) locks[LOCKS_MAX];
static _Atomic(child_function *) functions[FUNCTIONS_MAX];

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sigset_t before; /* the holder's signal mask; protected by held */

static void begin_child(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    leat__fork_release();
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    for (int i = 0; i < LOCKS_MAX; i++) {
        pthread_mutex_t *lock = atomic_load(&locks[i]);
        if (lock)
            *lock = unlocked;
    }
    for (int i = 0; i < FUNCTIONS_MAX; i++) {
        child_function *function = atomic_load(&functions[i]);
        if (function)
            function();
    }
}

static void register_handler(void)
{
    registered =
        pthread_atfork(leat__fork_hold, leat__fork_release, begin_child) == 0;
}

int leat__fork_watch(void)
{
    pthread_once(&once, register_handler);
    return registered ? LEAT_OK
                      : leat_error(LEAT_ENOMEM, "forks cannot be watched: "
                                                "no memory for the handler");
}

/*
 * Before the application's own handlers, so that leat's runs after theirs when
 * a fork is prepared: these may take locks under which other threads use leat.
 * A program that leat is linked into may register them in constructors, which
 * would come first without the priority.
 */
__attribute__((constructor(101))) static void watch_from_the_start(void)
{
    (void)leat__fork_watch();
}

void leat__fork_hold(void)
{
    sigset_t all, mask;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    pthread_mutex_lock(&held);
    before = mask;
}

void leat__fork_release(void)
{
    sigset_t mask = before, unblocked;
    pthread_mutex_unlock(&held);
    /* What the application's own handlers have unblocked stays so. */
    sigfillset(&unblocked);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&mask, i) == 1)
            sigdelset(&unblocked, i);
    (void)pthread_sigmask(SIG_UNBLOCK, &unblocked, NULL);
}

unsigned leat__fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

void leat__fork_reset_mutex(pthread_mutex_t *lock)
{
    /* Without the handler a child may find the lock held: no reason to fail
     * here. */
    (void)leat__fork_watch();
    for (int i = 0; i < LOCKS_MAX; i++) {
        pthread_mutex_t *there = NULL;
        if (atomic_compare_exchange_strong(&locks[i], &there, lock) ||
            there == lock)
            return;
    }
    assert(!"there is room for every lock");
}

void leat__fork_call_in_child(void (*function)(void))
{
    for (int i = 0; i < FUNCTIONS_MAX; i++) {
        child_function *there = NULL;
        if (atomic_compare_exchange_strong(&functions[i], &there, function) ||
            there == function)
            return;
    }
    assert(!"there is room for every function");
}
