#include "tools/cli/output.h"

#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/plain_text.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 64, TEXTS = 8, LINE_BYTES = 2048 };

/* Why output failed first; 0: it has not, or nobody looked at once. */
static int failure;

bool output_has_failed(void)
{
    if (!ferror(stdout))
        return false;
    failure = failure ? failure : errno;
    return true;
}

/* Paths and keys may contain any byte; a line break would make two messages. */
static void print_line(const char *text)
{
    char plain[4 * LINE_BYTES];
    if (interrupt_is_quiet())
        return;
    plain_text_write(plain, sizeof(plain), text);
    /* Keeps the order where both streams go to one file. A failure shows at the
       end of main. */
    if (fflush(stdout))
        (void)output_has_failed();
    /* A terminal's line may hold a progress bar, which is redrawn. */
    interrupt_begin_message();
    fprintf(stderr, "%sleat: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
            plain);
    interrupt_end_message();
}

/* Jansson lacked memory: what it should have added may be left out. */
static atomic_bool lacks_json;

static void *alloc_json(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        atomic_store(&lacks_json, true);
    return memory;
}

void output_begin(void)
{
    json_set_alloc_funcs(alloc_json, free);
}

void output_require_json(void)
{
    if (atomic_load(&lacks_json))
        output_exit(EXIT_SUCCESS);
}

/* A line that is too long keeps both its ends, as leat_error's does: names in
   it are long, and the reason follows them. */
static void format_line(char out[LINE_BYTES], const char *format, va_list list)
{
    enum { TAIL = LINE_BYTES / 2 };
    char *whole;
    va_list again;
    va_copy(again, list);
    int size = vasprintf(&whole, format, list);
    /* Without memory for the whole it keeps its beginning. */
    if (size < 0)
        vsnprintf(out, LINE_BYTES, format, again);
    va_end(again);
    if (size < 0)
        return;
    snprintf(out, LINE_BYTES, "%s", whole);
    if (size >= LINE_BYTES) {
        memcpy(out + LINE_BYTES - TAIL, whole + size + 1 - TAIL, TAIL);
        memcpy(out + LINE_BYTES - TAIL - 3, "...", 3);
    }
    free(whole);
}

int message_print(int exit_status, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    format_line(text, format, arguments);
    va_end(arguments);
    print_line(text);
    return exit_status;
}

int message_last_error(void)
{
    return message_error("%s", leat_last_error());
}

int message_version(void)
{
    printf("leat %s\n", leat_version());
    return 0;
}

void message_misuse(const char *command, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    format_line(text, format, arguments);
    va_end(arguments);
    output_exit(message_print(EXIT_MISUSED, "%s (see leat%s%s --help)", text,
                              *command ? " " : "", command));
}

void output_exit(int status)
{
    cleanup_run();
    interrupt_obey();
    /* A full disk shows only when the buffer is written, and a signal may end
       the write; an answer that did not arrive is none. */
    int flushed = output_flush();
    interrupt_obey();
    if (flushed && status <= EXIT_FOUND)
        status = message_last_error();
    if (atomic_load(&lacks_json) && status <= EXIT_FOUND)
        status = message_error("out of memory: the output is not complete");
    exit(status);
}

int output_flush(void)
{
    bool had_failed = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !had_failed)
        return LEAT_OK;
    int reason = failure ? failure : errno;
    return reason ? leat_error(LEAT_EIO, "stdout: cannot write: %s",
                               strerror(reason))
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
    /* Jansson may leave out bytes of it. */
    bool failed = !text || atomic_load(&lacks_json) || write_plain(text);
    (void)output_has_failed();
    free(text);
    return failed ? -1 : 0;
}

int output_json_fail(void)
{
    return output_has_failed() && output_flush()
               ? message_last_error()
               : message_error("out of memory for the JSON object");
}

int output_json(json_t *object)
{
    bool failed = !object || output_json_write(object, 0);
    json_decref(object);
    if (failed)
        return output_json_fail();
    putchar('\n');
    return 0;
}

json_t *output_text(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    char *valid = alloc_json(4 * strlen(text) + 1);
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

/* Scales by thousands until three digits are enough, and adds the unit. */
static const char *write_scaled(double value, const char *const units[], int n,
                                const char *rest)
{
    char *text = next_text();
    int unit = 0;
    for (; fabs(value) >= 999.5 && unit < n - 1; unit++)
        value /= 1000;
    double most = fabs(value);
    snprintf(text, TEXT_BYTES, "%.*f%s%s%s",
             most < 9.995   ? 2
             : most < 99.95 ? 1
                            : 0,
             value, *units[unit] ? " " : "", units[unit], rest);
    return text;
}

static const char *const byte_units[] = {"bytes", "kB", "MB", "GB", "TB"};

const char *output_scaled(double value)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    return write_scaled(value, units, 5, "");
}

const char *output_time(double seconds)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return write_scaled(seconds * 1e9, units, 4, "");
}

const char *output_bytes(int64_t bytes)
{
    return bytes < 1000 ? output_count(bytes, "byte", "bytes")
                        : write_scaled((double)bytes, byte_units, 5, "");
}

const char *output_bandwidth(double bytes_per_s)
{
    return write_scaled(bytes_per_s, byte_units, 5, "/s");
}

const char *output_size(int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes && bytes % 1024 == 0 && unit < 4; unit++)
        bytes /= 1024;
    return output_count(bytes, units[unit], units[unit]);
}

const char *output_count(int64_t n, const char *one, const char *many)
{
    char *text = next_text();
    snprintf(text, TEXT_BYTES, "%lld %s", (long long)n, n == 1 ? one : many);
    return text;
}
