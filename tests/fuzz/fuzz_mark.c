/*
 * fuzz_mark.c: any bytes as the mark that a chain is sought by, and true marks
 * that are cut and flipped: the chain refuses it, or reads on from a position;
 * an untouched one leads to the very next sample. A refused mark spoils no
 * later seek. Below the chains are readers in memory, and compressed files, of
 * which a mark may lead to what is no record; an image has its label.
 */
#include "pipeline/reader_form.h"
#include "support/index_decorators.h"
#include "support/stream_decorators.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAMPLES = 13, HEADER = 4, READ_MAX = 40 };

/* Bytes before a mark, without which it is refused at once. */
enum { FORM = sizeof(uint64_t) };

/* Chains of memory, then of images and of text. */
enum { IMAGES = 8, TEXTS = 10, CHAINS = 16 };

enum { FIRST_LABEL = 100, END = -1, FAILED = -2 };

static int chain; /* of this run */

/* A pass of its own over SAMPLES samples, which no index finds. */
static int stream_open(void *user, void **pass)
{
    (void)user;
    *pass = calloc(1, sizeof(int32_t));
    return *pass ? LEAT_OK : leat_error(LEAT_ENOMEM, "no memory");
}

static int stream_next(void *pass, leat_sample *sample)
{
    int32_t *next = pass;
    if (*next == SAMPLES)
        return LEAT_END;
    int32_t *label = leat_sample_take(sample, sizeof(*label));
    if (!label)
        return LEAT_ENOMEM;
    *label = (*next)++;
    return leat_sample_set(sample, 0, LEAT_INT32, 0, NULL, label);
}

static int stream_reset(void *pass)
{
    *(int32_t *)pass = 0;
    return LEAT_OK;
}

static leat_pipeline *stream(void)
{
    static const leat_field_spec field = {.name = "label", .dtype = LEAT_INT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .open = stream_open,
                                      .next = stream_next,
                                      .reset = stream_reset,
                                      .close = free};
    leat_pipeline *made;
    if (leat_pipeline_callback(&made, &callbacks, NULL))
        abort();
    return made;
}

static leat_pipeline *memory(void)
{
    static int32_t labels[SAMPLES];
    const leat_memory_field field = {"label", LEAT_INT32, 0, {0}, labels};
    leat_pipeline *made;
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = FIRST_LABEL + i;
    if (leat_pipeline_memory(&made, &field, 1, SAMPLES))
        abort();
    return made;
}

static leat_pipeline *turned(void)
{
    leat_pipeline *made;
    leat_pipeline *upstream = memory();
    if (leat_pipeline_create(&made, index_decorators_turn(), "seed=5", NULL,
                             NULL, &upstream, 1))
        abort();
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *filtered(leat_pipeline *upstream)
{
    return stream_decorators_take(STREAM_FILTER, upstream);
}

static leat_pipeline *rotated(leat_pipeline *upstream)
{
    return stream_decorators_take(STREAM_ROTATE, upstream);
}

static leat_pipeline *zipped(void)
{
    leat_pipeline *const both[] = {filtered(stream()), rotated(memory())};
    leat_pipeline *made = stream_decorators_over(STREAM_ZIP, both, 2);
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(both[1]);
    return made;
}

static leat_pipeline *batched(leat_pipeline *upstream)
{
    leat_pipeline *made;
    if (leat_pipeline_batch(&made, upstream, 3, NULL))
        abort();
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *unbatched(leat_pipeline *upstream)
{
    leat_pipeline *made;
    if (leat_pipeline_unbatch(&made, upstream))
        abort();
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *windowed(leat_pipeline *upstream)
{
    leat_pipeline *made;
    if (leat_pipeline_window(&made, upstream, 4, 3, 2, NULL))
        abort();
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *bucketed(leat_pipeline *upstream)
{
    leat_pipeline *made;
    if (leat_pipeline_bucket(&made, upstream, "label", "2,3", "2", 0, NULL))
        abort();
    leat_pipeline_unref(upstream);
    return made;
}

static int write_packed(const void *bytes, unsigned size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    gzFile file = gzdopen(dup(fd), "wb");
    if (fd < 0 || !file || gzwrite(file, bytes, size) != (int)size ||
        gzclose(file) != Z_OK)
        abort();
    return fd;
}

static leat_pipeline *parse(const char *text)
{
    leat_pipeline *made;
    if (leat_pipeline_parse(&made, text))
        abort();
    return made;
}

/* Images of 2 x 2, and `more` than the header promises; their labels. */
static leat_pipeline *images(int more)
{
    static int fd[2], labels;
    unsigned char bytes[16 + 4 * 2 * SAMPLES] = {0, 0, 8, 3};
    char text[160];
    bytes[7] = SAMPLES;
    bytes[11] = bytes[15] = 2;
    if (!fd[more])
        fd[more] = write_packed(bytes, 16u + 4 * SAMPLES * (more ? 2u : 1u));
    memcpy(bytes, (const char[]){0, 0, 8, 1, 0, 0, 0, SAMPLES}, 8);
    for (int i = 0; i < SAMPLES; i++)
        bytes[8 + i] = (unsigned char)(FIRST_LABEL + i);
    if (!labels)
        labels = write_packed(bytes, 8 + SAMPLES);
    snprintf(text, sizeof(text),
             "idx:/proc/self/fd/%d,/proc/self/fd/%d,compression=GZIP | "
             "select:label",
             fd[more], labels);
    return parse(text);
}

#define LINES "text:/proc/self/fd/%d,compression=GZIP | columns:label=int32"

static const char *const line_chains[] = {
    LINES,
    LINES " | where:label=!105 | shard:2,1",
    LINES " | skip:1 | take:9 | repeat:2",
    "(" LINES ") (" LINES ") | mix:even=1",
    "(" LINES ") (" LINES " | take:5) | chain",
    "(" LINES ") (" LINES ") | zip:prefix=(,b_)",
};

static leat_pipeline *lines(const char *format)
{
    static int fd;
    char text[256] = "";
    unsigned used = 0;
    for (int i = 0; i < SAMPLES; i++)
        used += (unsigned)sprintf(text + used, "%d\n", FIRST_LABEL + i);
    if (!fd)
        fd = write_packed(text, used);
    snprintf(text, sizeof(text), format, fd, fd);
    return parse(text);
}

static leat_pipeline *make(void)
{
    if (chain >= TEXTS)
        return lines(line_chains[chain - TEXTS]);
    switch (chain) {
    case 0:
        return rotated(filtered(memory()));
    case 1:
        return zipped();
    case 2:
        return rotated(filtered(stream()));
    case 3:
        return filtered(rotated(turned()));
    case 5:
        return unbatched(batched(filtered(stream())));
    case 6:
        return windowed(filtered(stream()));
    case 7:
        return bucketed(batched(stream()));
    case IMAGES:
    case IMAGES + 1:
        return images(chain - IMAGES);
    default:
        return turned(); /* its mark is its position */
    }
}

static leat_reader *open_chain(void)
{
    leat_reader *reader;
    leat_pipeline *pipeline = make();
    if (leat_pipeline_open(pipeline, &reader))
        abort();
    leat_pipeline_unref(pipeline);
    return reader;
}

/* The label of the next sample, or END; FAILED is of files alone. */
static int32_t next_label(leat_reader *reader)
{
    leat_sample sample;
    int32_t label = END;
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    if (status && status != LEAT_END)
        label = FAILED;
    if (label == FAILED && (chain < IMAGES || !leat_last_error()[0]))
        abort();
    if (!status)
        memcpy(&label, sample.field[0].data, sizeof(label));
    if (!status && chain >= IMAGES && chain < TEXTS &&
        (label < FIRST_LABEL || label >= FIRST_LABEL + SAMPLES))
        abort();
    leat_sample_finish(&sample);
    return label;
}

static void begin_epoch(leat_reader *reader, int64_t epoch)
{
    const leat_position begin = {epoch, 0};
    if (leat_reader_seek(reader, begin, NULL))
        abort();
}

/* Takes `n` samples, and appends the mark after them. */
static leat_position run(leat_reader *reader, int n, leat_token *mark)
{
    leat_position at = {0, 0};
    while (n-- > 0) {
        if (next_label(reader) < 0)
            begin_epoch(reader, (at = (leat_position){at.epoch + 1, 0}).epoch);
        else
            at.index++;
    }
    if (leat_reader_mark(reader, mark))
        abort();
    return at;
}

/* Flips bits by pairs of a place and a mask, and cuts the mark by `cut` bytes,
   both after its form. Whether it is another one then. */
static int spoil(leat_token *mark, size_t cut, const uint8_t *data, size_t size)
{
    leat_token before;
    leat_token_init(&before);
    if (leat_token_put(&before, mark->bytes, mark->size))
        abort();
    size_t rest = mark->size - FORM;
    for (size_t i = 0; rest > 0 && i + 1 < size; i += 2)
        mark->bytes[FORM + data[i] % rest] ^= data[i + 1];
    mark->size -= cut < rest ? cut : rest;
    int is_other = mark->size != before.size ||
                   memcmp(mark->bytes, before.bytes, before.size) != 0;
    leat_token_finish(&before);
    return is_other;
}

/* Reads on from a mark that may be any; whether it was taken. */
static int seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    int status = leat_reader_seek(reader, at, mark);
    if (status && status != LEAT_END && !leat_last_error()[0])
        abort();
    return !status;
}

static void read_on(leat_reader *reader)
{
    for (int i = 0; i < READ_MAX && next_label(reader) >= 0; i++)
        continue;
    begin_epoch(reader, 1);
    if (next_label(reader) < 0)
        abort();
}

/*
 * The data begins with the chain, an epoch, a number of samples and an index.
 * Without samples, the rest is a mark for that epoch and index. With them, the
 * mark after so many is cut by `epoch` bytes, and the rest flips bits of it.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_token mark;
    if (size < HEADER)
        return 0;
    chain = data[0] % CHAINS;
    int taken = data[2] % READ_MAX;
    leat_position at = {data[1], data[3]};
    leat_reader *model = open_chain();
    leat_reader *reader = open_chain();
    int is_true = 0;
    data += HEADER;
    size -= HEADER;
    leat_token_init(&mark);
    if (taken > 0) {
        size_t cut = (size_t)at.epoch;
        at = run(model, taken, &mark);
        is_true = !spoil(&mark, cut, data, size);
    } else if (leat__reader_put_form(reader, &mark) ||
               leat_token_put(&mark, data, size)) {
        abort();
    }
    int is_taken = seek(reader, at, &mark);
    if (is_true && (!is_taken || mark.cursor != mark.size ||
                    next_label(reader) != next_label(model)))
        abort();
    if (is_taken)
        read_on(reader);
    begin_epoch(reader, 0);
    read_on(reader);
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_reader_close(model);
    return 0;
}
