/* leat/ext/arguments.h: the arguments that a reader type takes in a text, and
 * their values. */
#ifndef LEAT_EXT_ARGUMENTS_H
#define LEAT_EXT_ARGUMENTS_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an argument's value is. */
typedef enum leat_argument_kind {
    LEAT_ARGUMENT_TEXT,    /* any letters, such as a path */
    LEAT_ARGUMENT_NUMBER,  /* a whole number: 7, -1, 10k (10,000), 1.5M */
    LEAT_ARGUMENT_BYTES,   /* the same of bytes: 64K is 65,536, 1MB 1,000,000 */
    LEAT_ARGUMENT_TIME,    /* nanoseconds: 2 or 2s, 1.5min, 500ms, 10us, 3h */
    LEAT_ARGUMENT_WORD,    /* one of `words`, in any case */
    LEAT_ARGUMENT_LIST,    /* texts: (a,b,c), or a single one without () */
    LEAT_ARGUMENT_PIPELINE /* a pipeline in parentheses, in which {} is replaced
                              by an element: (tfrecord:{}) */
} leat_argument_kind;

/**
 * One argument of a reader type. Parsing, its errors, `leat readers` and the
 * resume token follow from this table. All texts are static. name is required;
 * zero elsewhere means none.
 */
typedef struct leat_argument {
    const char *name;        /* letters, digits and _ */
    leat_argument_kind kind; /* what its text is */
    int positional; /* 1: given by its place among those in the table, without
                       its name; 0: as name=value */
    int required;   /* 1: it has to be given */
    int repeated;   /* 1: positional, and all that follow are the same */
    /**
     * 1: the samples do not depend on it, as on a number of threads, the size
     * of a cache, or the place of a file that `save` identifies otherwise. Then
     * it may differ when a run is resumed.
     */
    int keeps_samples;
    const char *initial; /* the default, as a text; NULL: none. A later version
                            must keep it */
    int64_t min;         /* of NUMBER, BYTES and TIME, the least */
    int64_t max;         /* and the greatest; both 0: any */
    const char *words;   /* of WORD: "FIRST|SECOND"; more may be appended. Of a
                            NUMBER: a word for `min`, such as "auto" */
    const char *help;    /* a phrase, for errors and `leat readers` */
    /**
     * 1: of a repeated TEXT, each is NAME=VALUE or a NAME alone, where no
     * argument has that NAME: label=int32. A comma inside of parentheses is a
     * letter: label=(1,7). The text is all of it.
     */
    int pairs;
} leat_argument;

/** The values of a reader's arguments. */
typedef struct leat_args leat_args;

/**
 * The text of positional value i, or NULL. Borrowed from the arguments.
 * Thread safety: any threads.
 */
LEAT_API const char *leat_args_at(const leat_args *args, int i);

/**
 * The text of the argument's first value, or its default, or NULL. Of a
 * PIPELINE that between the parentheses. Borrowed from the arguments.
 * Thread safety: any threads.
 */
LEAT_API const char *leat_args_get(const leat_args *args, const char *name);

/** Whether the argument is given: 1 or 0. Thread safety: any threads. */
LEAT_API int leat_args_has(const leat_args *args, const char *name);

/**
 * The argument's first value, or its default: a NUMBER, BYTES, the nanoseconds
 * of a TIME, the index of a WORD. It is in its range, which was checked before
 * open. 0 without a value and default, and for an argument that the type's
 * table does not have. Thread safety: any threads.
 */
LEAT_API int64_t leat_args_number(const leat_args *args, const char *name);

/**
 * Element i of a LIST, or NULL. Borrowed from the arguments.
 * Thread safety: any threads.
 */
LEAT_API const char *leat_args_list(const leat_args *args, const char *name,
                                    int i);

/**
 * Makes the pipeline that a PIPELINE describes, `element` in the place of {};
 * no letter of it is special. leat_open_again opens it. `element` may be NULL
 * if there is no {}. Owned by the caller: leat_pipeline_unref. Errors:
 * LEAT_EINVAL for an element that is empty or no value of its argument, and
 * where the argument is not given; LEAT_ENOMEM. Thread safety: any threads.
 */
LEAT_API int leat_args_pipeline(const leat_args *args, const char *name,
                                const char *element, leat_pipeline **out);

/**
 * Writes `text` so that it is read as one value of a pipeline's text, if that
 * fits into `size` bytes; else nothing. Returns the bytes needed, with the NUL.
 * Thread safety: any threads.
 */
LEAT_API size_t leat_args_escape(const char *text, char *out, size_t size);

/**
 * The object passed to leat_pipeline_create, or NULL. Borrowed from the
 * pipeline, and shared by all its readers, hence const: a type that changes its
 * object casts that away and synchronises. Thread safety: any threads.
 */
LEAT_API const void *leat_args_object(const leat_args *args);

#ifdef __cplusplus
}
#endif

#endif
