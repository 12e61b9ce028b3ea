/*
 * zip over streams.
 *
 * Several rows are read at a time, in lockstep: an input that fails in a row
 * steps over it, and the others do as well. What was read after a bad row is
 * held for the next calls. Where rows are held, or something ends them, the
 * inputs are not at the same row: a mark is then that of the rows' beginning,
 * and how many were passed since; else it is the inputs' own.
 */
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/zip/zip.h"
#include "pipeline/reader_state.h"

#include <string.h>

/* Rows on their way. */
typedef struct reading {
    leat__zip *zip;
    leat_sample *const *out;
    int n;                       /* rows that all inputs have, so far */
    int ended;                   /* the input that ends after them; -1: none */
    int status;                  /* what follows them; LEAT_OK: more rows */
    bool failed[LEAT__ZIP_ROWS]; /* by the input that is read now, first */
} reading;

static void fail_row(reading *rows, int row)
{
    leat__zip_held *held = rows->zip->held;
    if (held->is_bad[row])
        return;
    held->is_bad[row] = rows->failed[row] = true;
    leat__error_save(held->bad_line[row]);
}

static void stop_after(reading *rows, int n, int status)
{
    rows->n = n;
    rows->status = status;
    leat__error_save(rows->zip->held->line);
}

/* Completes what was pulled up to row `end`; *row is the first that is not. */
static int complete(reading *rows, leat_reader *input, leat_sample *const out[],
                    int end, int *row)
{
    int status = LEAT_OK;
    while (*row < end && !status) {
        int got;
        status = leat_reader_materialize(input, out + *row, end - *row, &got);
        *row += got;
        if (status != LEAT_EDATA)
            continue;
        fail_row(rows, (*row)++);
        status = LEAT_OK;
    }
    return status;
}

/* Reads rows of one input, bad ones included; *row of them before a status. */
static int read_input(reading *rows, leat_reader *input,
                      leat_sample *const out[], int *row)
{
    int status = LEAT_OK;
    for (*row = 0; *row < rows->n && !status;) {
        int got;
        status = leat_reader_pull(input, out + *row, rows->n - *row, &got);
        if (!status)
            status = complete(rows, input, out, *row + got, row);
        if (status != LEAT_EDATA)
            continue;
        fail_row(rows, (*row)++);
        status = LEAT_OK;
    }
    return status;
}

/*
 * What an input's end after row `n` means, if the inputs before it have
 * rows->n. Where they are to be of one length, one that has more is an error.
 */
static void end_after(reading *rows, int i, int n)
{
    const leat__zip *zip = rows->zip;
    bool is_shorter = i > 0 && n < rows->n;
    int status = LEAT_END;
    if (is_shorter && zip->align != LEAT_ALIGN_SHORTEST)
        status = leat__zip_unequal(zip, i, 0, zip->map.next.index + n);
    stop_after(rows, n, status);
    rows->ended = i;
}

/* Whether an input ends where another has ended. */
static void check_end(reading *rows, int i)
{
    const leat__zip *zip = rows->zip;
    int64_t more;
    if (rows->status != LEAT_END || zip->align == LEAT_ALIGN_SHORTEST)
        return;
    int status = leat_reader_skip(zip->map.decorator.upstream[i], 1, &more);
    if (!status)
        status = leat__zip_unequal(zip, rows->ended, i,
                                   zip->map.next.index + rows->n);
    if (status != LEAT_END)
        stop_after(rows, rows->n, status);
}

static void join_rows(reading *rows, int i, leat_sample *const from[])
{
    leat__zip *zip = rows->zip;
    for (int row = 0; row < rows->n; row++) {
        int status = LEAT_OK;
        if (rows->failed[row])
            leat_sample_swap(rows->out[row], from[row]);
        else if (!zip->held->is_bad[row])
            status = leat__zip_add(zip, i, zip->map.next.index + row,
                                   rows->out[row], from[row]);
        if (status)
            stop_after(rows, row, status);
    }
}

/* One row, to which the input appends itself; a bad one is passed by. */
static int append_row(reading *rows, int i, int row)
{
    const leat__zip *zip = rows->zip;
    leat_reader *input = zip->map.decorator.upstream[i];
    leat_sample *const *out = rows->out + row;
    leat__zip_origin origin;
    int got;
    int64_t skipped;
    if (zip->held->is_bad[row])
        return leat_reader_skip(input, 1, &skipped);
    leat__zip_origin_keep(&origin, *out);
    int status = leat_reader_pull(input, out, 1, &got);
    if (!status)
        status = leat_reader_materialize(input, out, 1, &got);
    if (!status)
        return leat__zip_appended(zip, i, zip->map.next.index + row, *out,
                                  &origin);
    if (status != LEAT_EDATA)
        return status;
    fail_row(rows, row);
    return LEAT_OK;
}

static int append_input(reading *rows, int i, int *row)
{
    int status = LEAT_OK;
    for (*row = 0; *row < rows->n && !status; *row += !status)
        status = append_row(rows, i, *row);
    return status;
}

/* Reads the rows of one input, as far as those before it go. */
static void add_input(reading *rows, int i, leat__zip_rows *own)
{
    leat__zip *zip = rows->zip;
    leat_reader *input = zip->map.decorator.upstream[i];
    bool appends = atomic_load_explicit(&zip->appends[i], memory_order_relaxed);
    int got, status;
    memset(rows->failed, 0, sizeof(rows->failed));
    for (int row = 0; row < rows->n && i > 0 && !appends; row++)
        leat_sample_clear(own->at[row]);
    if (appends)
        status = append_input(rows, i, &got);
    else
        status = read_input(rows, input, i > 0 ? own->at : rows->out, &got);
    if (status == LEAT_END)
        end_after(rows, i, got);
    else if (status)
        stop_after(rows, got, status);
    else
        check_end(rows, i);
    if (i > 0 && !appends)
        join_rows(rows, i, own->at);
}

/* Notes where the next rows begin. */
static int mark_begin(leat__zip *zip)
{
    const leat__decorator *decorator = &zip->map.decorator;
    int status = LEAT_OK;
    zip->held->begin.size = 0;
    for (int i = 0; i < decorator->nupstream && !status; i++)
        status = leat_reader_mark(decorator->upstream[i], &zip->held->begin);
    return status;
}

/* Reads up to `n` rows from all inputs. */
static int read_rows(reading *rows)
{
    leat__zip *zip = rows->zip;
    leat__zip_held *held = zip->held;
    const leat__decorator *decorator = &zip->map.decorator;
    int status = mark_begin(zip);
    leat__zip_rows *own = status ? NULL : leat__zip_pool_take(&zip->pool);
    if (!own)
        return status ? status : LEAT_ENOMEM;
    memset(held->is_bad, 0, sizeof(held->is_bad));
    for (int i = 0; i < decorator->nupstream; i++)
        add_input(rows, i, own);
    leat__zip_pool_give(&zip->pool, own);
    return LEAT_OK;
}

/* The next row of those that are held, which may be a bad one. */
static int give_held(leat__zip *zip, leat_sample *out)
{
    leat__zip_held *held = zip->held;
    int row = held->at++;
    held->given++;
    zip->map.next.index++;
    int status = leat_sample_move(out, held->rows->at[row]);
    if (!status && held->is_bad[row])
        status = leat_error(LEAT_EDATA, "%s", held->bad_line[row]);
    return status;
}

/* What follows the rows that were held. It stays: a mark is to lead to it. */
static int held_status(const leat__zip_held *held)
{
    return !held->status || held->status == LEAT_END
               ? held->status
               : leat_error(held->status, "%s", held->line);
}

static int next_held(leat__zip *zip, leat_sample *const out[], int n, int *got)
{
    leat__zip_held *held = zip->held;
    int status = LEAT_OK;
    while (*got < n && held->at < held->n && !status) {
        status = give_held(zip, out[*got]);
        *got += !status;
    }
    if (*got == 0 && !status)
        status = held_status(held);
    return status;
}

/* Holds the rows after bad row `row`, and what follows them. */
static int hold_after(reading *rows, int row)
{
    leat__zip_held *held = rows->zip->held;
    held->at = row + 1;
    held->n = rows->n;
    held->status = rows->status;
    held->given = row + 1;
    for (int i = row + 1; i < rows->n; i++) {
        leat_sample_swap(held->rows->at[i], rows->out[i]);
        leat_sample_clear(rows->out[i]);
    }
    return leat_error(LEAT_EDATA, "%s", held->bad_line[row]);
}

/* The rows that were passed before what ends them: a mark from now on is that
 * of the rows' beginning, as inputs may be past their end. */
static void note_end(leat__zip_held *held, int64_t given, int status)
{
    held->at = held->n = 0;
    held->given = given;
    held->status = status;
}

static int give_rows(reading *rows, int *got)
{
    leat__zip *zip = rows->zip;
    const bool *is_bad = zip->held->is_bad;
    while (*got < rows->n && !is_bad[*got])
        ++*got;
    zip->map.next.index += *got;
    if (*got < rows->n) {
        zip->map.next.index++;
        return hold_after(rows, *got);
    }
    note_end(zip->held, rows->n, rows->status);
    return held_status(zip->held);
}

/* As many rows as add LEAT__CALL_BYTES, going by the last ones. */
static void set_rows_at_once(leat__zip_held *held, size_t bytes, int n)
{
    size_t fit = bytes > 0 ? (size_t)n * LEAT__CALL_BYTES / bytes : SIZE_MAX;
    int more = 2 * held->at_once;
    held->at_once = more < LEAT__ZIP_ROWS ? more : LEAT__ZIP_ROWS;
    if (fit < (size_t)held->at_once)
        held->at_once = fit > 1 ? (int)fit : 1;
}

static int zip_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    leat__zip *zip = (leat__zip *)reader;
    leat__zip_held *held = zip->held;
    int status = leat__decorator_check_running(&zip->map.decorator);
    if (status)
        return status;
    if (held->at < held->n || held->status)
        return next_held(zip, out, n, got);
    n = n < held->at_once ? n : held->at_once;
    reading rows = {zip, out, n, -1, 0, {false}};
    size_t before = leat__sample_buffers(out, n);
    status = read_rows(&rows);
    set_rows_at_once(held, leat__sample_added(out, n, before), n);
    for (int i = rows.n; i < n && !status; i++)
        leat_sample_clear(out[i]); /* the others have no such row */
    return status ? status : give_rows(&rows, got);
}

static void drop_held(leat__zip_held *held)
{
    held->at = held->n = held->status = 0;
}

static int skip_held(leat__zip *zip, int64_t n, int64_t *skipped)
{
    leat__zip_held *held = zip->held;
    int left = held->n - held->at;
    if (left == 0)
        return held_status(held);
    *skipped = n < left ? n : left;
    held->at += (int)*skipped;
    held->given += *skipped;
    zip->map.next.index += *skipped;
    return LEAT_OK;
}

/* Rows that are stepped over: as `reading`, without samples. */
typedef struct stepping {
    leat__zip *zip;
    int64_t n;
    int ended;
    int status;
} stepping;

/* What follows the rows: the status, or what it means that input `i` ends. */
static void stop_stepping(stepping *rows, int64_t n, int status)
{
    rows->n = n;
    rows->status = status;
    if (status != LEAT_END)
        leat__error_save(rows->zip->held->line);
}

static void step(stepping *rows, int i)
{
    const leat__zip *zip = rows->zip;
    leat_reader *input = zip->map.decorator.upstream[i];
    bool is_aligned = zip->align != LEAT_ALIGN_SHORTEST;
    int64_t n, more;
    int status = leat_reader_skip(input, rows->n, &n);
    int64_t end = zip->map.next.index + n;
    if (status == LEAT_END) {
        bool is_shorter = i > 0 && is_aligned;
        stop_stepping(rows, n,
                      is_shorter ? leat__zip_unequal(zip, i, 0, end) : status);
        rows->ended = i;
    } else if (!status && rows->status == LEAT_END && is_aligned) {
        status = leat_reader_skip(input, 1, &more);
        if (!status)
            status = leat__zip_unequal(zip, rows->ended, i, end);
        if (status != LEAT_END)
            stop_stepping(rows, n, status);
    } else if (status) {
        stop_stepping(rows, n, status);
    }
}

/* Each input steps over as many as those before it. */
static int64_t step_over(leat__zip *zip, int64_t n)
{
    stepping rows = {.zip = zip, .n = n};
    for (int i = 0; i < zip->map.decorator.nupstream; i++)
        step(&rows, i);
    zip->map.next.index += rows.n;
    note_end(zip->held, rows.n, rows.status);
    return rows.n;
}

static int zip_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    leat__zip *zip = (leat__zip *)reader;
    if (zip->held->at < zip->held->n || zip->held->status)
        return skip_held(zip, n, skipped);
    int status = mark_begin(zip);
    if (status)
        return status;
    *skipped = step_over(zip, n);
    return held_status(zip->held);
}

/* First its index, and how many rows were passed since the inputs' marks, which
 * follow. */
static int zip_mark(leat_reader *reader, leat_token *token)
{
    const leat__zip *zip = (const leat__zip *)reader;
    const leat__zip_held *held = zip->held;
    const leat__decorator *decorator = &zip->map.decorator;
    bool is_held = held->at < held->n || held->status;
    const int64_t state[] = {zip->map.next.index, is_held ? held->given : 0};
    int status = leat_token_put(token, state, sizeof(state));
    if (!status && is_held)
        return leat_token_put(token, held->begin.bytes, held->begin.size);
    for (int i = 0; i < decorator->nupstream && !status; i++)
        status = leat_reader_mark(decorator->upstream[i], token);
    return status;
}

/* Passes by the rows that a mark has after the beginning. */
static int pass_again(leat__zip *zip, int64_t given)
{
    int64_t passed = step_over(zip, given);
    int status = held_status(zip->held);
    drop_held(zip->held);
    return status == LEAT_END || (!status && passed < given)
               ? leat_error(LEAT_EINVAL, "zip: the mark is none")
               : status;
}

static int take_state(leat_token *mark, int64_t *index, int64_t *given)
{
    int64_t state[2];
    int status = leat__token_get_counts(mark, "zip", state, 2);
    if (status)
        return status;
    *index = state[0];
    *given = state[1];
    return *given > *index ? leat_error(LEAT_EINVAL, "zip: the mark is none")
                           : LEAT_OK;
}

static int zip_seek(leat_reader *reader, leat_position position,
                    leat_token *mark)
{
    leat__zip *zip = (leat__zip *)reader;
    const leat__decorator *decorator = &zip->map.decorator;
    int64_t given = 0;
    /* Before one of them has moved. */
    if (!mark && position.index > 0 && !leat__decorator_can_seek(reader))
        return leat_error(LEAT_EUNSUPPORTED,
                          "zip: one of its readers cannot seek: expected 0, or "
                          "a mark");
    int status = mark ? take_state(mark, &position.index, &given) : LEAT_OK;
    position.index -= given;
    for (int i = 0; i < decorator->nupstream && !status; i++)
        status = leat__reader_seek_input(reader, decorator->upstream[i],
                                         position, mark);
    if (status)
        return status;
    zip->map.next = position;
    drop_held(zip->held);
    return given > 0 ? pass_again(zip, given) : LEAT_OK;
}

static int zip_restore(leat_reader *reader, leat_token *token)
{
    drop_held(((leat__zip *)reader)->held);
    return leat__index_map_restore(reader, token);
}

const leat_reader_ops leat__zip_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "zip",
    .fields = leat__zip_fields,
    .next = zip_next,
    .seek = zip_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__zip_close,
    .skip = zip_skip,
    .can_seek = leat__decorator_can_seek,
    .mark = zip_mark,
    .save = leat__decorator_save,
    .restore = zip_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .memory = leat__zip_memory,
    .is_endless = leat__decorator_are_all_endless,
};
