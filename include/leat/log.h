/* leat/log.h: what leat has to say besides errors. */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_log_level {
    LEAT_LOG_NONE = 0,
    LEAT_LOG_ERROR,
    LEAT_LOG_WARNING,
    LEAT_LOG_INFO,
    LEAT_LOG_DEBUG
} leat_log_level;

/** Receives one line without its newline, from any thread. */
typedef void leat_log_function(void *user, leat_log_level level,
                               const char *line);

/**
 * Sends lines up to `level` to `function`; NULL: silence, the default.
 * The environment variable LEAT_LOG_LEVEL (none, error, warning, info, debug),
 * where it is set, takes the place of `level`.
 * Thread safety: any thread; calls under way may still reach the old function.
 */
LEAT_API void leat_log_set(leat_log_function *function, void *user,
                           leat_log_level level);

#ifdef __cplusplus
}
#endif
#endif
