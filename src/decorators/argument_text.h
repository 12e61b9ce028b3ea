/* argument_text.h: arguments as text, for pipelines that are made by code. */
#ifndef LEAT_DECORATORS_ARGUMENT_TEXT_H
#define LEAT_DECORATORS_ARGUMENT_TEXT_H

#include <stddef.h>

/* Zeroed: empty. */
typedef struct leat__argument_text {
    char *text; /* NULL: empty, or without memory */
    size_t size;
    int status; /* LEAT_ENOMEM once it lacked memory */
} leat__argument_text;

/* Appends a text as it is, or so that it is read as one value. */
void leat__argument_text_add(leat__argument_text *to, const char *text);
void leat__argument_text_add_value(leat__argument_text *to, const char *value);

/* Appends `name=number`, after a comma unless it is the first. */
void leat__argument_text_add_number(leat__argument_text *to, const char *name,
                                    long long number);

void leat__argument_text_finish(leat__argument_text *text);

#endif
