/*
 * DESIGN
 *
 * Each thread takes runs of records from one leat_lmdb_check, which locks
 * itself. What they find goes into one list under one lock, and is put in the
 * order of the records at the end. There may be millions of bad records, most
 * of them for few reasons: texts lie close behind each other, and reasons met
 * lately are not written again.
 */
#include "tools/database/inspection.h"
#include "base/parallel_for.h"
#include "base/thread.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records taken at once; reasons looked at for being the same. */
enum { RUN = 16, REASONS = 32 };

/* A piece of memory full of texts. */
struct flaw_texts {
    struct flaw_texts *next;
    size_t used;
    char text[(64 << 10) - 32];
};

struct inspector {
    leat_lmdb_check *check;
    const char *path;
    size_t max_image_bytes;
    int (*visit)(void *context, const struct inspected *record);
    void *context;
    atomic_llong done;
    atomic_int stopping;
    struct progress progress; /* of thread 0 */

    pthread_mutex_t lock; /* protects the rest */
    struct inspection *found;
    size_t capacity; /* of its flaws */
    size_t warning_capacity;
    const char *reason[REASONS];
    int next_reason; /* to be replaced */
};

/* What a thread has of its own. */
struct looker {
    struct inspector *inspector;
    leat_sample sample;
    leat_image_decoder *decoder;
    int64_t good;
    int64_t warned;
};

/* Its first `shown` bytes, of `all`. */
static const char *write_key(char *out, const unsigned char *bytes,
                             size_t shown, size_t all)
{
    int at = 0;
    for (size_t i = 0; i < shown; i++) {
        int is_plain = bytes[i] >= ' ' && bytes[i] <= '~' && bytes[i] != '\\';
        at += sprintf(out + at, is_plain ? "%c" : "\\x%02x", bytes[i]);
    }
    out[at] = 0;
    if (shown < all)
        sprintf(out + at, "... (%zu bytes)", all);
    return out;
}

const char *inspection_key(char out[KEY_TEXT], const void *key, size_t size,
                           size_t cut)
{
    return write_key(out, key, size < KEY_MOST ? size : KEY_MOST, size + cut);
}

const char *inspection_short_key(char out[KEY_TEXT], const void *key,
                                 size_t size)
{
    return write_key(out, key, size < 64 ? size : 64, size);
}

const char *inspection_label(char *out, size_t size, const leat_field *label,
                             int values)
{
    int32_t class;
    if (label->dtype == LEAT_INT32) {
        memcpy(&class, label->data, sizeof(class));
        snprintf(out, size, "%d", class);
        return out;
    }
    size_t n = label->bytes / sizeof(float);
    if (!values)
        snprintf(out, size, "%zu x %s", n, leat_dtype_name(label->dtype));
    for (size_t i = 0, used = 0; values && i < n && used < size; i++) {
        float value;
        memcpy(&value, (const char *)label->data + i * sizeof(value),
               sizeof(value));
        used += (size_t)snprintf(out + used, size - used, i ? " %.8g" : "%.8g",
                                 (double)value);
    }
    return out;
}

/* The line without the name of the database, which all of them are of. */
static const char *without_path(const char *line, const char *path)
{
    size_t length = strlen(path);
    if (strncmp(line, path, length) != 0)
        return line;
    const char *rest = line + length;
    if (!strncmp(rest, "/data.mdb", 9))
        rest += 9;
    return strncmp(rest, ": ", 2) ? line : rest + 2;
}

/* Appends to a list of `*n`. Returns whether there was room. */
static int append(struct flaw **list, size_t *n, size_t *capacity,
                  const struct flaw *flaw)
{
    if (*n == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 16;
        struct flaw *grown = realloc(*list, more * sizeof(*grown));
        if (!grown)
            return 0;
        *list = grown;
        *capacity = more;
    }
    (*list)[(*n)++] = *flaw;
    return 1;
}

static int append_locked(struct inspector *self, const struct flaw *flaw,
                         int is_warning)
{
    struct inspection *found = self->found;
    return is_warning
               ? append(&found->warning, &found->warnings,
                        &self->warning_capacity, flaw)
               : append(&found->flaw, &found->flaws, &self->capacity, flaw);
}

/* The text where it stays; NULL: no memory. */
static const char *keep_text_locked(struct inspector *self, const char *text)
{
    struct flaw_texts *texts = self->found->texts;
    size_t size = strlen(text) + 1;
    if (size > sizeof(texts->text))
        size = sizeof(texts->text);
    if (!texts || size > sizeof(texts->text) - texts->used) {
        texts = malloc(sizeof(*texts));
        if (!texts)
            return NULL;
        texts->used = 0;
        texts->next = self->found->texts;
        self->found->texts = texts;
    }
    char *kept = texts->text + texts->used;
    memcpy(kept, text, size - 1);
    kept[size - 1] = 0;
    texts->used += size;
    return kept;
}

static const char *keep_reason_locked(struct inspector *self, const char *text)
{
    for (int i = 0; i < REASONS; i++)
        if (self->reason[i] && !strcmp(self->reason[i], text))
            return self->reason[i];
    const char *kept = keep_text_locked(self, text);
    self->reason[self->next_reason] = kept;
    self->next_reason = (self->next_reason + 1) % REASONS;
    return kept;
}

/* Notes a reason by which `lost` records are bad; 0: a codec's warning. */
static int note_reason(struct inspector *self,
                       const leat_lmdb_check_entry *entry, int64_t lost,
                       const char *reason, int is_warning)
{
    char key[KEY_TEXT];
    struct flaw flaw = {
        .record = entry->record, .page = entry->page, .lost = lost};
    if (entry->key)
        inspection_key(key, entry->key, entry->key_size, 0);
    pthread_mutex_lock(&self->lock);
    flaw.reason = keep_reason_locked(self, reason);
    if (entry->key)
        flaw.key = keep_text_locked(self, key);
    int has_room = flaw.reason && (flaw.key || !entry->key) &&
                   append_locked(self, &flaw, is_warning);
    pthread_mutex_unlock(&self->lock);
    return has_room ? LEAT_OK
                    : leat_error(LEAT_ENOMEM, "out of memory for bad records");
}

/* Notes the thread's error line. */
static int note(struct inspector *self, const leat_lmdb_check_entry *entry,
                int64_t lost)
{
    return note_reason(self, entry, lost,
                       without_path(leat_last_error(), self->path), 0);
}

/* LEAT_EDATA: the record is bad. */
static int look_at(struct looker *looker, const leat_lmdb_check_entry *entry)
{
    leat_sample *sample = &looker->sample;
    struct inspector *self = looker->inspector;
    struct inspected record = {.entry = entry, .sample = sample};
    leat_image image;
    int status = leat_datum_fields(sample, entry->value, entry->value_size);
    if (status)
        return status;
    if (sample->field[0].dtype == LEAT_BYTES) {
        status = leat_image_decode(looker->decoder, sample->field[0].data,
                                   sample->field[0].bytes, LEAT_COLOR_NATIVE,
                                   &image);
        if (status)
            return status;
        record.image = &image;
        record.warning = leat_image_warning(looker->decoder);
    }
    looker->good++;
    if (record.warning) {
        looker->warned++;
        status = note_reason(self, entry, 0, record.warning, 1);
        if (status)
            return status;
    }
    return self->visit ? self->visit(self->context, &record) : LEAT_OK;
}

static int look_at_run(struct looker *looker,
                       const leat_lmdb_check_entry entry[], int n)
{
    for (int i = 0; i < n; i++) {
        int status = look_at(looker, &entry[i]);
        if (status == LEAT_EDATA)
            status = note(looker->inspector, &entry[i], 1);
        if (status)
            return status;
    }
    return LEAT_OK;
}

/* Takes runs until there are none. */
static int look_at_all(struct looker *looker, int thread)
{
    struct inspector *self = looker->inspector;
    leat_lmdb_check_entry entry[RUN];
    int got, status;
    while (!atomic_load(&self->stopping)) {
        status = leat_lmdb_check_next(self->check, entry, RUN, &got);
        if (status == LEAT_END)
            break;
        if (status == LEAT_EFORMAT || status == LEAT_EIO)
            status = note(self, entry, entry[0].lost);
        else if (!status)
            status = look_at_run(looker, entry, got);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        int64_t done = atomic_fetch_add(&self->done, got) + got;
        if (thread == 0)
            progress_update(&self->progress, done);
    }
    return LEAT_OK;
}

static int inspect(int thread, void *context)
{
    struct inspector *self = context;
    struct looker looker = {.inspector = self};
    leat_sample_init(&looker.sample);
    int status = leat_image_decoder_create(&looker.decoder);
    if (!status) {
        leat_image_decoder_set_max_bytes(looker.decoder, self->max_image_bytes);
        status = look_at_all(&looker, thread);
    }
    /* The others need not go on. */
    if (status)
        atomic_store(&self->stopping, 1);
    pthread_mutex_lock(&self->lock);
    self->found->good += looker.good;
    self->found->warned += looker.warned;
    pthread_mutex_unlock(&self->lock);
    leat_image_decoder_destroy(looker.decoder);
    leat_sample_finish(&looker.sample);
    return status;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int flaw_is_record(const struct flaw *flaw)
{
    return flaw->lost == 1 && flaw->page >= 0;
}

/* Pages stand before the record that comes behind them. */
static int compare_flaws(const void *first, const void *second)
{
    const struct flaw *a = first, *b = second;
    int order = compare_numbers(a->record, b->record);
    if (!order)
        order = compare_numbers(flaw_is_record(a), flaw_is_record(b));
    if (!order)
        order = compare_numbers(a->page, b->page);
    return order ? order : strcmp(a->reason, b->reason);
}

/*
 * Counts, and numbers what is behind lost pages where all of them lie in one
 * place, as those that a file is short of do.
 */
static void sum_up(struct inspection *found)
{
    if (found->flaws)
        qsort(found->flaw, found->flaws, sizeof(*found->flaw), compare_flaws);
    if (found->warnings)
        qsort(found->warning, found->warnings, sizeof(*found->warning),
              compare_flaws);
    for (size_t i = 0; i < found->flaws; i++) {
        const struct flaw *flaw = &found->flaw[i];
        found->bad += flaw_is_record(flaw);
        if (flaw->lost < 0 && (!found->gaps || flaw->record != found->gap)) {
            found->gap = flaw->record;
            found->gaps++;
        }
    }
    int64_t met = found->good + found->bad;
    if (found->expected > met)
        found->lost = found->expected - met;
    if (found->gaps != 1)
        return;
    for (size_t i = 0; i < found->flaws; i++)
        if (found->flaw[i].lost >= 0 && found->flaw[i].record >= found->gap)
            found->flaw[i].record += found->lost;
    for (size_t i = 0; i < found->warnings; i++)
        found->warning[i].record =
            inspection_number(found, found->warning[i].record);
}

int64_t inspection_number(const struct inspection *inspection, int64_t record)
{
    int is_behind = inspection->gaps == 1 && record >= inspection->gap;
    return is_behind ? record + inspection->lost : record;
}

int inspection_run(struct inspection *out, const char *path,
                   size_t max_image_bytes, int quiet,
                   int (*visit)(void *context, const struct inspected *record),
                   void *context)
{
    struct inspector self = {.path = path,
                             .max_image_bytes = max_image_bytes,
                             .visit = visit,
                             .context = context,
                             .found = out};
    memset(out, 0, sizeof(*out));
    int status = leat_lmdb_check_open(&self.check, path);
    if (status)
        return status;
    out->expected = leat_lmdb_check_count(self.check);
    pthread_mutex_init(&self.lock, NULL);
    progress_start(&self.progress, "records", out->expected, quiet);
    status = leat__parallel_for("leat-inspect", leat__thread_cores(), inspect,
                                &self);
    progress_finish(&self.progress);
    pthread_mutex_destroy(&self.lock);
    out->pages.size = sizeof(out->pages);
    out->has_pages =
        !status && !leat_lmdb_check_page_use(self.check, &out->pages);
    leat_lmdb_check_close(self.check);
    if (status)
        inspection_finish(out);
    else
        sum_up(out);
    return status;
}

void inspection_finish(struct inspection *inspection)
{
    while (inspection->texts) {
        struct flaw_texts *texts = inspection->texts;
        inspection->texts = texts->next;
        free(texts);
    }
    free(inspection->flaw);
    free(inspection->warning);
    memset(inspection, 0, sizeof(*inspection));
}
