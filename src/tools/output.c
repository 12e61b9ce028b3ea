#include "tools/output.h"

#include "tools/message.h"

#include <stdio.h>

int output_json(json_t *object)
{
    int failed = !object || json_dumpf(object, stdout, JSON_REAL_PRECISION(9));
    json_decref(object);
    if (failed)
        return message_error("stdout: cannot write the JSON object");
    putchar('\n');
    return 0;
}

json_t *output_text(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    char ascii[1024];
    size_t n = 0;
    for (; text[n] && n < sizeof(ascii) - 1; n++)
        ascii[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
    ascii[n] = 0;
    return json_string(ascii);
}

const char *output_bytes(int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    static char texts[4][32];
    static int turn;
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    turn = (turn + 1) % 4;
    snprintf(texts[turn], sizeof(texts[turn]), unit ? "%.1f %s" : "%.0f %s",
             value, units[unit]);
    return texts[turn];
}
