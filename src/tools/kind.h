/*
 * kind.h: commands by name, and those with kinds, each with its own options:
 * `leat import KIND`.
 */
#ifndef LEAT_TOOLS_KIND_H
#define LEAT_TOOLS_KIND_H

struct kind {
    const char *name; /* NULL ends the list */
    int (*run)(int argc, char **argv);
    const char *summary;
};

/* Such a command as --help shows it. */
struct kinds {
    const char *command;   /* "import" */
    const char *arguments; /* "KIND [options] ... OUT" */
    const char *about;
    const struct kind *kind;
};

/* The nearest name of the list, as suggestion_write has it; returns `out`. */
const char *kind_suggest(const struct kind *list, const char *word, char *out,
                         int size);

/*
 * Runs the kind that argv[1] names, as argv[0] of its own, with interrupts
 * caught. Returns the tool's exit status, having said what is wrong.
 */
int kind_run(const struct kinds *kinds, int argc, char **argv);

#endif
