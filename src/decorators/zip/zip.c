/*
 * zip: the fields of several readers, side by side.
 *
 * Each input reads into cleared samples, several at a time: the first into
 * those of the caller, the others into rows of zip's own, whose fields are then
 * appended. Stable views are not copied. A file reader whose samples are large
 * and not stable appends them itself, one at a time.
 */
#include "decorators/zip/zip.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/argument_text.h"
#include "decorators/decorators.h"
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <string.h>

/* Bytes from which a copy costs more than a call. */
enum { LARGE = 1024 };

int leat__zip_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    const leat__zip *zip = (const leat__zip *)reader;
    *out = zip->fields.spec;
    *n = zip->fields.n;
    return LEAT_OK;
}

int64_t leat__zip_memory(leat_reader *reader)
{
    const leat__zip *zip = (const leat__zip *)reader;
    return leat__counter_get(&zip->pool.bytes) +
           (zip->held ? (int64_t)sizeof(*zip->held) : 0);
}

static void finish(leat__zip *zip)
{
    leat__field_list_finish(&zip->fields);
    if (zip->held && zip->held->rows)
        leat__zip_pool_give(&zip->pool, zip->held->rows);
    leat__zip_pool_finish(&zip->pool);
    if (zip->held)
        leat_token_finish(&zip->held->begin);
    leat__free(zip->held);
}

void leat__zip_close(leat_reader *reader)
{
    finish((leat__zip *)reader);
    leat__decorator_close(reader);
}

int leat__zip_unequal(const leat__zip *zip, int shorter, int longer,
                      int64_t index)
{
    leat_reader *const *input = zip->map.decorator.upstream;
    return leat_error(LEAT_EFORMAT,
                      "zip: input %d (%.80s) ends after %lld samples, but "
                      "input %d (%.80s) has more; expected as many, or align=0",
                      shorter + 1, leat__reader_text(input[shorter]),
                      (long long)index, longer + 1,
                      leat__reader_text(input[longer]));
}

static int unequal_keys(int i, int64_t index, const leat_provenance *a,
                        const leat_provenance *b)
{
    char key[2][LEAT__KEY_TEXT_MAX] = {"none", "none"};
    if (a->key)
        leat__key_text(key[0], a->key, a->key_size);
    if (b->key)
        leat__key_text(key[1], b->key, b->key_size);
    return leat_error(LEAT_EFORMAT,
                      "zip: sample %lld: the key of input 1 is %s (%s, record "
                      "%lld), that of input %d is %s (%s, record %lld)",
                      (long long)index, key[0], a->source, (long long)a->record,
                      i + 1, key[1], b->source, (long long)b->record);
}

static bool has_key(const leat_provenance *a, const leat_provenance *b)
{
    return a->key && b->key && a->key_size == b->key_size &&
           memcmp(a->key, b->key, a->key_size) == 0;
}

/* Whether an input's samples had better be appended, from now on. Only a file
 * reader, since it writes no fields but those that it has. */
static void weigh(leat__zip *zip, int i, const leat_sample *sample)
{
    const leat_reader *input = zip->map.decorator.upstream[i];
    if (!sample->stable && sample->taken > LARGE &&
        input->pipeline->nupstream == 0)
        atomic_store_explicit(&zip->appends[i], true, memory_order_relaxed);
}

int leat__zip_add(leat__zip *zip, int i, int64_t index, leat_sample *row,
                  leat_sample *sample)
{
    if (zip->align == LEAT_ALIGN_KEY && !has_key(&row->from, &sample->from))
        return unequal_keys(i, index, &row->from, &sample->from);
    weigh(zip, i, sample);
    return leat__zip_join(row, sample);
}

int leat__zip_appended(const leat__zip *zip, int i, int64_t index,
                       leat_sample *row, leat__zip_origin *origin)
{
    leat_provenance other;
    leat__zip_origin_set(origin, row, &other);
    if (zip->align == LEAT_ALIGN_KEY && !has_key(&row->from, &other))
        return unequal_keys(i, index, &row->from, &other);
    return LEAT_OK;
}

/* An input appends to the good rows itself, one at a time. */
static int append_input(leat__zip *zip, int i, const leat_position at[],
                        leat_sample *const out[], int *n)
{
    leat_reader *input = zip->map.decorator.upstream[i];
    int asked = *n, status = LEAT_OK;
    for (*n = 0; *n < asked && !status; *n += !status) {
        leat__zip_origin origin;
        int got;
        leat__zip_origin_keep(&origin, out[*n]);
        status = leat_reader_pull_at(input, at + *n, out + *n, 1, &got);
        if (!status)
            status = leat__zip_appended(zip, i, at[*n].index, out[*n], &origin);
    }
    return status;
}

/* Reads rows of one input; `*got` of them are good before an error. */
static int read_input(leat_reader *input, const leat_position at[],
                      leat_sample *const out[], int n, int *got)
{
    int status = LEAT_OK;
    for (*got = 0; *got < n && !status;) {
        int some;
        status =
            leat_reader_pull_at(input, at + *got, out + *got, n - *got, &some);
        *got += some;
    }
    return status;
}

/*
 * Adds an input to the good rows, of which an error leaves *n. The row that an
 * input cannot read gets what names the record.
 */
static int add_input(leat__zip *zip, int i, const leat_position at[],
                     leat_sample *const out[], int *n)
{
    leat__zip_rows *rows = leat__zip_pool_take(&zip->pool);
    if (!rows) {
        *n = 0;
        return LEAT_ENOMEM;
    }
    int got, asked = *n;
    for (int k = 0; k < asked; k++)
        leat_sample_clear(rows->at[k]);
    int status =
        read_input(zip->map.decorator.upstream[i], at, rows->at, asked, &got);
    if (status)
        leat_sample_swap(out[got], rows->at[got]);
    *n = got;
    for (int k = 0; k < got; k++) {
        int joined = leat__zip_add(zip, i, at[k].index, out[k], rows->at[k]);
        if (!joined)
            continue;
        status = joined;
        *n = k;
        break;
    }
    leat__zip_pool_give(&zip->pool, rows);
    return status;
}

/* An input reads no further than those before it have good rows, whose rows
 * after a bad one are lost. */
static int zip_read_at(leat_reader *reader, const leat_position at[],
                       leat_sample *const out[], int n, int *got)
{
    leat__zip *zip = (leat__zip *)reader;
    char line[LEAT__ERROR_MAX];
    int most = n < LEAT__ZIP_ROWS ? n : LEAT__ZIP_ROWS, rows;
    int asked = leat__read_limit_get(&zip->map.limit, most);
    int status =
        read_input(zip->map.decorator.upstream[0], at, out, asked, &rows);
    if (status)
        leat__error_save(line);
    for (int i = 1; i < zip->map.decorator.nupstream && rows > 0; i++) {
        bool appends =
            atomic_load_explicit(&zip->appends[i], memory_order_relaxed);
        int failed = appends ? append_input(zip, i, at, out, &rows)
                             : add_input(zip, i, at, out, &rows);
        if (!failed)
            continue;
        status = failed;
        leat__error_save(line);
        leat__read_limit_reset(&zip->map.limit);
    }
    if (!status)
        leat__read_limit_raise(&zip->map.limit, rows);
    *got = rows;
    for (int i = rows + 1; i < asked && status; i++)
        leat_sample_clear(out[i]); /* of some inputs */
    return status ? leat_error(status, "%s", line) : LEAT_OK;
}

static void zip_advise(leat_reader *reader, const leat_position at[], int n)
{
    const leat__zip *zip = (const leat__zip *)reader;
    for (int i = 0; i < zip->map.decorator.nupstream; i++)
        leat_reader_advise(zip->map.decorator.upstream[i], at, n);
}

static const leat_reader_ops zip_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "zip",
    .fields = leat__zip_fields,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__zip_close,
    .count = leat__index_map_count,
    .read_at = zip_read_at,
    .advise = zip_advise,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .memory = leat__zip_memory,
};

/* The fields of all inputs, with their prefixes. */
static int append_fields(leat__zip *zip, const leat_args *args)
{
    int n = zip->map.decorator.nupstream;
    int status = LEAT_OK;
    if (leat_args_has(args, "prefix") &&
        (leat_args_list(args, "prefix", n) ||
         !leat_args_list(args, "prefix", n - 1)))
        return leat_error(LEAT_EINVAL,
                          "zip: prefix: expected as many as inputs, %d", n);
    for (int i = 0; i < n && !status; i++) {
        leat_reader *input = zip->map.decorator.upstream[i];
        const leat_field_spec *fields;
        int nfields;
        status = leat_reader_fields(input, &fields, &nfields);
        if (!status)
            status = leat__field_list_append(&zip->fields, fields, nfields,
                                             leat_args_list(args, "prefix", i));
        if (status == LEAT_EINVAL)
            leat__error_context(status, "zip: input %d (%.80s)", i + 1,
                                leat__reader_text(input));
    }
    return status;
}

/* The least count of all, which are the same unless align is 0. */
static int count_rows(leat__zip *zip)
{
    int64_t count = 0;
    int shortest = 0, longest = 0;
    int64_t most = -1;
    for (int i = 0; i < zip->map.decorator.nupstream; i++) {
        int status = leat_reader_count(zip->map.decorator.upstream[i], &count);
        if (status)
            return status;
        if (i == 0 || count < zip->map.count) {
            zip->map.count = count;
            shortest = i;
        }
        if (count > most) {
            most = count;
            longest = i;
        }
    }
    if (most == zip->map.count || zip->align == LEAT_ALIGN_SHORTEST)
        return LEAT_OK;
    return leat__zip_unequal(zip, shortest, longest, zip->map.count);
}

static int hold_rows(leat__zip *zip)
{
    zip->held = leat__alloc_zero(1, sizeof(*zip->held));
    if (!zip->held)
        return LEAT_ENOMEM;
    leat_token_init(&zip->held->begin);
    zip->held->at_once = LEAT__ZIP_ROWS / 4;
    zip->held->rows = leat__zip_pool_take(&zip->pool);
    return zip->held->rows ? LEAT_OK : LEAT_ENOMEM;
}

static int zip_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = true;
    for (int i = 0; i < open->nupstream; i++)
        is_random_access &= leat_reader_is_random_access(open->upstream[i]);
    leat__zip *zip = leat__decorator_new(
        open, is_random_access ? &zip_ops : &leat__zip_stream_ops,
        sizeof(*zip));
    if (!zip)
        return LEAT_ENOMEM;
    zip->align = (leat_align)leat_args_number(open->args, "align");
    zip->pool.allocator = open->allocator;
    int status = append_fields(zip, open->args);
    if (!status)
        status = is_random_access ? count_rows(zip) : hold_rows(zip);
    if (status) {
        finish(zip);
        leat__free(zip);
        return status;
    }
    *out = &zip->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument zip_arguments[] = {
    {.name = "align",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "1",
     .words = "1|0|key",
     .help =
         "1: inputs of different lengths are an error; 0: stop at the end "
         "of the shortest; key: the samples' keys have to be the same, too"},
    {.name = "prefix",
     .kind = LEAT_ARGUMENT_LIST,
     .help = "what the names of each input's fields begin with: (a_,b_)"},
    {0},
};

/* By index workers read in parallel; next would complete all samples. */
const leat_reader_type leat__zip_type = {
    .size = sizeof(leat_reader_type),
    .name = "zip",
    .help = "the fields of several readers, side by side",
    .arguments = zip_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = LEAT_MAX_FIELDS,
    .open = zip_open,
};

int leat_zip_options_init(leat_zip_options *options)
{
    const leat_zip_options defaults = LEAT_ZIP_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static void write_prefixes(leat__argument_text *text,
                           const char *const prefix[], int n)
{
    leat__argument_text_add(text, ",prefix=");
    for (int i = 0; i < n; i++) {
        leat__argument_text_add(text, i ? "," : "(");
        leat__argument_text_add_value(text, prefix[i] ? prefix[i] : "");
    }
    leat__argument_text_add(text, ")");
}

int leat_pipeline_zip(leat_pipeline **out, leat_pipeline *const upstream[],
                      int n, const leat_zip_options *options)
{
    static const char *const aligns[] = {"align=1", "align=0", "align=key"};
    leat_zip_options values = LEAT_ZIP_OPTIONS_INIT;
    leat__argument_text text = {0};
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    if (values.align < LEAT_ALIGN_LENGTH || values.align > LEAT_ALIGN_KEY)
        return leat_error(LEAT_EINVAL,
                          "zip: align is %d: expected a leat_align",
                          (int)values.align);
    leat__argument_text_add(&text, aligns[values.align]);
    if (values.prefix && n > 0)
        write_prefixes(&text, values.prefix, n);
    status = text.status;
    if (!status)
        status = leat_pipeline_create(out, &leat__zip_type, text.text, NULL,
                                      NULL, upstream, n);
    leat__argument_text_finish(&text);
    return status;
}
