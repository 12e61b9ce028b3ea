/* error.h: the thread's error line; leat_error, which sets it, is public. */
#ifndef LEAT_BASE_ERROR_H
#define LEAT_BASE_ERROR_H

#include <leat/ext/reader.h>

#include <stdbool.h>

/* Longest error line, its NUL included; longer ones are cut. */
#define LEAT__ERROR_MAX 512

/*
 * Puts `context: ` before the line that an inner function left, and returns
 * `status`.
 */
int leat__error_context(int status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* leat_error for a failed call of the system: appends the text of `code`. */
int leat__error_system(int code, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* leat_error(LEAT_ENOMEM) that says how much was wanted. */
int leat__error_memory(size_t bytes) __attribute__((cold));

#if defined(__clang_analyzer__) && !defined(LEAT__ERROR_DEFINED_HERE)
/* It sees one file at a time, and takes these for possibly returning LEAT_OK.
 */
#define leat_error(status, ...) ((void)leat_error(status, __VA_ARGS__), status)
#define leat__error_context(status, ...)                                       \
    ((void)leat__error_context(status, __VA_ARGS__), status)
#define leat__error_system(code, ...)                                          \
    ((void)leat__error_system(code, __VA_ARGS__), LEAT_EIO)
#define leat__error_memory(bytes) ((void)leat__error_memory(bytes), LEAT_ENOMEM)
#endif

/* Whether it is one of leat's errors, for what user code returned. */
bool leat__status_is_error(int status);

/* How many lines the thread has had: whether a call has left one. */
unsigned leat__error_lines(void);

/* Copies the thread's line to `out`, of LEAT__ERROR_MAX bytes. */
void leat__error_save(char *out) __attribute__((cold));

/*
 * Writes `size` bytes of a key to `out` so that it can be printed: control
 * characters and non-ASCII as \xNN. Of more than 64 the first ones, "..." and
 * how many there are: "... (300 bytes)".
 */
#define LEAT__KEY_TEXT_MAX 296
const char *leat__key_text(char out[LEAT__KEY_TEXT_MAX], const void *key,
                           size_t size);

#endif
