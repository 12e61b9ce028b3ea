/*
 * DESIGN
 *
 * `lock` protects the listener, and is released before its function is called,
 * which may log or set another one. Its level is read without the lock: where
 * logging is off a line costs two loads. A forked child resets the lock, so a
 * listener is written beside the current one, and then takes its place by one
 * store.
 */
#include "base/log.h"
#include "base/ascii.h"
#include "base/fork.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    leat_log_function *function; /* protected by lock */
    void *user;                  /* protected by lock */
    atomic_int limit;            /* LEAT_LOG_NONE while there is no function */
} listeners[2];
static atomic_int current; /* which of the two; written under lock */

static const char *const names[] = {"none", "error", "warning", "info",
                                    "debug"};

/* The level that a word names; -1: none. */
static int parse_level(const char *text)
{
    for (int i = 0; i <= LEAT_LOG_DEBUG; i++) {
        if (leat__ascii_is_same(text, names[i]))
            return i;
    }
    return -1;
}

/* Reports an invalid LEAT_LOG_LEVEL: its user wants log lines. */
static void report_invalid_level(leat_log_function *function, void *user,
                                 const char *text, leat_log_level level)
{
    bool is_level = level >= LEAT_LOG_NONE && level <= LEAT_LOG_DEBUG;
    char line[LINE_MAX];
    snprintf(line, sizeof(line),
             "LEAT_LOG_LEVEL=%.64s: expected none, error, warning, info or "
             "debug; the level is %s",
             text, is_level ? names[level] : "?");
    function(user, LEAT_LOG_WARNING, line);
}

void leat_log_set(leat_log_function *function, void *user, leat_log_level level)
{
    const char *text = function ? getenv("LEAT_LOG_LEVEL") : NULL;
    int wanted = text && *text ? parse_level(text) : (int)level;
    int now = wanted < 0 ? (int)level : wanted;
    leat__fork_reset_mutex(&lock);
    pthread_mutex_lock(&lock);
    int next = !atomic_load(&current);
    listeners[next].function = function;
    listeners[next].user = user;
    atomic_store(&listeners[next].limit, function ? now : LEAT_LOG_NONE);
    atomic_store(&current, next);
    pthread_mutex_unlock(&lock);
    if (wanted < 0)
        report_invalid_level(function, user, text, level);
}

bool leat__log_is_enabled(leat_log_level level)
{
    int now = atomic_load_explicit(&current, memory_order_relaxed);
    return (int)level <=
           atomic_load_explicit(&listeners[now].limit, memory_order_relaxed);
}

__attribute__((format(printf, 2, 0))) static void
log_list(leat_log_level level, const char *format, va_list list)
{
    char line[LINE_MAX];
    vsnprintf(line, sizeof(line), format, list);
    pthread_mutex_lock(&lock);
    int now = atomic_load(&current);
    leat_log_function *function = listeners[now].function;
    void *user = listeners[now].user;
    pthread_mutex_unlock(&lock);
    if (function)
        function(user, level, line);
}

void leat__log(leat_log_level level, const char *format, ...)
{
    if (!leat__log_is_enabled(level))
        return;
    va_list list;
    va_start(list, format);
    log_list(level, format, list);
    va_end(list);
}

void leat_log_line(leat_log_level level, const char *format, ...)
{
    if (!leat__log_is_enabled(level) || level == LEAT_LOG_NONE)
        return;
    va_list list;
    va_start(list, format);
    log_list(level, format, list);
    va_end(list);
}
