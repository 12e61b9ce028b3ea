#include "support/few_users.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSED = 77 };

static bool set_map(pid_t of, const char *map)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)of, map);
    FILE *file = fopen(path, "w");
    bool is_written = file && fputs("0 0 65536", file) >= 0;
    return file && !fclose(file) && is_written;
}

bool few_users_do(void (*work)(void))
{
    int result;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (unshare(CLONE_NEWUSER))
            _exit(REFUSED);
        raise(SIGSTOP);
        work();
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(child, &result, WUNTRACED), child);
    bool is_done = WIFSTOPPED(result) && set_map(child, "uid_map") &&
                   set_map(child, "gid_map");
    if (WIFSTOPPED(result)) {
        ck_assert_int_eq(kill(child, is_done ? SIGCONT : SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, &result, 0), child);
    }
    ck_assert(!is_done || (WIFEXITED(result) && WEXITSTATUS(result) == 0));
    return is_done;
}
