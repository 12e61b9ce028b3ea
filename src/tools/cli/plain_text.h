/*
 * plain_text.h: text from outside, such as paths and error lines, in a form
 * that does not control a terminal or break a line.
 *
 * Control characters of ASCII (tabs and line breaks too) and of Unicode (C1),
 * line and paragraph separators, and characters that change the direction of
 * text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) become
 * \xNN, byte by byte, and so do byte order marks, which are invisible, and
 * bytes that are not UTF-8. All else stays as it is.
 */
#ifndef LEAT_TOOLS_CLI_PLAIN_TEXT_H
#define LEAT_TOOLS_CLI_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The plain form, in one of a few buffers in turn, for an argument of printf;
 * longer than a path or a line can be, it is cut. Main thread only.
 */
const char *plain_text(const char *text);

/* Writes the plain form to `out`, at most `size` bytes with the NUL. */
void plain_text_write(char *out, size_t size, const char *text);

/*
 * The code point that the text begins with, and how many bytes it takes; -1: no
 * UTF-8. `text` is not empty.
 */
int32_t plain_text_decode(const char *text, int *bytes);

/* Whether it is printed as it is. */
bool plain_text_is_plain(int32_t code);

#endif
