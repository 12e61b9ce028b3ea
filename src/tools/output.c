#include "tools/output.h"

#include "tools/message.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 64 };

int output_flush(void)
{
    int had_failed = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !had_failed)
        return LEAT_OK;
    return errno ? leat_error(LEAT_EIO, "stdout: cannot write: %s",
                              strerror(errno))
                 : leat_error(LEAT_EIO, "stdout: cannot write");
}

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

/* One of a few buffers by turns: a line may hold several. */
static char *next_text(void)
{
    static char texts[4][TEXT_BYTES];
    static int turn;
    turn = (turn + 1) % 4;
    return texts[turn];
}

const char *output_bytes(int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    if (!unit)
        return output_count(bytes, "byte", "bytes");
    char *text = next_text();
    snprintf(text, TEXT_BYTES, "%.1f %s", value, units[unit]);
    return text;
}

const char *output_count(int64_t n, const char *one, const char *many)
{
    char *text = next_text();
    snprintf(text, TEXT_BYTES, "%lld %s", (long long)n, n == 1 ? one : many);
    return text;
}
