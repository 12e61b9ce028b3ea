/* leat/log.h: what leat has to say besides errors. */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How much is to be heard; each level has those above it. */
typedef enum leat_log_level {
    LEAT_LOG_NONE = 0, /* silence */
    LEAT_LOG_ERROR,    /* nothing in this version: errors come as statuses */
    LEAT_LOG_WARNING,  /* what has no effect, or not the one it seems to; bad
                          records */
    LEAT_LOG_INFO,     /* what was decided, such as a seed drawn; that a forward
                          waits for data, and for which stage */
    LEAT_LOG_DEBUG     /* nothing in this version */
} leat_log_level;

/** Receives one line without its newline, from any thread. */
typedef void leat_log_function(void *user, leat_log_level level,
                               const char *line);

/**
 * Sends lines up to `level` to `function`; NULL: silence, the default.
 * The environment variable LEAT_LOG_LEVEL (none, error, warning, info, debug),
 * where it is set, takes the place of `level`; any other word in it is told to
 * the function in a line of LEAT_LOG_WARNING, whatever the level, and without
 * effect.
 * Thread safety: any thread; calls under way may still reach the old function.
 */
LEAT_API void leat_log_set(leat_log_function *function, void *user,
                           leat_log_level level);

#ifdef __cplusplus
}
#endif
#endif
