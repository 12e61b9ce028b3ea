/* log.h: one line to whoever listens. */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <leat/log.h>

#include <stdbool.h>

/* Whether a line of that level would be heard: check before costly ones. */
bool leat__log_is_enabled(leat_log_level level);

void leat__log(leat_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
