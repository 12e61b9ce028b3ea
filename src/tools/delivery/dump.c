/* dump.c: `leat dump`, what forward delivers, as .npy files. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/command.h"
#include "tools/delivery/directory.h"
#include "tools/delivery/dump_files.h"
#include "tools/delivery/layer_source.h"
#include "tools/delivery/npy.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct dump_options {
    struct layer_source_options source;
    int64_t batches;
    const char *out;
    int force;
    int json;
};

struct dump {
    struct layer_source source;
    struct npy_writer *file[LEAT_MAX_FIELDS];
    int made_directory; /* and what of its path was there before */
    size_t kept;
    int directory; /* holds the lock on it; -1 before */
};

/* Two dumps at once into one directory would write the same files. */
static int open_directory(struct dump *dump, const char *directory, int force)
{
    int status = directory_make(directory, &dump->kept);
    if (status)
        return status;
    dump->made_directory = 1;
    dump->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dump->directory < 0)
        return leat_error(LEAT_EIO, "%s: %s", directory, strerror(errno));
    if (flock(dump->directory, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        dump->made_directory = 0;
        return leat_error(LEAT_EINVAL, "%s: another leat is writing into it",
                          directory);
    }
    return dump_files_check(dump->directory, directory, force);
}

static int open_files(struct dump *dump, const char *directory)
{
    for (int i = 0; i < dump->source.ntop; i++) {
        const char *name = leat_data_layer_top_name(dump->source.layer, i);
        int status = npy_writer_open(&dump->file[i], directory, name);
        if (status)
            return status;
        for (int j = 0; j < i; j++)
            if (npy_writer_clash(dump->file[j], dump->file[i]))
                return leat_error(
                    LEAT_EINVAL, "tops %s and %s would be one file",
                    leat_data_layer_top_name(dump->source.layer, j), name);
    }
    return LEAT_OK;
}

static int write_batches(struct dump *dump, int64_t batches, int quiet)
{
    struct progress progress;
    progress_start(&progress, "batches", batches, quiet);
    int status = LEAT_OK;
    leat_blob *top[LEAT_MAX_FIELDS];
    for (int64_t b = 0; !status && b < batches; b++) {
        status = layer_source_forward(&dump->source);
        if (!status)
            status = layer_source_fetch(&dump->source, top);
        for (int i = 0; !status && i < dump->source.ntop; i++)
            status = npy_writer_put(dump->file[i], top[i]);
        if (!status)
            status = interrupt_check();
        progress_update(&progress, b + 1);
    }
    progress_finish(&progress);
    return status;
}

/*
 * All files or none: a failure of one takes back those before it. An earlier
 * dump goes first, so that two are never taken for one.
 */
static int publish(struct dump *dump, const char *directory)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < dump->source.ntop; i++)
        status = npy_writer_finish(dump->file[i]);
    if (!status)
        status = dump_files_clear(dump->directory, directory);
    for (int i = 0; !status && i < dump->source.ntop; i++)
        status = npy_writer_publish(dump->file[i]);
    for (int i = 0; status && i < dump->source.ntop; i++)
        npy_writer_withdraw(dump->file[i]);
    return status;
}

static int report_json(struct dump *dump, int64_t batches)
{
    json_t *files = json_array();
    for (int i = 0; i < dump->source.ntop; i++)
        for (int64_t f = 0; f < npy_writer_files(dump->file[i]); f++)
            json_array_append_new(
                files, output_text(npy_writer_path(dump->file[i], f)));
    return output_json(json_pack(
        "{s:I, s:o, s:o, s:I}", "batches", (json_int_t)batches, "files", files,
        "seed",
        json_integer((json_int_t)leat_data_layer_seed(dump->source.layer)),
        "bad_records", (json_int_t)layer_source_bad_records(&dump->source)));
}

static int report(struct dump *dump, int64_t batches)
{
    for (int i = 0; i < dump->source.ntop; i++) {
        int64_t files = npy_writer_files(dump->file[i]);
        if (files > 1)
            printf("%s and %lld more, one for each batch\n",
                   plain_text(npy_writer_path(dump->file[i], 0)),
                   (long long)(files - 1));
        else
            printf("%s: %s\n", plain_text(npy_writer_path(dump->file[i], 0)),
                   output_count(batches, "batch", "batches"));
    }
    uint64_t seed = leat_data_layer_seed(dump->source.layer);
    if (seed)
        printf("seed: %llu\n", (unsigned long long)seed);
    int64_t bad = layer_source_bad_records(&dump->source);
    if (bad > 0)
        printf("bad records: %lld\n", (long long)bad);
    return 0;
}

static int dump_batches(const struct dump_options *options)
{
    struct dump dump = {.directory = -1};
    int status = layer_source_create(&dump.source, &options->source);
    if (!status)
        status = layer_source_setup(&dump.source);
    /* Nothing is to be tidied up before, and a file may be a silent pipe. */
    interrupt_catch();
    if (!status)
        status = open_directory(&dump, options->out, options->force);
    if (!status)
        status = open_files(&dump, options->out);
    if (!status)
        status = write_batches(&dump, options->batches, options->json);
    if (!status)
        status = publish(&dump, options->out);
    int exit_status = 0;
    if (status)
        exit_status = message_last_error();
    else if (options->json)
        exit_status = report_json(&dump, options->batches);
    else
        exit_status = report(&dump, options->batches);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        npy_writer_close(dump.file[i]);
    if (status && dump.made_directory)
        directory_unmake(options->out, dump.kept);
    if (dump.directory >= 0)
        close(dump.directory);
    layer_source_destroy(&dump.source);
    return exit_status;
}

int command_dump(int argc, char **argv)
{
    struct dump_options options = {LAYER_SOURCE_OPTIONS_INIT, 1, NULL, 0, 0};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &options.source);
    const struct option_spec specs[] = {
        {"batches", "K", "how many batches (1)", option_int, &options.batches,
         1, INT32_MAX},
        {"out", "DIR", "where the files go; made if need be", option_text,
         &options.out, 0, 0},
        {"device", "NAME", "by way of that device, such as cuda:0, and back",
         option_text, &options.source.layer.device, 0, 0},
        {"force", NULL, "replace an earlier dump in DIR", NULL, &options.force,
         0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "dump",
        .arguments = "(--net FILE --phase P | --reader TEXT --batch N) "
                     "--batches K --out DIR",
        .about = "Writes what a data layer delivers, a file NAME.npy for\n"
                 "each top, with K batches along its first axis;\n"
                 "NAME.0000.npy and so on, a file for each batch, where\n"
                 "their shapes differ.",
        .options = specs,
        .shared = layer,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = layer_source_options_check(&options.source, "dump");
    if (status != OPTION_GO)
        return status;
    if (!options.out)
        return message_misuse("dump", "dump: --out is missing");
    return dump_batches(&options);
}
