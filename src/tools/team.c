#include "tools/team.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEMBERS = 256 };

struct member {
    int (*function)(int i, void *context);
    void *context;
    int i;
    int status;
    pthread_t thread;
    char error[512];
};

static void *run_member(void *argument)
{
    struct member *member = argument;
    member->status = member->function(member->i, member->context);
    if (member->status)
        snprintf(member->error, sizeof(member->error), "%s", leat_last_error());
    return NULL;
}

static int run_members(struct member *members, int n,
                       int (*function)(int i, void *context), void *context)
{
    /* Signals go to the main thread, which tidies up. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int started = 0, code = 0;
    for (; started < n && !code; started++) {
        struct member *one = &members[started];
        one->function = function;
        one->context = context;
        one->i = started;
        code = pthread_create(&one->thread, NULL, run_member, one);
        if (code)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    if (code)
        return leat_error(LEAT_EIO, "cannot start a thread: %s",
                          strerror(code));
    for (int i = 0; i < n; i++)
        if (members[i].status)
            return leat_error(members[i].status, "%s", members[i].error);
    return LEAT_OK;
}

int team_run(int n, int (*function)(int i, void *context), void *context)
{
    if (n > MOST_MEMBERS)
        n = MOST_MEMBERS;
    struct member *members = calloc((size_t)n, sizeof(*members));
    if (!members)
        return leat_error(LEAT_ENOMEM, "no memory for %d threads", n);
    int status = run_members(members, n, function, context);
    free(members);
    return status;
}
