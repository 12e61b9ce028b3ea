/* leat/log.h: log lines. */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Log levels; each includes those before it. */
typedef enum leat_log_level {
    LEAT_LOG_NONE = 0, /* silence */
    LEAT_LOG_ERROR,    /* unused in this version: errors are statuses */
    LEAT_LOG_WARNING,  /* settings without their expected effect; bad records */
    LEAT_LOG_INFO,     /* decisions, such as a drawn seed; waits of forward for
                          data, and the stage they are caused by */
    LEAT_LOG_DEBUG     /* unused in this version */
} leat_log_level;

/**
 * Receives a line without its newline, on any thread. It must not open or close
 * readers, nor wait for a thread that does: a line may come while leat waits
 * for an LMDB's lock file. A child that is forked in it, as in any callback,
 * does not return from it: the threads that the call waits for are not there.
 */
typedef void leat_log_function(void *user, leat_log_level level,
                               const char *line);

/**
 * Sends lines up to `level` to `function`; NULL, the default: no logging. The
 * environment variable LEAT_LOG_LEVEL (none, error, warning, info, debug)
 * overrides `level`; any other word is ignored and reported to `function` as
 * LEAT_LOG_WARNING, whatever the level. Thread safety: any thread; concurrent
 * calls may still reach the old function.
 */
LEAT_API void leat_log_set(leat_log_function *function, void *user,
                           leat_log_level level);

/**
 * Logs a line at `level`, for readers and callbacks; does nothing where that
 * level is not logged. The line begins with what it concerns, such as a path.
 * Thread safety: any thread.
 */
LEAT_API void leat_log_line(leat_log_level level, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#ifdef __cplusplus
}
#endif
#endif
