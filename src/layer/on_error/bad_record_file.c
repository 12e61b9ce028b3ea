/*
 * DESIGN. Layers, members and processes append to one file. Each does so under
 * the file's lock (flock), since what another is writing is seen in parts: it
 * reads what the others have appended, ends a line that a full disk or a crash
 * left torn, and writes its own. Where the lock cannot be had the line is
 * written without; that may put an empty line between two others.
 *
 * A layer whose setup fails removes the file that it made while that is empty,
 * and its user may remove any. Whoever has it open finds it without a name, and
 * begins it again, or goes on with the list that has its name by now.
 */
#include "layer/on_error/bad_record_file.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Four bytes for each of a path, a key and a reason, and the numbers. */
#define LINE_MAX_BYTES (4 * (4096 + LEAT__KEY_MAX + LEAT__ERROR_MAX) + 256)

/* Lines are read so many bytes at a time; a longer one is none of leat's. */
#define BUFFER_BYTES ((size_t)64 << 10)

/* Only the beginning distinguishes text from other files: a crash may leave
 * zeros where lines were appended. */
enum { PROBE_BYTES = 16 };

/* Nanoseconds that the lock is waited for, and that a signal may cut short. */
enum { LOCK_WAIT = 1000000000, LOCK_PAUSE = 200000 };

/* What a line consists of, with tabs between. */
enum { SOURCE, RECORD, KEY, EPOCH, POSITION, REPLACEMENT, REASON, COLUMNS };

static const char *const replacement_name[] = {"none", "zeros", "record"};

void leat__bad_record_file_init(leat__bad_record_file *file, const char *name,
                                const char *path)
{
    memset(file, 0, sizeof(*file));
    file->name = name;
    file->path = path;
    file->file = -1;
}

void leat__bad_record_file_finish(leat__bad_record_file *file)
{
    /* What a close could report, the writes before it did not lose. */
    if (file->file >= 0)
        (void)close(file->file);
    file->file = -1;
    leat__free(file->buffer);
    file->buffer = NULL;
    leat__record_set_finish(&file->listed);
}

static int fail(const leat__bad_record_file *file, int code)
{
    return leat__error_system(code, "%s: bad_record_file %s", file->name,
                              file->path);
}

/* A record without a source is known by its position in the epoch. */
static leat__record_mark make_mark(const char *source, size_t size,
                                   int64_t record, int64_t position)
{
    return (leat__record_mark){.source = leat__record_set_source(source, size),
                               .record = size > 0 ? record : position};
}

/* The number from `text` up to `end`; 0: there is none. */
static bool read_number(const char *text, const char *end, int64_t *out)
{
    char digits[24] = "";
    char *stop;
    size_t size = (size_t)(end - text);
    if (size == 0 || size >= sizeof(digits))
        return false;
    memcpy(digits, text, size);
    *out = strtoll(digits, &stop, 10);
    return stop == digits + size;
}

/* Whether the text from `text` up to `end` names a replacement. */
static bool is_replacement(const char *text, const char *end)
{
    size_t n = sizeof(replacement_name) / sizeof(*replacement_name);
    size_t size = (size_t)(end - text);
    for (size_t i = 0; i < n; i++)
        if (strlen(replacement_name[i]) == size &&
            memcmp(replacement_name[i], text, size) == 0)
            return true;
    return false;
}

/* Which record a line lists; 0: it is none of leat's. A table of another
 * program may have numbers in the same columns, but no replacement. */
static bool read_line(const char *line, const char *end, leat__record_mark *out)
{
    int64_t record, epoch, position;
    const char *column[COLUMNS] = {line};
    for (int i = 1; i < COLUMNS; i++) {
        const char *from = column[i - 1];
        const char *tab = memchr(from, '\t', (size_t)(end - from));
        if (!tab)
            return false;
        column[i] = tab + 1;
    }
    if (!read_number(column[RECORD], column[KEY] - 1, &record) ||
        !read_number(column[EPOCH], column[POSITION] - 1, &epoch) ||
        !read_number(column[POSITION], column[REPLACEMENT] - 1, &position) ||
        !is_replacement(column[REPLACEMENT], column[REASON] - 1))
        return false;
    *out =
        make_mark(line, (size_t)(column[RECORD] - 1 - line), record, position);
    return true;
}

/* Takes the whole lines in the buffer; the bytes that they are. */
static int take_lines(leat__bad_record_file *file, size_t size, size_t *taken)
{
    const char *line = file->buffer;
    const char *end = line + size;
    const char *next;
    for (; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        leat__record_mark mark;
        if (read_line(line, next, &mark) &&
            leat__record_set_add(&file->listed, &mark) == LEAT_ENOMEM)
            return LEAT_ENOMEM;
    }
    *taken = (size_t)(line - file->buffer);
    return LEAT_OK;
}

/* Reads the lines appended since, also by others, and whether the last is
 * whole. */
static int catch_up(leat__bad_record_file *file)
{
    struct stat about;
    if (fstat(file->file, &about))
        return fail(file, errno);
    if (about.st_size < file->read) {
        leat__record_set_rewind(&file->listed, 0, 0);
        file->read = 0;
        file->is_torn = false;
    }
    while (file->read < about.st_size) {
        ssize_t n = pread(file->file, file->buffer, BUFFER_BYTES, file->read);
        if (n < 0 && errno != EINTR)
            return fail(file, errno);
        if (n < 0)
            continue;
        if (n > 0)
            file->is_torn = file->buffer[n - 1] != '\n';
        size_t taken = 0;
        int status = take_lines(file, (size_t)n, &taken);
        if (status)
            return status;
        if (taken == 0 && (size_t)n < BUFFER_BYTES)
            break;
        file->read += taken > 0 ? (int64_t)taken : n;
    }
    return LEAT_OK;
}

/* Lines of leat's hold no other control characters than tabs; other programs'
 * lines before them may be any text. Databases, pictures and means begin with
 * some. */
static bool is_text(const unsigned char *bytes, ssize_t size)
{
    for (ssize_t i = 0; i < size; i++)
        if (bytes[i] == 0x7f || (bytes[i] < 0x20 && bytes[i] != '\t' &&
                                 bytes[i] != '\n' && bytes[i] != '\r'))
            return false;
    return true;
}

/* Refuses a file that lines would damage. */
static int check_text(const leat__bad_record_file *file)
{
    unsigned char first[PROBE_BYTES];
    ssize_t n;
    do {
        n = pread(file->file, first, sizeof(first), 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(file, errno);
    if (is_text(first, n))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and is no text; give "
                      "another name",
                      file->name, file->path);
}

/*
 * Whether a file of lines that are none of leat's, as its first 64 KiB show:
 * a net, a token, data. Empty lines and comments say nothing, and what comes
 * after the last line's end may be the begin of one that was torn.
 */
static bool is_of_others(const char *bytes, size_t size)
{
    const char *line = bytes, *end = bytes + size, *next;
    leat__record_mark mark;
    bool has_others = false;
    for (; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        if (read_line(line, next, &mark))
            return false;
        has_others |= next > line && *line != '#';
    }
    return has_others || (line < end && *line != '#' &&
                          !memchr(line, '\t', (size_t)(end - line)));
}

static int check_lines(const leat__bad_record_file *file)
{
    ssize_t n;
    do {
        n = pread(file->file, file->buffer, BUFFER_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(file, errno);
    if (!is_of_others(file->buffer, (size_t)n))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and lists no bad "
                      "records; give another name",
                      file->name, file->path);
}

/* The file's descriptor, which is new if there was none; below 0: errno. */
static int open_or_make(leat__bad_record_file *file)
{
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    int fd = open(file->path, flags | O_CREAT | O_EXCL, 0666);
    file->is_made = fd >= 0;
    if (fd < 0 && errno == EEXIST) /* nor O_CREAT, for fs.protected_regular */
        fd = open(file->path, flags);
    if (fd < 0 && errno == ENOENT) { /* a link to nothing */
        fd = open(file->path, flags | O_CREAT, 0666);
        file->is_made = fd >= 0;
    }
    /* Under another program's lease, which this open has asked to end. */
    return fd < 0 && errno == EWOULDBLOCK
               ? leat__file_open(file->path, O_RDWR | O_APPEND)
               : fd;
}

static int open_regular(leat__bad_record_file *file)
{
    struct stat about;
    /* Who waits at a pipe would take this opening and closing for its end. */
    if (stat(file->path, &about) || S_ISREG(about.st_mode) ||
        S_ISDIR(about.st_mode)) {
        int fd = open_or_make(file);
        int code = fd < 0 || fstat(fd, &about) ? errno : 0;
        if (code == 0 && S_ISREG(about.st_mode)) {
            file->file = fd;
            return LEAT_OK;
        }
        if (fd >= 0)
            (void)close(fd);
        if (code)
            return fail(file, code);
    }
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and is no regular file",
                      file->name, file->path);
}

/* A list, or an empty file. */
static int open_list(leat__bad_record_file *file)
{
    int status = open_regular(file);
    if (status)
        return status;
    status = check_text(file);
    if (!status)
        status = check_lines(file);
    if (status) {
        (void)close(file->file);
        file->file = -1;
    }
    return status;
}

int leat__bad_record_file_open(leat__bad_record_file *file)
{
    if (!file->path || file->file >= 0)
        return LEAT_OK;
    file->buffer = leat__alloc(BUFFER_BYTES);
    if (!file->buffer)
        return LEAT_ENOMEM;
    int status = open_list(file);
    if (!status)
        status = catch_up(file);
    if (status)
        leat__bad_record_file_finish(file);
    return status;
}

/*
 * Tabs and line ends would break the line; the rest stays as it is. So does a
 * sentence's backslash; of a name it is written out, to be read back.
 */
static size_t put_text(char *out, const char *text, size_t size,
                       bool is_sentence)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool plain = byte >= 0x20 && byte != 0x7f;
        if (byte == '\\')
            plain = is_sentence;
        used += (size_t)sprintf(out + used, plain ? "%c" : "\\x%02x", byte);
    }
    out[used++] = '\t';
    return used;
}

/* Behind `text` if the line begins with it, else the line. */
static const char *after(const char *line, const char *text)
{
    size_t size = strlen(text);
    return strncmp(line, text, size) == 0 ? line + size : line;
}

/* The error line without the source, record and key that columns name. */
static const char *reason_of(const leat__bad *bad, const leat_provenance *from)
{
    char text[LEAT__KEY_TEXT_MAX];
    char record[32 + LEAT__KEY_TEXT_MAX];
    const char *line = bad->line;
    size_t size = from->source ? strlen(from->source) : 0;
    if (size > 0 && strncmp(line, from->source, size) == 0 &&
        strncmp(line + size, ": ", 2) == 0)
        line += size + 2;
    snprintf(record, sizeof(record), "record %lld", (long long)from->record);
    const char *rest = after(line, record);
    if (rest == line)
        return line;
    if (from->key) {
        snprintf(
            record, sizeof(record), ", key %s",
            leat__key_text(text, from->key, from->key_size + from->key_cut));
        rest = after(rest, record);
    }
    if (strncmp(rest, ": ", 2) == 0)
        return rest + 2;
    return *rest == ' ' ? rest + 1 : line;
}

/* The line, and which record it lists. */
static size_t format_line(char line[LINE_MAX_BYTES], const leat__bad *bad,
                          leat__record_mark *mark)
{
    leat_provenance from = leat__bad_from(bad);
    const char *source = from.source ? from.source : "";
    const char *reason = reason_of(bad, &from);
    size_t used = put_text(line, source, strnlen(source, 4096), 0);
    *mark = make_mark(line, used - 1, from.record, from.position);
    used += (size_t)sprintf(line + used, "%lld\t", (long long)from.record);
    used += put_text(line + used, from.key ? from.key : "",
                     from.key ? from.key_size : 0, 0);
    if (from.key && from.key_cut)
        used += (size_t)sprintf(line + used - 1, "... (%zu bytes)\t",
                                from.key_size + from.key_cut) -
                1;
    used += (size_t)sprintf(line + used, "%lld\t%lld\t%s\t",
                            (long long)from.epoch, (long long)from.position,
                            replacement_name[from.replacement]);
    /* The key in it has such letters already. */
    used += put_text(line + used, reason, strlen(reason), 1);
    line[used - 1] = '\n';
    return used;
}

/* One write for a line: ranks may append to one file. */
static int write_line(leat__bad_record_file *file, const char *line,
                      size_t size)
{
    struct stat about;
    ssize_t n;
    if (fstat(file->file, &about))
        return fail(file, errno);
    /* What is beyond the limit is not written, as on a full disk. */
    int code = leat__file_check_limit(about.st_size + 1);
    if (code)
        return fail(file, code);
    do {
        n = write(file->file, line, size);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)size)
        return LEAT_OK;
    return fail(file, n < 0 ? errno : ENOSPC);
}

/* Whether the lock was had; not to have it is no error. */
static bool lock(leat__bad_record_file *file)
{
    const struct timespec pause = {0, LOCK_PAUSE};
    int64_t end = file->is_held ? 0 : leat__clock_now() + LOCK_WAIT;
    while (flock(file->file, LOCK_EX | LOCK_NB)) {
        file->is_held = errno == EWOULDBLOCK;
        if ((!file->is_held && errno != EINTR) || leat__clock_now() >= end)
            return false;
        nanosleep(&pause, NULL);
    }
    file->is_held = false;
    return true;
}

void leat__bad_record_file_discard(leat__bad_record_file *file)
{
    struct stat about, named;
    if (file->file < 0)
        return;
    char *name = file->is_made ? realpath(file->path, NULL) : NULL;
    /* What another appends meanwhile stays, as it waits for the lock. */
    if (name && lock(file) && !fstat(file->file, &about) &&
        about.st_size == 0 && !lstat(name, &named) &&
        named.st_ino == about.st_ino && named.st_dev == about.st_dev)
        (void)unlink(name);
    free(name);
    /* A child that was forked meanwhile has the file open as well. */
    (void)flock(file->file, LOCK_UN);
    leat__bad_record_file_finish(file);
}

/*
 * Opens the file by its name again once it has been removed, be it before the
 * lock was had: what is written to one without a name is lost.
 */
static int follow(leat__bad_record_file *file)
{
    struct stat about, found;
    for (;;) {
        if (fstat(file->file, &about))
            return fail(file, errno);
        if (about.st_nlink > 0)
            return LEAT_OK;
        int before = file->file;
        int status = open_list(file);
        if (status) {
            file->file = before; /* tried again by the next line */
            return status;
        }
        /* The path leads to a file that never had a name: /dev/fd/9. */
        bool is_same = fstat(file->file, &found) == 0 &&
                       found.st_dev == about.st_dev &&
                       found.st_ino == about.st_ino;
        (void)close(is_same ? file->file : before);
        if (is_same) {
            file->file = before;
            return LEAT_OK;
        }
        leat__record_set_rewind(&file->listed, 0, 0);
        file->read = 0;
        file->is_torn = false;
        (void)lock(file);
    }
}

static int append(leat__bad_record_file *file, const leat__bad *bad)
{
    char line[LINE_MAX_BYTES + 1] = "\n";
    leat__record_mark mark;
    int status = follow(file);
    if (!status)
        status = catch_up(file);
    if (status)
        return status;
    size_t size = format_line(line + 1, bad, &mark);
    if (leat__record_set_has(&file->listed, &mark))
        return LEAT_OK;
    if (leat__record_set_is_full(&file->listed))
        return leat_error(LEAT_ELIMIT,
                          "%s: bad_record_file %s lists %zu records, the most "
                          "that are remembered",
                          file->name, file->path, file->listed.n);
    return write_line(file, file->is_torn ? line : line + 1,
                      size + (file->is_torn != 0));
}

int leat__bad_record_file_add(leat__bad_record_file *file, const leat__bad *bad)
{
    if (file->file < 0)
        return LEAT_OK;
    (void)lock(file);
    int status = append(file, bad);
    (void)flock(file->file, LOCK_UN);
    return status;
}
