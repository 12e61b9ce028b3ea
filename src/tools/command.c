#include "tools/command.h"

#include "base/suggestion.h"

static const struct command import_commands[] = {
    {.name = "mnist",
     .summary = "MNIST's IDX files, images and labels",
     .run = command_import_mnist},
    {.name = "cifar10",
     .summary = "the batches of CIFAR-10, binary version",
     .run = command_import_cifar10},
    {.name = "images",
     .summary = "image files, by a list of names and labels",
     .run = command_import_images},
    {.name = "pipeline",
     .summary = "the samples of a pipeline",
     .run = command_import_pipeline},
    {0},
};

static const struct command bench_commands[] = {
    {.name = "layer",
     .summary = "a data layer's speed and its bottleneck",
     .run = command_bench_layer},
    {.name = "limit",
     .summary = "the most that all cores together can deliver",
     .run = command_bench_limit},
    {.name = "reader",
     .summary = "the speed of a pipeline",
     .run = command_bench_reader},
    {.name = "h2d",
     .summary = "the bandwidth from host memory to a GPU",
     .run = command_bench_h2d},
    {0},
};

static const struct command commands[] = {
    {.name = "synth",
     .summary = "make a database of drawn digits or of noise",
     .run = command_synth},
    {.name = "import",
     .summary = "make a database from other files",
     .commands = import_commands,
     .arguments = "COMMAND [options] ... OUT",
     .about = "Makes an LMDB of Caffe's Datums, all of it or nothing. Rerun\n"
              "the same command to resume a stopped import."},
    {.name = "info",
     .summary = "print the contents of a database or a pipeline",
     .run = command_info},
    {.name = "show",
     .summary = "draw a contact sheet of records",
     .run = command_show},
    {.name = "verify",
     .summary = "find every bad record of a database",
     .run = command_verify},
    {.name = "compare",
     .summary = "print whether two databases are the same",
     .run = command_compare},
    {.name = "cat", .summary = "print samples as text", .run = command_cat},
    {.name = "mean",
     .summary = "compute the mean image of a database",
     .run = command_mean},
    {.name = "dump",
     .summary = "write a data layer's output to .npy files",
     .run = command_dump},
    {.name = "bench",
     .summary = "measure a data layer, and what is possible",
     .commands = bench_commands,
     .arguments = "COMMAND [options]",
     .about = "Measures what a data layer does, and what the machine allows."},
    {.name = "readers",
     .summary = "print the readers of pipelines and their arguments",
     .run = command_readers},
    {.name = "explain",
     .summary = "print what each reader of a pipeline does",
     .run = command_explain},
    {.name = "completion",
     .summary = "print a shell's completion script for leat",
     .run = command_completion},
    {0},
};

static const struct command root = {
    .name = "",
    .commands = commands,
    .arguments = "COMMAND [options] ...",
    .about = "Works on Caffe's LMDB databases and on pipelines, such as\n"
             "'tfrecord:train-*.tfr | shuffle:1000 | example:label=int64'.",
};

const struct command *command_root(void)
{
    return &root;
}

const struct command *command_find(const struct command *list, const char *name)
{
    for (; list->name; list++)
        if (!strcmp(name, list->name))
            return list;
    return NULL;
}

static int print_help(const struct command *command)
{
    const char *blank = *command->name ? " " : "";
    printf("Usage: leat %s%s%s\n\n%s\n\nCommands:\n", command->name, blank,
           command->arguments, command->about);
    for (const struct command *one = command->commands; one->name; one++)
        printf("  %-10s  %s\n", one->name, one->summary);
    if (command == &root)
        printf("  %-10s  %s\n\nOptions:\n  %-13s  %s\n  %-13s  %s\n\n"
               "leat help COMMAND and leat COMMAND --help print more.\n",
               "help", "print this, or the help of a command", "-h, --help",
               "print this and exit", "-V, --version",
               "print the version and exit");
    else
        printf("\nleat %s COMMAND --help prints more.\n", command->name);
    return 0;
}

_Noreturn static void refuse_word(const struct command *command,
                                  const char *word)
{
    char nearest[64];
    leat__suggestion suggestion = leat__suggestion_of(word);
    for (const struct command *one = command->commands; one->name; one++)
        leat__suggestion_consider(&suggestion, one->name);
    leat__suggestion_write(&suggestion, "", nearest, sizeof(nearest));
    message_misuse(command->name, "%s%sunknown command '%s'%s", command->name,
                   *command->name ? ": " : "", word, nearest);
}

/* `leat help COMMAND COMMAND` is `leat COMMAND COMMAND --help`. */
static int run_help(int argc, char **argv)
{
    static char option[] = "--help";
    char *asked[] = {argv[0], argc > 1 ? argv[1] : option,
                     argc > 2 ? argv[2] : option, option, NULL};
    if (argc > 3)
        message_misuse("", "help: unexpected argument '%s'", argv[3]);
    return command_run(argc + 1, asked);
}

int command_run(int argc, char **argv)
{
    const struct command *command = &root;
    for (; !command->run; argc--, argv++) {
        const char *word = argc > 1 ? argv[1] : "";
        if (argc < 2)
            message_misuse(command->name, "%s%sno command given", command->name,
                           *command->name ? ": " : "");
        if (command == &root && !strcmp(word, "help"))
            return run_help(argc - 1, argv + 1);
        if (!strcmp(word, "--help") || !strcmp(word, "-h"))
            return print_help(command);
        if (!strcmp(word, "-V") ||
            (command == &root && !strcmp(word, "--version")))
            return message_version();
        const struct command *next = command_find(command->commands, word);
        if (!next)
            refuse_word(command, word);
        command = next;
    }
    return command->run(argc, argv);
}
