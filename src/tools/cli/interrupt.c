#include "tools/cli/interrupt.h"

#include "base/thread.h"

#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* `timeout` and some supervisors send a signal twice, to a process and to its
   group: one so soon after the first is the same request. */
enum { SAME_SIGNAL_MS = 500 };

/* What a command that opens pipelines may take to end, and a message. */
enum { END_SECONDS = 1 };

static atomic_int caught; /* a signal's number; 0: none */
static volatile sig_atomic_t is_held;
static int64_t caught_at; /* milliseconds; the handler's alone */

/* An open /dev/null, in whose place stdout is after a signal; -1: none. */
static volatile sig_atomic_t nothing = -1;

static atomic_int writer; /* the thread that writes a message; 0: none */
static _Thread_local sigset_t mask_before; /* of its signals */

/* What a signal cancels, by a thread that the handler wakes: it may lock. */
enum { MOST_WATCHED = 4 };
static struct {
    void (*cancel)(void *object);
    void *object; /* NULL: none */
} watched[MOST_WATCHED];
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static leat__thread watcher;
static volatile sig_atomic_t lacks_watcher; /* for what is watched */
static volatile sig_atomic_t is_opening;    /* see interrupt_catch_opening */
static sem_t arrived;
static volatile sig_atomic_t watches; /* `arrived` is initialised */

static int64_t now_ms(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A terminal with `stty tostop` stops a background job that writes to it. Only
 * async-signal-safe calls. */
static bool stops_messages(void)
{
    pid_t foreground = tcgetpgrp(STDERR_FILENO);
    struct termios terminal;
    struct sigaction action;
    return foreground >= 0 && foreground != getpgrp() &&
           tcgetattr(STDERR_FILENO, &terminal) == 0 &&
           (terminal.c_lflag & TOSTOP) &&
           (sigaction(SIGTTOU, NULL, &action) || action.sa_handler != SIG_IGN);
}

static int own_thread(void)
{
    return (int)syscall(SYS_gettid);
}

/* An interrupted write is restarted, and then has no one to wait for. Only
 * async-signal-safe calls. */
static void end_messages(void)
{
    int thread = writer;
    dup2(nothing, STDERR_FILENO);
    if (thread && thread != own_thread())
        syscall(SYS_tgkill, getpid(), thread, SIGALRM);
}

/* A message has taken too long, or its thread is to restart the write. */
static void handle_alarm(int signal_number)
{
    int error = errno;
    (void)signal_number;
    if (writer)
        end_messages();
    errno = error;
}

/* poll calls a terminal writable that has room for a part of a line. Only
 * async-signal-safe calls. */
static void limit_message(void)
{
    if (caught && writer)
        alarm(END_SECONDS);
}

/* stderr is to tell of the end, unless nobody reads it or that would stop the
 * tool. */
static void end_output(void)
{
    struct pollfd messages = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (nothing < 0)
        return;
    dup2(nothing, STDOUT_FILENO);
    if (poll(&messages, 1, 0) == 0 || stops_messages())
        end_messages();
}

/*
 * Dies of the signal. The first process of a container does not, and exits with
 * what a shell reports. Only async-signal-safe calls.
 */
static void die(int signal_number)
{
    sigset_t own;
    signal(signal_number, SIG_DFL);
    sigemptyset(&own);
    sigaddset(&own, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &own, NULL);
    raise(signal_number);
    _exit(128 + signal_number);
}

/* Only async-signal-safe calls. All signals are blocked meanwhile. */
static void handle_signal(int signal_number)
{
    int error = errno;
    int64_t now = now_ms();
    /* What is still to be said has no reader, or the system repeats SIGXCPU
       each second: no reason not to clean up. */
    if (caught && (signal_number == SIGPIPE || signal_number == SIGXCPU))
        return;
    bool is_second = caught && now - caught_at > SAME_SIGNAL_MS;
    if ((is_second || lacks_watcher) && !is_held)
        die(signal_number);
    if (!caught)
        caught_at = now;
    const struct sigaction alarmed = {.sa_handler = handle_alarm,
                                      .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &alarmed, NULL);
    caught = signal_number;
    /* A background job's read of its terminal is restarted, and would stop it
       again: now it fails. */
    signal(SIGTTIN, SIG_IGN);
    end_output();
    limit_message();
    if (watches)
        sem_post(&arrived);
    errno = error;
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
    struct sigaction action, before;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handle_signal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    /* What the parent ignores stays ignored: nohup for a terminal's end, and a
       shell, for its background jobs, for Ctrl-C. */
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], NULL, &before) ||
            before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

/* From now on a signal ends stdout. */
static void watch_output(void)
{
    if (nothing < 0)
        nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* A signal that arrived before is seen here, a later one by its handler. */
    if (caught)
        end_output();
}

void interrupt_catch(void)
{
    is_opening = 0;
    watch_output();
    catch_signals();
}

bool interrupt_is_quiet(void)
{
    return caught == SIGPIPE || (is_opening && caught);
}

int interrupt_check(void)
{
    if (!caught)
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "interrupted (%s)", strsignal(caught));
}

/* Kills the command that opens pipelines if it goes on. What it has begun to
 * write goes before that, without messages. */
static void set_limit(void)
{
    struct timespec left = {END_SECONDS, 0};
    while (nanosleep(&left, &left))
        ;
    if (!is_opening)
        return;
    if (nothing >= 0)
        dup2(nothing, STDERR_FILENO);
    leat_caches_abandon();
    die(caught);
}

static void *cancel_watched(void *unused)
{
    for (;;) {
        while (sem_wait(&arrived))
            ;
        pthread_mutex_lock(&watched_lock);
        for (int i = 0; i < MOST_WATCHED; i++)
            if (watched[i].object)
                watched[i].cancel(watched[i].object);
        pthread_mutex_unlock(&watched_lock);
        if (is_opening && caught)
            set_limit();
    }
    return unused;
}

static bool start_watcher_locked(void)
{
    if (!watches)
        watches = sem_init(&arrived, 0, 0) == 0;
    if (watches && !watcher.running)
        leat__thread_start(&watcher, "leat-signals", cancel_watched, NULL);
    return watcher.running;
}

void interrupt_catch_opening(void)
{
    pthread_mutex_lock(&watched_lock);
    bool watched_for = start_watcher_locked();
    pthread_mutex_unlock(&watched_lock);
    if (!watched_for)
        return;
    is_opening = 1;
    watch_output();
    catch_signals();
}

static void update_watcher_locked(void)
{
    bool is_any = false;
    for (int i = 0; i < MOST_WATCHED; i++)
        is_any |= watched[i].object != NULL;
    lacks_watcher = is_any && !start_watcher_locked();
}

void interrupt_watch(void (*cancel)(void *object), void *object)
{
    int i = 0;
    pthread_mutex_lock(&watched_lock);
    while (i < MOST_WATCHED && watched[i].object)
        i++;
    if (i < MOST_WATCHED) {
        watched[i].cancel = cancel;
        watched[i].object = object;
    }
    update_watcher_locked();
    pthread_mutex_unlock(&watched_lock);
    /* A signal that arrived before is seen here, a later one by its handler. */
    if (caught && lacks_watcher)
        cancel(object);
    else if (caught && watches)
        sem_post(&arrived);
}

void interrupt_unwatch(const void *object)
{
    pthread_mutex_lock(&watched_lock);
    for (int i = 0; i < MOST_WATCHED; i++)
        if (watched[i].object == object)
            watched[i].object = NULL;
    update_watcher_locked();
    pthread_mutex_unlock(&watched_lock);
}

void interrupt_hold(void)
{
    is_held = 1;
}

void interrupt_release(void)
{
    is_held = 0;
}

void interrupt_begin_message(void)
{
    sigset_t wakes;
    sigemptyset(&wakes);
    sigaddset(&wakes, SIGALRM);
    flockfile(stderr);
    writer = own_thread();
    pthread_sigmask(SIG_UNBLOCK, &wakes, &mask_before);
    limit_message();
}

void interrupt_end_message(void)
{
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    writer = 0;
    if (caught)
        alarm(0);
    funlockfile(stderr);
}

int interrupt_explain(int status)
{
    return status == LEAT_ECANCELLED && caught ? interrupt_check() : status;
}

void interrupt_obey(void)
{
    if (caught)
        die(caught);
}
