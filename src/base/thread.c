/*
 * DESIGN
 *
 * The starter owns a leat__thread and joins it. The arguments of the start are
 * handed over in one allocation, which the new thread frees; its owner is
 * thread-local. The thread blocks all signals but those of a crash, which the
 * system would make deadly past the application's handler, and cannot be
 * cancelled.
 */
#include "base/thread.h"
#include "base/cancel.h"
#include "base/cgroup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/trace.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* About 3 us if a pause takes 40 cycles. */
enum { SPINS = 200 };

typedef struct start {
    void *(*body)(void *);
    void *argument;
    const void *owner;
    char name[16];
} start;

static _Thread_local const void *owner;
static _Thread_local bool is_own;

static void *trampoline(void *argument)
{
    start begin = *(start *)argument;
    leat__free(argument);
    (void)leat__cancel_disable();
    is_own = true;
    owner = begin.owner;
    /* The name is optional: it is for debugging. */
    (void)pthread_setname_np(pthread_self(), begin.name);
    leat__trace_thread(begin.name);
    return begin.body(begin.argument);
}

/* What a thread's own instructions raise. */
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

/* Creates the thread with these signals blocked and a stack of a known size. */
static int create(pthread_t *id, start *begin)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int code = pthread_attr_init(&attributes);
    if (code)
        return code;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigdelset(&all, crashes[i]);
    code = pthread_attr_setstacksize(&attributes, LEAT__STACK_BYTES);
    if (code == 0)
        code = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (code == 0) {
        code = pthread_create(id, &attributes, trampoline, begin);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return code;
}

int leat__thread_start(leat__thread *thread, const char *name,
                       void *(*body)(void *), void *argument)
{
    start *begin = leat__alloc(sizeof(*begin));
    if (!begin)
        return LEAT_ENOMEM;
    begin->body = body;
    begin->argument = argument;
    begin->owner = thread->owner;
    snprintf(begin->name, sizeof(begin->name), "%s", name);
    int code = create(&thread->id, begin);
    if (code) {
        leat__free(begin);
        return leat__error_system(code, "cannot start the thread %s", name);
    }
    thread->running = true;
    return LEAT_OK;
}

bool leat__thread_is_own(void)
{
    return is_own;
}

void leat__thread_set_own(void)
{
    is_own = true;
}

const void *leat__thread_owner(void)
{
    return owner;
}

const void *leat__thread_set_owner(const void *value)
{
    const void *before = owner;
    owner = value;
    return before;
}

void leat__thread_join(leat__thread *thread)
{
    if (!thread->running)
        return;
    pthread_join(thread->id, NULL);
    thread->running = false;
}

/*
 * The calling thread's stack; false: unknown. Of the first thread glibc looks
 * it up in /proc/self/maps, so it is kept while the limit stays the same.
 */
static bool find_stack(uintptr_t *bottom, size_t *bytes)
{
    static _Thread_local struct {
        rlim_t limit;
        void *bottom;
        size_t bytes; /* 0: none is known */
    } known;
    struct rlimit now;
    pthread_attr_t attributes;
    if (getrlimit(RLIMIT_STACK, &now))
        return false;
    if (!known.bytes || known.limit != now.rlim_cur) {
        known.bytes = 0;
        if (pthread_getattr_np(pthread_self(), &attributes))
            return false;
        int code =
            pthread_attr_getstack(&attributes, &known.bottom, &known.bytes);
        pthread_attr_destroy(&attributes);
        if (code)
            return false;
        known.limit = now.rlim_cur;
    }
    *bottom = (uintptr_t)known.bottom;
    *bytes = known.bytes;
    return true;
}

int leat__thread_check_stack(const char *who, size_t needed)
{
    uintptr_t bottom;
    size_t bytes;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!find_stack(&bottom, &bytes) || here < bottom ||
        here - bottom > bytes || here - bottom >= needed)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "%s: the calling thread has %zu KiB of stack left, "
                      "expected at least %zu: start it with a larger one "
                      "(pthread_attr_setstacksize), or call from another",
                      who, (size_t)(here - bottom) >> 10, needed >> 10);
}

static atomic_int pretended_cores;

void leat__thread_pretend_cores(int n)
{
    atomic_store(&pretended_cores, n);
}

int leat__thread_cores(void)
{
    cpu_set_t set;
    int cores = atomic_load(&pretended_cores);
    if (cores > 0)
        return cores;
    cores = 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = CPU_COUNT(&set);
    int quota = leat__cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores < 1 ? 1 : cores;
}

int leat__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code == 0) {
        code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (code == 0)
            code = pthread_cond_init(cond, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    if (code)
        return leat__error_system(code, "cannot make a condition variable");
    return LEAT_OK;
}

void leat__thread_use_batch_scheduling(void)
{
    const struct sched_param none = {0};
    /* If it is refused, the thread is only slower. */
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

int64_t leat__thread_sleep_count(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}

void leat__thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

void leat__mutex_lock_spinning(pthread_mutex_t *mutex)
{
    for (int i = 0; i < SPINS; i++) {
        if (pthread_mutex_trylock(mutex) == 0)
            return;
        leat__thread_pause();
    }
    pthread_mutex_lock(mutex);
}

int leat__mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int code = pthread_mutexattr_init(&attributes);
    if (code == 0) {
        code =
            pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
        if (code == 0)
            code = pthread_mutex_init(mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    if (code)
        return leat__error_system(code, "cannot make a lock");
    return LEAT_OK;
}
