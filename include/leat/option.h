/* leat/option.h: options by their names, for bindings and command lines. */
#ifndef LEAT_OPTION_H
#define LEAT_OPTION_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an option's member of its struct is. */
typedef enum leat_option_type {
    LEAT_OPTION_TEXT,  /* const char *; never an empty text */
    LEAT_OPTION_BOOL,  /* bool: true or false, or 1 or 0 */
    LEAT_OPTION_INT,   /* int */
    LEAT_OPTION_INT64, /* int64_t */
    LEAT_OPTION_BYTES, /* size_t */
    LEAT_OPTION_FLOAT, /* float */
    LEAT_OPTION_WORD,  /* an enum; its words have the numbers 0, 1 and so on */
    LEAT_OPTION_DTYPE, /* leat_dtype; its words are the types' names */
    LEAT_OPTION_OTHER  /* a list or a struct: set in C alone */
} leat_option_type;

/**
 * One option of an options struct: what a binding, a net file or a command line
 * needs to know to set it. All texts are static; those that are missing, NULL.
 */
typedef struct leat_option {
    const char *name;      /* the member's */
    leat_option_type type; /* of its value */
    size_t offset;         /* of the member */
    size_t given;      /* of the bool beside it by which a 0 counts; 0: none */
    int64_t least;     /* of INT, INT64 and BYTES */
    int64_t most;      /* likewise */
    const char *words; /* "LEAT|CAFFE"; of a number the word for -1: "AUTO" */
    const char *renamed;  /* a word's former name, then the word: "SKIP|REPLACE"
                           */
    const char *initial;  /* the default, as a text that leat_option_set takes;
                             NULL: it has none, or another option decides */
    const char *unit;     /* of a number, for error lines: "threads" */
    const char *field;    /* protobuf's type of the field of this name in a net
                             file's leat_param; NULL: leat_param has none */
    const char *argument; /* its name on the tool's command line, where one
                             option serves all commands; NULL: there is none */
    const char *value;    /* what --help calls its value: "FILE" */
    const char *help; /* a phrase for the tool's --help, which may name other
                         options of the tool */
} leat_option;

/**
 * Sets the member of `options` that `option` describes to what `text` says: a
 * word in any case, or the number that it stands for; a number with a unit such
 * as 10k, 64M or 1.5GiB (of a count k is 1000, of bytes 1024); or a text, which
 * is borrowed as long as the options are used. Sets the flag beside the member.
 * Errors: LEAT_EINVAL as "NAME: expected WHAT, found 'TEXT'", and for an option
 * of type OTHER or beyond the struct's size. Thread safety: any thread.
 */
LEAT_API int leat_option_set(const leat_option *option, void *options,
                             const char *text);

#ifdef __cplusplus
}
#endif
#endif
