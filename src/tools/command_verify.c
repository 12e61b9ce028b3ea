/* command_verify.c: `leat verify`, whether all of a database can be read. */
#include "tools/command.h"
#include "tools/database/inspection.h"

/* The share of records that are good; 1 of an empty database. */
static double good_share(const struct inspection *found)
{
    int64_t all = inspection_records(found);
    return all ? (double)found->good / (double)all : 1;
}

static json_t *flaw_json(const struct flaw *flaw)
{
    json_t *page =
        flaw->page < 0 ? json_null() : json_integer((json_int_t)flaw->page);
    if (flaw_is_record(flaw))
        return json_pack("{s:I, s:s?, s:o, s:o}", "record",
                         (json_int_t)flaw->record, "key", flaw->key, "page",
                         page, "reason", output_text(flaw->reason));
    return json_pack("{s:o, s:I, s:b, s:o}", "page", page, "before_record",
                     (json_int_t)flaw->record, "loses_records", flaw->lost != 0,
                     "reason", output_text(flaw->reason));
}

static json_t *warning_json(const struct flaw *warning)
{
    return json_pack("{s:I, s:s, s:o}", "record", (json_int_t)warning->record,
                     "key", warning->key, "warning",
                     output_text(warning->reason));
}

/*
 * Prints a list of the flaws, those that are records or the others, one by one:
 * there may be millions, and a JSON tree takes some 500 bytes for each.
 */
static int print_list(const char *name, const struct flaw *flaws, size_t n,
                      bool are_records,
                      json_t *(*make_json)(const struct flaw *flaw))
{
    const char *before = "";
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        if (flaw_is_record(&flaws[i]) != are_records)
            continue;
        json_t *object = make_json(&flaws[i]);
        bool failed = !object || fputs(before, stdout) < 0 ||
                      output_json_write(object, 0);
        json_decref(object);
        if (failed)
            return -1;
        before = ", ";
    }
    return putchar(']') == EOF;
}

static json_t *page_use_json(const struct inspection *found)
{
    const leat_lmdb_page_use *pages = &found->pages;
    if (!found->has_pages)
        return json_null();
    return json_pack(
        "{s:I, s:I, s:I, s:o}", "all", (json_int_t)pages->all, "used",
        (json_int_t)pages->used, "free", (json_int_t)pages->free, "leaked",
        pages->leaked < 0 ? json_null()
                          : json_integer((json_int_t)pages->leaked));
}

static int report_json(const struct inspection *found)
{
    json_t *counts = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:o}", "records",
        (json_int_t)found->expected, "good", (json_int_t)found->good, "bad",
        (json_int_t)found->bad, "lost", (json_int_t)found->lost, "warned",
        (json_int_t)found->warned, "good_share", good_share(found),
        "exact_numbers", found->gaps < 2, "pages", page_use_json(found));
    bool failed =
        !counts || putchar('{') == EOF ||
        output_json_write(counts, JSON_EMBED) ||
        print_list("bad_records", found->flaw, found->flaws, 1, flaw_json) ||
        print_list("damage", found->flaw, found->flaws, 0, flaw_json) ||
        print_list("warned_records", found->warning, found->warnings, 0,
                   warning_json);
    json_decref(counts);
    if (failed)
        return output_json_fail();
    printf("}\n");
    return 0;
}

/* Whether flaw `i` is a page whose records are lost where those of the flaw
 * before it are. */
static bool joins_loss(const struct inspection *found, size_t i)
{
    const struct flaw *flaw = &found->flaw[i];
    return i > 0 && i < found->flaws && flaw->lost < 0 && flaw[-1].lost < 0 &&
           flaw->record == flaw[-1].record;
}

/* One line for all pages that join a loss, of which a truncated file has one
 * for each page that it lacks. Returns the last of them. */
static size_t print_joined(const struct inspection *found, size_t i)
{
    size_t last = i;
    while (joins_loss(found, last + 1))
        last++;
    if (last > i)
        printf("with them: %zu damaged pages more, which --json lists; the "
               "last one: ",
               last - i + 1);
    else
        printf("with them: ");
    printf("%s\n", plain_text(found->flaw[last].reason));
    return last;
}

static void print_flaw(const struct inspection *found, const struct flaw *flaw)
{
    const char *reason = plain_text(flaw->reason);
    if (flaw_is_record(flaw))
        printf("record %lld%s%s: %s\n", (long long)flaw->record,
               flaw->key ? ", key " : "",
               flaw->key ? plain_text(flaw->key) : "", reason);
    else if (flaw->lost < 0 && found->gaps == 1 && found->lost)
        printf("records %lld to %lld are lost: %s\n", (long long)flaw->record,
               (long long)(flaw->record + found->lost - 1), reason);
    else if (flaw->lost < 0)
        printf("records are lost before record %lld: %s\n",
               (long long)flaw->record, reason);
    else
        printf("%s\n", reason);
}

static int report_text(const struct inspection *found, const char *path)
{
    for (size_t i = 0; i < found->flaws; i++)
        if (joins_loss(found, i))
            i = print_joined(found, i);
        else
            print_flaw(found, &found->flaw[i]);
    (void)output_has_failed();
    for (size_t i = 0; i < found->warnings; i++)
        printf("record %lld, key %s: good, but its codec warns: %s\n",
               (long long)found->warning[i].record,
               plain_text(found->warning[i].key),
               plain_text(found->warning[i].reason));
    if (found->gaps > 1)
        printf("records are numbered without those of lost pages\n");
    if (found->warned)
        printf("%s good, but made their codec warn\n",
               output_count(found->warned, "image is", "images are"));
    if (found->has_pages && found->pages.leaked > 0)
        printf("%lld of %s %s neither in use nor listed as free: no "
               "damage, but lost room, which mdb_copy -c leaves out\n",
               (long long)found->pages.leaked,
               output_count(found->pages.all, "page", "pages"),
               found->pages.leaked == 1 ? "is" : "are");
    printf("%s: %lld of %s %s good, %.6g %%", plain_text(path),
           (long long)found->good,
           output_count(inspection_records(found), "record", "records"),
           found->good == 1 ? "is" : "are", 100 * good_share(found));
    if (found->bad)
        printf("; %lld bad", (long long)found->bad);
    if (found->lost)
        printf("; %lld lost", (long long)found->lost);
    printf("\n");
    return 0;
}

/* On stderr, in a line. */
static int report_flaws(const struct inspection *found, const char *path)
{
    int64_t all = inspection_records(found), bad = all - found->good;
    const char *reason = found->flaw[0].reason;
    if (bad == 0)
        return message_found(
            "%s: no record is bad or lost; the first trouble: %s", path,
            reason);
    return message_found("%s: %lld of %s %s bad or lost; the first trouble: %s",
                         path, (long long)bad,
                         output_count(all, "record", "records"),
                         bad == 1 ? "is" : "are", reason);
}

int command_verify(int argc, char **argv)
{
    bool json = false;
    int64_t max_image_bytes = 0;
    const struct option_spec specs[] = {
        {"max-image-bytes", "N", "memory that decoding an image may take",
         option_bytes, &max_image_bytes, 1, INT64_MAX},
        option_flag("json", "print one JSON object", &json),
        {0}};
    const struct usage usage = {
        .command = "verify",
        .arguments = "[options] DB",
        .about = "Reads every page and record of a database and decodes\n"
                 "every image, on all cores. Lists bad records by number,\n"
                 "key and reason, good images whose codec warned, and the\n"
                 "share of good records. Continues after damage where that\n"
                 "is safe, also in truncated files. The status is 1 if\n"
                 "anything is bad.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 1,
    };
    char **arguments = option_parse(&usage, argc, argv);
    interrupt_catch_opening();
    struct inspection found;
    if (inspection_run(&found, arguments[0], (size_t)max_image_bytes, json,
                       NULL, NULL))
        return message_last_error();
    int status = json ? report_json(&found) : report_text(&found, arguments[0]);
    if (!status && found.flaws)
        status = report_flaws(&found, arguments[0]);
    inspection_finish(&found);
    return status;
}
