/*
 * mix: samples of several readers, each as often as it weighs.
 *
 * An epoch has phases, of which the first draws from all inputs. Where an input
 * that has ended is left out, the next phase draws from the others, by their
 * own weights. By index all phases are known when it is opened, and each ends
 * with other draws than over streams. So the form, and with it the order, does
 * not depend on what a cache of a stream keeps.
 */
#include "decorators/mix/mix.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/argument_text.h"
#include "decorators/decorators.h"
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimals of a weight, and what it is multiplied by. */
enum { DECIMALS = 6, SCALE = 1000000 };

/* Passes of an input in one epoch are told apart up to the first, and epochs up
 * to the second. */
enum { PASSES = 4096, EPOCHS = 1 << 20 };

int leat__mix_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    const leat__mix *mix = (const leat__mix *)reader;
    *out = mix->fields.spec;
    *n = mix->fields.n;
    return LEAT_OK;
}

int64_t leat__mix_memory(leat_reader *reader)
{
    return leat__counter_get(&((leat__mix *)reader)->bytes);
}

static void finish(leat__mix *mix)
{
    leat__field_list_finish(&mix->fields);
    for (int i = 0; i < mix->nphases; i++) {
        leat__draw_table_destroy(mix->phase[i]->table);
        leat__free(mix->phase[i]);
    }
    leat__free(mix->input);
}

void leat__mix_close(leat_reader *reader)
{
    finish((leat__mix *)reader);
    leat__decorator_close(reader);
}

int64_t leat__mix_pass_epoch(int64_t epoch, int64_t pass)
{
    return epoch + pass % PASSES * EPOCHS;
}

int leat__mix_empty(const leat__mix *mix, int i)
{
    return leat_error(LEAT_EFORMAT,
                      "mix: input %d (%.80s) has no samples: it cannot be "
                      "begun again",
                      i + 1, leat__reader_text(mix->map.decorator.upstream[i]));
}

/* Another one for each set of inputs. */
static uint64_t phase_seed(const leat__mix *mix, const bool ended[])
{
    uint64_t hash = mix->seed;
    for (int i = 0; i < mix->map.decorator.nupstream; i++)
        hash = hash * 0x5851f42d4c957f2du + ended[i];
    return hash;
}

int leat__mix_add_phase(leat__mix *mix, const bool ended[])
{
    int64_t weight[LEAT__MIX_MAX];
    int n = mix->map.decorator.nupstream;
    leat__mix_phase *phase = leat__alloc_zero(1, sizeof(*phase));
    if (!phase)
        return LEAT_ENOMEM;
    for (int i = 0; i < n; i++) {
        phase->ended[i] = ended[i];
        weight[i] = ended[i] ? 0 : mix->weight[i];
    }
    int status = leat__draw_table_create(&phase->table, weight, n, mix->is_even,
                                         phase_seed(mix, ended));
    if (status) {
        leat__free(phase);
        return leat__error_context(status, "mix");
    }
    mix->phase[mix->nphases++] = phase;
    leat__counter_add(&mix->bytes,
                      (int64_t)(sizeof(*phase) + phase->table->bytes));
    return LEAT_OK;
}

/* The phase that has a draw of the epoch. */
static const leat__mix_phase *find_phase(const leat__mix *mix, int64_t at)
{
    int i = mix->nphases - 1;
    while (at < mix->phase[i]->first)
        i--;
    return mix->phase[i];
}

static bool has_draw(const leat__draw_block *block, leat_position at)
{
    return block->draw && at.epoch == block->epoch &&
           (uint64_t)(at.index - block->first) < (uint64_t)block->size;
}

/* Consecutive positions are of one block, mostly. */
static void mix_positions(const leat__index_map *map, const leat_position at[],
                          int n, leat_position from[], int upstream[])
{
    const leat__mix *mix = (const leat__mix *)map;
    const leat__mix_phase *phase = NULL;
    leat__draw_block block = {.draw = NULL};
    for (int i = 0; i < n; i++) {
        if (!has_draw(&block, at[i])) {
            phase = find_phase(mix, at[i].index);
            block = leat__draw_table_block(phase->table, at[i].epoch,
                                           at[i].index - phase->first);
            block.first += phase->first;
        }
        leat__draw draw = block.draw[at[i].index - block.first];
        const leat__draw_table *table = phase->table;
        int64_t index =
            phase->base[draw.input] + draw.rank +
            block.number * table->periods * table->weight[draw.input];
        int64_t count = mix->count[draw.input];
        upstream[i] = draw.input;
        from[i] = (leat_position){at[i].epoch, index};
        if (index >= count) {
            from[i].epoch = leat__mix_pass_epoch(at[i].epoch, index / count);
            from[i].index = index % count;
        }
    }
}

/* Where a phase first draws from an input that has ended; *input is that. */
static int64_t find_end(const leat__mix *mix, const leat__mix_phase *phase,
                        int *input)
{
    bool ends_last = mix->on_end == LEAT_MIX_REPEAT;
    int64_t end = -1;
    for (int i = 0; i < mix->map.decorator.nupstream; i++) {
        if (phase->ended[i])
            continue;
        int64_t left = mix->count[i] == LEAT_ENDLESS
                           ? LEAT_ENDLESS
                           : mix->count[i] - phase->base[i];
        int64_t at = leat__draw_table_find(phase->table, i, left);
        if (end >= 0 && (ends_last ? at <= end : at >= end))
            continue;
        end = at;
        *input = i;
    }
    return end;
}

/* Ends the last phase, and adds the next one where inputs are left. */
static int end_phase(leat__mix *mix, bool *is_last)
{
    leat__mix_phase *phase = mix->phase[mix->nphases - 1];
    int n = mix->map.decorator.nupstream;
    int input = 0;
    int64_t end = find_end(mix, phase, &input);
    size_t before = phase->table->bytes;
    int status = leat__draw_table_end(phase->table, end);
    leat__counter_add(&mix->bytes, (int64_t)(phase->table->bytes - before));
    mix->map.count = __builtin_add_overflow(phase->first, end, &mix->map.count)
                         ? LEAT_ENDLESS
                         : mix->map.count;
    int left = -1;
    for (int i = 0; i < n; i++)
        left += !phase->ended[i];
    *is_last = mix->on_end != LEAT_MIX_DROP || left == 0 || end == LEAT_ENDLESS;
    if (status || *is_last)
        return status;
    bool ended[LEAT__MIX_MAX];
    memcpy(ended, phase->ended, sizeof(ended));
    ended[input] = true;
    status = leat__mix_add_phase(mix, ended);
    if (status)
        return status;
    leat__mix_phase *next = mix->phase[mix->nphases - 1];
    next->first = mix->map.count;
    for (int i = 0; i < n; i++)
        next->base[i] =
            phase->base[i] + leat__draw_table_count(phase->table, i, end);
    return LEAT_OK;
}

static int plan_epoch(leat__mix *mix)
{
    int status = LEAT_OK;
    bool is_last = false;
    for (int i = 0; i < mix->map.decorator.nupstream && !status; i++) {
        status =
            leat_reader_count(mix->map.decorator.upstream[i], &mix->count[i]);
        if (!status && mix->count[i] == 0 && mix->on_end == LEAT_MIX_REPEAT)
            status = leat__mix_empty(mix, i);
    }
    while (!status && !is_last)
        status = end_phase(mix, &is_last);
    return status;
}

int leat__mix_save(leat_reader *reader, leat_token *token)
{
    const unsigned char is_stream = reader->ops == &leat__mix_stream_ops;
    int status = leat__decorator_save(reader, token);
    if (status && status != LEAT_EUNSUPPORTED)
        return status;
    int put = leat_token_put(token, &is_stream, sizeof(is_stream));
    return put ? put : status;
}

int leat__mix_restore(leat_reader *reader, leat_token *token)
{
    const unsigned char is_stream = reader->ops == &leat__mix_stream_ops;
    unsigned char was_stream;
    int status = leat__index_map_restore(reader, token);
    if (status && status != LEAT_EUNSUPPORTED)
        return status;
    int got = leat_token_get(token, &was_stream, sizeof(was_stream));
    if (got)
        return got;
    return was_stream == is_stream
               ? status
               : leat_error(LEAT_EINVAL,
                            "mix: the resume token is of inputs "
                            "of which %s random access",
                            was_stream ? "not all had" : "all had");
}

static const leat_reader_ops mix_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "mix",
    .fields = leat__mix_fields,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__mix_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .save = leat__mix_save,
    .restore = leat__mix_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .memory = leat__mix_memory,
};

/* A number such as 3, 0.7 or .25, in millionths. */
static bool read_weight(const char *text, int64_t *out)
{
    int64_t value = 0;
    int digits = 0, decimals = -1;
    for (const char *p = text; *p; p++) {
        if (*p == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (*p < '0' || *p > '9' || decimals == DECIMALS ||
            value > LEAT__PERIOD_MAX)
            return false;
        value = 10 * value + (*p - '0');
        digits++;
        decimals += decimals >= 0;
    }
    for (int i = decimals < 0 ? 0 : decimals; i < DECIMALS; i++)
        value *= 10;
    *out = value;
    return digits > 0 && value > 0;
}

static int read_weights(leat__mix *mix, const leat_args *args)
{
    int n = mix->map.decorator.nupstream;
    bool is_given = leat_args_at(args, 0) != NULL;
    for (int i = 0; i < n; i++) {
        const char *text = is_given ? leat_args_at(args, i) : "1";
        if (!text)
            return leat_error(LEAT_EINVAL,
                              "mix: %d weights for %d inputs: expected as many",
                              i, n);
        if (!read_weight(text, &mix->weight[i]))
            return leat_error(LEAT_EINVAL,
                              "mix: the weight \"%s\" is none: expected a "
                              "number above 0 such as 3 or 0.7, of at most %d "
                              "decimals",
                              text, DECIMALS);
    }
    if (leat_args_at(args, n))
        return leat_error(LEAT_EINVAL,
                          "mix: more weights than inputs, which are %d", n);
    return LEAT_OK;
}

static int begin_stream(leat__mix *mix)
{
    int n = mix->map.decorator.nupstream;
    if (n > LEAT__MIX_STREAMS_MAX)
        return leat_error(LEAT_EUNSUPPORTED,
                          "mix: %d inputs, and not all can be read in any "
                          "order: expected at most %d",
                          n, LEAT__MIX_STREAMS_MAX);
    mix->input = leat__alloc_zero((size_t)n, sizeof(*mix->input));
    return mix->input ? LEAT_OK : LEAT_ENOMEM;
}

static int begin(leat__mix *mix, const leat_open *open, bool is_by_index)
{
    const bool none[LEAT__MIX_MAX] = {false};
    mix->map.positions = mix_positions;
    mix->is_even = leat_args_number(open->args, "even") > 0;
    mix->on_end = (leat_mix_end)leat_args_number(open->args, "on_end");
    mix->seed = leat_open_seed(open);
    int status = read_weights(mix, open->args);
    if (!status)
        status = leat__field_list_merge_all(&mix->fields, "mix", open->upstream,
                                            open->nupstream);
    if (!status)
        status = leat__mix_add_phase(mix, none);
    if (!status)
        status = is_by_index ? plan_epoch(mix) : begin_stream(mix);
    return status;
}

static int mix_open(const leat_open *open, leat_reader **out)
{
    bool is_by_index = true;
    for (int i = 0; i < open->nupstream; i++)
        is_by_index &= leat__reader_has_lasting_access(open->upstream[i]);
    leat__mix *mix = leat__decorator_new(
        open, is_by_index ? &mix_ops : &leat__mix_stream_ops, sizeof(*mix));
    if (!mix)
        return LEAT_ENOMEM;
    int status = begin(mix, open, is_by_index);
    if (status) {
        finish(mix);
        leat__free(mix);
        return status;
    }
    *out = &mix->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument mix_arguments[] = {
    {.name = "weight",
     .positional = 1,
     .repeated = 1,
     .help = "of each input, such as 0.7 or 3; none: all the same"},
    {.name = "even",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: as regular as can be; 0: by the seed, exact every 256 samples "
             "or a few more"},
    {.name = "on_end",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "stop",
     .words = "stop|drop|repeat",
     .help = "an input that has ended: stop; drop: go on with the others; "
             "repeat: begin it again until all have ended"},
    {.name = "seed",
     .kind = LEAT_ARGUMENT_NUMBER,
     .max = INT64_MAX,
     .help = "of the draws; else made of the caller's"},
    {0},
};

const leat_reader_type leat__mix_type = {
    .size = sizeof(leat_reader_type),
    .name = "mix",
    .help = "samples of several readers, each as often as it weighs",
    .arguments = mix_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = LEAT__MIX_MAX,
    .open = mix_open,
};

int leat_mix_options_init(leat_mix_options *options)
{
    const leat_mix_options defaults = LEAT_MIX_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static int write_weights(leat__argument_text *text, const double weight[],
                         int n)
{
    for (int i = 0; i < n; i++) {
        char number[48];
        if (!(weight[i] > 0 && weight[i] <= SCALE))
            return leat_error(LEAT_EINVAL,
                              "mix: weight %d is %g: expected a number above 0 "
                              "up to %d",
                              i + 1, weight[i], SCALE);
        long long millionths = (long long)(weight[i] * SCALE + 0.5);
        snprintf(number, sizeof(number), "%s%lld.%06lld", i ? "," : "",
                 millionths / SCALE, millionths % SCALE);
        leat__argument_text_add(text, number);
    }
    return LEAT_OK;
}

static int write_options(leat__argument_text *text,
                         const leat_mix_options *values, int n)
{
    int status =
        values->weight ? write_weights(text, values->weight, n) : LEAT_OK;
    leat__argument_text_add_number(text, "even", values->even != 0);
    static const char *const ends[] = {",on_end=stop", ",on_end=drop",
                                       ",on_end=repeat"};
    if (values->on_end < LEAT_MIX_STOP || values->on_end > LEAT_MIX_REPEAT)
        return leat_error(LEAT_EINVAL,
                          "mix: on_end is %d: expected a leat_mix_end",
                          (int)values->on_end);
    leat__argument_text_add(text, ends[values->on_end]);
    if (values->has_seed)
        leat__argument_text_add_number(text, "seed", (long long)values->seed);
    return status ? status : text->status;
}

int leat_pipeline_mix(leat_pipeline **out, leat_pipeline *const upstream[],
                      int n, const leat_mix_options *options)
{
    leat_mix_options values = LEAT_MIX_OPTIONS_INIT;
    leat__argument_text text = {0};
    int status = leat__options_copy(&values, options, sizeof(values));
    if (!status)
        status = write_options(&text, &values, n);
    if (!status)
        status = leat_pipeline_create(out, &leat__mix_type, text.text, NULL,
                                      NULL, upstream, n);
    leat__argument_text_finish(&text);
    return status;
}
