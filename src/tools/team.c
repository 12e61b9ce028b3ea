#include "tools/team.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { MOST_MEMBERS = 256 };

struct member {
    int (*function)(int i, void *context);
    void *context;
    int i;
    int status;
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

int team_run(int n, int (*function)(int i, void *context), void *context)
{
    struct member members[MOST_MEMBERS];
    pthread_t threads[MOST_MEMBERS];
    if (n > MOST_MEMBERS)
        n = MOST_MEMBERS;

    /* Signals go to the main thread, which tidies up. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int started = 0, code = 0;
    for (; started < n && !code; started++) {
        members[started] = (struct member){function, context, started, 0, ""};
        code = pthread_create(&threads[started], NULL, run_member,
                              &members[started]);
        if (code)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (code)
        return leat_error(LEAT_EIO, "cannot start a thread: %s",
                          strerror(code));
    for (int i = 0; i < n; i++)
        if (members[i].status)
            return leat_error(members[i].status, "%s", members[i].error);
    return LEAT_OK;
}
