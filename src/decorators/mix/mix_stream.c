/*
 * mix over streams: an input's end is found when it is drawn.
 *
 * A mark has the draw, and of each input its index, pass and whether it has
 * ended: 8 bytes each; then the inputs' own marks.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/mix/mix.h"
#include "pipeline/reader_state.h"
#include "pipeline/reader_table.h"

#include <string.h>

/* Of an input's word in a mark, from the lowest bit on. */
enum { INDEX_BITS = 48, PASS_BITS = 12 };
#define INDEX_MASK (((uint64_t)1 << INDEX_BITS) - 1)
#define PASS_MASK (((uint64_t)1 << PASS_BITS) - 1)

static leat__mix *mix_of(leat_reader *reader)
{
    return (leat__mix *)reader;
}

static bool all_ended(const leat__mix *mix)
{
    bool all = true;
    for (int i = 0; i < mix->map.decorator.nupstream; i++)
        all &= mix->input[i].has_ended;
    return all;
}

/* Draws from the inputs that have not ended, from their first draw on. */
static int enter_phase(leat__mix *mix)
{
    int n = mix->map.decorator.nupstream;
    bool ended[LEAT__MIX_MAX] = {false};
    for (int i = 0; i < n; i++)
        ended[i] = mix->on_end == LEAT_MIX_DROP && mix->input[i].has_ended;
    mix->at = 0;
    mix->block.draw = NULL;
    for (int i = 0; i < mix->nphases; i++) {
        mix->at_phase = i;
        if (memcmp(mix->phase[i]->ended, ended, (size_t)n) == 0)
            return LEAT_OK;
    }
    /* Where ends differ from epoch to epoch, so do phases. */
    if (mix->nphases == LEAT__MIX_MAX) {
        leat__mix_phase *last = mix->phase[--mix->nphases];
        leat__draw_table_destroy(last->table);
        leat__free(last);
    }
    mix->at_phase = mix->nphases;
    return leat__mix_add_phase(mix, ended);
}

static int begin_again(leat__mix *mix, int i)
{
    leat__mix_input *input = &mix->input[i];
    if (input->pass > 0 && input->index == 0)
        return leat__mix_empty(mix, i);
    input->pass++;
    input->index = 0;
    const leat_position begin = {
        leat__mix_pass_epoch(mix->map.next.epoch, input->pass), 0};
    return leat_reader_seek(mix->map.decorator.upstream[i], begin, NULL);
}

/* What becomes of the epoch at an input's end: LEAT_OK goes on. */
static int end_input(leat__mix *mix, int i)
{
    if (mix->on_end == LEAT_MIX_STOP)
        return LEAT_END;
    mix->input[i].has_ended = true;
    if (all_ended(mix))
        return LEAT_END;
    return mix->on_end == LEAT_MIX_REPEAT ? begin_again(mix, i)
                                          : enter_phase(mix);
}

/* The input of the next draw; *run: how many draws in a row, up to `n`. */
static int draw(leat__mix *mix, int64_t n, int *run)
{
    leat__draw_block *block = &mix->block;
    if (!block->draw || mix->at - block->first >= block->size)
        *block = leat__draw_table_block(mix->phase[mix->at_phase]->table,
                                        mix->map.next.epoch, mix->at);
    int64_t at = mix->at - block->first;
    if (n > block->size - at)
        n = block->size - at;
    *run = 1;
    while (*run < n && block->draw[at + *run].input == block->draw[at].input)
        ++*run;
    return block->draw[at].input;
}

/* *bytes: what it adds to the samples. */
static int pull(leat__mix *mix, int i, leat_sample *const out[], int n,
                int64_t *got, size_t *bytes)
{
    int some, all = mix->map.decorator.nupstream;
    n = leat__call_samples(n);
    size_t before = leat__sample_buffers(out, n);
    int status =
        leat_reader_pull(mix->map.decorator.upstream[i], out, n, &some);
    *bytes += leat__sample_added(out, n, before);
    for (int k = 0; k < some; k++)
        if (out[k]->deferred)
            leat_sample_push_route(out[k], i, all);
    *got = some;
    return status;
}

/* Gives `n` samples, or passes them by without `out`. */
static int advance(leat__mix *mix, leat_sample *const out[], int64_t n,
                   int64_t *done)
{
    int status = leat__decorator_check_running(&mix->map.decorator);
    size_t bytes = 0;
    if (!status && all_ended(mix))
        return LEAT_END;
    while (*done < n && !status && bytes < LEAT__CALL_BYTES) {
        int run;
        int64_t some;
        int i = draw(mix, n - *done, &run);
        status =
            out ? pull(mix, i, out + *done, run, &some, &bytes)
                : leat_reader_skip(mix->map.decorator.upstream[i], run, &some);
        *done += some;
        some += status == LEAT_EDATA;
        mix->input[i].index += some;
        mix->at += some;
        if (status == LEAT_END)
            status = end_input(mix, i);
    }
    return status;
}

static int mix_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    int64_t done = 0;
    int status = advance(mix_of(reader), out, n, &done);
    *got = (int)done;
    return status;
}

static int mix_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    return advance(mix_of(reader), NULL, n, skipped);
}

static int mix_materialize(leat_reader *reader, leat_sample *const out[], int n,
                           int *got)
{
    const leat__decorator *decorator = &mix_of(reader)->map.decorator;
    return leat_reader_materialize_routed(decorator->upstream,
                                          decorator->nupstream, out, n, got);
}

static int mix_mark(leat_reader *reader, leat_token *token)
{
    const leat__mix *mix = mix_of(reader);
    const leat__decorator *decorator = &mix->map.decorator;
    int status = leat_token_put(token, &mix->at, sizeof(mix->at));
    for (int i = 0; i < decorator->nupstream && !status; i++) {
        const leat__mix_input *input = &mix->input[i];
        uint64_t word = (uint64_t)input->index |
                        ((uint64_t)input->pass & PASS_MASK) << INDEX_BITS |
                        (uint64_t)input->has_ended << (INDEX_BITS + PASS_BITS);
        status = leat_token_put(token, &word, sizeof(word));
    }
    for (int i = 0; i < decorator->nupstream && !status; i++)
        status = leat_reader_mark(decorator->upstream[i], token);
    return status;
}

/* The mix's own part of a mark. */
static int take_state(leat__mix *mix, leat_token *mark)
{
    int64_t at;
    int status = leat__token_get_counts(mark, "mix", &at, 1);
    for (int i = 0; i < mix->map.decorator.nupstream && !status; i++) {
        uint64_t word = 0;
        status = leat_token_get(mark, &word, sizeof(word));
        mix->input[i] = (leat__mix_input){
            .index = (int64_t)(word & INDEX_MASK),
            .pass = (int64_t)(word >> INDEX_BITS & PASS_MASK),
            .has_ended = word >> (INDEX_BITS + PASS_BITS) & 1};
        if (!status && word >> (INDEX_BITS + PASS_BITS + 1))
            status = leat_error(LEAT_EINVAL, "mix: the mark is none");
    }
    if (!status && !all_ended(mix))
        status = enter_phase(mix);
    if (!status)
        mix->at = at;
    return status;
}

static int begin_epoch(leat__mix *mix)
{
    memset(mix->input, 0,
           (size_t)mix->map.decorator.nupstream * sizeof(*mix->input));
    return enter_phase(mix);
}

static int mix_seek(leat_reader *reader, leat_position position,
                    leat_token *mark)
{
    leat__mix *mix = mix_of(reader);
    const leat__decorator *decorator = &mix->map.decorator;
    if (!mark && position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "mix: over a stream no index finds a sample");
    mix->map.next = position;
    int status = mark ? take_state(mix, mark) : begin_epoch(mix);
    for (int i = 0; i < decorator->nupstream && !status; i++) {
        const leat_position to = {
            leat__mix_pass_epoch(position.epoch, mix->input[i].pass),
            mix->input[i].index};
        status =
            leat__reader_seek_input(reader, decorator->upstream[i], to, mark);
    }
    return status;
}

static int mix_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__mix_restore(reader, token);
    return status ? status : begin_epoch(mix_of(reader));
}

static int mix_is_endless(leat_reader *reader)
{
    return ((leat__mix *)reader)->on_end == LEAT_MIX_STOP
               ? leat__decorator_are_all_endless(reader)
               : leat__decorator_is_any_endless(reader);
}

const leat_reader_ops leat__mix_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "mix",
    .fields = leat__mix_fields,
    .next = mix_next,
    .seek = mix_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__mix_close,
    .materialize = mix_materialize,
    .skip = mix_skip,
    .can_seek = leat__reader_no,
    .mark = mix_mark,
    .save = leat__mix_save,
    .restore = mix_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .memory = leat__mix_memory,
    .is_endless = mix_is_endless,
};
