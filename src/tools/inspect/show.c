/* show.c: `leat show`, a contact sheet of records. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/number.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/command.h"
#include "tools/database/database.h"
#include "tools/database/inspection.h"
#include "tools/database/target.h"
#include "tools/inspect/contact_sheet.h"
#include "tools/inspect/show_net.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>
#include <leat/reader.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RECORDS = 100000 };

/* Which records, in the order in which they are shown. */
struct choice {
    int64_t *record;
    int64_t n;
    int64_t capacity;
};

struct show_options {
    const char *out;
    int64_t count;
    struct choice records;
    int worst;
    int64_t side;
    int64_t columns;
    int rgb;
    int force;
    int json;
    struct layer_source_options layer; /* whose forward is shown, with --net */
};

struct show {
    const struct show_options *options;
    const char *path;
    struct contact_sheet sheet;
    leat_image_decoder *decoder;
    struct inspection found;  /* with --worst, or behind damage */
    int has_found;            /* whether that was done */
    const struct choice *all; /* what is shown behind what was found */
    int64_t first;            /* the place of these on the sheet */
    int64_t shown;
    int64_t total; /* records of the database */
    int64_t bad;   /* of those shown */
    int64_t lost;  /* likewise */
};

static int choose(struct choice *choice, int64_t record)
{
    if (choice->n == MOST_RECORDS)
        return leat_error(LEAT_EINVAL, "more than %d records are chosen",
                          MOST_RECORDS);
    if (choice->n == choice->capacity) {
        int64_t capacity = choice->capacity ? 2 * choice->capacity : 64;
        int64_t *grown =
            realloc(choice->record, (size_t)capacity * sizeof(*grown));
        if (!grown)
            return leat_error(LEAT_ENOMEM, "out of memory");
        choice->record = grown;
        choice->capacity = capacity;
    }
    choice->record[choice->n++] = record;
    return LEAT_OK;
}

/* A number or a range, FROM-TO; moves behind it. */
static int read_range(const char **text, int64_t *from, int64_t *to)
{
    char *end;
    if (number_read(*text, &end, NUMBER_COUNT, from) || *from < 0)
        return -1;
    *to = *from;
    if (*end == '-' && number_read(end + 1, &end, NUMBER_COUNT, to))
        return -1;
    *text = end;
    return *to < *from || *to - *from >= MOST_RECORDS ? -1 : 0;
}

static int read_records(const struct option_spec *spec, const char *text)
{
    struct choice *choice = spec->out;
    choice->n = 0;
    for (;; text++) {
        int64_t from, to;
        if (read_range(&text, &from, &to))
            return -1;
        for (int64_t i = 0; i <= to - from; i++)
            if (choose(choice, from + i))
                return -1;
        if (*text != ',')
            return *text ? -1 : 0;
    }
}

static const char *encoding_of(const leat_field *field)
{
    if (field->dtype != LEAT_BYTES)
        return field->dtype == LEAT_UINT8 ? "raw" : "float";
    return ((const unsigned char *)field->data)[0] == 0xff ? "jpeg" : "png";
}

/* Room for what stands below a picture. */
struct caption_text {
    char label[64];
    char number[32];
    char key[KEY_TEXT];
    char kind[64];
};

static void name_record(struct caption_text *text, struct caption *caption,
                        int64_t record, const void *key, size_t key_size)
{
    *caption = (struct caption){NULL, text->number, NULL, NULL};
    snprintf(text->number, sizeof(text->number), "#%lld", (long long)record);
    if (key)
        caption->key = inspection_key(text->key, key, key_size, 0);
}

static void show_bad(struct show *self, int64_t place, struct caption *caption,
                     const char *reason)
{
    caption->label = "bad";
    contact_sheet_refuse(&self->sheet, place, reason, caption);
    self->bad++;
    self->shown++;
}

/* A sample whose provenance names it. LEAT_EDATA: its image is bad. */
static int show_sample(struct show *self, int64_t place,
                       const leat_sample *sample, struct caption *caption,
                       struct caption_text *text)
{
    const leat_field *data = &sample->field[0];
    struct thumbnail thumbnail;
    leat_image image;
    int is_encoded = data->dtype == LEAT_BYTES;
    if (is_encoded) {
        int status = leat_image_decode(self->decoder, data->data, data->bytes,
                                       LEAT_COLOR_NATIVE, &image);
        if (status)
            return status;
    }
    thumbnail_init(&thumbnail, data, is_encoded ? &image : NULL,
                   self->options->rgb);
    inspection_label(text->label, sizeof(text->label), &sample->field[1], 1);
    snprintf(text->kind, sizeof(text->kind), "%lldx%lldx%lld %s",
             (long long)(is_encoded ? image.channels : data->shape[0]),
             (long long)(is_encoded ? image.height : data->shape[1]),
             (long long)(is_encoded ? image.width : data->shape[2]),
             encoding_of(data));
    caption->label = text->label;
    caption->kind = text->kind;
    contact_sheet_draw(&self->sheet, place, &thumbnail, caption);
    self->shown++;
    return LEAT_OK;
}

/* What a reader's error line says of the record it names. */
static const char *reason_of(const char *line)
{
    const char *key = strstr(line, ", key ");
    const char *end = key ? strstr(key, ": ") : NULL;
    return end ? end + 2 : line;
}

/* The chosen records by a reader, which finds them soon. */
static int show_by_reader(struct show *self)
{
    leat_reader *reader = NULL;
    leat_sample sample;
    leat_sample_init(&sample);
    int status = database_open(&reader, self->path);
    for (int64_t i = 0; !status && i < self->all->n; i++) {
        struct caption_text text;
        struct caption caption;
        int64_t record = self->all->record[i];
        status = leat_reader_seek(reader, record);
        if (!status)
            status = leat_reader_next(reader, &sample);
        if (status && status != LEAT_EDATA)
            break;
        name_record(&text, &caption, record, sample.from.key,
                    sample.from.key_size);
        if (!status)
            status =
                show_sample(self, self->first + i, &sample, &caption, &text);
        if (status == LEAT_EDATA) {
            show_bad(self, self->first + i, &caption,
                     reason_of(leat_last_error()));
            status = LEAT_OK;
        }
        if (!status)
            status = interrupt_check();
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status;
}

static int look_at_all(struct show *self,
                       int (*visit)(void *context,
                                    const struct inspected *record),
                       void *context)
{
    self->has_found = 1;
    return inspection_run(&self->found, self->path,
                          self->options->layer.layer.max_image_bytes,
                          self->options->json, visit, context);
}

/* Why records are lost, as far as one reason is known. */
static const char *loss_reason(const struct show *self)
{
    for (size_t i = 0; i < self->found.flaws; i++)
        if (self->found.flaw[i].lost < 0)
            return self->found.flaw[i].reason;
    return self->found.flaws ? self->found.flaw[0].reason : "it is not there";
}

/* Records that were chosen and not met. */
static void show_lost(struct show *self, const char *is_met)
{
    for (int64_t i = 0; i < self->all->n; i++) {
        struct caption_text text;
        struct caption caption;
        if (is_met[i])
            continue;
        name_record(&text, &caption, self->all->record[i], NULL, 0);
        caption.label = "lost";
        contact_sheet_refuse(&self->sheet, self->first + i, loss_reason(self),
                             &caption);
        self->lost++;
        self->shown++;
    }
}

/* Shows the record wherever it was chosen, and notes where. */
static int show_entry(struct show *self, const leat_lmdb_check_entry *entry,
                      leat_sample *sample, const char *damage, char *is_met)
{
    int64_t record = inspection_number(&self->found, entry->record);
    for (int64_t i = 0; i < self->all->n; i++) {
        struct caption_text text;
        struct caption caption;
        if (self->all->record[i] != record)
            continue;
        is_met[i] = 1;
        name_record(&text, &caption, record, entry->key, entry->key_size);
        int status = LEAT_EDATA;
        if (!damage) {
            status = leat_datum_fields(sample, entry->value, entry->value_size);
            if (!status)
                status =
                    show_sample(self, self->first + i, sample, &caption, &text);
        }
        if (status == LEAT_EDATA)
            show_bad(self, self->first + i, &caption,
                     damage ? damage : leat_last_error());
        else if (status)
            return status;
    }
    return LEAT_OK;
}

/* Walks up to the last record that was chosen. */
static int show_met(struct show *self, leat_lmdb_check *check, char *is_met)
{
    leat_lmdb_check_entry entry;
    leat_sample sample;
    int64_t most = -1;
    int got, status = LEAT_OK;
    for (int64_t i = 0; i < self->all->n; i++)
        if (self->all->record[i] > most)
            most = self->all->record[i];
    leat_sample_init(&sample);
    for (entry.record = -1; !status && entry.record < most;) {
        status = leat_lmdb_check_next(check, &entry, 1, &got);
        if (!status)
            status = show_entry(self, &entry, &sample, NULL, is_met);
        else if (status == LEAT_EFORMAT || status == LEAT_EIO)
            status = entry.lost == 1 && entry.page >= 0
                         ? show_entry(self, &entry, &sample, leat_last_error(),
                                      is_met)
                         : LEAT_OK;
        if (!status)
            status = interrupt_check();
    }
    leat_sample_finish(&sample);
    return status == LEAT_END ? LEAT_OK : status;
}

/*
 * The chosen records of a damaged database, by a walk behind its damage; by the
 * numbers of leat verify, which are known when all of it was looked at.
 */
static int show_by_check(struct show *self)
{
    leat_lmdb_check *check = NULL;
    char *is_met = calloc((size_t)self->all->n + 1, 1);
    if (!is_met)
        return leat_error(LEAT_ENOMEM, "out of memory");
    int status = self->has_found ? LEAT_OK : look_at_all(self, NULL, NULL);
    if (!status)
        status = leat_lmdb_check_open(&check, self->path);
    if (!status)
        status = show_met(self, check, is_met);
    if (!status)
        show_lost(self, is_met);
    leat_lmdb_check_close(check);
    free(is_met);
    return status;
}

/* The records that have least to show, the worst first. */
struct ranking {
    pthread_mutex_t lock; /* protects the rest */
    struct ranked {
        int64_t record;
        int has_warned;
        double contrast;
    } * worst;
    int64_t n, most;
};

static int is_worse(const struct ranked *a, const struct ranked *b)
{
    if (a->has_warned != b->has_warned)
        return a->has_warned > b->has_warned;
    if (a->contrast < b->contrast || a->contrast > b->contrast)
        return a->contrast < b->contrast;
    return a->record < b->record;
}

static int rank(void *context, const struct inspected *record)
{
    struct ranking *ranking = context;
    struct thumbnail thumbnail;
    thumbnail_init(&thumbnail, &record->sample->field[0], record->image, 0);
    struct ranked ranked = {record->entry->record, record->warning != NULL,
                            thumbnail_contrast(&thumbnail)};
    pthread_mutex_lock(&ranking->lock);
    int64_t at = ranking->n;
    while (at > 0 && is_worse(&ranked, &ranking->worst[at - 1]))
        at--;
    if (at < ranking->most) {
        ranking->n += ranking->n < ranking->most;
        memmove(ranking->worst + at + 1, ranking->worst + at,
                (size_t)(ranking->n - 1 - at) * sizeof(ranked));
        ranking->worst[at] = ranked;
    }
    pthread_mutex_unlock(&ranking->lock);
    return LEAT_OK;
}

/* Looks at all records; chooses what is worst among the good ones. */
static int find_worst(struct show *self, struct choice *choice)
{
    struct ranking ranking = {.most = self->options->count};
    ranking.worst = calloc((size_t)ranking.most + 1, sizeof(*ranking.worst));
    if (!ranking.worst)
        return leat_error(LEAT_ENOMEM, "out of memory");
    pthread_mutex_init(&ranking.lock, NULL);
    int status = look_at_all(self, rank, &ranking);
    pthread_mutex_destroy(&ranking.lock);
    int64_t room = self->options->count - (int64_t)self->found.flaws;
    for (int64_t i = 0; !status && i < ranking.n && i < room; i++)
        status = choose(
            choice, inspection_number(&self->found, ranking.worst[i].record));
    free(ranking.worst);
    return status;
}

static void show_flaws(struct show *self, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const struct flaw *flaw = &self->found.flaw[i];
        struct caption_text text;
        struct caption caption;
        name_record(&text, &caption, flaw->record, NULL, 0);
        caption.key = flaw->key;
        if (!flaw_is_record(flaw))
            caption.number = NULL;
        show_bad(self, i, &caption, flaw->reason);
    }
}

/* Those asked for, or the first ones. */
static int choose_records(struct show *self, struct choice *choice)
{
    const struct choice *asked = &self->options->records;
    int status = LEAT_OK;
    for (int64_t i = 0; !status && i < asked->n; i++) {
        if (asked->record[i] >= self->total)
            return leat_error(LEAT_EINVAL,
                              "%s: record %lld is wanted, there are %lld",
                              self->path, (long long)asked->record[i],
                              (long long)self->total);
        status = choose(choice, asked->record[i]);
    }
    for (int64_t i = 0;
         !status && !asked->n && i < self->options->count && i < self->total;
         i++)
        status = choose(choice, i);
    return status;
}

static int count_records(struct show *self)
{
    leat_lmdb_check *check;
    int status = leat_lmdb_check_open(&check, self->path);
    if (status)
        return status;
    self->total = leat_lmdb_check_count(check);
    leat_lmdb_check_close(check);
    return LEAT_OK;
}

/* ", 2 of them bad, 5 lost"; returns `out`. */
static const char *troubles(const struct show *self, char *out, size_t size)
{
    char bad[64] = "", lost[64] = "";
    if (self->bad)
        snprintf(bad, sizeof(bad), ", %lld of them bad", (long long)self->bad);
    if (self->lost)
        snprintf(lost, sizeof(lost), ", %lld%s lost", (long long)self->lost,
                 self->bad ? "" : " of them");
    snprintf(out, size, "%s%s", bad, lost);
    return out;
}

static void write_title(struct show *self)
{
    char text[256], trouble[128];
    const char *what = self->options->worst       ? "the worst"
                       : self->options->records.n ? "chosen"
                                                  : "the first";
    snprintf(text, sizeof(text), "%s %lld of %s%s", what,
             (long long)self->shown,
             output_count(self->total, "record", "records"),
             troubles(self, trouble, sizeof(trouble)));
    contact_sheet_title(&self->sheet, self->path, text);
}

static int show_chosen(struct show *self, const struct choice *choice)
{
    int64_t flaws = (int64_t)self->found.flaws;
    self->first = flaws < self->options->count ? flaws : self->options->count;
    self->all = choice;
    int status = contact_sheet_init(&self->sheet, self->first + choice->n,
                                    (int)self->options->side,
                                    (int)self->options->columns);
    if (status)
        return status;
    show_flaws(self, self->first);
    status = self->found.flaws ? LEAT_EFORMAT : show_by_reader(self);
    if (status == LEAT_EFORMAT || status == LEAT_EIO) {
        self->shown = self->bad = 0;
        show_flaws(self, self->first);
        status = show_by_check(self);
    }
    if (status)
        return status;
    write_title(self);
    return raster_save(&self->sheet.raster, self->options->out);
}

static int report(const struct show *self)
{
    const struct raster *raster = &self->sheet.raster;
    char trouble[128];
    if (self->options->json)
        return output_json(json_pack(
            "{s:o, s:I, s:I, s:I, s:I, s:b, s:i, s:i}", "out",
            output_text(self->options->out), "records", (json_int_t)self->total,
            "shown", (json_int_t)self->shown, "bad", (json_int_t)self->bad,
            "lost", (json_int_t)self->lost, "exact_numbers",
            self->found.gaps < 2, "width", raster->width, "height",
            raster->height));
    printf("%s: %lld of %s%s, %d x %d pixels\n", plain_text(self->options->out),
           (long long)self->shown,
           output_count(self->total, "record", "records"),
           troubles(self, trouble, sizeof(trouble)), raster->width,
           raster->height);
    if (self->found.lost)
        printf("%s of the database; see leat verify\n",
               output_count(self->found.lost, "record is lost",
                            "records are lost"));
    if (self->found.gaps > 1)
        printf("records are numbered without those of lost pages\n");
    return 0;
}

/* Bad pictures are no failure, but a sheet that has no other is. What was asked
   to begin with the bad ones may have no room for the good. */
static int check_good(const struct show *self)
{
    int64_t good = self->shown - self->bad - self->lost;
    if (good || !self->shown || (self->options->worst && self->found.good))
        return 0;
    return message_found(
        "%s: %s, and none of them is good; see leat verify", self->path,
        output_count(self->shown, "record is shown", "records are shown"));
}

static int show_records(const struct show_options *options, const char *path)
{
    struct show show = {.options = options, .path = path};
    struct choice choice = {0};
    int status = leat_image_decoder_create(&show.decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(show.decoder,
                                         options->layer.layer.max_image_bytes);
    if (!status)
        status = count_records(&show);
    if (!status)
        status = options->worst ? find_worst(&show, &choice)
                                : choose_records(&show, &choice);
    if (!status)
        status = show_chosen(&show, &choice);
    int exit_status = status ? message_last_error() : report(&show);
    if (!exit_status)
        exit_status = check_good(&show);
    contact_sheet_finish(&show.sheet);
    inspection_finish(&show.found);
    leat_image_decoder_destroy(show.decoder);
    free(choice.record);
    return exit_status;
}

/* Whether the file holds what its name says, a PNG or a JPEG. */
static int is_sheet(const char *path)
{
    static const char png[] = "\x89PNG\r\n\x1a\n", jpeg[] = "\xff\xd8\xff";
    int is_jpeg = raster_format_of(path) == RASTER_JPEG;
    size_t size = is_jpeg ? sizeof(jpeg) - 1 : sizeof(png) - 1;
    char head[sizeof(png)];
    return target_begin(path, head, size) == (int64_t)size &&
           !memcmp(head, is_jpeg ? jpeg : png, size);
}

/* Before anything is read: what is at `out`, and what it is to be. */
static int check_out(const struct show_options *options, const char *source)
{
    if (target_check(options->out, source, options->force, is_sheet))
        return message_last_error();
    if (raster_format_of(options->out) == RASTER_UNKNOWN)
        return message_misuse("show",
                              "--out %s: a sheet is written as PNG or JPEG: "
                              "name it .png, .jpg or .jpeg",
                              options->out);
    return OPTION_GO;
}

static int show_layer(const struct show_options *options)
{
    const struct show_net_options net = {.source = &options->layer,
                                         .out = options->out,
                                         .count = options->count,
                                         .side = options->side,
                                         .columns = options->columns,
                                         .rgb = options->rgb,
                                         .json = options->json};
    return show_net(&net);
}

static int check_options(const struct show_options *options, int databases)
{
    const struct layer_source_options *layer = &options->layer;
    int has_layer = layer->net || layer->reader;
    if (!options->out)
        return message_misuse("show", "show: --out is missing");
    if (options->worst && options->records.n)
        return message_misuse("show",
                              "show: --records and --worst exclude each other");
    if (options->count && options->records.n)
        return message_misuse("show",
                              "show: --records and --count exclude each other");
    if (!has_layer && !databases)
        return message_misuse("show", "show: arguments are missing: give a "
                                      "database, --net or --reader");
    if (has_layer && databases)
        return message_misuse("show", "show: a database and --net or --reader "
                                      "exclude each other");
    if (has_layer && (options->worst || options->records.n))
        return message_misuse("show", "show: --records and --worst are for "
                                      "databases");
    if (has_layer)
        return layer_source_options_check(layer, "show");
    if (layer_source_options_are_given(layer))
        return message_misuse("show", "show: --phase, --batch and the like are "
                                      "for --net and --reader");
    return OPTION_GO;
}

int command_show(int argc, char **argv)
{
    struct show_options options = {.side = 112,
                                   .layer = LAYER_SOURCE_OPTIONS_INIT};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.layer);
    const struct option_spec specs[] = {
        {"out", "FILE", "where the sheet goes, a .png or .jpg", option_text,
         &options.out, 0, 0},
        {"count", "N", "how many records, of the first or worst (60)",
         option_int, &options.count, 1, MOST_RECORDS},
        {"records", "LIST", "these records, such as 1,5,9-20, from 0 on",
         read_records, &options.records, 0, 0},
        {"worst", NULL, "bad records, then those that show least", NULL,
         &options.worst, 0, 0},
        {"side", "N", "pixels that a picture has room for (112)", option_int,
         &options.side, 24, 2048},
        {"columns", "N", "pictures in a row; 0: as looks good", option_int,
         &options.columns, 0, 1000},
        {"rgb", NULL, "raw records are R, G, B, as CIFAR's", NULL, &options.rgb,
         0, 0},
        {"force", NULL, "replace a file of another kind", NULL, &options.force,
         0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "show",
        .arguments = "[options] DB --out FILE\n"
                     "       leat show --net FILE --phase P --out FILE",
        .about = "Draws a contact sheet of records: the picture, its label,\n"
                 "number, key, shape and encoding. Raw pictures of 3\n"
                 "channels are B, G, R, as Caffe's are; of other numbers\n"
                 "each channel is drawn by itself. Floats go from their\n"
                 "least, black, to their greatest, white. With --net or\n"
                 "--reader what forward delivers: crops and mirrors as they\n"
                 "are applied, but without means and scale.",
        .options = specs,
        .most_arguments = 1,
        .shared = layer,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = check_options(&options, n);
    if (!options.count)
        options.count = 60;
    int has_layer = options.layer.net || options.layer.reader;
    if (status == OPTION_GO) {
        interrupt_catch();
        status = check_out(&options, n ? arguments[0] : "");
    }
    if (status == OPTION_GO)
        status = has_layer ? show_layer(&options)
                           : show_records(&options, arguments[0]);
    free(options.records.record);
    return status;
}
