#include "support/fork_steps.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if HAS_FORK_STEPS

enum { CHILD_SECONDS = 2 };

static void (*child_body)(void);
static volatile sig_atomic_t forks;
static volatile sig_atomic_t has_failed;

/* Runs after each instruction, with the flag that asks for it off. */
static void fork_here(int number)
{
    (void)number;
    if (has_failed)
        return;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        child_body();
        _exit(0);
    }
    has_failed = waitpid(child, &status, 0) != child || status != 0;
    forks++;
}

int fork_at_each_step(void (*act)(void), void (*body)(void))
{
    struct sigaction action = {.sa_handler = fork_here}, before;
    child_body = body;
    forks = has_failed = 0;
    sigaction(SIGTRAP, &action, &before);
    /* The trap flag, past what the compiler may have below the stack. */
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\t"
                     "popfq\n\tadd $128, %%rsp" ::
                         : "memory", "cc");
    act();
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\tandq $-257, (%%rsp)\n\t"
                     "popfq\n\tadd $128, %%rsp" ::
                         : "memory", "cc");
    sigaction(SIGTRAP, &before, NULL);
    return has_failed ? -forks : forks;
}

#else

int fork_at_each_step(void (*act)(void), void (*body)(void))
{
    (void)body;
    act();
    return 0;
}

#endif
