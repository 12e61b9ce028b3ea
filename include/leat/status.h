/* leat/status.h: what every function of leat returns, and how to read it. */
#ifndef LEAT_STATUS_H
#define LEAT_STATUS_H

#include <stddef.h>
#include <stdint.h>

/** Marks what the library exports. */
#if defined(__GNUC__)
#define LEAT_API __attribute__((visibility("default")))
#else
#define LEAT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Pointers that a function takes must not be NULL unless its text says so;
 * destroy, close, finish and unref take NULL. The `size` of an options struct
 * is its size as the caller was compiled, as its INIT macro writes it.
 *
 * Every status: its code, its name and its meaning.
 *
 * 0 is success. Positive codes are no errors: the data ended, or there is
 * nothing yet. Negative codes are errors, and leat_last_error() has the detail.
 * LEAT_EDATA concerns one record, and the next call goes on behind it; all
 * others are sticky until a reset or restore.
 */
#define LEAT_STATUS_MAP(X)                                                     \
    X(OK, 0, "success")                                                        \
    X(END, 1, "end of data")                                                   \
    X(AGAIN, 2, "nothing is ready yet")                                        \
    X(EINVAL, -1, "wrong argument or option")                                  \
    X(ENOMEM, -2, "out of memory")                                             \
    X(EIO, -3, "the operating system reported an error")                       \
    X(EDATA, -4, "a record is bad")                                            \
    X(EFORMAT, -5, "a file is damaged or of another format")                   \
    X(ECANCELLED, -6, "cancelled")                                             \
    X(EUNSUPPORTED, -7, "not supported")                                       \
    X(EDEVICE, -8, "a device reported an error")                               \
    X(ESTATE, -9, "called in the wrong state")                                 \
    X(ELIMIT, -10, "a limit set by the caller was reached")

/** The codes of LEAT_STATUS_MAP, as LEAT_OK, LEAT_END and so on. */
typedef enum leat_status {
#define LEAT_STATUS_CODE(name, code, text) LEAT_##name = code,
    LEAT_STATUS_MAP(LEAT_STATUS_CODE)
#undef LEAT_STATUS_CODE
} leat_status;

/**
 * The name of a status, such as "LEAT_EDATA"; "LEAT_?" for an unknown one.
 * The text is static. Thread safety: any thread.
 */
LEAT_API const char *leat_status_name(int status);

/**
 * The meaning of a status in words, such as "a record is bad".
 * The text is static. Thread safety: any thread.
 */
LEAT_API const char *leat_status_text(int status);

/**
 * One line about the latest error that a call of this thread returned: which
 * file, which record and key, what was expected, what was found.
 *
 * Meaningful only after a call of this thread returned a negative status; never
 * NULL. Borrowed until the next call of leat on this thread.
 * Thread safety: any thread; each has a line of its own.
 */
LEAT_API const char *leat_last_error(void);

/**
 * Sets the thread's error line and returns `status`: for callbacks and readers
 * of one's own. The line says what, where and what to do; no function names.
 * Thread safety: any thread; each has a line of its own.
 */
LEAT_API int leat_error(int status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((cold, format(printf, 2, 3)))
#endif
    ;

/** The library's version, such as "0.1.0". Static. Thread safety: any thread.
 */
LEAT_API const char *leat_version(void);

#ifdef __cplusplus
}
#endif
#endif
