#include "support/scripted_reader.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

script_state script;
leat_reader *scripted;
leat_reader_ops scripted_ops;
leat_sample *scripted_out[SCRIPT_MAX];

static leat_sample samples[SCRIPT_MAX];
static leat_reader own_reader;

static int scripted_error(leat_sample *sample, int64_t record, char letter)
{
    sample->from.source = "script";
    sample->from.record = record;
    int status = letter == 'x' || letter == 'D' ? LEAT_EDATA : LEAT_EIO;
    return leat_error(status, "record %lld fails", (long long)record);
}

void scripted_fill(leat_sample *sample, int64_t record)
{
    int32_t *value = leat_sample_take(sample, sizeof(*value));
    *value = (int32_t)record;
    sample->stable = 0;
    ck_assert_int_eq(
        leat_sample_set(sample, sample->nfields, LEAT_INT32, 0, NULL, value),
        LEAT_OK);
    sample->from.source = "script";
    sample->from.record = record;
}

static int scripted_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    (void)reader;
    script.nexts++;
    ck_assert_int_eq(*got, 0);
    for (; *got < n; ++*got) {
        int64_t record = script.at;
        char letter = script.letters[record];
        if (letter == '\0')
            return LEAT_END;
        script.at++;
        if (letter == 'x' || letter == '!')
            return scripted_error(out[*got], record, letter);
        if (letter == 'g') {
            scripted_fill(out[*got], record);
            continue;
        }
        out[*got]->deferred = 1;
        out[*got]->locator.record = record;
    }
    return LEAT_OK;
}

static int scripted_materialize(leat_reader *reader, leat_sample *const out[],
                                int n, int *got)
{
    (void)reader;
    for (; *got < n; ++*got) {
        int64_t record = out[*got]->locator.record;
        char letter = script.letters[record];
        ck_assert_int_eq(out[*got]->deferred, 1);
        script.materialized++;
        if (letter != 'd')
            return scripted_error(out[*got], record, letter);
        scripted_fill(out[*got], record);
    }
    return LEAT_OK;
}

static int scripted_seek(leat_reader *reader, leat_position position,
                         leat_token *mark)
{
    (void)reader;
    int64_t index = position.index;
    script.seeks++;
    script.sought = position;
    if (mark) {
        int status = leat_token_get(mark, &index, sizeof(index));
        if (status)
            return status;
    } else if (index > 0 && script.in_order) {
        return leat_error(LEAT_EUNSUPPORTED, "script: in order alone");
    }
    script.at = index;
    return LEAT_OK;
}

int scripted_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    (void)reader;
    script.skips++;
    for (*skipped = 0; *skipped < n; ++*skipped) {
        char letter = script.letters[script.at];
        if (letter == '\0')
            return LEAT_END;
        script.at++;
        if (letter == '!')
            return leat_error(LEAT_EIO, "record %lld fails",
                              (long long)script.at - 1);
    }
    return LEAT_OK;
}

int scripted_mark(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, &script.at, sizeof(script.at));
}

static int scripted_fields(leat_reader *self, const leat_field_spec **out,
                           int *n)
{
    static const leat_field_spec spec = {.name = "x", .dtype = LEAT_INT32};
    (void)self;
    *out = &spec;
    *n = 1;
    return LEAT_OK;
}

static int scripted_keep(leat_reader *self, leat_token *token)
{
    (void)self;
    (void)token;
    return LEAT_OK;
}

static void scripted_end(leat_reader *self)
{
    (void)self;
}

static int scripted_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    own_reader.ops = &scripted_ops;
    *out = &own_reader;
    return LEAT_OK;
}

static const leat_reader_type scripted_type = {
    .size = sizeof(scripted_type), .name = "script", .open = scripted_open};

void scripted_set_up(void)
{
    leat_pipeline *pipeline;
    scripted_ops = (leat_reader_ops){.size = sizeof(scripted_ops),
                                     .name = "script",
                                     .fields = scripted_fields,
                                     .next = scripted_next,
                                     .seek = scripted_seek,
                                     .cancel = scripted_end,
                                     .close = scripted_end,
                                     .materialize = scripted_materialize,
                                     .save = scripted_keep,
                                     .restore = scripted_keep};
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &scripted_type, NULL, NULL,
                                          NULL, NULL, 0),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &scripted), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < SCRIPT_MAX; i++)
        leat_sample_init(scripted_out[i] = &samples[i]);
}

void scripted_tear_down(void)
{
    for (int i = 0; i < SCRIPT_MAX; i++)
        leat_sample_finish(scripted_out[i]);
    leat_reader_close(scripted);
}

void scripted_restart(void)
{
    ck_assert_int_eq(scripted_go_to(0, 0), LEAT_OK);
}

void scripted_follow(const char *letters)
{
    script = (script_state){.letters = letters};
    scripted_ops.next = scripted_next;
    scripted_ops.skip = NULL;
    scripted_ops.mark = NULL;
    scripted_restart();
}

int scripted_go_to(int64_t epoch, int64_t index)
{
    return leat_reader_seek(scripted, (leat_position){epoch, index}, NULL);
}

void scripted_check_sample(const leat_sample *sample, int64_t record)
{
    ck_assert_int_eq(sample->nfields, 1);
    ck_assert_int_eq(*(const int32_t *)sample->field[0].data, record);
    ck_assert_int_eq(sample->from.record, record);
    ck_assert_int_eq(sample->deferred, 0);
}

int scripted_status_of(char letter)
{
    return letter == '\0'                   ? LEAT_END
           : letter == 'g' || letter == 'd' ? LEAT_OK
           : letter == 'x' || letter == 'D' ? LEAT_EDATA
                                            : LEAT_EIO;
}

void scripted_check_line(int64_t record)
{
    char line[32];
    snprintf(line, sizeof(line), "record %lld fails", (long long)record);
    ck_assert_str_eq(leat_last_error(), line);
}

int64_t scripted_read(int64_t record, int n)
{
    for (;;) {
        int got = -1;
        int status = leat_reader_next_batch(scripted, scripted_out, n, &got);
        ck_assert_int_le(got, n);
        ck_assert_int_ge(got, status == LEAT_OK);
        for (int i = 0; i < got; i++)
            scripted_check_sample(scripted_out[i], record++);
        if (!status)
            continue;
        ck_assert_int_eq(status, scripted_status_of(script.letters[record]));
        if (status == LEAT_END)
            return record;
        scripted_check_line(record);
        if (status != LEAT_EDATA)
            return record;
        ck_assert_int_eq(scripted_out[got]->from.record, record);
        ck_assert_str_eq(scripted_out[got]->from.source, "script");
        record++;
    }
}
