#include "chain_trial.h"

#include "model.h"
#include "ranks.h"
#include "soak/dice.h"
#include "walk.h"

#include <leat.h>

#include <string.h>
#include <unistd.h>

/* A text and the text of its pipeline are the same pipeline. */
static leat_pipeline *parse(const chain *made)
{
    leat_pipeline *pipeline = NULL, *again;
    int status = leat_pipeline_parse(&pipeline, made->text);
    chain_require(!status, "parse: %s", leat_last_error());
    status = leat_pipeline_parse(&again, leat_pipeline_text(pipeline));
    chain_require(!status && !strcmp(leat_pipeline_text(pipeline),
                                     leat_pipeline_text(again)),
                  "its text: %s", leat_pipeline_text(pipeline));
    leat_pipeline_unref(again);
    return pipeline;
}

/* Samples that come in another order each time are as many, unless what is over
   a merge depends on it. */
static void check_unordered(const model *from)
{
    static model again;
    again = *from;
    model_read(&again);
    for (int e = 0; e < EPOCHS; e++) {
        const epoch_seen *one = &from->epoch[e], *two = &again.epoch[e];
        if (one->status == LEAT_END && two->status == LEAT_END && e == 0 &&
            !strstr(from->made->text, "merge"))
            chain_require(one->n == two->n, "epoch %d has %d samples, then %d",
                          e, one->n, two->n);
    }
}

static bool opens(const model *from)
{
    leat_reader *reader;
    const leat_field_spec *fields;
    int n;
    int status =
        leat_pipeline_open_with(from->pipeline, &from->options, &reader);
    if (!status) {
        status = leat_reader_fields(reader, &fields, &n);
        leat_reader_close(reader);
    }
    chain_require(status <= 0 &&
                      (status != LEAT_ESTATE || from->made->is_unordered),
                  "opening: %d, %s", status, leat_last_error());
    chain_require(!status || leat_last_error()[0], "no line of an error");
    return !status;
}

/* Every way to read what opens. */
static void compare(model *from, trial_tally *tally)
{
    const chain *made = from->made;
    if (!opens(from)) {
        tally->refused++;
        return;
    }
    model_read(from);
    tally->known += model_check_known(from);
    for (int e = 0; e < EPOCHS; e++)
        tally->samples += from->epoch[e].n;
    if (made->is_unordered) {
        check_unordered(from);
    } else if (!made->keeps_files || access("kept", F_OK) == 0) {
        walk_run(from, tally);
        walk_without_memory(from, tally);
        ranks_run(from, tally);
    }
}

/* Reads whatever comes. */
static void read_on(leat_reader *reader)
{
    leat_sample sample;
    int status = LEAT_OK;
    leat_sample_init(&sample);
    for (int i = 0; i < 2 * SAMPLES_MAX && !model_is_end(status); i++) {
        status = leat_reader_next(reader, &sample);
        if (!status)
            (void)model_see(&sample, status);
    }
    chain_require(status <= 0 || status == LEAT_END, "status %d", status);
    chain_require(status >= 0 || leat_last_error()[0], "no line of an error");
    leat_sample_finish(&sample);
}

/* A new reader finds the new files, whatever is kept of the old ones. */
static void replace_files(model *from, chain *made, trial_tally *tally)
{
    leat_reader *reader = NULL;
    (void)leat_pipeline_open_with(from->pipeline, &from->options, &reader);
    if (reader && once_in(2))
        read_on(reader);
    chain_replace_files(made);
    if (reader) {
        (void)leat_reader_seek(reader, (leat_position){1, 0}, NULL);
        read_on(reader);
    }
    leat_reader_close(reader);
    tally->replaced++;
    compare(from, tally);
}

static void damage_files(const model *from, chain *made, trial_tally *tally)
{
    chain_damage_files(made);
    tally->damaged++;
    for (int i = 0; i < 2; i++) {
        leat_reader *reader;
        if (leat_pipeline_open_with(from->pipeline, &from->options, &reader))
            continue;
        read_on(reader);
        (void)leat_reader_seek(reader, (leat_position){0, below(9)}, NULL);
        read_on(reader);
        leat_reader_close(reader);
    }
}

void trial_run(chain *made, trial_tally *tally)
{
    static model model;
    memset(&model, 0, sizeof(model));
    model.made = made;
    model.pipeline = parse(made);
    model.options = (leat_open_options)LEAT_OPEN_OPTIONS_INIT;
    model.options.seed = (uint64_t)between(1, 1000);
    model.options.threads = below(4);
    tally->chains++;
    compare(&model, tally);
    /* A cache directory is told from others by sizes alone, over streams. */
    if (once_in(4) && !made->keeps_files)
        replace_files(&model, made, tally);
    if (once_in(3))
        damage_files(&model, made, tally);
    leat_pipeline_unref(model.pipeline);
}
