#include "support/other_process.h"

#include <check.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

other_process other_process_start(void (*body)(const char *),
                                  const char *directory)
{
    int ready[2], stop[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(stop), 0);
    pid_t id = fork();
    ck_assert_int_ge(id, 0);
    if (id == 0) {
        /* Not left behind by a test that fails. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(directory);
        if (write(ready[1], &byte, 1) != 1 || read(stop[0], &byte, 1) != 1)
            _exit(1);
        _exit(0);
    }
    close(ready[1]);
    close(stop[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return (other_process){id, stop[1]};
}

void other_process_stop(const other_process *other)
{
    int result;
    char byte = 0;
    ck_assert_int_eq(write(other->stop, &byte, 1), 1);
    close(other->stop);
    ck_assert_int_eq(waitpid(other->id, &result, 0), other->id);
    ck_assert_int_eq(result, 0);
}

void other_process_run(void (*body)(const char *), const char *directory)
{
    other_process other = other_process_start(body, directory);
    other_process_stop(&other);
}
