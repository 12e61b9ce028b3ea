#include "tools/interrupt.h"

#include <leat/ext/reader.h>

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t caught;

static void note_signal(int signal_number)
{
    caught = signal_number;
}

void interrupt_catch(void)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof(action));
    action.sa_handler = note_signal;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Whom nohup started is to outlive its terminal. */
    if (sigaction(SIGHUP, NULL, &before) || before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    /* A file size limit then is an error of write, as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
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
