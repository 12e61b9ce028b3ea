#include "layer/ledger.h"
#include "base/log.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Four bytes for each of a path, a key and a reason, and the numbers. */
#define LINE_MAX_BYTES (4 * (4096 + LEAT__KEY_MAX + LEAT__ERROR_MAX) + 256)

static const char *const stand_in_name[] = {"none", "zeros", "record"};

void leat__ledger_init(leat__ledger *self,
                       const leat_data_layer_options *options)
{
    self->name = options->name;
    self->path = options->bad_record_file;
    self->max_errors = options->max_errors;
    self->file = -1;
}

void leat__ledger_finish(leat__ledger *self)
{
    /* What a close could report, the writes before it did not lose. */
    if (self->file >= 0)
        (void)close(self->file);
    self->file = -1;
}

int leat__ledger_open(leat__ledger *self)
{
    if (!self->path || self->file >= 0)
        return LEAT_OK;
    /* A pipe without a reader would be waited for. */
    int file =
        open(self->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK,
             0666);
    if (file < 0)
        return leat__error_system(errno, "%s: bad_record_file %s", self->name,
                                  self->path);
    struct stat about;
    int code = fstat(file, &about) ? errno : 0;
    if (code == 0 && S_ISREG(about.st_mode)) {
        self->file = file;
        return LEAT_OK;
    }
    (void)close(file);
    if (code)
        return leat__error_system(code, "%s: bad_record_file %s", self->name,
                                  self->path);
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and is no regular file",
                      self->name, self->path);
}

void leat__ledger_clear(leat__ledger *self)
{
    self->count = 0;
    self->unwritten = 0;
    self->listed = 0;
}

/*
 * Tabs and line ends would break the line; the rest stays as it is. So does a
 * sentence's backslash; of a name it is written out, to be read back.
 */
static size_t put_text(char *out, const char *text, size_t size,
                       int is_sentence)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        int plain = byte >= 0x20 && byte != 0x7f;
        if (byte == '\\')
            plain = is_sentence;
        used += (size_t)sprintf(out + used, plain ? "%c" : "\\x%02x", byte);
    }
    out[used++] = '\t';
    return used;
}

static size_t format_line(char line[LINE_MAX_BYTES], const leat__bad *bad)
{
    leat_provenance from = leat__bad_from(bad);
    const char *source = from.source ? from.source : "";
    size_t used = put_text(line, source, strnlen(source, 4096), 0);
    used += (size_t)sprintf(line + used, "%lld\t", (long long)from.record);
    used += put_text(line + used, from.key ? from.key : "",
                     from.key ? from.key_size : 0, 0);
    if (from.key && from.key_cut)
        used += (size_t)sprintf(line + used - 1, "... (%zu bytes)\t",
                                from.key_size + from.key_cut) -
                1;
    used +=
        (size_t)sprintf(line + used, "%lld\t%lld\t%s\t", (long long)from.epoch,
                        (long long)from.position, stand_in_name[from.stand_in]);
    /* The key in it has such letters already. */
    used += put_text(line + used, bad->line, strlen(bad->line), 1);
    line[used - 1] = '\n';
    return used;
}

/* One write for a line: ranks may append to one file. */
static int write_line(leat__ledger *self, const leat__bad *bad)
{
    char line[LINE_MAX_BYTES + 1] = "\n";
    size_t size = format_line(line + 1, bad);
    const char *from = self->is_torn ? line : line + 1;
    size += self->is_torn != 0;
    ssize_t n;
    do {
        n = write(self->file, from, size);
    } while (n < 0 && errno == EINTR);
    int code = n < 0 ? errno : ENOSPC;
    if (n == (ssize_t)size) {
        self->is_torn = 0;
        return LEAT_OK;
    }
    if (n > 0)
        self->is_torn = 1;
    return leat__error_system(code, "%s: bad_record_file %s", self->name,
                              self->path);
}

static void keep_listed(leat__ledger *self, const leat__bad *bad)
{
    leat__bad *entry = &self->entry[self->listed];
    *entry = *bad;
    self->list[self->listed] = (leat_bad_record){
        .from = leat__bad_from(entry),
        .reason = entry->line,
    };
    self->listed++;
    leat__log(LEAT_LOG_WARNING, "%s: bad record, %s: %s", self->name,
              bad->from.stand_in == LEAT_STAND_IN_NONE ? "its batch is lost"
              : bad->from.stand_in == LEAT_STAND_IN_ZEROS
                  ? "zeros stand in"
                  : "one before stands in",
              bad->line);
    if (self->listed == LEAT_BAD_RECORDS_MAX)
        leat__log(LEAT_LOG_WARNING,
                  "%s: further bad records are counted, but not logged",
                  self->name);
}

void leat__ledger_note(leat__ledger *self, const leat__bad *bad)
{
    int cancel = leat__thread_hold_cancel();
    self->count++;
    if (self->listed < LEAT_BAD_RECORDS_MAX)
        keep_listed(self, bad);
    if (self->file >= 0 && write_line(self, bad) && self->unwritten++ == 0)
        leat__log(LEAT_LOG_WARNING, "%s; the list in it has gaps",
                  leat_last_error());
    leat__thread_release_cancel(cancel);
}

int leat__ledger_check(const leat__ledger *self)
{
    if (self->max_errors < 0 || self->count <= self->max_errors)
        return LEAT_OK;
    const char *line = self->listed > 0 ? self->list[0].reason : "";
    return leat_error(LEAT_ELIMIT,
                      "%s: %lld bad records, max_errors allows %lld; the first "
                      "one: %s",
                      self->name, (long long)self->count,
                      (long long)self->max_errors, line);
}
