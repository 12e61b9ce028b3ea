/* main.c: `leat COMMAND ...`. */
#include "tools/cli/interrupt.h"
#include "tools/command.h"

#include <leat/log.h>
#include <leat/status.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Silent unless LEAT_LOG_LEVEL asks for more. On any thread. */
static void print_log(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    char plain[4096];
    plain_text_write(plain, sizeof(plain), line);
    interrupt_begin_message();
    fprintf(stderr, "leat: %s\n", plain);
    interrupt_end_message();
}

/*
 * The next file to be opened gets the number of a standard stream that is
 * closed, and a line on stderr would then land in a database's lock file. So
 * such a number is taken, the wrong way round: using the stream still fails.
 */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    occupy_closed_streams();
    output_begin();
    leat_log_set(print_log, NULL, LEAT_LOG_NONE);
    /* A file size limit then is an error of write, as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
    output_exit(command_run(argc, argv));
}
