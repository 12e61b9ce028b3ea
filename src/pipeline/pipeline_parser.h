/* pipeline_parser.h: from text to pipelines and arguments. */
#ifndef LEAT_PIPELINE_PIPELINE_PARSER_H
#define LEAT_PIPELINE_PIPELINE_PARSER_H

#include "pipeline/arguments.h"

/* What becomes of {} in values. */
typedef enum leat__braces {
    LEAT__BRACES_ARE_LETTERS,
    LEAT__BRACES_ARE_OPEN,    /* they stand for an element yet to come */
    LEAT__BRACES_ARE_ELEMENT, /* they are replaced by it */
} leat__braces;

/* Reads borrowed text forwards. */
typedef struct leat__pipeline_parser {
    const char *text;
    const char *at;
    const char *fault; /* where an error is; NULL: nowhere in the text */
    int depth;         /* open parentheses */
    bool is_arguments; /* the text is arguments alone: bars are letters */
    bool is_pair;      /* commas in parentheses are letters */
    leat__braces braces;
    const char *element; /* for BRACES_ARE_ELEMENT; NULL: there is none */
} leat__pipeline_parser;

/* Parses a whole text as a pipeline. Errors: LEAT_EINVAL, LEAT_ENOMEM. */
int leat__pipeline_parser_pipeline(leat__pipeline_parser *in,
                                   leat_pipeline **out);

/*
 * Parses a whole text as the arguments of a type. On failure nothing is left to
 * finish. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__pipeline_parser_arguments(leat__pipeline_parser *in,
                                    const leat_reader_type *type,
                                    leat_args *out);

#endif
