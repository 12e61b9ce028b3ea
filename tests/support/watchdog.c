/*
 * DESIGN. A thread waits for stop or the deadline, which may be put off. Then
 * it sends each thread a signal in turn, whose handler prints that thread's
 * stack and stays there for good, so that nothing moves any more.
 *
 * leat's threads block all signals, and pthread_sigmask leaves two out that
 * glibc keeps for itself: nothing can block these. The handler is put on one of
 * them by the system call itself, since glibc's own function refuses.
 */
#include "support/watchdog.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_OF_GLIBC 32
#define FRAMES 64
#define THREADS 256

/* Sanitizers bring it, and name every frame. */
__attribute__((weak)) void __sanitizer_print_stack_trace(void);

/* What the kernel takes. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int is_stopped;           /* protected by lock, as the next */
static struct timespec deadline; /* of CLOCK_MONOTONIC */
static pthread_t thread;
static int is_running;      /* of those who call start and stop */
static int limit;           /* seconds */
static void *frame[FRAMES]; /* of the thread asked last, until it answers */
static int frames;
static atomic_int has_answered;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

__attribute__((no_sanitize("address", "thread", "undefined"))) static void
show_stack(int signal)
{
    (void)signal;
    frames = 0;
    if (__sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
    else
        frames = backtrace(frame, FRAMES);
    atomic_store(&has_answered, 1);
    for (;;)
        pause();
}

static void sleep_briefly(void)
{
    const struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
}

/* Has the function named, which glibc itself knows only of a few. */
static void name_frame(const void *address)
{
    char offset[24];
    Dl_info module;
    if (!dladdr(address, &module))
        return;
    uintptr_t distance = (uintptr_t)address - (uintptr_t)module.dli_fbase;
    snprintf(offset, sizeof(offset), "0x%zx", (size_t)distance);
    char *argument[] = {"addr2line", "-fpe",
                        (char *)(uintptr_t)module.dli_fname, offset, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t child;
    if (!posix_spawnp(&child, argument[0], &actions, NULL, argument, environ))
        waitpid(child, NULL, 0);
    posix_spawn_file_actions_destroy(&actions);
}

static void show_thread(int id)
{
    char text[128], name[32] = "?";
    snprintf(text, sizeof(text), "/proc/self/task/%d/comm", id);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
    if (length > 0)
        name[length - 1] = 0;
    if (fd >= 0)
        close(fd);
    snprintf(text, sizeof(text), "thread %d, %s:\n", id, name);
    say(text);
    atomic_store(&has_answered, 0);
    syscall(SYS_tgkill, getpid(), id, SIGNAL_OF_GLIBC);
    for (int i = 0; i < 1000 && !atomic_load(&has_answered); i++)
        sleep_briefly();
    if (!atomic_load(&has_answered)) {
        say("it does not answer\n");
        return;
    }
    backtrace_symbols_fd(frame, frames, STDERR_FILENO);
    for (int i = 0; i < frames; i++)
        name_frame(frame[i]);
}

/* The way back from a handler, by which stacks are followed beyond it, is
   taken from one that glibc put in its place. */
static void catch (void)
{
    struct sigaction action;
    struct kernel_action raw;
    memset(&action, 0, sizeof(action));
    memset(&raw, 0, sizeof(raw));
    action.sa_handler = show_stack;
    sigaction(SIGUSR2, &action, NULL);
    syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, sizeof(raw.mask));
    raw.handler = show_stack;
    syscall(SYS_rt_sigaction, SIGNAL_OF_GLIBC, &raw, NULL, sizeof(raw.mask));
}

static void show_all(void)
{
    char text[64];
    snprintf(text, sizeof(text), "watchdog: nothing ended within %d seconds\n",
             limit);
    say(text);
    catch ();
    int self = (int)syscall(SYS_gettid), n = 0;
    static int id[THREADS];
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    while (directory && n < THREADS && (entry = readdir(directory))) {
        id[n] = atoi(entry->d_name);
        n += id[n] > 0 && id[n] != self;
    }
    /* The first one comes first, and the second, which may be the thread
       sanitizer's own and die of a signal, last. */
    for (int i = 0; i < n; i++)
        show_thread(id[i ? n - i : 0]);
    abort();
}

static int is_past(const struct timespec *time)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

/* Nobody needs to be told of a deadline that is put off: it is looked at when
   the one before has passed. */
static void *watch(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    while (!is_stopped && !is_past(&deadline)) {
        struct timespec end = deadline;
        pthread_cond_timedwait(&changed, &lock, &end);
    }
    int is_late = !is_stopped;
    pthread_mutex_unlock(&lock);
    if (is_late)
        show_all();
    return NULL;
}

void watchdog_renew(void)
{
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += limit;
    pthread_mutex_unlock(&lock);
}

void watchdog_start(int seconds)
{
    pthread_condattr_t attributes;
    limit = seconds;
    is_stopped = 0;
    watchdog_renew();
    /* The first call loads a library, for which it is too late in a signal. */
    frames = backtrace(frame, 1);
    if (pthread_condattr_init(&attributes) ||
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) ||
        pthread_cond_init(&changed, &attributes) ||
        pthread_create(&thread, NULL, watch, NULL)) {
        say("watchdog: cannot start\n");
        abort();
    }
    pthread_condattr_destroy(&attributes);
    pthread_setname_np(thread, "watchdog");
    is_running = 1;
}

void watchdog_stop(void)
{
    if (!is_running)
        return;
    pthread_mutex_lock(&lock);
    is_stopped = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&changed);
    is_running = 0;
}
