#include "tools/interrupt.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* `timeout` and some supervisors send a signal twice, to a process and to its
   group: so soon after the first it is no second wish. */
enum { SAME_SIGNAL_MS = 500 };

static volatile sig_atomic_t caught;
static int64_t caught_at; /* milliseconds; the handler's alone */

static int64_t now_ms(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Only async-signal-safe calls. All signals are blocked meanwhile. */
static void note_signal(int signal_number)
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
    errno = error;
}

void interrupt_catch(void)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof(action));
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Whom nohup started is to outlive its terminal. */
    if (sigaction(SIGHUP, NULL, &before) || before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

int interrupt_check(void)
{
    if (!caught)
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "interrupted (%s)", strsignal(caught));
}

void interrupt_obey(void)
{
    if (!caught)
        return;
    signal(caught, SIG_DFL);
    raise(caught);
}
