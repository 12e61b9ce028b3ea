/* arguments.h: the arguments of one reader in a pipeline text. */
#ifndef LEAT_PIPELINE_ARGUMENTS_H
#define LEAT_PIPELINE_ARGUMENTS_H

#include <leat/ext/reader.h>

#define LEAT__ARGS_MAX 32

struct leat_args {
    char *memory; /* owns all texts below */
    int n;        /* positional */
    const char *at[LEAT__ARGS_MAX];
    int nkeys;
    const char *key[LEAT__ARGS_MAX];
    const char *value[LEAT__ARGS_MAX];
    void *object; /* borrowed from the pipeline */
};

/*
 * Parses `first,second,key=value`. A backslash escapes the next character.
 * Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__args_parse(leat_args *out, const char *text);
void leat__args_finish(leat_args *args);

/* LEAT_EINVAL for arguments that the type does not accept. */
int leat__args_check(const leat_args *args, const leat_reader_type *type);

/*
 * Escapes `text`, so that leat__args_parse reads it as one argument. Freed by
 * the caller; NULL when memory is short.
 */
char *leat__args_escape(const char *text);

#endif
