/* main.c: `leat COMMAND ...`. */
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/message.h"
#include "tools/output.h"
#include "tools/plain_text.h"

#include <leat/log.h>
#include <leat/status.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int print_help(void)
{
    printf("Usage: leat COMMAND [options] ...\n\n"
           "Works on Caffe's LMDB databases and what leat makes of them.\n\n"
           "Commands:\n");
    for (const struct kind *one = command_list(); one->name; one++)
        printf("  %-10s  %s\n", one->name, one->summary);
    printf("  %-10s  %s\n\nOptions:\n  %-13s  %s\n  %-13s  %s\n", "help",
           "print this, or the help of a command", "-h, --help",
           "print this and exit", "-V, --version",
           "print the version and exit");
    printf("\nleat help COMMAND and leat COMMAND --help tell more.\n");
    return 0;
}

static int run_command(const char *name, int argc, char **argv)
{
    for (const struct kind *one = command_list(); one->name; one++)
        if (!strcmp(name, one->name))
            return one->run(argc, argv);
    char nearest[64];
    return message_misuse(
        "", "unknown command '%s'%s", name,
        kind_suggest(command_list(), name, nearest, sizeof(nearest)));
}

/* `leat help COMMAND KIND` is `leat COMMAND KIND --help`. */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    if (!argc)
        return print_help();
    if (argc > 2)
        return message_misuse("", "help: unexpected argument '%s'", argv[2]);
    char *asked[] = {argv[0], argc > 1 ? argv[1] : option, option, NULL};
    return run_command(argv[0], argc + 1, asked);
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return message_misuse("", "no command given");
    const char *name = argv[1];
    if (!strcmp(name, "help"))
        return help(argc - 2, argv + 2);
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        return print_help();
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        return message_version();
    return run_command(name, argc - 1, argv + 1);
}

/* Silent unless LEAT_LOG_LEVEL asks for more. */
static void print_log(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    char plain[4096];
    plain_text_write(plain, sizeof(plain), line);
    fprintf(stderr, "leat: %s\n", plain);
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
    leat_log_set(print_log, NULL, LEAT_LOG_NONE);
    /* A file size limit then is an error of write, as a full disk is. */
    signal(SIGXFSZ, SIG_IGN);
    int status = run(argc, argv);
    interrupt_obey();
    /* A full disk shows only when the buffer is written; an answer that did not
       arrive is none. */
    if (output_flush() && status <= EXIT_FOUND)
        status = message_last_error();
    return status;
}
