/* `leat import pipeline` of whatever a reader may give: types of pixels and
   labels, readers that can only go forward, and what no Datum can hold. */
#include "support/suite.h"
#include "tools/command.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 6, PIXELS = 6 };

static char directory[] = "/tmp/leat_import_XXXXXX";
static char path[64];

/* What the reader gives. */
static leat_dtype data_type;
static int data_ndim;
static leat_dtype label_type;
static int label_ndim;
static double label_of_last;
static int fields;
static int fails_at;   /* once; below 0: never */
static int written_at; /* likewise, and for good */
static bool is_written;

typedef struct typed_reader {
    leat_reader reader;
    int next;
} typed_reader;

static int typed_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    static leat_field_spec specs[2];
    (void)reader;
    specs[0] = (leat_field_spec){.name = "data",
                                 .dtype = data_type,
                                 .ndim = data_ndim,
                                 .shape = {1, 2, 3}};
    specs[1] = (leat_field_spec){
        .name = "label", .dtype = label_type, .ndim = label_ndim, .shape = {1}};
    *out = specs;
    *n = fields < 1 ? 1 : fields;
    return LEAT_OK;
}

/* Only in its own type: others may not hold the value. */
static void put_number(void *to, leat_dtype type, double value)
{
    if (type == LEAT_UINT8)
        *(unsigned char *)to = (unsigned char)value;
    else if (type == LEAT_INT32)
        memcpy(to, &(int32_t){(int32_t)value}, sizeof(int32_t));
    else if (type == LEAT_INT64)
        memcpy(to, &(int64_t){(int64_t)value}, sizeof(int64_t));
    else if (type == LEAT_FLOAT32)
        memcpy(to, &(float){(float)value}, sizeof(float));
    else
        memcpy(to, &value, sizeof(value));
}

static int fill(int number, leat_sample *sample)
{
    char *data = leat_sample_take(sample, (PIXELS + 1) * 8);
    if (!data)
        return LEAT_ENOMEM;
    size_t size = leat_dtype_size(data_type);
    for (int k = 0; k < PIXELS; k++)
        put_number(data + (size_t)k * size, data_type, number * 10 + k);
    char *label = data + PIXELS * 8;
    put_number(label, label_type,
               number == RECORDS - 1 ? label_of_last : number);
    sample->nfields = fields;
    sample->field[0] = (leat_field){.dtype = data_type,
                                    .ndim = data_ndim,
                                    .shape = {1, 2, 3},
                                    .data = data,
                                    .bytes = PIXELS * size};
    if (data_ndim == 1)
        sample->field[0].shape[0] = PIXELS;
    sample->field[1] = (leat_field){.dtype = label_type,
                                    .ndim = label_ndim,
                                    .shape = {1},
                                    .data = label,
                                    .bytes = leat_dtype_size(label_type)};
    return LEAT_OK;
}

static int typed_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    typed_reader *self = (typed_reader *)reader;
    (void)n;
    *got = 0;
    is_written |= self->next == written_at;
    if (self->next == RECORDS)
        return LEAT_END;
    if (self->next == fails_at) {
        fails_at = -1;
        return leat_error(LEAT_EIO, "the storage failed, once");
    }
    out[0]->from.source = "typed";
    out[0]->from.record = self->next;
    int status = fill(self->next, out[0]);
    self->next++;
    *got = !status;
    return status;
}

static int typed_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "typed: in order alone");
    ((typed_reader *)reader)->next = 0;
    return LEAT_OK;
}

static int typed_check(leat_reader *reader)
{
    (void)reader;
    return is_written ? leat_error(LEAT_EIO, "typed: was written") : LEAT_OK;
}

static void typed_cancel(leat_reader *reader)
{
    (void)reader;
}

static void typed_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops typed_ops = {.size = sizeof(leat_reader_ops),
                                          .name = "typed",
                                          .fields = typed_fields,
                                          .next = typed_next,
                                          .seek = typed_seek,
                                          .check = typed_check,
                                          .cancel = typed_cancel,
                                          .close = typed_close};

static int typed_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    typed_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a typed reader");
    self->reader.ops = &typed_ops;
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type typed = {
    .size = sizeof(leat_reader_type), .name = "typed", .open = typed_open};

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
    ck_assert_int_eq(leat_reader_register(&typed), LEAT_OK);
    data_type = LEAT_UINT8;
    data_ndim = 3;
    label_type = LEAT_INT32;
    label_ndim = 0;
    label_of_last = 5;
    fields = 2;
    fails_at = -1;
    written_at = -1;
    is_written = false;
}

static void tear_down(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static int run(void)
{
    char name[] = "pipeline", text[] = "typed";
    char *arguments[] = {name, text, path, NULL};
    return command_import_pipeline(3, arguments);
}

/* All records, as an LMDB gives them. */
static void check_database(leat_dtype type)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_sample_init(&sample);
    for (int i = 0; i < RECORDS; i++) {
        int32_t label;
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.field[0].dtype, type);
        for (int k = 0; k < PIXELS; k++) {
            unsigned char expected[8] = {0};
            size_t size = leat_dtype_size(type);
            put_number(expected, type, i * 10 + k);
            ck_assert_mem_eq((const char *)sample.field[0].data +
                                 (size_t)k * size,
                             expected, size);
        }
        memcpy(&label, sample.field[1].data, sizeof(label));
        ck_assert_int_eq(label, fields < 2 ? 0 : i);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

START_TEST(labels_of_any_number_type_become_the_datums)
{
    static const leat_dtype types[] = {LEAT_UINT8, LEAT_INT32, LEAT_INT64,
                                       LEAT_FLOAT32, LEAT_FLOAT64};
    label_type = types[_i];
    ck_assert_int_eq(run(), 0);
    check_database(LEAT_UINT8);
}
END_TEST

START_TEST(pixels_are_bytes_or_floats_of_up_to_three_dimensions)
{
    data_type = _i % 2 ? LEAT_FLOAT32 : LEAT_UINT8;
    data_ndim = _i / 2 ? 1 : 3;
    ck_assert_int_eq(run(), 0);
    check_database(data_type);
}
END_TEST

START_TEST(what_no_datum_can_hold_is_refused)
{
    switch (_i) {
    case 0:
        label_type = LEAT_FLOAT64;
        label_of_last = 0.5;
        break;
    case 1:
        label_type = LEAT_INT64;
        label_of_last = 1e10;
        break;
    case 2:
        label_ndim = 1;
        label_type = LEAT_FLOAT16;
        break;
    case 3:
        data_type = LEAT_FLOAT64;
        break;
    case 4:
        /* Several labels, or one as such, need the floats that pixels have. */
        label_ndim = 1;
        data_type = label_type = LEAT_FLOAT32;
        break;
    default:
        data_type = LEAT_INT32;
        break;
    }
    ck_assert_int_eq(run(), 2);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* It cannot seek: what is there is read again and passed by. */
START_TEST(an_import_of_what_only_goes_forward_goes_on)
{
    for (fails_at = 1; fails_at < RECORDS; fails_at++) {
        int place = fails_at;
        ck_assert_int_eq(run(), 2);
        ck_assert_int_ne(access(path, F_OK), 0);
        ck_assert_int_eq(run(), 0);
        check_database(LEAT_UINT8);
        tear_down();
        memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/db", directory);
        fails_at = place;
    }
}
END_TEST

/* Nothing is kept, whether or not the reader notices it first. */
START_TEST(an_import_of_what_was_written_meanwhile_is_refused)
{
    for (written_at = 0; written_at <= RECORDS; written_at++) {
        char part[80];
        fails_at = _i ? written_at : -1;
        is_written = false;
        ck_assert_int_eq(run(), 2);
        ck_assert_int_ne(access(path, F_OK), 0);
        snprintf(part, sizeof(part), "%s.leat-part", path);
        ck_assert_int_ne(access(part, F_OK), 0);
    }
    written_at = fails_at = -1;
    is_written = false;
    ck_assert_int_eq(run(), 0);
    check_database(LEAT_UINT8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_pipeline");
    TCase *tcase = tcase_create("import_pipeline");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, labels_of_any_number_type_become_the_datums, 0,
                        5);
    tcase_add_loop_test(
        tcase, pixels_are_bytes_or_floats_of_up_to_three_dimensions, 0, 4);
    tcase_add_loop_test(tcase, what_no_datum_can_hold_is_refused, 0, 6);
    tcase_add_test(tcase, an_import_of_what_only_goes_forward_goes_on);
    tcase_add_loop_test(
        tcase, an_import_of_what_was_written_meanwhile_is_refused, 0, 2);
    return suite_run(suite);
}
