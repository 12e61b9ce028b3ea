/*
 * DESIGN
 *
 * Each thread takes chunks of records from one check, which locks itself. All
 * list their findings under one lock; the lists are sorted by record at the
 * end. There may be millions of bad records, most of them for few reasons:
 * texts are stored next to each other, and a recent reason is not stored again.
 *
 * Thread 0 is the caller, and draws the bar: a signal does not interrupt the
 * writes of the others.
 */
#include "tools/database/inspection.h"
#include "base/parallel_for.h"
#include "base/thread.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records taken at once; reasons that are not written again. */
enum { CHUNK = 16, REASONS = 32 };

/* A block of texts. */
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
    atomic_bool stopping;
    struct progress progress; /* of thread 0 */

    pthread_mutex_t lock; /* protects the rest */
    struct inspection *found;
    const char *reason[REASONS];
    int next_reason; /* to be replaced */
};

/* A thread's own. */
struct worker {
    struct inspector *inspector;
    leat_sample sample;
    leat_image_decoder *decoder;
    int64_t good;
    int64_t warned;
};

/* Whether a text of its own would be read as an escape. */
static bool is_escape(const char *text)
{
    return text[0] == '\\' && text[1] == 'x' &&
           isxdigit((unsigned char)text[2]) && isxdigit((unsigned char)text[3]);
}

const char *inspection_key(char out[KEY_TEXT], const void *key, size_t size,
                           size_t cut)
{
    char text[KEY_MOST + 1];
    size_t shown = size < KEY_MOST ? size : KEY_MOST;
    int at = 0, bytes;
    if (shown)
        memcpy(text, key, shown);
    text[shown] = 0;
    for (size_t i = 0; i < shown; i += (size_t)bytes)
        if (plain_text_decode(text + i, &bytes) < 1 || is_escape(text + i))
            at += sprintf(out + at, "\\x%02x", (unsigned char)text[i]);
        else
            at += sprintf(out + at, "%.*s", bytes, text + i);
    out[at] = 0;
    if (shown < size + cut)
        sprintf(out + at, "... (%zu bytes)", size + cut);
    return out;
}

const char *inspection_label(char *out, size_t size, const leat_field *label,
                             bool values)
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

/* The thread's error without the name of the database, which all errors are
   of. */
static const char *last_reason(const char *path)
{
    const char *line = leat_last_error();
    size_t length = strlen(path);
    if (strncmp(line, path, length) != 0)
        return line;
    const char *rest = line + length;
    if (!strncmp(rest, "/data.mdb", 9))
        rest += 9;
    return strncmp(rest, ": ", 2) ? line : rest + 2;
}

/* A copy of the text that stays where it is; NULL: no memory. */
static const char *keep_text_locked(struct inspection *found, const char *text)
{
    struct flaw_texts *texts = found->texts;
    size_t size = strlen(text) + 1;
    if (size > sizeof(texts->text))
        size = sizeof(texts->text);
    if (!texts || size > sizeof(texts->text) - texts->used) {
        texts = malloc(sizeof(*texts));
        if (!texts)
            return NULL;
        texts->used = 0;
        texts->next = found->texts;
        found->texts = texts;
    }
    char *kept = texts->text + texts->used;
    memcpy(kept, text, size - 1);
    kept[size - 1] = 0;
    texts->used += size;
    return kept;
}

static const char *keep_reason_locked(struct inspector *inspector,
                                      const char *text)
{
    for (int i = 0; i < REASONS; i++)
        if (inspector->reason[i] && !strcmp(inspector->reason[i], text))
            return inspector->reason[i];
    const char *kept = keep_text_locked(inspector->found, text);
    inspector->reason[inspector->next_reason] = kept;
    inspector->next_reason = (inspector->next_reason + 1) % REASONS;
    return kept;
}

/* Room for one more in a list of `n`, which is full at each power of two. */
static int reserve_locked(struct flaw **list, size_t n)
{
    if (n & (n - 1))
        return LEAT_OK;
    size_t capacity = n ? 2 * n : 1;
    struct flaw *grown = realloc(*list, capacity * sizeof(*grown));
    if (!grown)
        return LEAT_ENOMEM;
    *list = grown;
    return LEAT_OK;
}

/* Lists the reason why `lost` records are bad; 0: a codec's warning. */
static int add_flaw(struct inspector *inspector,
                    const leat_lmdb_check_entry *entry, int64_t lost,
                    const char *reason, bool is_warning)
{
    struct inspection *found = inspector->found;
    struct flaw **list = is_warning ? &found->warning : &found->flaw;
    size_t *n = is_warning ? &found->warnings : &found->flaws;
    struct flaw flaw = {
        .record = entry->record, .page = entry->page, .lost = lost};
    char key[KEY_TEXT];
    if (entry->key)
        inspection_key(key, entry->key, entry->key_size, 0);
    pthread_mutex_lock(&inspector->lock);
    flaw.reason = keep_reason_locked(inspector, reason);
    if (entry->key)
        flaw.key = keep_text_locked(found, key);
    bool fits =
        flaw.reason && (flaw.key || !entry->key) && !reserve_locked(list, *n);
    if (fits)
        (*list)[(*n)++] = flaw;
    pthread_mutex_unlock(&inspector->lock);
    return fits ? LEAT_OK
                : leat_error(LEAT_ENOMEM, "out of memory for bad records");
}

/* LEAT_EDATA: the record is bad. */
static int inspect_record(struct worker *worker,
                          const leat_lmdb_check_entry *entry)
{
    leat_sample *sample = &worker->sample;
    struct inspector *inspector = worker->inspector;
    struct inspected record = {.entry = entry, .sample = sample};
    leat_image image;
    leat_sample_clear(sample);
    int status = leat_datum_fields(sample, entry->value, entry->value_size);
    if (!status && sample->field[0].dtype == LEAT_BYTES) {
        status = leat_image_decode(worker->decoder, sample->field[0].data,
                                   sample->field[0].bytes, LEAT_COLOR_NATIVE,
                                   &image);
        record.image = &image;
        record.warning = status ? NULL : leat_image_warning(worker->decoder);
    }
    if (status)
        return status;
    worker->good++;
    if (record.warning) {
        worker->warned++;
        status = add_flaw(inspector, entry, 0, record.warning, true);
    }
    return status || !inspector->visit
               ? status
               : inspector->visit(inspector->context, &record);
}

/* Takes the next records. LEAT_END: there are none. */
static int inspect_chunk(struct worker *worker, int *got)
{
    struct inspector *inspector = worker->inspector;
    leat_lmdb_check_entry entry[CHUNK];
    int status = leat_lmdb_check_next(inspector->check, entry, CHUNK, got);
    if (status == LEAT_EFORMAT || status == LEAT_EIO)
        return add_flaw(inspector, entry, entry[0].lost,
                        last_reason(inspector->path), false);
    for (int i = 0; !status && i < *got; i++) {
        status = inspect_record(worker, &entry[i]);
        if (status == LEAT_EDATA)
            status = add_flaw(inspector, &entry[i], 1,
                              last_reason(inspector->path), false);
    }
    return status;
}

static int inspect(int thread, void *context)
{
    struct inspector *inspector = context;
    struct worker worker = {.inspector = inspector};
    leat_sample_init(&worker.sample);
    int got, status = leat_image_decoder_create(&worker.decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(worker.decoder,
                                         inspector->max_image_bytes);
    while (!status && !atomic_load(&inspector->stopping)) {
        status = inspect_chunk(&worker, &got);
        if (!status)
            status = interrupt_check();
        int64_t done =
            status ? 0 : atomic_fetch_add(&inspector->done, got) + got;
        if (!status && thread == 0)
            progress_update(&inspector->progress, done);
    }
    /* The others need not go on after an error. */
    if (status < 0)
        atomic_store(&inspector->stopping, true);
    pthread_mutex_lock(&inspector->lock);
    inspector->found->good += worker.good;
    inspector->found->warned += worker.warned;
    pthread_mutex_unlock(&inspector->lock);
    leat_image_decoder_destroy(worker.decoder);
    leat_sample_finish(&worker.sample);
    return status < 0 ? status : LEAT_OK;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

bool flaw_is_record(const struct flaw *flaw)
{
    return flaw->lost == 1 && flaw->page >= 0;
}

/* A page comes before the record after it. */
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
 * Counts, and numbers the records after lost pages if all of these are at one
 * position, as those that a truncated file lacks are.
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

int64_t inspection_records(const struct inspection *inspection)
{
    return inspection->good + inspection->bad + inspection->lost;
}

const char *inspection_damage(const struct inspection *inspection)
{
    for (size_t i = 0; i < inspection->flaws; i++)
        if (!flaw_is_record(&inspection->flaw[i]))
            return inspection->flaw[i].reason;
    return NULL;
}

int64_t inspection_number(const struct inspection *inspection, int64_t record)
{
    bool is_after = inspection->gaps == 1 && record >= inspection->gap;
    return is_after ? record + inspection->lost : record;
}

int inspection_run(struct inspection *out, const char *path,
                   size_t max_image_bytes, bool quiet,
                   int (*visit)(void *context, const struct inspected *record),
                   void *context)
{
    struct inspector inspector = {.path = path,
                                  .max_image_bytes = max_image_bytes,
                                  .visit = visit,
                                  .context = context,
                                  .found = out};
    memset(out, 0, sizeof(*out));
    int status = leat_lmdb_check_open(&inspector.check, path);
    interrupt_catch();
    if (status)
        return status;
    out->expected = leat_lmdb_check_count(inspector.check);
    pthread_mutex_init(&inspector.lock, NULL);
    progress_start(&inspector.progress, "records", out->expected, quiet);
    status = leat__parallel_for_helped("leat-inspect", leat__thread_cores(),
                                       inspect, &inspector);
    progress_finish(&inspector.progress);
    pthread_mutex_destroy(&inspector.lock);
    out->pages.size = sizeof(out->pages);
    out->has_pages =
        !status && !leat_lmdb_check_page_use(inspector.check, &out->pages);
    leat_lmdb_check_close(inspector.check);
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
