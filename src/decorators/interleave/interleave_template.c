/*
 * The readers of an interleave that a template makes.
 *
 * DESIGN. The thread that calls next opens and closes them; the next ones are
 * opened before their turn, so that what their opening starts (read-ahead of a
 * file) runs while others are read. Element k is the upstream reader's sample
 * k of the epoch. `lock` protects the list of open readers, slots and ahead,
 * from a cancel or may_block of another thread: readers enter it open, and
 * leave it before they are closed. One that is not open yet is in `opening`.
 */
#include "base/memory.h"
#include "base/thread.h"
#include "decorators/interleave/interleave.h"
#include "pipeline/argument_table.h"
#include "pipeline/arguments.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* The names whose readers tell their identity, which takes 32 bytes of each
 * that differs: where their number is not known, and where it is. And the files
 * that are looked at in each epoch, which may be far away. */
enum { NAMES_MAX = 1 << 18, COUNTED_MAX = 1 << 24, CHECKED_MAX = 1 << 12 };

/* Of a name, which pipelines within each other can double at each depth. */
enum { NAME_BYTES_MAX = 1 << 16 };

typedef leat__interleave_template template;

static leat_reader *names_of(const leat__interleave *interleave)
{
    return interleave->map.decorator.upstream[0];
}

/* The name in a sample, with a NUL. */
static int copy_name(template *made, const leat_sample *sample)
{
    const leat_field *field = &sample->field[0];
    if (sample->nfields != 1 || field->dtype != LEAT_BYTES)
        return leat_error(LEAT_EINVAL,
                          "interleave: what reads its names has samples of %d "
                          "fields, the first %s: expected one, of bytes",
                          sample->nfields, leat_dtype_name(field->dtype));
    if (field->bytes == 0 || memchr(field->data, 0, field->bytes))
        return leat_error(LEAT_EDATA,
                          "interleave: name %lld of %s is empty, or has a byte "
                          "0",
                          (long long)made->next_name, sample->from.source);
    if (field->bytes > NAME_BYTES_MAX)
        return leat_error(LEAT_EDATA,
                          "interleave: name %lld of %s has %zu bytes: expected "
                          "at most %d",
                          (long long)made->next_name, sample->from.source,
                          field->bytes, NAME_BYTES_MAX);
    if (field->bytes >= made->name_size) {
        char *grown = leat__realloc(made->name, 2 * field->bytes + 1);
        if (!grown)
            return LEAT_ENOMEM;
        made->name = grown;
        made->name_size = 2 * field->bytes + 1;
    }
    memcpy(made->name, field->data, field->bytes);
    made->name[field->bytes] = 0;
    return LEAT_OK;
}

/* Reads the next name. LEAT_END: there is none. */
static int read_name(leat__interleave *interleave)
{
    template *made = interleave->template;
    int status = leat_reader_next(names_of(interleave), &made->sample);
    if (!status)
        status = copy_name(made, &made->sample);
    made->next_name += !status || status == LEAT_EDATA;
    return status;
}

/* Whether a reader has the fields that the first one has. */
static int check_fields(const leat__interleave *interleave, leat_reader *reader)
{
    const leat_field_spec *fields;
    int n;
    int status = leat_reader_fields(reader, &fields, &n);
    return status ? status
                  : leat__field_list_check(&interleave->fields, fields, n);
}

/* What identifies the element of the name that was read last: its name, and
 * its number as well where that makes the seed of names that its reader has. */
static uint64_t key_of(const template *made, int64_t element)
{
    return leat__element_key(made->name, made->draws_names ? element : 0);
}

/* Whether it has the data that were there when all were identified, so that no
 * reading mixes those of before and after a change. */
static int check_identity(const template *made, int64_t element,
                          leat_reader *reader)
{
    return made->is_identified
               ? leat__element_identities_check(&made->identities,
                                                key_of(made, element), reader)
               : LEAT_OK;
}

/* A new reader begins in epoch 0; what has a single pass is new, too. */
static int enter_epoch(leat_reader *reader, int64_t epoch)
{
    int status =
        epoch == 0 ? LEAT_OK
                   : leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
    return status == LEAT_EUNSUPPORTED ? LEAT_OK : status;
}

/* The error of a reader that was opened, and cannot be used. */
static int close_failed(const leat__interleave *interleave, leat_reader *reader,
                        int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    leat_reader_close(reader);
    return leat_error(status, "interleave: %.200s: %s",
                      interleave->template->name, line);
}

static void cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
}

static int open_reader(leat__interleave *interleave,
                       const leat_pipeline *pipeline, int64_t element,
                       leat_reader **out)
{
    leat_reader *reader;
    leat__opening_step step;
    int status = leat_open_again(&interleave->template->open, pipeline, element,
                                 &reader);
    if (status)
        return status;
    leat__opening_enter(&step, cancel_reader, reader);
    if (interleave->fields.n > 0)
        status = check_fields(interleave, reader);
    if (!status)
        status = check_identity(interleave->template, element, reader);
    if (!status)
        status = enter_epoch(reader, interleave->map.next.epoch);
    leat__opening_leave(&step);
    if (status)
        return close_failed(interleave, reader, status);
    *out = reader;
    return LEAT_OK;
}

/* By a cancel of this interleave, which may be open itself or not yet. */
static int open_element(leat__interleave *interleave, int64_t element,
                        leat_reader **out)
{
    template *made = interleave->template;
    leat_pipeline *pipeline;
    leat__opening_step step;
    int status =
        leat_args_pipeline(made->open.args, "pipeline", made->name, &pipeline);
    if (status)
        return status;
    leat__opening_enter(&step, cancel_reader, interleave);
    leat__opening *outer = leat__opening_begin(&made->opening);
    status = open_reader(interleave, pipeline, element, out);
    leat__opening_end(outer);
    leat__opening_leave(&step);
    leat_pipeline_unref(pipeline);
    return status;
}

/* Puts a reader into the list, of which `ahead` more are ahead. */
static void enter_list(template *made, leat__interleave_slot *slot,
                       leat_reader *reader, int ahead)
{
    pthread_mutex_lock(&made->lock);
    slot->reader = reader;
    if (made->is_cancelled && reader)
        leat_reader_cancel(reader);
    made->nahead += ahead;
    pthread_mutex_unlock(&made->lock);
    if (reader && leat__reader_reads_once(reader))
        leat__block_probe_expire();
}

void leat__template_release(leat__interleave *interleave,
                            leat__interleave_slot *slot)
{
    template *made = interleave->template;
    leat_reader *reader = slot->reader;
    pthread_mutex_lock(&made->lock);
    slot->reader = NULL;
    pthread_mutex_unlock(&made->lock);
    leat_reader_close(reader);
}

/* Opens one more ahead, or notes why it does not open. */
static void open_ahead(leat__interleave *interleave)
{
    template *made = interleave->template;
    leat__interleave_slot *slot = &made->ahead[made->nahead];
    leat_reader *reader = NULL;
    slot->element = made->next_name;
    slot->index = 0;
    slot->status = read_name(interleave);
    if (!slot->status)
        slot->status = open_element(interleave, slot->element, &reader);
    made->has_ended = slot->status == LEAT_END;
    if (made->has_ended)
        return;
    if (slot->status)
        leat__error_save(slot->line);
    enter_list(made, slot, reader, 1);
}

/* After an error other readers are not opened. */
static void fill_ahead(leat__interleave *interleave, int n)
{
    template *made = interleave->template;
    while (made->nahead < n && !made->has_ended &&
           (made->nahead == 0 || !made->ahead[made->nahead - 1].status))
        open_ahead(interleave);
}

/* The first of those ahead goes to `slot`; the order of the others stays. */
static int take_first(template *made, leat__interleave_slot *slot)
{
    pthread_mutex_lock(&made->lock);
    leat__interleave_slot first = made->ahead[0];
    made->nahead--;
    memmove(made->ahead, made->ahead + 1,
            (size_t)made->nahead * sizeof(*made->ahead));
    made->ahead[made->nahead] = (leat__interleave_slot){.line = first.line};
    slot->reader = first.reader;
    slot->source = slot->kept = NULL;
    pthread_mutex_unlock(&made->lock);
    slot->element = first.element;
    slot->index = 0;
    return first.status ? leat_error(first.status, "%s", first.line) : LEAT_OK;
}

int leat__template_take(leat__interleave *interleave,
                        leat__interleave_slot *slot)
{
    template *made = interleave->template;
    int status = leat__decorator_check_running(&interleave->map.decorator);
    if (status)
        return status;
    fill_ahead(interleave, 1);
    if (made->nahead == 0)
        return LEAT_END;
    status = take_first(made, slot);
    interleave->next_element = slot->element + 1;
    if (!status)
        fill_ahead(interleave, made->most_ahead);
    return status;
}

static void close_ahead(leat__interleave *interleave)
{
    template *made = interleave->template;
    pthread_mutex_lock(&made->lock);
    int n = made->nahead;
    made->nahead = 0;
    pthread_mutex_unlock(&made->lock);
    for (int i = 0; i < n; i++) {
        leat_reader_close(made->ahead[i].reader);
        made->ahead[i].reader = NULL;
    }
}

/* By the index of the name, or by passing by those before it. */
static int go_to_name(leat__interleave *interleave, int64_t epoch,
                      int64_t element)
{
    leat_reader *names = names_of(interleave);
    int64_t skipped;
    int status = leat_reader_seek(names, (leat_position){epoch, element}, NULL);
    if (status == LEAT_EUNSUPPORTED && element > 0) {
        status = leat_reader_seek(names, (leat_position){epoch, 0}, NULL);
        if (!status)
            status = leat_reader_skip(names, element, &skipped);
    }
    interleave->template->next_name = element;
    interleave->template->has_ended = false;
    return status;
}

int leat__template_seek(leat__interleave *interleave, int64_t epoch,
                        int64_t next)
{
    close_ahead(interleave);
    /* Its readers are new ones, and so know of no earlier epoch. */
    int status = leat_reader_check(names_of(interleave));
    if (!status)
        status = go_to_name(interleave, epoch, next);
    /* A mark at the end of the names is none of an error. */
    return status == LEAT_END && next > 0 ? LEAT_OK : status;
}

int leat__template_take_again(leat__interleave *interleave,
                              leat__interleave_slot *slot, int64_t epoch,
                              int64_t element)
{
    leat_reader *reader;
    int status = go_to_name(interleave, epoch, element);
    if (!status)
        status = read_name(interleave);
    if (!status)
        status = open_element(interleave, element, &reader);
    if (status == LEAT_END)
        return leat_error(LEAT_EINVAL, "interleave: there is no name %lld",
                          (long long)element);
    if (status)
        return status;
    enter_list(interleave->template, slot, reader, 0);
    slot->element = element;
    slot->source = slot->kept = NULL;
    return LEAT_OK;
}

int leat__template_keep_source(leat__interleave *interleave,
                               leat__interleave_slot *slot, leat_sample *sample)
{
    const char *source = sample->from.source;
    if (!source)
        return LEAT_OK;
    if (source != slot->source) {
        slot->kept =
            leat__source_names_keep(&interleave->template->sources, source);
        slot->source = slot->kept ? source : NULL;
    }
    sample->from.source = slot->kept;
    return slot->kept ? LEAT_OK : LEAT_ENOMEM;
}

int leat__template_complete(leat__interleave *interleave,
                            leat__interleave_slot *slot,
                            leat_sample *const out[], int n, int *got)
{
    int all;
    int status = leat_reader_materialize(slot->reader, out, n, &all);
    for (*got = 0; *got < all; ++*got) {
        leat_sample *sample = out[*got];
        if (leat_sample_own(sample) ||
            leat__template_keep_source(interleave, slot, sample))
            return LEAT_ENOMEM;
        sample->stable = 0;
    }
    return status;
}

/* Notes what tells the samples of the element whose name was read last from
 * others. One without a reader has none: it is a bad sample. */
static int identify_element(leat__interleave *interleave, int64_t element)
{
    template *made = interleave->template;
    leat_reader *reader = NULL;
    uint64_t key = key_of(made, element);
    if (leat__element_identities_repeat(&made->identities, key))
        return LEAT_OK;
    int status = open_element(interleave, element, &reader);
    if (status && status != LEAT_EDATA)
        return status;
    status = leat__element_identities_add(&made->identities, key, reader);
    if (status && reader)
        return close_failed(interleave, reader, status);
    leat_reader_close(reader);
    return status;
}

/* The same of the next name; one that is bad has no element. */
static int identify_next(leat__interleave *interleave)
{
    int64_t element = interleave->template->next_name;
    int status = leat__decorator_check_running(&interleave->map.decorator);
    if (!status)
        status = read_name(interleave);
    if (!status)
        return identify_element(interleave, element);
    return status == LEAT_EDATA ? LEAT_OK : status;
}

static int refuse_more_than(int64_t most)
{
    return leat_error(LEAT_EUNSUPPORTED,
                      "interleave: more than %lld readers have no identity",
                      (long long)most);
}

static int identify_elements(leat__interleave *interleave)
{
    int64_t count, most = NAMES_MAX;
    if (leat_reader_is_endless(names_of(interleave)))
        return leat_error(LEAT_EUNSUPPORTED,
                          "interleave: readers without end have no identity");
    if (!leat_reader_count(names_of(interleave), &count))
        most = count;
    if (most > COUNTED_MAX)
        return refuse_more_than(COUNTED_MAX);
    int status = go_to_name(interleave, 0, 0);
    leat__element_identities_clear(&interleave->template->identities);
    while (!status && interleave->template->next_name <= most)
        status = identify_next(interleave);
    return status == LEAT_END ? LEAT_OK
           : status           ? status
                              : refuse_more_than(most);
}

/*
 * Whatever comes of it, the next name is the one that it was. Readers that are
 * open ahead may be the only ones of theirs, as one that makes a cache is.
 */
static int identify(leat__interleave *interleave)
{
    template *made = interleave->template;
    bool has_ended = made->has_ended && made->nahead == 0;
    int64_t next = made->nahead > 0 ? made->ahead[0].element : made->next_name;
    char line[LEAT__ERROR_MAX];
    close_ahead(interleave);
    int status = identify_elements(interleave);
    if (status)
        leat__error_save(line);
    int back = go_to_name(interleave, interleave->map.next.epoch, next);
    made->has_ended = has_ended;
    if (status)
        return leat_error(status, "%s", line);
    made->is_identified = true;
    return back == LEAT_END && next > 0 ? LEAT_OK : back;
}

/* What changes later is found as it is read. */
int leat__template_revision(leat_reader *reader, leat_token *token)
{
    leat__interleave *interleave = (leat__interleave *)reader;
    const template *made = interleave->template;
    int status = made->is_identified ? LEAT_OK : identify(interleave);
    uint64_t hash = made->identities.hash;
    return status ? status : leat_token_put(token, &hash, sizeof(hash));
}

/* So many readers share its part, if they read ahead. */
static void divide_ahead(template *made, const leat_open *open, int readers)
{
    const leat__value *value = leat__args_value(
        open->args, leat__argument_find(open->args->type, "pipeline"));
    int64_t part = open->ahead_bytes / readers;
    made->ahead_bytes = value->ahead > 0 ? open->ahead_bytes : 0;
    made->draws_names = value->draws_names;
    made->open.ahead_bytes = part > 0 || open->ahead_bytes == 0 ? part : 1;
}

static int create(leat__interleave *interleave, const leat_open *open)
{
    int64_t ahead = leat_args_number(open->args, "ahead");
    template *made = leat__alloc_zero(1, sizeof(*made));
    if (!made)
        return LEAT_ENOMEM;
    int status = leat__mutex_init(&made->lock);
    if (status) {
        leat__free(made);
        return status;
    }
    interleave->template = made;
    made->opening.lock = &made->lock;
    made->opening.cancelled = &interleave->map.decorator.cancelled;
    made->open = *open;
    made->open.upstream = NULL;
    made->open.pipeline = NULL;
    made->open.nupstream = 0;
    made->most_ahead = (int)ahead;
    int n = made->most_ahead > 1 ? made->most_ahead : 1;
    divide_ahead(made, open, interleave->cycle + n);
    made->ahead = leat__alloc_zero((size_t)n, sizeof(*made->ahead));
    for (int i = 0; i < n && made->ahead && !status; i++) {
        made->ahead[i].line = leat__alloc(LEAT__ERROR_MAX);
        status = made->ahead[i].line ? LEAT_OK : LEAT_ENOMEM;
    }
    return made->ahead ? status : LEAT_ENOMEM;
}

/* A pipeline that no run can be resumed from says so when it is saved. */
static int note_unsaved(template *made, leat_reader *first)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(first, &token);
    leat_token_finish(&token);
    if (status != LEAT_ESTATE)
        return status == LEAT_EUNSUPPORTED ? LEAT_OK : status;
    made->unsaved = leat__alloc(LEAT__ERROR_MAX);
    if (!made->unsaved)
        return LEAT_ENOMEM;
    leat__error_save(made->unsaved);
    return LEAT_OK;
}

/* Readers of names note with their identity what their files are like. */
static int note_names(leat__interleave *interleave)
{
    leat_token token;
    int64_t count;
    if (leat_reader_count(names_of(interleave), &count) || count > CHECKED_MAX)
        return LEAT_OK;
    leat_token_init(&token);
    int status = leat_reader_save(names_of(interleave), &token);
    leat_token_finish(&token);
    return status == LEAT_ENOMEM || status == LEAT_EIO ? status : LEAT_OK;
}

int leat__template_begin(leat__interleave *interleave, const leat_open *open)
{
    int status = create(interleave, open);
    if (!status)
        status = note_names(interleave);
    if (status)
        return status;
    template *made = interleave->template;
    fill_ahead(interleave, 1);
    const leat__interleave_slot *first = &made->ahead[0];
    if (made->nahead == 0)
        return leat_error(LEAT_EFORMAT,
                          "interleave: %.200s: there are no names in it",
                          leat__reader_text(names_of(interleave)));
    if (first->status)
        return leat_error(first->status, "%s", first->line);
    made->reads_once = leat__reader_reads_once(first->reader);
    made->is_endless = leat_reader_is_endless(first->reader);
    status = note_unsaved(made, first->reader);
    if (status)
        return status;
    return leat__field_list_merge_all(&interleave->fields, "interleave",
                                      &first->reader, 1);
}

void leat__template_finish(leat__interleave *interleave)
{
    template *made = interleave->template;
    close_ahead(interleave);
    for (int i = 0; i < interleave->cycle; i++)
        leat_reader_close(interleave->slot[i].reader);
    int n = made->most_ahead > 1 ? made->most_ahead : 1;
    for (int i = 0; i < n && made->ahead; i++)
        leat__free(made->ahead[i].line);
    leat__free(made->ahead);
    leat__free(made->name);
    leat__free(made->unsaved);
    leat_sample_finish(&made->sample);
    leat__source_names_finish(&made->sources);
    leat__element_identities_finish(&made->identities);
    pthread_mutex_destroy(&made->lock);
    leat__free(made);
}
