/* arguments.h: the arguments of one reader in a pipeline. */
#ifndef LEAT_PIPELINE_ARGUMENTS_H
#define LEAT_PIPELINE_ARGUMENTS_H

#include <leat/ext/reader.h>

#include <stdbool.h>

/* Whether the letter does not count at the edge of a name or value. */
static inline bool leat__is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Continues FNV-1a, 64 bits (Fowler, Noll, Vo), over a text. */
static inline uint64_t leat__hash_text(uint64_t hash, const char *text)
{
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    return hash;
}

/* The value that one argument was given. */
typedef struct leat__value {
    const leat_argument *argument; /* of the type's table */
    /*
     * Without its escapes; of a LIST the elements, each with its NUL; of a
     * PIPELINE what stands in the parentheses, as it is written. Owned.
     */
    char *text;
    int elements; /* of a LIST */
    bool is_open; /* in a template: has {}, whose element is unknown yet */
    /* of a PIPELINE's readers, as in leat_pipeline */
    int depth;
    int64_t ahead;
    bool may_block;
    bool draws_seed;
    bool draws_names;
    bool varies;
    uint64_t hash;
} leat__value;

/* All values, in the order in which they were given. */
struct leat_args {
    const leat_reader_type *type;
    leat__value *value;
    int n;
    int room;
    int positional; /* how many of them are */
    int leading;    /* how many positional ones are before all others */
    void *object;   /* borrowed from the pipeline */
};

/* Takes a value over; it is freed on failure, too. Errors: LEAT_ENOMEM. */
int leat__args_add(leat_args *args, leat__value value);

/* Frees all values. Takes zeroed arguments. */
void leat__args_finish(leat_args *args);

/* The value of an argument; NULL: it is not given. */
const leat__value *leat__args_value(const leat_args *args,
                                    const leat_argument *argument);

/*
 * The elements of a LIST, each with its NUL, end to end; `*n` is how many. NULL
 * with 0: it is not given. Going over them takes time by their number, where
 * leat_args_list takes it for each.
 */
const char *leat__args_elements(const leat_args *args, const char *name,
                                int *n);

/* LEAT_EINVAL where an argument that is required is not given. */
int leat__args_check(const leat_args *args);

/*
 * The arguments as text, which parses to equal ones; "" where there are none.
 * Freed by the caller; NULL when memory is short.
 */
char *leat__args_write(const leat_args *args);

/*
 * Continues `hash` over the values that change samples, in the order of the
 * type's table and in one spelling, without those that equal their default.
 */
uint64_t leat__args_hash(const leat_args *args, uint64_t hash);

#endif
