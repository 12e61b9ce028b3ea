/* pipeline_parser.h: from text to pipelines and arguments. */
#ifndef LEAT_PIPELINE_PIPELINE_PARSER_H
#define LEAT_PIPELINE_PIPELINE_PARSER_H

#include "pipeline/arguments.h"
#include "pipeline/pipeline_lexer.h"

/* Parses a whole text as a pipeline. Errors: LEAT_EINVAL, LEAT_ENOMEM. */
int leat__pipeline_parser_pipeline(leat__pipeline_lexer *in,
                                   leat_pipeline **out);

/*
 * Parses a whole text as the arguments of a type. On failure nothing is left to
 * finish. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__pipeline_parser_arguments(leat__pipeline_lexer *in,
                                    const leat_reader_type *type,
                                    leat_args *out);

#endif
