/* command_dump.c: `leat dump`, what forward delivers, as .npy files. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/command.h"
#include "tools/delivery/dump_writer.h"
#include "tools/delivery/layer_source.h"

#include <stdio.h>

struct dump {
    struct layer_source_options asked; /* the layer */
    int64_t batches;
    const char *out;
    int force;
    int json;

    struct layer_source source;
    struct dump_writer *writer;
};

static int write_batches(struct dump *self)
{
    const struct layer_source *source = &self->source;
    struct progress progress;
    progress_start(&progress, "batches", self->batches, self->json);
    int status = LEAT_OK;
    leat_blob *top[LEAT_MAX_FIELDS];
    for (int i = 0; !status && i < source->ntop; i++)
        status = dump_writer_add(self->writer, i,
                                 leat_data_layer_top_name(source->layer, i));
    for (int64_t b = 0; !status && b < self->batches; b++) {
        status = layer_source_forward(&self->source);
        if (!status)
            status = layer_source_fetch(&self->source, top);
        for (int i = 0; !status && i < source->ntop; i++)
            status = dump_writer_put(self->writer, i, top[i]);
        if (!status)
            status = interrupt_check();
        progress_update(&progress, b + 1);
    }
    progress_finish(&progress);
    return status;
}

static int report_json(struct dump *self)
{
    json_t *files = json_array();
    for (int i = 0; i < self->source.ntop; i++)
        for (int64_t f = 0; f < dump_writer_files(self->writer, i); f++)
            json_array_append_new(
                files, output_text(dump_writer_path(self->writer, i, f)));
    return output_json(json_pack(
        "{s:I, s:o, s:I, s:I}", "batches", (json_int_t)self->batches, "files",
        files, "seed", (json_int_t)leat_data_layer_seed(self->source.layer),
        "bad_records", (json_int_t)layer_source_bad_records(&self->source)));
}

static int report_text(struct dump *self)
{
    for (int i = 0; i < self->source.ntop; i++) {
        int64_t files = dump_writer_files(self->writer, i);
        printf("%s", plain_text(dump_writer_path(self->writer, i, 0)));
        if (files > 1)
            printf(" and %lld more, one for each batch\n",
                   (long long)(files - 1));
        else
            printf(": %s\n", output_count(self->batches, "batch", "batches"));
    }
    uint64_t seed = leat_data_layer_seed(self->source.layer);
    if (seed)
        printf("seed: %llu\n", (unsigned long long)seed);
    int64_t bad = layer_source_bad_records(&self->source);
    if (bad > 0)
        printf("bad records: %lld\n", (long long)bad);
    return 0;
}

static int dump(struct dump *self)
{
    int status = layer_source_create(&self->source, &self->asked);
    if (!status)
        status = layer_source_setup(&self->source);
    /* Until now there was nothing to clean up, and a file may be a pipe that
       nobody writes. */
    interrupt_catch();
    if (!status)
        status = dump_writer_open(&self->writer, self->out, self->force);
    if (!status)
        status = write_batches(self);
    if (!status)
        status = dump_writer_publish(self->writer);
    int exit_status = status       ? message_last_error()
                      : self->json ? report_json(self)
                                   : report_text(self);
    dump_writer_close(self->writer);
    layer_source_destroy(&self->source);
    return exit_status;
}

int command_dump(int argc, char **argv)
{
    struct dump self = {.asked = LAYER_SOURCE_OPTIONS_INIT, .batches = 1};
    struct option_spec layer[LAYER_SOURCE_OPTIONS];
    layer_source_options_list(layer, &self.asked);
    const struct option_spec specs[] = {
        {"batches", "K", "how many batches (1)", option_int, &self.batches, 1,
         INT32_MAX},
        {"out", "DIR", "where the files go; made if it does not exist",
         option_text, &self.out, 0, 0},
        {"device", "NAME",
         "deliver to that device, such as cuda:0, and copy back", option_text,
         &self.asked.layer.device, 0, 0},
        {"force", NULL, "replace an earlier dump in DIR", NULL, &self.force, 0,
         0},
        {"json", NULL, "print one JSON object", NULL, &self.json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "dump",
        .arguments = "(--net FILE --phase P | --reader TEXT --batch N) "
                     "--batches K --out DIR",
        .about = "Writes what a data layer delivers: for each top a file\n"
                 "NAME.npy with K batches along its first axis, or a file\n"
                 "for each batch, NAME.0000.npy and so on, where the shapes\n"
                 "differ.",
        .options = specs,
        .shared = layer,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status == OPTION_GO)
        status = layer_source_options_check(&self.asked, "dump");
    if (status != OPTION_GO)
        return status;
    if (!self.out)
        return message_misuse("dump", "dump: --out is missing");
    return dump(&self);
}
