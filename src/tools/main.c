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

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"synth", command_synth, "make a database of drawn digits or of noise"},
    {"import", command_import, "make a database from other files"},
    {"info", command_info, "say what is in a database"},
    {"show", command_show, "draw a contact sheet of records"},
    {"verify", command_verify, "find every bad record of a database"},
    {"compare", command_compare, "say whether two databases are the same"},
    {"cat", command_cat, "print samples as text"},
    {"mean", command_mean, "compute the mean image of a database"},
    {"dump", command_dump, "write what a data layer delivers to .npy files"},
    {"bench", command_bench, "measure a data layer, and what is possible"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int print_help(void)
{
    printf("Usage: leat COMMAND [options] ...\n\n"
           "Works on Caffe's LMDB databases and what leat makes of them.\n\n"
           "Commands:\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-8s  %s\n", commands[i].name, commands[i].summary);
    printf(
        "\nleat COMMAND --help tells more; leat --version, which this is.\n");
    return 0;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return message_misuse("", "no command given");
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
        return print_help();
    if (!strcmp(name, "--version")) {
        printf("leat %s\n", leat_version());
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return message_misuse("", "unknown command '%s'", name);
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
