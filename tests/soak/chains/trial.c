#include "trial.h"

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

void trial_run(const chain *made, trial_tally *tally)
{
    static model model;
    memset(&model, 0, sizeof(model));
    model.made = made;
    model.pipeline = parse(made);
    model.options = (leat_open_options)LEAT_OPEN_OPTIONS_INIT;
    model.options.seed = (uint64_t)between(1, 1000);
    model.options.threads = below(4);
    tally->chains++;
    if (opens(&model)) {
        model_read(&model);
        tally->known += model_check_known(&model);
        for (int e = 0; e < EPOCHS; e++)
            tally->samples += model.epoch[e].n;
        if (made->is_unordered) {
            check_unordered(&model);
        } else if (!made->keeps_files || access("kept", F_OK) == 0) {
            walk_run(&model, tally);
            walk_without_memory(&model, tally);
            ranks_run(&model, tally);
        }
    } else {
        tally->refused++;
    }
    leat_pipeline_unref(model.pipeline);
}
