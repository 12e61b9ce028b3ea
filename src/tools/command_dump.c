/* command_dump.c: `leat dump`, what forward delivers, as .npy files. */
#include "base/error.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "tools/command.h"
#include "tools/delivery/dump_writer.h"
#include "tools/delivery/layer_source.h"
#include "tools/delivery/token_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dump {
    struct layer_source_options asked; /* the layer */
    int64_t batches;
    const char *out;
    const char *at;    /* a file with a resume token to go on from */
    const char *token; /* where that after the last batch goes */
    bool force;
    bool json;

    leat_token start; /* that of `at` */
    struct layer_source source;
    struct dump_writer *writer;
    struct staged_file token_file;
    struct staged_file earlier_token; /* set aside */
};

/*
 * Whether the top has the values or offsets of ragged samples, whose batches
 * are no rows of one array, alike in length or not.
 */
static bool is_ragged(const leat_data_layer_options *options, const char *name)
{
    for (int i = 0; i < options->ntop; i++) {
        const leat_top *top = &options->top[i];
        size_t size = strlen(top->name);
        if (top->form == LEAT_TOP_RAGGED && !strncmp(name, top->name, size) &&
            (!name[size] || !strncmp(name + size, ".offsets", 8)))
            return true;
    }
    return false;
}

static int add_top(struct dump *dump, int i)
{
    const leat_data_layer *layer = dump->source.layer;
    const char *name = leat_data_layer_top_name(layer, i);
    return dump_writer_add(dump->writer, i, name,
                           is_ragged(leat_data_layer_get_options(layer), name));
}

static int write_batches(struct dump *dump)
{
    const struct layer_source *source = &dump->source;
    struct progress progress;
    progress_start(&progress, "batches", dump->batches, dump->json);
    int status = LEAT_OK;
    leat_blob *top[LEAT_MAX_FIELDS];
    for (int i = 0; !status && i < source->ntop; i++)
        status = add_top(dump, i);
    for (int64_t b = 0; !status && b < dump->batches; b++) {
        status = layer_source_forward(&dump->source);
        if (!status)
            status = layer_source_fetch(&dump->source, top);
        for (int i = 0; !status && i < source->ntop; i++)
            status = dump_writer_put(dump->writer, i, top[i]);
        if (!status)
            status = interrupt_check();
        progress_update(&progress, b + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Goes on where the token was saved. */
static int resume(struct dump *dump)
{
    int status = leat_data_layer_restore(dump->source.layer, &dump->start);
    return status == LEAT_END
               ? leat_error(LEAT_EDATA, "%s: the data ends there", dump->at)
               : status;
}

/* The layer has opened its list of bad records, and the dump its directory: the
   token must not take the place of a file of theirs, nor of that, and its own
   directory is there by now. */
static int check_token(const struct dump *dump)
{
    int status = token_file_check(dump->token);
    int code = status ? 0 : leat__file_check_directory(dump->token);
    if (code)
        status = leat__error_system(code, "%s", dump->token);
    if (!status)
        status = layer_source_check_output(&dump->source, dump->token);
    return status ? status : dump_writer_check(dump->writer, dump->token);
}

/* Whether there will be a token, before anything is written. */
static int try_token(const struct dump *dump)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_data_layer_save(dump->source.layer, &token);
    leat_token_finish(&token);
    return status;
}

/* Where the next batch would have come from. A dump that is killed before it
   leaves no file of its token. */
static int write_token(struct dump *dump)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_data_layer_save(dump->source.layer, &token);
    if (!status)
        status = staged_file_create(&dump->token_file, dump->token);
    if (!status)
        status = token_file_write(&dump->token_file, dump->token, &token);
    leat_token_finish(&token);
    return status;
}

/* An earlier token, but for the file of this dump's start, would be ahead of
   files that are not all there yet. */
static int set_token_aside(struct dump *dump)
{
    struct staged_file *aside = &dump->earlier_token;
    struct stat found, start;
    /* Another file may have come since. */
    int status = token_file_check(dump->token);
    if (status || stat(dump->token, &found) ||
        (dump->at && !stat(dump->at, &start) && start.st_dev == found.st_dev &&
         start.st_ino == found.st_ino))
        return status;
    status = staged_file_create(aside, dump->token);
    if (!status)
        status = staged_file_close(aside, dump->token);
    if (!status && staged_file_set_aside(aside))
        status = leat__error_system(errno, "%s", dump->token);
    return status;
}

static int restore_token(struct dump *dump, int status)
{
    struct staged_file *aside = &dump->earlier_token;
    if (aside->path && staged_file_restore(aside))
        leat__error_context(status, "%s is now %s, rename it", aside->name,
                            aside->path);
    /* Nothing of it is left to be removed. */
    free(aside->path);
    aside->path = NULL;
    return status;
}

/* The token comes last: one that is ahead of its dump would be gone on from,
   and the batches between would be nowhere. */
static int name_files(struct dump *dump)
{
    int status = dump->token ? set_token_aside(dump) : LEAT_OK;
    if (status)
        return status;
    status = dump_writer_publish(dump->writer);
    if (!status && dump->token) {
        status = token_file_check(dump->token);
        if (!status)
            status = staged_file_publish(&dump->token_file, dump->token);
        if (status)
            dump_writer_unpublish(dump->writer, status);
    }
    return status ? restore_token(dump, status) : LEAT_OK;
}

/* All of it or nothing, and then the earlier dump. */
static int publish(struct dump *dump)
{
    int status = dump_writer_complete(dump->writer);
    if (!status && dump->token)
        status = write_token(dump);
    if (status)
        return status;
    interrupt_hold();
    status = name_files(dump);
    interrupt_release();
    return status;
}

static int report_json(struct dump *dump)
{
    json_t *files = json_array();
    for (int i = 0; i < dump->source.ntop; i++)
        for (int64_t f = 0; f < dump_writer_files(dump->writer, i); f++)
            json_array_append_new(
                files, output_text(dump_writer_path(dump->writer, i, f)));
    json_t *report = json_pack(
        "{s:I, s:o, s:I, s:I}", "batches", (json_int_t)dump->batches, "files",
        files, "seed", (json_int_t)leat_data_layer_seed(dump->source.layer),
        "bad_records", (json_int_t)layer_source_bad_records(&dump->source));
    if (dump->token)
        json_object_set_new(report, "token", output_text(dump->token));
    return output_json(report);
}

static int report_text(struct dump *dump)
{
    for (int i = 0; i < dump->source.ntop; i++) {
        int64_t files = dump_writer_files(dump->writer, i);
        printf("%s", plain_text(dump_writer_path(dump->writer, i, 0)));
        if (files > 1)
            printf(" and %lld more, one for each batch\n",
                   (long long)(files - 1));
        else
            printf(": %s\n", output_count(dump->batches, "batch", "batches"));
    }
    if (dump->token)
        printf("%s: the resume token\n", plain_text(dump->token));
    uint64_t seed = leat_data_layer_seed(dump->source.layer);
    if (seed)
        printf("seed: %llu\n", (unsigned long long)seed);
    int64_t bad = layer_source_bad_records(&dump->source);
    if (bad > 0)
        printf("bad records: %lld\n", (long long)bad);
    return 0;
}

/* Whether the directory may be one that is made for --out: its name is in that
   path. */
static bool may_be_made(const struct dump *dump, const char *directory)
{
    const char *slash = strrchr(directory, '/');
    const char *name = slash ? slash + 1 : directory;
    return leat__file_access(dump->out, F_OK) &&
           (strspn(name, ".") == strlen(name) || strstr(dump->out, name));
}

static int check_token_directory(const struct dump *dump)
{
    int code = leat__file_check_directory(dump->token);
    if (!code)
        return LEAT_OK;
    char *directory = leat__file_directory(dump->token);
    bool is_made = code == ENOENT && directory && may_be_made(dump, directory);
    leat__free(directory);
    return is_made ? LEAT_OK : leat__error_system(code, "%s", dump->token);
}

/* Before the layer reads anything. */
static int check_targets(const struct dump *dump)
{
    int status = dump->token ? token_file_check(dump->token) : LEAT_OK;
    if (!status && dump->token)
        status = staged_file_check(dump->token);
    if (!status && dump->token)
        status = check_token_directory(dump);
    return status ? status
                  : dump_writer_probe(dump->out, dump->token, dump->force);
}

static int write_dump(struct dump *dump)
{
    interrupt_catch_opening();
    leat_token_init(&dump->start);
    int status = check_targets(dump);
    if (!status && dump->at)
        status = token_file_read(dump->at, &dump->start);
    if (!status)
        status = layer_source_create(&dump->source, &dump->asked);
    if (!status)
        status = layer_source_setup(&dump->source);
    if (!status && dump->at)
        status = resume(dump);
    if (!status && dump->token)
        status = try_token(dump);
    interrupt_catch();
    if (!status)
        status = dump_writer_open(&dump->writer, dump->out, dump->token,
                                  dump->force);
    if (!status && dump->token)
        status = check_token(dump);
    if (!status)
        status = write_batches(dump);
    if (!status)
        status = publish(dump);
    int exit_status = status       ? message_last_error()
                      : dump->json ? report_json(dump)
                                   : report_text(dump);
    leat_token_finish(&dump->start);
    staged_file_discard(&dump->token_file);
    staged_file_discard(&dump->earlier_token);
    dump_writer_close(dump->writer);
    if (status)
        layer_source_abandon(&dump->source);
    else
        layer_source_destroy(&dump->source);
    return exit_status;
}

int command_dump(int argc, char **argv)
{
    struct dump dump = {.asked = LAYER_SOURCE_OPTIONS_INIT, .batches = 1};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &dump.asked);
    const struct option_spec specs[] = {
        {"batches", "K", "how many batches (1)", option_int, &dump.batches, 1,
         INT32_MAX},
        {"out", "DIR", "where the files go; made if it does not exist",
         option_text, &dump.out, 0, 0},
        {"token", "FILE", "write the resume token after the last batch",
         option_text, &dump.token, 0, 0},
        {"at", "FILE", "go on from such a token", option_text, &dump.at, 0, 0},
        {"device", "NAME",
         "deliver to that device, such as cuda:0, and copy back", option_text,
         &dump.asked.layer.device, 0, 0},
        {"force", NULL, "replace an earlier dump in DIR", NULL, &dump.force, 0,
         0},
        {"json", NULL, "print one JSON object", NULL, &dump.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "dump",
        .arguments = "(--net FILE --phase P | --reader TEXT --batch N) "
                     "--batches K --out DIR",
        .about = "Writes what a data layer delivers: for each top a file\n"
                 "NAME.npy with K batches along its first axis, or a file\n"
                 "for each batch, NAME.0000.npy and so on, where the shapes\n"
                 "differ or the top is ragged.",
        .options = specs,
        .shared = layer,
    };
    option_parse(&usage, argc, argv);
    layer_source_options_check(&dump.asked, "dump");
    if (!dump.out)
        message_misuse("dump", "dump: --out is missing");
    return write_dump(&dump);
}
