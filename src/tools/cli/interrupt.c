#include "tools/cli/interrupt.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* `timeout` and some supervisors send a signal twice, to a process and to its
   group: one so soon after the first is the same request. */
enum { SAME_SIGNAL_MS = 500 };

static volatile sig_atomic_t caught;
static int64_t caught_at; /* milliseconds; the handler's alone */

/* Descriptors whose reads a signal ends, each plus 1; 0: none. */
enum { MOST_ENDED = 4 };
static volatile sig_atomic_t ended[MOST_ENDED];
static int nothing = -1; /* an open /dev/null */

static int64_t now_ms(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* An interrupted read is restarted, and then finds the end. */
static void end_reads(void)
{
    for (int i = 0; i < MOST_ENDED; i++)
        if (ended[i])
            dup2(nothing, ended[i] - 1);
}

/* Only async-signal-safe calls. All signals are blocked meanwhile. */
static void handle_signal(int signal_number)
{
    int error = errno;
    int64_t now = now_ms();
    if (caught && now - caught_at > SAME_SIGNAL_MS) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    if (!caught)
        caught_at = now;
    caught = signal_number;
    end_reads();
    errno = error;
}

void interrupt_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
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

int interrupt_check(void)
{
    if (!caught)
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "interrupted (%s)", strsignal(caught));
}

int interrupt_end(int fd)
{
    int i = 0;
    while (i < MOST_ENDED && ended[i])
        i++;
    if (nothing < 0)
        nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || i == MOST_ENDED)
        return leat_error(LEAT_EIO, "/dev/null: %s",
                          strerror(nothing < 0 ? errno : EMFILE));
    ended[i] = fd + 1;
    /* A signal that arrived before is seen here, a later one by its handler. */
    if (caught)
        end_reads();
    return LEAT_OK;
}

void interrupt_keep(int fd)
{
    for (int i = 0; i < MOST_ENDED; i++)
        if (ended[i] == fd + 1)
            ended[i] = 0;
}

void interrupt_obey(void)
{
    if (!caught)
        return;
    signal(caught, SIG_DFL);
    raise(caught);
}
