/* args.h: the arguments of one reader in a pipeline text. */
#ifndef LEAT_PIPELINE_ARGUMENTS_H
#define LEAT_PIPELINE_ARGUMENTS_H

#include <leat/ext/reader.h>

#define LEAT__ARGS_MAX 32

struct leat_args {
    char *memory; /* holds all texts below */
    int n;        /* positional */
    const char *at[LEAT__ARGS_MAX];
    int nkeys;
    const char *key[LEAT__ARGS_MAX];
    const char *value[LEAT__ARGS_MAX];
    void *object; /* borrowed from the pipeline */
};

/*
 * Reads `first,second,key=value`. A backslash takes the next character
 * literally. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__args_parse(leat_args *out, const char *text);
void leat__args_finish(leat_args *args);

/* Whether the type takes these arguments. Errors: LEAT_EINVAL. */
int leat__args_check(const leat_args *args, const leat_reader_type *type);

/*
 * Writes `text` so that leat__args_parse reads it as one argument; NULL when
 * memory is short. The caller frees it.
 */
char *leat__args_escape(const char *text);

#endif
