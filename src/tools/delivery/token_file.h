/* token_file.h: a resume token as a file: its text, and a line's end. */
#ifndef LEAT_TOOLS_DELIVERY_TOKEN_FILE_H
#define LEAT_TOOLS_DELIVERY_TOKEN_FILE_H

#include "tools/cli/staged_file.h"

#include <leat/token.h>

/*
 * Reads the token of a file into an initialised one. Errors: LEAT_EIO;
 * LEAT_EFORMAT, LEAT_EINVAL for a file that is something else; LEAT_ENOMEM.
 */
int token_file_read(const char *path, leat_token *out);

/*
 * Whether a token may be written there: nothing is lost if the file is a token
 * already, or empty. Errors: LEAT_EINVAL for any other, LEAT_EIO.
 */
int token_file_check(const char *path);

/* Writes it and closes the file. Errors: LEAT_EIO, LEAT_ENOMEM. */
int token_file_write(struct staged_file *file, const char *path,
                     leat_token *token);

#endif
