/* error.h: the thread's error line; the public leat_error sets it. */
#ifndef LEAT_BASE_ERROR_H
#define LEAT_BASE_ERROR_H

#include <leat/ext/reader.h>

#include <stdbool.h>

/* Longest error line, including its NUL; longer ones are truncated. */
#define LEAT__ERROR_MAX 512

/*
 * Prefixes the line of an inner function with `context: `, and returns
 * `status`.
 */
int leat__error_context(int status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* leat_error for a failed system call: appends the text of the errno `code`. */
int leat__error_system(int code, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* leat_error(LEAT_ENOMEM) that names the requested size. */
int leat__error_memory(size_t bytes) __attribute__((cold));

#if defined(__clang_analyzer__) && !defined(LEAT__ERROR_DEFINED_HERE)
/* The analyzer sees one file at a time and assumes that these may return
 * LEAT_OK. */
#define leat_error(status, ...) ((void)leat_error(status, __VA_ARGS__), status)
#define leat__error_context(status, ...)                                       \
    ((void)leat__error_context(status, __VA_ARGS__), status)
#define leat__error_system(code, ...)                                          \
    ((void)leat__error_system(code, __VA_ARGS__), LEAT_EIO)
#define leat__error_memory(bytes) ((void)leat__error_memory(bytes), LEAT_ENOMEM)
#endif

/* Whether `status`, returned by user code, is one of leat's errors. */
bool leat__status_is_error(int status);

/* The number of lines set on this thread so far, to detect whether a call set
 * one. */
unsigned leat__error_lines(void);

/* Copies the thread's line to `out`, of LEAT__ERROR_MAX bytes. */
void leat__error_save(char *out) __attribute__((cold));

/*
 * Writes a key of `size` bytes to `out` as printable text, with control
 * characters and non-ASCII as \xNN. After the first 64 bytes it ends with the
 * size: "... (300 bytes)".
 */
#define LEAT__KEY_TEXT_MAX 296
const char *leat__key_text(char out[LEAT__KEY_TEXT_MAX], const void *key,
                           size_t size);

#endif
