#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define LINE_MAX 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static leat_log_function *listener; /* protected by lock */
static void *listener_user;         /* protected by lock */
static atomic_int limit;            /* LEAT_LOG_NONE while nobody listens */

static leat_log_level environment_level(leat_log_level otherwise)
{
    static const char *const names[] = {"none", "error", "warning", "info",
                                        "debug"};
    const char *text = getenv("LEAT_LOG_LEVEL");
    for (int i = 0; text && i <= LEAT_LOG_DEBUG; i++) {
        if (strcasecmp(text, names[i]) == 0)
            return (leat_log_level)i;
    }
    return otherwise;
}

void leat_log_set(leat_log_function *function, void *user, leat_log_level level)
{
    pthread_mutex_lock(&lock);
    listener = function;
    listener_user = user;
    atomic_store(&limit, function ? environment_level(level) : LEAT_LOG_NONE);
    pthread_mutex_unlock(&lock);
}

int leat__log_wants(leat_log_level level)
{
    return (int)level <= atomic_load_explicit(&limit, memory_order_relaxed);
}

void leat__log(leat_log_level level, const char *format, ...)
{
    if (!leat__log_wants(level))
        return;
    char line[LINE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    pthread_mutex_lock(&lock);
    leat_log_function *function = listener;
    void *user = listener_user;
    pthread_mutex_unlock(&lock);
    if (function)
        function(user, level, line);
}
