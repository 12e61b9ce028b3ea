/* command_show.c: `leat show`, a contact sheet of records. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/number.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/command.h"
#include "tools/database/target.h"
#include "tools/delivery/show.h"
#include "tools/image/jpeg_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A list of numbers and ranges: 1,5,9-20. */
static int read_records(const struct option_spec *spec, const char *text)
{
    struct show *self = spec->out;
    self->shown = 0;
    for (;; text++) {
        int64_t from, to;
        char *end;
        if (number_read(text, &end, NUMBER_COUNT, &from) || from < 0)
            return -1;
        to = from;
        if (*end == '-' && number_read(end + 1, &end, NUMBER_COUNT, &to))
            return -1;
        if (to < from || to - from >= SHOW_MAX_RECORDS - self->shown)
            return -1;
        for (int64_t i = 0; i <= to - from; i++)
            self->cell[self->shown++].record = from + i;
        text = end;
        if (*text != ',')
            return *text ? -1 : 0;
    }
}

/* ", 2 of them bad, 5 lost"; returns `out`. */
static const char *troubles(const struct show *self, char out[128])
{
    int n = 0;
    out[0] = 0;
    if (self->bad)
        n = sprintf(out, ", %lld of them bad", (long long)self->bad);
    if (self->lost)
        sprintf(out + n, ", %lld%s lost", (long long)self->lost,
                n ? "" : " of them");
    return out;
}

static void write_title(struct show *self, const char *which)
{
    char text[256], trouble[128];
    troubles(self, trouble);
    if (self->records < 0)
        snprintf(text, sizeof(text),
                 "the first %lld of forward in %s%s, means and scale undone",
                 (long long)self->shown,
                 self->phase == LEAT_TEST ? "TEST" : "TRAIN", trouble);
    else
        snprintf(text, sizeof(text), "%s %lld of %s%s", which,
                 (long long)self->shown,
                 output_count(self->records, "record", "records"), trouble);
    contact_sheet_title(&self->sheet, self->source, text);
}

/* The figures of a database alone and of a layer alone are NULL for others. */
static json_t *report_json(const struct show *self)
{
    int is_layer = self->records < 0;
    return json_pack(
        "{s:o, s:o*, s:I, s:I, s:o*, s:o*, s:o*, s:i, s:i}", "out",
        output_text(self->out), "records",
        is_layer ? NULL : json_integer(self->records), "shown",
        (json_int_t)self->shown, "bad", (json_int_t)self->bad, "lost",
        is_layer ? NULL : json_integer(self->lost), "exact_numbers",
        is_layer ? NULL : json_boolean(self->found.gaps < 2), "seed",
        is_layer ? json_integer((json_int_t)self->seed) : NULL, "width",
        self->sheet.raster.width, "height", self->sheet.raster.height);
}

/* Prints on stderr where the picture goes to stdout. */
static int report(const struct show *self)
{
    int is_stdout = !strcmp(self->out, "-");
    const char *out = is_stdout ? "stdout" : self->out;
    FILE *stream = is_stdout ? stderr : stdout;
    char trouble[128];
    if (self->json)
        return output_json(report_json(self));
    if (self->records < 0)
        fprintf(stream, "%s: %s", plain_text(out),
                output_count(self->shown, "sample", "samples"));
    else
        fprintf(stream, "%s: %lld of %s%s", plain_text(out),
                (long long)self->shown,
                output_count(self->records, "record", "records"),
                troubles(self, trouble));
    fprintf(stream, ", %d x %d pixels\n", self->sheet.raster.width,
            self->sheet.raster.height);
    if (self->seed)
        fprintf(stream, "seed: %llu\n", (unsigned long long)self->seed);
    if (self->records < 0 && self->bad)
        fprintf(stream, "bad records: %lld\n", (long long)self->bad);
    if (self->found.lost)
        fprintf(stream, "%s of the database; see leat verify\n",
                output_count(self->found.lost, "record is lost",
                             "records are lost"));
    if (self->found.gaps > 1)
        fprintf(stream, "records are numbered without those of lost pages\n");
    return 0;
}

/* Bad pictures are no failure, but a sheet without others is, unless it is of
   the worst ones. */
static int check_good(const struct show *self)
{
    if (self->bad + self->lost < self->shown || !self->shown ||
        (self->worst && self->found.good))
        return 0;
    if (self->records < 0)
        return message_error("%s: none of the records shown is good",
                             self->source);
    return message_found(
        "%s: %s, and none of them is good; see leat verify", self->source,
        output_count(self->shown, "record is shown", "records are shown"));
}

static int show(struct show *self, int (*draw)(struct show *self))
{
    const char *which = self->worst   ? "the worst"
                        : self->shown ? "chosen"
                                      : "the first";
    int status = draw(self);
    if (!status) {
        write_title(self, which);
        status = contact_sheet_save(&self->sheet, self->out);
    }
    int exit_status = status ? message_last_error() : report(self);
    if (!exit_status)
        exit_status = check_good(self);
    contact_sheet_finish(&self->sheet);
    inspection_finish(&self->found);
    return exit_status;
}

/* Whether the file has the format of its name, PNG or JPEG. */
static int is_sheet(const char *path)
{
    static const char png[] = "\x89PNG\r\n\x1a\n", jpeg[] = "\xff\xd8\xff";
    int is_jpeg = contact_sheet_writer(path) == jpeg_writer_write;
    size_t size = is_jpeg ? sizeof(jpeg) - 1 : sizeof(png) - 1;
    char head[sizeof(png)];
    return target_begin(path, head, size) == (int64_t)size &&
           !memcmp(head, is_jpeg ? jpeg : png, size);
}

/* Before anything is read: whether the sheet may go to --out. */
static int check_out(const struct show *self, const char *database)
{
    int is_stdout = !strcmp(self->out, "-");
    if (!is_stdout && target_check(self->out, database, self->force, is_sheet))
        return message_last_error();
    if (!contact_sheet_writer(self->out))
        return message_misuse("show",
                              "--out %s: a sheet is written as PNG or JPEG: "
                              "name it .png, .jpg or .jpeg",
                              self->out);
    if (is_stdout && self->json)
        return message_misuse("show", "show: --json and --out - would both "
                                      "write to stdout");
    if (is_stdout && isatty(STDOUT_FILENO))
        return message_misuse("show", "show: --out - would write a picture to "
                                      "a terminal: redirect stdout");
    return OPTION_GO;
}

static int check_options(const struct show *self, int databases)
{
    const struct layer_source_options *layer = &self->layer;
    int has_layer = layer->net || layer->reader, has_records = self->shown > 0;
    const struct {
        int is_wrong;
        const char *text;
    } rules[] = {{!self->out, "--out is missing"},
                 {self->worst && has_records,
                  "--records and --worst exclude each other"},
                 {self->count && has_records,
                  "--records and --count exclude each other"},
                 {!has_layer && !databases,
                  "arguments are missing: give a database, --net or --reader"},
                 {has_layer && databases,
                  "a database and --net or --reader exclude each other"},
                 {has_layer && (self->worst || has_records),
                  "--records and --worst are for databases"},
                 {!has_layer && layer_source_options_are_given(layer),
                  "--phase, --batch and the like are for --net and --reader"}};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].is_wrong)
            return message_misuse("show", "show: %s", rules[i].text);
    return has_layer ? layer_source_options_check(layer, "show") : OPTION_GO;
}

int command_show(int argc, char **argv)
{
    struct show self = {.side = 112, .layer = LAYER_SOURCE_OPTIONS_INIT};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &self.layer);
    const struct option_spec specs[] = {
        {"out", "FILE", "where the sheet goes, a .png or .jpg; -: stdout",
         option_text, &self.out, 0, 0},
        {"count", "N", "how many records, of the first or worst (60)",
         option_int, &self.count, 1, SHOW_MAX_RECORDS},
        {"records", "LIST", "these records, such as 1,5,9-20, from 0 on",
         read_records, &self, 0, 0},
        {"worst", NULL, "bad records, then those of least contrast", NULL,
         &self.worst, 0, 0},
        {"side", "N", "width and height of a picture in pixels (112)",
         option_int, &self.side, 24, 2048},
        {"columns", "N", "pictures in a row; 0: by the size of the sheet",
         option_int, &self.columns, 0, 1000},
        {"rgb", NULL, "raw records are R, G, B, as CIFAR's", NULL, &self.rgb, 0,
         0},
        {"force", NULL, "replace a file of another kind", NULL, &self.force, 0,
         0},
        {"json", NULL, "print one JSON object", NULL, &self.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "show",
        .arguments = "[options] DB --out FILE\n"
                     "       leat show --net FILE --phase P --out FILE",
        .about = "Draws a contact sheet of records: the picture, its label,\n"
                 "number, key, shape and encoding. Raw pictures of 3\n"
                 "channels are B, G, R, as Caffe's are; with other numbers\n"
                 "each channel is drawn on its own. Floats are stretched\n"
                 "from their least, black, to their greatest, white. With\n"
                 "--net or --reader, draws what forward delivers, cropped\n"
                 "and mirrored, but without means and scale.",
        .options = specs,
        .most_arguments = 1,
        .shared = layer,
    };
    char **arguments;
    int n;
    self.cell = calloc(SHOW_MAX_RECORDS, sizeof(*self.cell));
    if (!self.cell)
        return message_error("show: out of memory");
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = check_options(&self, n);
    if (status == OPTION_GO) {
        const struct layer_source_options *asked = &self.layer;
        self.source = n            ? arguments[0]
                      : asked->net ? asked->net
                                   : asked->reader;
        self.records = n ? 0 : -1;
        self.count = self.count ? self.count : 60;
        interrupt_catch();
        status = check_out(&self, n ? self.source : "");
    }
    if (status == OPTION_GO)
        status = show(&self, n ? show_database : show_layer);
    free(self.cell);
    return status;
}
