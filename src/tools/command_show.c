/* command_show.c: `leat show`, a contact sheet of records. */
#include "base/decimal.h"
#include "tools/command.h"
#include "tools/database/target.h"
#include "tools/delivery/show.h"
#include "tools/image/image_writer.h"

#include <unistd.h>

/* A list of numbers and ranges: 1,5,9-20. */
static int read_records(const struct option_spec *spec, const char *text)
{
    struct show *show = spec->out;
    show->shown = 0;
    for (;; text++) {
        int64_t from, to;
        const char *end;
        if (!leat__decimal_quantity_begin(text, false, &end, &from) || from < 0)
            return -1;
        to = from;
        if (*end == '-' &&
            !leat__decimal_quantity_begin(end + 1, false, &end, &to))
            return -1;
        if (to < from || to - from >= SHOW_MAX_RECORDS - show->shown)
            return -1;
        for (int64_t i = 0; i <= to - from; i++)
            show->cell[show->shown++].record = from + i;
        text = end;
        if (*text != ',')
            return *text ? -1 : 0;
    }
}

/* ", 2 of them bad, 5 lost"; returns `out`. */
static const char *troubles(const struct show *show, char out[128])
{
    int n = 0;
    out[0] = 0;
    if (show->bad)
        n = sprintf(out, ", %lld of them bad", (long long)show->bad);
    if (show->lost)
        sprintf(out + n, ", %lld%s lost", (long long)show->lost,
                n ? "" : " of them");
    return out;
}

static void write_title(struct show *show, const char *which)
{
    char text[256], trouble[128];
    troubles(show, trouble);
    if (show->records < 0)
        snprintf(text, sizeof(text),
                 "the first %lld of forward in %s%s, means and scale undone",
                 (long long)show->shown,
                 show->phase == LEAT_TEST ? "TEST" : "TRAIN", trouble);
    else
        snprintf(text, sizeof(text), "%s %lld of %s%s", which,
                 (long long)show->shown,
                 output_count(show->records, "record", "records"), trouble);
    contact_sheet_title(&show->sheet, show->source, text);
}

/* Of a database; NULL: none was met. */
static json_t *damage_json(const struct show *show)
{
    const char *damage = inspection_damage(&show->found);
    return damage ? output_text(damage) : json_null();
}

/* The figures of a database alone and of a layer alone are NULL for others. */
static json_t *report_json(const struct show *show)
{
    bool is_layer = show->records < 0;
    return json_pack(
        "{s:o, s:o*, s:I, s:I, s:o*, s:o*, s:o*, s:o*, s:i, "
        "s:i}",
        "out", output_text(show->out), "records",
        is_layer ? NULL : json_integer(show->records), "shown",
        (json_int_t)show->shown, "bad", (json_int_t)show->bad, "lost",
        is_layer ? NULL : json_integer(show->lost), "exact_numbers",
        is_layer ? NULL : json_boolean(show->found.gaps < 2), "damage",
        is_layer ? NULL : damage_json(show), "seed",
        is_layer ? json_integer((json_int_t)show->seed) : NULL, "width",
        show->sheet.raster.width, "height", show->sheet.raster.height);
}

/* Prints on stderr where the picture goes to stdout. */
static int report(const struct show *show)
{
    bool is_stdout = !strcmp(show->out, "-");
    const char *out = is_stdout ? "stdout" : show->out;
    const char *damage = inspection_damage(&show->found);
    FILE *stream = is_stdout ? stderr : stdout;
    char trouble[128];
    if (show->json)
        return output_json(report_json(show));
    if (show->records < 0)
        fprintf(stream, "%s: %s", plain_text(out),
                output_count(show->shown, "sample", "samples"));
    else
        fprintf(stream, "%s: %lld of %s%s", plain_text(out),
                (long long)show->shown,
                output_count(show->records, "record", "records"),
                troubles(show, trouble));
    fprintf(stream, ", %d x %d pixels\n", show->sheet.raster.width,
            show->sheet.raster.height);
    if (show->seed)
        fprintf(stream, "seed: %llu\n", (unsigned long long)show->seed);
    if (show->records < 0 && show->bad)
        fprintf(stream, "bad records: %lld\n", (long long)show->bad);
    if (show->found.lost)
        fprintf(stream, "%s of the database; see leat verify\n",
                output_count(show->found.lost, "record is lost",
                             "records are lost"));
    else if (damage)
        fprintf(stream, "%s; see leat verify\n", plain_text(damage));
    if (show->found.gaps > 1)
        fprintf(stream, "records are numbered without those of lost pages\n");
    return 0;
}

/* Bad pictures are no fault, but a sheet without others shows one. */
static int check_good(const struct show *show)
{
    const char *damage = inspection_damage(&show->found);
    if (!show->shown && damage)
        return message_found("%s: no record was found: %s; see leat verify",
                             show->source, damage);
    if (show->bad + show->lost < show->shown || !show->shown)
        return 0;
    if (show->records < 0)
        return message_found("%s: none of the records shown is good",
                             show->source);
    return message_found(
        "%s: %s, and none of them is good; see leat verify", show->source,
        output_count(show->shown, "record is shown", "records are shown"));
}

/* Whether the file has the format of its name, PNG or JPEG. */
static bool is_sheet(const char *path)
{
    static const char png[] = "\x89PNG\r\n\x1a\n", jpeg[] = "\xff\xd8\xff";
    bool is_jpeg = contact_sheet_writer(path) == image_writer_jpeg;
    size_t size = is_jpeg ? sizeof(jpeg) - 1 : sizeof(png) - 1;
    char head[sizeof(png)];
    return target_begin(path, head, size) == (int64_t)size &&
           !memcmp(head, is_jpeg ? jpeg : png, size);
}

static void check_target(const struct show *show)
{
    if (strcmp(show->out, "-") != 0)
        output_require(
            target_check(show->out, show->database, show->force, is_sheet));
}

static int write_sheet(struct show *show, void (*draw)(struct show *show))
{
    const char *which = show->worst   ? "the worst"
                        : show->shown ? "chosen"
                                      : "the first";
    draw(show);
    write_title(show, which);
    interrupt_catch();
    check_target(show); /* again: a file may have come since */
    output_require(contact_sheet_save(&show->sheet, show->out));
    layer_source_destroy(&show->plain);
    int status = report(show);
    if (!status)
        status = check_good(show);
    raster_finish(&show->sheet.raster);
    inspection_finish(&show->found);
    return status;
}

/* Before anything is read: whether the sheet may go to --out. */
static void check_out(const struct show *show)
{
    bool is_stdout = !strcmp(show->out, "-");
    check_target(show);
    if (!contact_sheet_writer(show->out))
        message_misuse("show",
                       "--out %s: a sheet is written as PNG or JPEG: name it "
                       ".png, .jpg or .jpeg",
                       show->out);
    if (is_stdout && show->json)
        message_misuse("show", "show: --json and --out - would both write to "
                               "stdout");
    if (is_stdout && isatty(STDOUT_FILENO))
        message_misuse("show", "show: --out - would write a picture to a "
                               "terminal: redirect stdout");
}

static void check_options(const struct show *show, bool has_database)
{
    const struct layer_source_options *layer = &show->layer;
    bool has_layer = layer->net || layer->reader, has_records = show->shown > 0;
    const struct {
        bool is_wrong;
        const char *text;
    } rules[] = {{!show->out, "--out is missing"},
                 {show->worst && has_records,
                  "--records and --worst exclude each other"},
                 {show->count && has_records,
                  "--records and --count exclude each other"},
                 {!has_layer && !has_database,
                  "arguments are missing: give a database, --net or --reader"},
                 {has_layer && has_database,
                  "a database and --net or --reader exclude each other"},
                 {has_layer && (show->worst || has_records),
                  "--records and --worst are for databases"},
                 {!has_layer && layer_source_options_are_given(layer),
                  "--phase, --batch and the like are for --net and --reader"}};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].is_wrong)
            message_misuse("show", "show: %s", rules[i].text);
    if (has_layer)
        layer_source_options_check(layer, "show");
}

int command_show(int argc, char **argv)
{
    struct show show = {.side = 112, .layer = LAYER_SOURCE_OPTIONS_INIT};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &show.layer);
    const struct option_spec specs[] = {
        {"out", "FILE", "where the sheet goes, a .png or .jpg; -: stdout",
         option_text, &show.out, 0, 0},
        {"count", "N", "how many records, of the first or worst (60)",
         option_int, &show.count, 1, SHOW_MAX_RECORDS},
        {"records", "LIST", "these records, such as 1,5,9-20, from 0 on",
         read_records, &show, 0, 0},
        option_flag("worst", "bad records, then those of least contrast",
                    &show.worst),
        {"side", "N", "width and height of a picture in pixels (112)",
         option_int, &show.side, 24, 2048},
        {"columns", "N", "pictures in a row; 0: by the size of the sheet",
         option_int, &show.columns, 0, 1000},
        option_flag("rgb", "raw records are R, G, B, as CIFAR's", &show.rgb),
        option_flag("force", "replace a file of another kind", &show.force),
        option_flag("json", "print one JSON object", &show.json),
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
    show.cell = calloc(SHOW_MAX_RECORDS, sizeof(*show.cell));
    if (!show.cell)
        return message_error("show: out of memory");
    const char *database = *option_parse(&usage, argc, argv);
    const struct layer_source_options *asked = &show.layer;
    check_options(&show, database != NULL);
    show.source = database ? database : asked->net ? asked->net : asked->reader;
    show.records = database ? 0 : -1;
    show.count = show.count ? show.count : 60;
    interrupt_catch_opening();
    show.database = database ? database : "";
    check_out(&show);
    int status = write_sheet(&show, database ? show_database : show_layer);
    free(show.cell);
    return status;
}
