/* leat/status.h: the statuses that functions return, and their error lines. */
#ifndef LEAT_STATUS_H
#define LEAT_STATUS_H

#include <stddef.h>
#include <stdint.h>

/** Marks exported functions. */
#if defined(__GNUC__)
#define LEAT_API __attribute__((visibility("default")))
#else
#define LEAT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Pointer parameters must not be NULL unless the documentation says so;
 * destroy, close, finish and unref take NULL. The `size` of an options struct
 * is its sizeof when the caller was compiled, as its INIT macro sets it.
 *
 * Every status: its name, code and meaning.
 *
 * 0 is success. Positive codes are not errors: the data has ended, or nothing
 * is ready yet. Negative codes are errors, and leat_last_error() has the
 * details. LEAT_EDATA concerns one record, and the next call continues after
 * it; all others are sticky until a reset or restore.
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
 * One line about the latest error that a call on this thread returned: the
 * file, the record and key, the expected and the found value.
 *
 * Meaningful only after a call on this thread returned a negative status; never
 * NULL. Borrowed until the next call of leat on this thread. Thread safety: any
 * thread; each has its own line.
 */
LEAT_API const char *leat_last_error(void);

/**
 * Sets the thread's error line and returns `status`; for callbacks and readers
 * of your own. The line names the problem, its location and the remedy, but no
 * functions. Thread safety: any thread; each has its own line.
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
