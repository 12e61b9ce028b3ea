/* option.h: a command's options, one table for parsing and for --help. */
#ifndef LEAT_TOOLS_CLI_OPTION_H
#define LEAT_TOOLS_CLI_OPTION_H

#include <leat/status.h>

#include <stdbool.h>
#include <stddef.h>

struct option_spec;

/*
 * Reads a value into spec->out. Returns 0, -1 when the text does not match
 * spec->value, or OPTION_ERROR_LINE where leat_last_error() gives the reason.
 */
enum { OPTION_ERROR_LINE = 1 };
typedef int option_reader(const struct option_spec *spec, const char *text);

struct option_spec {
    const char *name;    /* without its dashes; NULL ends the table */
    const char *value;   /* what --help calls its value; NULL for a flag */
    const char *help;    /* one line; "" begins a new group */
    option_reader *read; /* NULL for a flag: a bool *out */
    void *out;
    int64_t least; /* of a number; both 0: any */
    int64_t most;
};

/* One that sets *out. */
static inline struct option_spec option_flag(const char *name, const char *help,
                                             bool *out)
{
    return (struct option_spec){name, NULL, help, NULL, out, 0, 0};
}

/* An option that a command has no longer. */
struct option_removed {
    const char *name;
    const char *advice; /* a replacement */
};

/* A command as --help shows it. */
struct usage {
    const char *command;   /* "synth" */
    const char *arguments; /* "digits|noise [options] OUT" */
    const char *about;
    const struct option_spec *options; /* its own; NULL: none */
    int least_arguments;
    int most_arguments;
    const struct option_spec *shared;     /* with other commands; NULL: none */
    const struct option_removed *removed; /* NULL: none */
};

/*
 * Reads the options out of argv, where argv[0] is the command and the last one
 * is NULL. Returns the arguments, ended by NULL. Ends the program after --help,
 * and with a message on wrong usage.
 */
char **option_parse(const struct usage *usage, int argc, char **argv);

/*
 * From now on option_parse passes its usage to `visit` and ends the program,
 * instead of parsing a command line.
 */
void option_visit(void (*visit)(const struct usage *usage));

/* An option of the command, its own before those that it shares; or NULL. */
const struct option_spec *option_at(const struct usage *usage, int i);

/* Readers of values. */
option_reader option_text;       /* const char * */
option_reader option_int;        /* int64_t, from least to most: 10k */
option_reader option_bytes;      /* likewise, such as 64M or 1.5GiB */
option_reader option_real;       /* double, finite, from least to most */
option_reader option_seconds;    /* likewise, a time such as 3 or 500ms */
option_reader option_ms;         /* likewise, in milliseconds */
option_reader option_float;      /* float, finite */
option_reader option_shape;      /* int[3]: C,H,W or CxHxW */
option_reader option_size;       /* int[2]: H,W or HxW */
option_reader option_range;      /* int64_t[2]: A:B, either may be missing */
option_reader option_byte_range; /* likewise, of bytes, B with them: 4K:256M */

#endif
