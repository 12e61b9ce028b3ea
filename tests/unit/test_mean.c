#include "base/memory.h"
#include "base/random.h"
#include "data/mean.h"
#include "data/wire.h"
#include "net.pb-c.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/transform.h>

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint8_t packed[4096];
static Caffe__BlobProto blob;
static float values[24];
static double wide[24];

static void setup(void)
{
    caffe__blob_proto__init(&blob);
    for (int i = 0; i < 24; i++) {
        values[i] = (float)i + 0.5f;
        wide[i] = -i;
    }
    blob.has_num = blob.has_channels = blob.has_height = blob.has_width = 1;
    blob.num = 1;
    blob.channels = 2;
    blob.height = 3;
    blob.width = 4;
    blob.n_data = 24;
    blob.data = values;
}

static int parse(leat__mean *mean)
{
    size_t size = caffe__blob_proto__pack(&blob, packed);
    return leat__mean_parse(mean, "mean", packed, size);
}

static void check(const leat__mean *mean)
{
    ck_assert_int_eq(mean->channels, 2);
    ck_assert_int_eq(mean->height, 3);
    ck_assert_int_eq(mean->width, 4);
    for (int i = 0; i < 24; i++)
        ck_assert_double_eq(mean->values[i], i + 0.5);
}

static void refused(const char *line)
{
    leat__mean mean = {.channels = 77};
    ck_assert_int_eq(parse(&mean), LEAT_EFORMAT);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(mean.channels, 77);
}

START_TEST(a_mean_of_the_old_form_is_read)
{
    leat__mean mean;
    ck_assert_int_eq(parse(&mean), LEAT_OK);
    check(&mean);
    leat__mean_finish(&mean);
}
END_TEST

START_TEST(a_mean_with_a_shape_of_four_axes_is_read)
{
    leat__mean mean;
    int64_t dim[5] = {1, 2, 3, 4, 1};
    Caffe__BlobShape shape = CAFFE__BLOB_SHAPE__INIT;
    shape.dim = dim;
    shape.n_dim = 4;
    blob.shape = &shape;
    blob.has_num = blob.has_channels = blob.has_height = blob.has_width = 0;
    ck_assert_int_eq(parse(&mean), LEAT_OK);
    check(&mean);
    leat__mean_finish(&mean);
    shape.n_dim = 5;
    refused("mean: expected a mean of 4 axes, found 5");
    shape.n_dim = 3;
    refused("mean: expected a mean of 4 axes, found 3");
}
END_TEST

START_TEST(the_old_form_wins_over_a_shape)
{
    leat__mean mean;
    int64_t dim[4] = {1, 4, 3, 2};
    Caffe__BlobShape shape = CAFFE__BLOB_SHAPE__INIT;
    shape.dim = dim;
    shape.n_dim = 4;
    blob.shape = &shape;
    ck_assert_int_eq(parse(&mean), LEAT_OK);
    check(&mean);
    leat__mean_finish(&mean);
}
END_TEST

START_TEST(double_data_wins_over_data)
{
    leat__mean mean;
    blob.n_double_data = 24;
    blob.double_data = wide;
    ck_assert_int_eq(parse(&mean), LEAT_OK);
    ck_assert_double_eq(mean.values[23], -23);
    leat__mean_finish(&mean);
    blob.n_double_data = 23;
    refused("mean: expected 1 x 2 x 3 x 4 values, found 23");
}
END_TEST

START_TEST(of_several_images_the_first_is_the_mean)
{
    leat__mean mean;
    blob.num = 2;
    blob.channels = 1;
    ck_assert_int_eq(parse(&mean), LEAT_OK);
    ck_assert_int_eq(mean.channels, 1);
    ck_assert_double_eq(mean.values[11], 11.5);
    leat__mean_finish(&mean);
}
END_TEST

/* Written by hand: protobuf-c packs what its schema packs. */
START_TEST(values_may_be_packed_or_not)
{
    leat__mean mean;
    uint8_t bytes[] = {0x08, 1, 0x10, 1,    0x18, 1, 0x20, 2,    0x2d, 0,
                       0,    0, 0x40, 0x2d, 0,    0, 0x80, 0x40, 0x05};
    ck_assert_int_eq(leat__mean_parse(&mean, "mean", bytes, 18), LEAT_OK);
    ck_assert_double_eq(mean.values[0], 2);
    ck_assert_double_eq(mean.values[1], 4);
    leat__mean_finish(&mean);
    ck_assert_int_eq(leat__mean_parse(&mean, "mean", bytes, 19), LEAT_EFORMAT);
}
END_TEST

START_TEST(a_mean_whose_shape_and_values_differ_is_refused)
{
    blob.n_data = 23;
    refused("mean: expected 1 x 2 x 3 x 4 values, found 23");
    blob.n_data = 24;
    blob.num = 0;
    refused("mean: expected a mean of 1 x C x H x W, found 0 x 2 x 3 x 4");
    blob.num = 1;
    blob.width = -4;
    refused("mean: expected a mean of 1 x C x H x W, found 1 x 2 x 3 x -4");
    /* Whose product is 24 in 64 bits, were it not checked. */
    blob.num = blob.channels = blob.height = blob.width = 1 << 30;
    refused("mean: expected 1073741824 x 1073741824 x 1073741824 x 1073741824 "
            "values, found 24");
}
END_TEST

START_TEST(other_files_are_refused_in_one_line)
{
    leat__mean mean;
    ck_assert_int_eq(leat__mean_parse(&mean, "x.jpg", "\xff\xd8\xff\xe0", 4),
                     LEAT_EFORMAT);
    ck_assert_str_eq(leat_last_error(),
                     "x.jpg: expected a mean image (BlobProto), found 4 bytes "
                     "of something else");
    ck_assert_int_eq(leat__mean_parse(&mean, "empty", "", 0), LEAT_EFORMAT);
    ck_assert_str_eq(leat_last_error(),
                     "empty: expected a mean image (BlobProto), found no shape "
                     "in it");
    ck_assert_int_eq(leat__mean_load(&mean, "no/such/file"), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "no/such/file"));
    ck_assert_int_eq(leat__mean_load(&mean, "/"), LEAT_EIO);
}
END_TEST

static int count_files(const char *folder)
{
    int n = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

/* What `leat__mean_load` makes of a pipe that `bytes` come through, again and
   again where `size` is below `total`; *taken of them were read. */
typedef struct stream {
    const uint8_t *bytes;
    size_t size;
    size_t total;
    size_t taken;
    int fd;
} stream;

static void *pour(void *argument)
{
    stream *self = argument;
    while (self->taken < self->total) {
        size_t at = self->taken % self->size;
        ssize_t n = write(self->fd, self->bytes + at, self->size - at);
        if (n < 0)
            break;
        self->taken += (size_t)n;
    }
    close(self->fd);
    return NULL;
}

static int load_stream(leat__mean *mean, stream *self)
{
    int ends[2];
    char path[64];
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    self->fd = ends[1];
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(pthread_create(&thread, NULL, pour, self), 0);
    int status = leat__mean_load(mean, path);
    close(ends[0]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return status;
}

#define ENDLESS ((size_t)1 << 40)

START_TEST(an_endless_pipe_is_not_read_to_its_limit)
{
    static const uint8_t zeros[4096];
    static const uint8_t yes[] = {'y', '\n'};
    leat__mean mean;
    stream from[] = {{zeros, sizeof(zeros), ENDLESS, 0, -1},
                     {yes, sizeof(yes), ENDLESS, 0, -1}};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(load_stream(&mean, &from[i]), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "something else"));
        ck_assert_uint_lt(from[i].taken, 1 << 20);
    }
    /* A mean of 2 x 3 x 4, and then no end of fields. */
    size_t size = caffe__blob_proto__pack(&blob, packed);
    stream again = {packed, size, ENDLESS, 0, -1};
    ck_assert_int_eq(load_stream(&mean, &again), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected at most"));
    ck_assert_uint_lt(again.taken, 1 << 20);
}
END_TEST

/* Both forms, larger than what is read at first. */
START_TEST(a_mean_comes_through_a_pipe)
{
    enum { N = 3 * 256 * 256 };
    static float many[N];
    static uint8_t bytes[N * 5];
    int64_t dim[4] = {1, 3, 256, 256};
    Caffe__BlobShape shape = CAFFE__BLOB_SHAPE__INIT;
    shape.n_dim = 4;
    shape.dim = dim;
    for (int form = 0; form < 2; form++) {
        leat__mean mean;
        blob.n_data = N;
        blob.data = many;
        many[N - 1] = 7;
        blob.channels = 3;
        blob.height = blob.width = 256;
        if (form == 1) {
            blob.has_num = blob.has_channels = 0;
            blob.has_height = blob.has_width = 0;
            blob.shape = &shape;
        }
        size_t size = caffe__blob_proto__pack(&blob, bytes);
        stream from = {bytes, size, size, 0, -1};
        ck_assert_msg(load_stream(&mean, &from) == LEAT_OK, "%s",
                      leat_last_error());
        ck_assert_int_eq(mean.height, 256);
        ck_assert_double_eq(mean.values[N - 1], 7);
        leat__mean_finish(&mean);
    }
}
END_TEST

/* Each time that memory grows, what came is looked at from its beginning. */
START_TEST(values_that_are_not_packed_are_looked_at_a_few_times)
{
    enum { N = 1 << 20, SHAPE = 10 };
    static const uint8_t head[SHAPE] = {0x3a, 8,    0x0a, 6,    1,
                                        1,    0x80, 0x80, 0x40, 1};
    uint8_t *bytes = malloc(SHAPE + 5 * N);
    leat__mean mean;
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, head, SHAPE);
    for (int i = 0; i < N; i++)
        memcpy(bytes + SHAPE + 5 * i, "\x2d\0\0\x80\x3f", 5);
    stream from = {bytes, SHAPE + 5 * N, SHAPE + 5 * N, 0, -1};
    leat__alloc_fail_at(48);
    int status = load_stream(&mean, &from);
    leat__alloc_fail_at(-1);
    free(bytes);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(mean.height, N);
    ck_assert_double_eq(mean.values[N - 1], 1);
    leat__mean_finish(&mean);
}
END_TEST

/* As many bytes as wanted of fields that no BlobProto has. */
START_TEST(unknown_fields_take_no_memory)
{
    enum { UNKNOWN = 1 << 20 };
    static const uint8_t fields[] = {0x50, 7, 0x5a, 2, 'a', 'b',
                                     0x65, 1, 2,    3, 4};
    uint8_t *bytes = malloc(sizeof(packed) + UNKNOWN);
    ck_assert_ptr_nonnull(bytes);
    size_t size = 0;
    for (; size + sizeof(fields) <= UNKNOWN; size += sizeof(fields))
        memcpy(bytes + size, fields, sizeof(fields));
    size += caffe__blob_proto__pack(&blob, bytes + size);
    leat__mean mean;
    int64_t before = leat__alloc_count();
    int status = leat__mean_parse(&mean, "mean", bytes, size);
    int64_t allocations = leat__alloc_count() - before;
    free(bytes);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    check(&mean);
    leat__mean_finish(&mean);
    /* The values. */
    ck_assert_int_eq(allocations, 1);
}
END_TEST

/* As in protobuf's C++ parser, which Caffe has. */
START_TEST(groups_and_other_wire_types_are_skipped)
{
    static const uint8_t fields[] = {
        0x0b, 0x10, 9, 0x0c,       /* a group of number 1 */
        0x0a, 1,    9,             /* num as bytes */
        0x3d, 1,    2, 3,    4,    /* shape as fixed32 */
        0x41, 1,    2, 3,    4, 5, /* double_data, one */
        6,    7,    8, 0x28, 1,    /* data as a varint */
    };
    uint8_t bytes[sizeof(fields) + sizeof(packed)];
    memcpy(bytes, fields, sizeof(fields));
    blob.n_double_data = 23;
    blob.double_data = wide;
    size_t size = caffe__blob_proto__pack(&blob, bytes + sizeof(fields));
    leat__mean mean;
    ck_assert_int_eq(
        leat__mean_parse(&mean, "mean", bytes, sizeof(fields) + size), LEAT_OK);
    ck_assert_double_eq(mean.values[23], -22);
    leat__mean_finish(&mean);
}
END_TEST

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* `n` values of `size` bytes each, packed or one by one. */
static uint8_t *put_values(uint8_t *at, uint32_t number, size_t size, size_t n,
                           leat__mt19937 *random)
{
    int is_packed = leat__mt19937_next(random) % 2 == 0;
    if (is_packed) {
        at = put_varint(at, number << 3 | LEAT__WIRE_BYTES);
        at = put_varint(at, n * size);
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_packed)
            *at++ = (uint8_t)(number << 3 | (size == 4 ? LEAT__WIRE_FIXED32
                                                       : LEAT__WIRE_FIXED64));
        for (size_t j = 0; j < size; j++)
            *at++ = (uint8_t)leat__mt19937_next(random);
    }
    return at;
}

static uint8_t *put_shape(uint8_t *at, leat__mt19937 *random)
{
    uint8_t dims[64], *end = dims;
    for (uint32_t n = 1 + leat__mt19937_next(random) % 4; n > 0; n--) {
        uint64_t dim = leat__mt19937_next(random) % 8 ? 1 : 2;
        if (leat__mt19937_next(random) % 64 == 0)
            dim = UINT64_MAX;
        if (leat__mt19937_next(random) % 2) {
            end = put_varint(end, 1 << 3 | LEAT__WIRE_BYTES);
            *end++ = dim > 2 ? 10 : 1;
        } else {
            end = put_varint(end, 1 << 3 | LEAT__WIRE_VARINT);
        }
        end = put_varint(end, dim);
    }
    at = put_varint(at, 7 << 3 | LEAT__WIRE_BYTES);
    at = put_varint(at, (uint64_t)(end - dims));
    memcpy(at, dims, (size_t)(end - dims));
    return at + (end - dims);
}

/* A BlobProto of few values, whose fields come in any order and again. */
static size_t random_blob(leat__mt19937 *random, uint8_t *out)
{
    uint8_t *at = out;
    int is_new = leat__mt19937_next(random) % 2 == 0;
    for (uint32_t n = leat__mt19937_next(random) % 12; n > 0; n--) {
        uint32_t word = leat__mt19937_next(random);
        uint32_t number = 1 + word % 10;
        if (number <= 4 && !is_new) {
            at = put_varint(at, number << 3);
            at = put_varint(at, word % 61 ? (word >> 8) % 8 ? 1 : 2
                                          : (uint64_t)word << 32);
        } else if (number <= 5) {
            at = put_values(at, 5, 4, (word >> 12) % 4, random);
        } else if (number == 7 && is_new) {
            at = put_shape(at, random);
        } else if (number == 8 && word % 3 == 0) {
            at = put_values(at, 8, 8, (word >> 12) % 4, random);
        } else if (number == 6 || number == 9) {
            at = put_values(at, number, number == 6 ? 4 : 8, (word >> 12) % 3,
                            random);
        } else if (number == 10) {
            at = put_varint(at, 20 << 3 | LEAT__WIRE_BYTES);
            *at++ = 1;
            *at++ = (uint8_t)word;
        }
    }
    return (size_t)(at - out);
}

/* What protobuf-c refuses and protobuf's C++ skips, at any level. */
static int has_foreign_fields(const uint8_t *bytes, size_t size, int is_shape)
{
    static const leat__wire_type types[] = {
        [1] = LEAT__WIRE_VARINT,  [2] = LEAT__WIRE_VARINT,
        [3] = LEAT__WIRE_VARINT,  [4] = LEAT__WIRE_VARINT,
        [5] = LEAT__WIRE_FIXED32, [6] = LEAT__WIRE_FIXED32,
        [7] = LEAT__WIRE_BYTES,   [8] = LEAT__WIRE_FIXED64,
        [9] = LEAT__WIRE_FIXED64};
    leat__wire wire;
    leat__wire_field field;
    leat__wire_init(&wire, bytes, size);
    while (leat__wire_next(&wire, &field) == LEAT_OK) {
        int is_repeated = is_shape ? field.number == 1 : field.number >= 5;
        int is_known = field.number <= (is_shape ? 1 : 9);
        if (field.type == LEAT__WIRE_GROUP)
            return 1;
        if (is_known && field.type != types[field.number] &&
            !(is_repeated && field.type == LEAT__WIRE_BYTES))
            return 1;
        if (!is_shape && field.number == 7 &&
            has_foreign_fields(field.bytes, field.size, 1))
            return 1;
    }
    return 0;
}

/* Field number 0 and numbers beyond 29 bits, which protobuf-c accepts. */
static int has_bad_numbers(const uint8_t *bytes, size_t size)
{
    leat__wire wire;
    leat__wire_field field;
    int status;
    leat__wire_init(&wire, bytes, size);
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK)
        if (field.number == 7 && field.type == LEAT__WIRE_BYTES &&
            has_bad_numbers(field.bytes, field.size))
            return 1;
    return status < 0 && strstr(leat_last_error(), "that number");
}

static void oracle_shape(const Caffe__BlobProto *oracle, int64_t shape[4])
{
    int is_old = oracle->has_num || oracle->has_channels ||
                 oracle->has_height || oracle->has_width;
    const int64_t old[4] = {oracle->num, oracle->channels, oracle->height,
                            oracle->width};
    const int64_t none[4] = {0};
    int has_new = oracle->shape && oracle->shape->n_dim == 4;
    memcpy(shape,
           is_old    ? old
           : has_new ? oracle->shape->dim
                     : none,
           sizeof(old));
}

/* The values that the oracle finds for a mean; NULL: it finds no mean. */
static double *oracle_values(const Caffe__BlobProto *oracle, size_t *n)
{
    int64_t shape[4];
    oracle_shape(oracle, shape);
    size_t found =
        oracle->n_double_data ? oracle->n_double_data : oracle->n_data;
    for (int i = 0; i < 4; i++)
        if (shape[i] < 1 || shape[i] > 100)
            return NULL;
    *n = (size_t)(shape[1] * shape[2] * shape[3]);
    if (*n * (size_t)shape[0] != found)
        return NULL;
    double *all = malloc(*n * sizeof(*all));
    for (size_t i = 0; i < *n; i++)
        all[i] = oracle->n_double_data ? oracle->double_data[i]
                                       : (double)oracle->data[i];
    return all;
}

/* Whether both find a mean, the same. */
static int compare_with_oracle(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, bytes, size);
    leat__mean mean;
    Caffe__BlobProto *oracle = caffe__blob_proto__unpack(NULL, size, copy);
    int status = leat__mean_parse(&mean, "mean", copy, size);
    size_t n = 0;
    double *expected = oracle ? oracle_values(oracle, &n) : NULL;
    if (status == LEAT_OK && !oracle)
        ck_assert(has_foreign_fields(copy, size, 0));
    if (status == LEAT_OK && oracle)
        ck_assert_ptr_nonnull(expected);
    if (expected && status)
        ck_assert(has_bad_numbers(copy, size));
    int both = expected && status == LEAT_OK;
    if (both) {
        ck_assert_int_eq(mean.channels * mean.height * mean.width, (int)n);
        ck_assert_mem_eq(mean.values, expected, n * sizeof(*expected));
    }
    if (status == LEAT_OK)
        leat__mean_finish(&mean);
    free(expected);
    free(copy);
    if (oracle)
        caffe__blob_proto__free_unpacked(oracle, NULL);
    return both;
}

START_TEST(random_means_are_read_as_protobuf_c_reads_them)
{
    static leat__mt19937 random;
    uint8_t wire[2048];
    int agreed = 0;
    leat__mt19937_seed(&random, 3);
    for (int i = 0; i < 200000; i++)
        agreed += compare_with_oracle(wire, random_blob(&random, wire));
    ck_assert_int_gt(agreed, 1000);
}
END_TEST

START_TEST(damaged_means_are_read_as_protobuf_c_reads_them)
{
    static leat__mt19937 random;
    uint8_t wire[2048];
    int agreed = 0;
    leat__mt19937_seed(&random, 4);
    for (int i = 0; i < 200000; i++) {
        size_t size = random_blob(&random, wire);
        for (uint32_t n = leat__mt19937_next(&random) % 3; size && n; n--) {
            uint32_t word = leat__mt19937_next(&random);
            wire[word % size] ^= (uint8_t)(1U << (word >> 29));
        }
        if (size && i % 3 == 0)
            size -= leat__mt19937_next(&random) % size;
        agreed += compare_with_oracle(wire, size);
    }
    ck_assert_int_gt(agreed, 500);
}
END_TEST

START_TEST(a_saved_mean_is_read_back)
{
    leat__mean mean;
    char folder[] = "/tmp/leat_mean_XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/mean.binaryproto", folder);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, values), LEAT_OK);
    ck_assert_int_eq(leat__mean_load(&mean, path), LEAT_OK);
    check(&mean);
    leat__mean_finish(&mean);
    /* Over the one that is there, with nothing left beside it. */
    ck_assert_int_eq(leat_mean_save(path, 1, 1, 24, values), LEAT_OK);
    ck_assert_int_eq(count_files(folder), 1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_mean_that_cannot_be_saved_leaves_nothing_behind)
{
    char folder[] = "/tmp/leat_mean_XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/taken", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, values), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
    ck_assert_int_eq(count_files(folder), 1);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, values), LEAT_EIO);
    ck_assert_int_eq(leat_mean_save(path, 0, 3, 4, values), LEAT_EINVAL);
    ck_assert_int_eq(leat_mean_save(path, 1 << 20, 1 << 20, 1 << 20, values),
                     LEAT_EINVAL);
}
END_TEST

/* How many of the next draws give zeros. */
static int rigged;

ssize_t getrandom(void *out, size_t size, unsigned flags)
{
    if (rigged <= 0)
        return syscall(SYS_getrandom, out, size, flags);
    rigged--;
    memset(out, 0, size);
    return (ssize_t)size;
}

/* A link, a dangling one or a pipe at that name. */
static void plant(int kind, const char *victim, const char *name)
{
    if (kind == 2)
        ck_assert_int_eq(mkfifo(name, 0600), 0);
    else
        ck_assert_int_eq(symlink(kind ? "nowhere" : victim, name), 0);
}

START_TEST(nothing_that_has_the_name_of_the_temporary_file_is_opened)
{
    char folder[] = "/tmp/leat_mean_XXXXXX";
    char path[64], drawn[96], victim[64], counted[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/mean", folder);
    snprintf(drawn, sizeof(drawn), "%s.leat-000000", path);
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    ck_assert_int_eq(leat_mean_save(victim, 1, 1, 24, values), LEAT_OK);
    /* A file that is replaced has a temporary name beside it. */
    ck_assert_int_eq(leat_mean_save(path, 1, 1, 24, values), LEAT_OK);
    for (int kind = 0; kind < 3; kind++) {
        plant(kind, victim, drawn);
        /* Names that can be known beforehand are in nobody's way. */
        for (int i = 0; i < 32; i++) {
            snprintf(counted, sizeof(counted), "%s.%ld.%d.tmp", path,
                     (long)getpid(), i);
            plant(kind, victim, counted);
        }
        rigged = 2;
        ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, values), LEAT_OK);
        ck_assert_int_eq(rigged, 0);
        leat__mean mean;
        ck_assert_int_eq(leat__mean_load(&mean, victim), LEAT_OK);
        ck_assert_int_eq(mean.width, 24);
        leat__mean_finish(&mean);
        ck_assert_int_eq(count_files(folder), 35);
        ck_assert_int_eq(unlink(drawn), 0);
        for (int i = 0; i < 32; i++) {
            snprintf(counted, sizeof(counted), "%s.%ld.%d.tmp", path,
                     (long)getpid(), i);
            ck_assert_int_eq(unlink(counted), 0);
        }
    }
    rigged = 1000;
    plant(0, victim, drawn);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, values), LEAT_EIO);
    rigged = 0;
    ck_assert_int_eq(unlink(drawn), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(unlink(victim), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(the_mean_of_imagenet_is_read)
{
    leat__mean mean;
    char path[SHARED_PATH];
    if (!shared_path(path, "mean/imagenet_mean_256.binaryproto"))
        return;
    ck_assert_int_eq(leat__mean_load(&mean, path), LEAT_OK);
    ck_assert_int_eq(mean.channels, 3);
    ck_assert_int_eq(mean.height, 256);
    ck_assert_int_eq(mean.width, 256);
    /* The well-known means of ImageNet in BGR are 104, 117 and 123. */
    static const int known[3] = {104, 117, 123};
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int i = 0; i < 256 * 256; i++)
            sum += mean.values[c * 256 * 256 + i];
        ck_assert_int_eq((int)(sum / (256 * 256) + 0.5), known[c]);
    }
    leat__mean_finish(&mean);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    leat__mean mean;
    char path[] = "/tmp/leat_mean_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    int status = LEAT_ENOMEM;
    int64_t n = 0;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_mean_save(path, 2, 3, 4, values);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    ck_assert_int_gt(n, 1);
    for (status = LEAT_ENOMEM, n = 0; status; n++) {
        leat__alloc_fail_at(n);
        status = leat__mean_load(&mean, path);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    ck_assert_int_gt(n, 2);
    check(&mean);
    leat__mean_finish(&mean);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mean");
    TCase *tcase = tcase_create("mean");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_mean_of_the_old_form_is_read);
    tcase_add_test(tcase, a_mean_with_a_shape_of_four_axes_is_read);
    tcase_add_test(tcase, the_old_form_wins_over_a_shape);
    tcase_add_test(tcase, double_data_wins_over_data);
    tcase_add_test(tcase, of_several_images_the_first_is_the_mean);
    tcase_add_test(tcase, values_may_be_packed_or_not);
    tcase_add_test(tcase, a_mean_whose_shape_and_values_differ_is_refused);
    tcase_add_test(tcase, other_files_are_refused_in_one_line);
    tcase_add_test(tcase, an_endless_pipe_is_not_read_to_its_limit);
    tcase_add_test(tcase, a_mean_comes_through_a_pipe);
    tcase_add_test(tcase, values_that_are_not_packed_are_looked_at_a_few_times);
    tcase_add_test(tcase, unknown_fields_take_no_memory);
    tcase_add_test(tcase, groups_and_other_wire_types_are_skipped);
    tcase_add_test(tcase, random_means_are_read_as_protobuf_c_reads_them);
    tcase_add_test(tcase, damaged_means_are_read_as_protobuf_c_reads_them);
    tcase_add_test(tcase, a_saved_mean_is_read_back);
    tcase_add_test(tcase,
                   nothing_that_has_the_name_of_the_temporary_file_is_opened);
    tcase_add_test(tcase, a_mean_that_cannot_be_saved_leaves_nothing_behind);
    tcase_add_test(tcase, the_mean_of_imagenet_is_read);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
