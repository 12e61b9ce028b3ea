/* command.h: the tool's commands; the one table of them is in command.c. */
#ifndef LEAT_TOOLS_COMMAND_H
#define LEAT_TOOLS_COMMAND_H

/* What every command uses. */
#include "tools/cli/interrupt.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"

#include <leat/ext/reader.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A command, or one that has further commands: `leat import mnist`. The tool
 * itself is the outermost one.
 */
struct command {
    const char *name; /* NULL ends a list */
    const char *summary;
    int (*run)(int argc, char **argv); /* NULL where there are commands */
    const struct command *commands;    /* NULL where there is run */
    const char *arguments, *about;     /* for --help, where there are */
};

/* `leat`, with all commands in it. */
const struct command *command_root(void);

/* The command of that name in a list; NULL: none. */
const struct command *command_find(const struct command *list,
                                   const char *name);

/* Runs the tool: argv is main's. Returns the exit status, having printed. */
int command_run(int argc, char **argv);

/*
 * The commands. argv[0] is the last word of the command's name; each returns
 * the tool's exit status, having printed the error on stderr.
 */
int command_synth(int argc, char **argv);
int command_import_mnist(int argc, char **argv);
int command_import_cifar10(int argc, char **argv);
int command_import_images(int argc, char **argv);
int command_import_pipeline(int argc, char **argv);
int command_info(int argc, char **argv);
int command_show(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_cat(int argc, char **argv);
int command_mean(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_bench_layer(int argc, char **argv);
int command_bench_limit(int argc, char **argv);
int command_bench_reader(int argc, char **argv);
int command_bench_h2d(int argc, char **argv);
int command_readers(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_completion(int argc, char **argv);

#endif
