#include "tools/cli/output.h"

#include "tools/cli/message.h"
#include "tools/cli/number.h"
#include "tools/cli/plain_text.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64, TEXTS = 8 };

int output_flush(void)
{
    bool had_failed = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !had_failed)
        return LEAT_OK;
    return errno ? leat_error(LEAT_EIO, "stdout: cannot write: %s",
                              strerror(errno))
                 : leat_error(LEAT_EIO, "stdout: cannot write");
}

/*
 * JSON has controls of ASCII escaped; other characters that are not plain are
 * in strings, too, and of four digits.
 */
static int write_plain(const char *text)
{
    int bytes, failed = 0;
    for (; *text && !failed; text += bytes) {
        int32_t code = plain_text_decode(text, &bytes);
        failed = plain_text_is_plain(code)
                     ? fwrite(text, 1, (size_t)bytes, stdout) != (size_t)bytes
                     : printf("\\u%04X", (unsigned)code) < 0;
    }
    return failed ? -1 : 0;
}

int output_json_write(const json_t *object, size_t flags)
{
    char *text = json_dumps(object, JSON_REAL_PRECISION(9) | flags);
    bool failed = !text || write_plain(text);
    free(text);
    return failed ? -1 : 0;
}

int output_json(json_t *object)
{
    bool failed = !object || output_json_write(object, 0);
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
    char *valid = malloc(4 * strlen(text) + 1);
    size_t used = 0;
    for (int bytes; valid && *text; text += bytes)
        if (plain_text_decode(text, &bytes) < 0) {
            used += (size_t)sprintf(valid + used, "\\x%02x",
                                    (unsigned)(unsigned char)*text);
        } else {
            memcpy(valid + used, text, (size_t)bytes);
            used += (size_t)bytes;
        }
    value = valid ? json_stringn(valid, used) : NULL;
    free(valid);
    return value;
}

/* One of a few buffers in turn: a line may hold several. */
static char *next_text(void)
{
    static char texts[TEXTS][TEXT_BYTES];
    static int turn;
    turn = (turn + 1) % TEXTS;
    return texts[turn];
}

const char *output_bytes(int64_t bytes)
{
    if (bytes < 1000)
        return output_count(bytes, "byte", "bytes");
    return number_write_bytes((double)bytes, next_text(), TEXT_BYTES);
}

const char *output_size(int64_t bytes)
{
    return number_write_size(bytes, next_text(), TEXT_BYTES);
}

const char *output_scaled(double value)
{
    return number_write(value, next_text(), TEXT_BYTES);
}

const char *output_time(double seconds)
{
    return number_write_time(seconds, next_text(), TEXT_BYTES);
}

const char *output_bandwidth(double bytes_per_s)
{
    char *text = next_text();
    number_write_bytes(bytes_per_s, text, TEXT_BYTES - 2);
    return strcat(text, "/s");
}

const char *output_count(int64_t n, const char *one, const char *many)
{
    char *text = next_text();
    snprintf(text, TEXT_BYTES, "%lld %s", (long long)n, n == 1 ? one : many);
    return text;
}
