/*
 * What every device must do: over those named on the command line, and without
 * any over "cpu" and the late device of the tests. A device that the machine
 * lacks is a skip.
 */
#include "support/late_device.h"
#include "support/suite.h"
#include "support/transform_case.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)10000)
#define BATCHES 400
#define ROOM ((size_t)1 << 18) /* for any part of such a batch */

static const char *const usual[] = {"cpu", "late:0", "late:1"};
static const char *const *names = usual;
static int nnames = (int)(sizeof(usual) / sizeof(usual[0]));

static leat_device *device;
static const leat_device_ops *ops;

static void find(int i)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, names[i]), LEAT_OK);
    ops = device->ops;
}

static unsigned char *host_new(size_t bytes)
{
    void *memory;
    ck_assert_int_eq(ops->host_alloc(device, bytes, &memory), LEAT_OK);
    return memory;
}

static void *device_new(size_t bytes)
{
    void *memory;
    ck_assert_int_eq(ops->alloc(device, bytes, &memory), LEAT_OK);
    return memory;
}

static leat_stream stream_new(void)
{
    leat_stream stream;
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    return stream;
}

/* One whose kernels go first, where the device has such. */
static leat_stream urgent_stream_new(void)
{
    leat_stream stream;
    if (!ops->stream_create_high_priority)
        return stream_new();
    ck_assert_int_eq(ops->stream_create_high_priority(device, &stream),
                     LEAT_OK);
    return stream;
}

static void copy(void *to, const void *from, leat_copy_direction direction,
                 leat_stream stream)
{
    ck_assert_int_eq(ops->copy(device, to, from, BYTES, direction, stream),
                     LEAT_OK);
}

static int is_filled(const unsigned char *bytes, size_t n, int value)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != value)
            return 0;
    }
    return 1;
}

START_TEST(a_device_is_found_again_under_its_name)
{
    find(_i);
    ck_assert_str_eq(leat_device_name(device), names[_i]);
    leat_device *again;
    ck_assert_int_eq(leat_device_find(&again, names[_i]), LEAT_OK);
    ck_assert_ptr_eq(again, device);
}
END_TEST

START_TEST(host_memory_is_zero_and_aligned)
{
    find(_i);
    const size_t sizes[] = {0, 1, 4096, 5 << 20};
    for (int i = 0; i < 4; i++) {
        unsigned char *memory = host_new(sizes[i]);
        ck_assert_uint_eq((uintptr_t)memory % 64, 0);
        ck_assert(is_filled(memory, sizes[i], 0));
        memset(memory, 7, sizes[i]);
        ops->host_free(device, memory, sizes[i]);
    }
}
END_TEST

START_TEST(device_memory_is_zero)
{
    find(_i);
    if (ops->unified)
        return;
    void *memory = device_new(BYTES);
    unsigned char *host = host_new(BYTES);
    memset(host, 7, BYTES);
    leat_stream stream = stream_new();
    copy(host, memory, LEAT_COPY_TO_HOST, stream);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ck_assert(is_filled(host, BYTES, 0));
    ops->stream_destroy(device, stream);
    ops->free(device, memory, BYTES);
    ops->host_free(device, host, BYTES);
}
END_TEST

START_TEST(copies_go_there_and_across_and_back_in_order)
{
    find(_i);
    if (ops->unified)
        return;
    unsigned char *in = host_new(BYTES);
    unsigned char *out = host_new(BYTES);
    void *first = device_new(BYTES);
    void *second = device_new(BYTES);
    leat_stream stream = stream_new();
    memset(in, 5, BYTES);
    copy(first, in, LEAT_COPY_TO_DEVICE, stream);
    copy(second, first, LEAT_COPY_ON_DEVICE, stream);
    copy(out, second, LEAT_COPY_TO_HOST, stream);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ck_assert(is_filled(out, BYTES, 5));
    ops->stream_destroy(device, stream);
    ops->free(device, first, BYTES);
    ops->free(device, second, BYTES);
    ops->host_free(device, in, BYTES);
    ops->host_free(device, out, BYTES);
}
END_TEST

START_TEST(the_default_stream_takes_copies_too)
{
    find(_i);
    if (ops->unified)
        return;
    unsigned char *in = host_new(BYTES);
    unsigned char *out = host_new(BYTES);
    void *memory = device_new(BYTES);
    memset(in, 9, BYTES);
    copy(memory, in, LEAT_COPY_TO_DEVICE, 0);
    copy(out, memory, LEAT_COPY_TO_HOST, 0);
    ck_assert_int_eq(ops->stream_synchronize(device, 0), LEAT_OK);
    ck_assert(is_filled(out, BYTES, 9));
    ops->free(device, memory, BYTES);
    ops->host_free(device, in, BYTES);
    ops->host_free(device, out, BYTES);
}
END_TEST

START_TEST(an_event_orders_two_streams)
{
    find(_i);
    if (ops->unified)
        return;
    unsigned char *in = host_new(BYTES);
    unsigned char *out = host_new(BYTES);
    void *memory = device_new(BYTES);
    leat_stream writer = stream_new();
    leat_stream reader = urgent_stream_new();
    leat_event event;
    ck_assert_int_eq(ops->event_create(device, &event), LEAT_OK);
    for (int i = 1; i < 20; i++) {
        memset(in, i, BYTES);
        copy(memory, in, LEAT_COPY_TO_DEVICE, writer);
        ck_assert_int_eq(ops->event_record(device, event, writer), LEAT_OK);
        ck_assert_int_eq(ops->stream_wait(device, reader, event), LEAT_OK);
        copy(out, memory, LEAT_COPY_TO_HOST, reader);
        ck_assert_int_eq(ops->event_record(device, event, reader), LEAT_OK);
        ck_assert_int_eq(ops->event_synchronize(device, event), LEAT_OK);
        ck_assert(is_filled(out, BYTES, i));
    }
    ops->event_destroy(device, event);
    ops->stream_destroy(device, writer);
    ops->stream_destroy(device, reader);
    ops->free(device, memory, BYTES);
    ops->host_free(device, in, BYTES);
    ops->host_free(device, out, BYTES);
}
END_TEST

START_TEST(an_event_that_was_never_recorded_makes_nobody_wait)
{
    find(_i);
    if (ops->unified)
        return;
    leat_stream stream = stream_new();
    leat_event event;
    ck_assert_int_eq(ops->event_create(device, &event), LEAT_OK);
    ck_assert_int_eq(ops->event_synchronize(device, event), LEAT_OK);
    ck_assert_int_eq(ops->stream_wait(device, stream, event), LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ops->event_destroy(device, event);
    ops->stream_destroy(device, stream);
}
END_TEST

/* Those on which the host sleeps are events as others are. */
START_TEST(an_event_that_is_asked_for_tells_what_came_of_it)
{
    find(_i);
    if (ops->unified || !ops->event_query || !ops->event_create_sleeping)
        return;
    leat_stream stream = stream_new();
    leat_event event;
    unsigned char *host = host_new(BYTES);
    char *memory = device_new(BYTES);
    int is_complete = 0;
    ck_assert_int_eq(ops->event_create_sleeping(device, &event), LEAT_OK);
    ck_assert_int_eq(ops->event_query(device, event, &is_complete), LEAT_OK);
    ck_assert_int_eq(is_complete, 1);
    copy(memory, host, LEAT_COPY_TO_DEVICE, stream);
    ck_assert_int_eq(ops->event_record(device, event, stream), LEAT_OK);
    ck_assert_int_eq(ops->event_query(device, event, &is_complete), LEAT_OK);
    ck_assert(is_complete == 0 || is_complete == 1);
    ck_assert_int_eq(ops->event_synchronize(device, event), LEAT_OK);
    ck_assert_int_eq(ops->event_query(device, event, &is_complete), LEAT_OK);
    ck_assert_int_eq(is_complete, 1);
    ops->event_destroy(device, event);
    ops->stream_destroy(device, stream);
    ops->free(device, memory, BYTES);
    ops->host_free(device, host, BYTES);
}
END_TEST

START_TEST(a_stream_is_not_captured_unless_somebody_does)
{
    find(_i);
    if (ops->unified || !ops->stream_is_capturing)
        return;
    leat_stream stream = stream_new();
    ck_assert_int_eq(ops->stream_is_capturing(device, stream), 0);
    ck_assert_int_eq(ops->stream_is_capturing(device, 0), 0);
    ops->stream_destroy(device, stream);
}
END_TEST

START_TEST(a_timer_tells_how_long_a_copy_took)
{
    find(_i);
    if (ops->unified || !ops->timer_create)
        return;
    unsigned char *host = host_new(BYTES);
    void *memory = device_new(BYTES);
    leat_stream stream;
    leat_event from, to;
    double seconds = -1;
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    ck_assert_int_eq(ops->timer_create(device, &from), LEAT_OK);
    ck_assert_int_eq(ops->timer_create(device, &to), LEAT_OK);
    ck_assert_int_eq(ops->event_elapsed(device, from, to, &seconds),
                     LEAT_EDEVICE);
    ck_assert(seconds == -1);
    ck_assert_int_eq(ops->event_record(device, from, stream), LEAT_OK);
    ck_assert_int_eq(
        ops->copy(device, memory, host, BYTES, LEAT_COPY_TO_DEVICE, stream),
        LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, to, stream), LEAT_OK);
    ck_assert_int_eq(ops->event_synchronize(device, to), LEAT_OK);
    ck_assert_int_eq(ops->event_elapsed(device, from, to, &seconds), LEAT_OK);
    ck_assert(seconds >= 0 && seconds < 60);
    ops->event_destroy(device, from);
    ops->event_destroy(device, to);
    ops->stream_destroy(device, stream);
    ops->free(device, memory, BYTES);
    ops->host_free(device, host, BYTES);
}
END_TEST

START_TEST(what_occupies_a_stream_takes_its_time)
{
    const double length = 0.01;
    find(_i);
    if (ops->unified || !ops->occupy)
        return;
    leat_stream busy = stream_new();
    leat_event timer[2];
    double seconds = 0;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(ops->timer_create(device, &timer[i]), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, timer[0], busy), LEAT_OK);
    ck_assert_int_eq(ops->occupy(device, length, busy), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, timer[1], busy), LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, busy), LEAT_OK);
    ck_assert_int_eq(ops->event_elapsed(device, timer[0], timer[1], &seconds),
                     LEAT_OK);
    ck_assert_msg(seconds > 0.9 * length, "%g s", seconds);
    for (int i = 0; i < 2; i++)
        ops->event_destroy(device, timer[i]);
    ops->stream_destroy(device, busy);
}
END_TEST

/*
 * Launches may block, as with CUDA_LAUNCH_BLOCKING and in some tools that check
 * kernels: then a stream that is held holds the host.
 */
static int launches_block(uint32_t *release, leat_stream stream)
{
    const double seconds = 1;
    struct timespec begin, end;
    *release = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    ck_assert_int_eq(ops->stream_hold(device, release, seconds, stream),
                     LEAT_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    __atomic_store_n(release, 1, __ATOMIC_RELEASE);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    return (double)(end.tv_sec - begin.tv_sec) +
               1e-9 * (double)(end.tv_nsec - begin.tv_nsec) >
           seconds / 2;
}

START_TEST(a_held_stream_goes_on_when_it_is_released)
{
    find(_i);
    if (ops->unified || !ops->stream_hold)
        return;
    uint32_t *release = (uint32_t *)(void *)host_new(BYTES);
    unsigned char *host = host_new(BYTES);
    void *memory = device_new(BYTES);
    leat_stream stream = stream_new();
    memset(host, 1, BYTES);
    int is_held = !launches_block(release, stream);
    *release = !is_held;
    ck_assert_int_eq(ops->stream_hold(device, release, 60, stream), LEAT_OK);
    ck_assert_int_eq(
        ops->copy(device, memory, host, BYTES, LEAT_COPY_TO_DEVICE, stream),
        LEAT_OK);
    /* The copy has not begun, so it takes what is written now. */
    if (is_held)
        memset(host, 2, BYTES);
    __atomic_store_n(release, 1, __ATOMIC_RELEASE);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    memset(host, 3, BYTES);
    ck_assert_int_eq(
        ops->copy(device, host, memory, BYTES, LEAT_COPY_TO_HOST, stream),
        LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ck_assert(is_filled(host, BYTES, is_held ? 2 : 1));
    ops->stream_destroy(device, stream);
    ops->free(device, memory, BYTES);
    ops->host_free(device, host, BYTES);
    ops->host_free(device, release, BYTES);
}
END_TEST

START_TEST(a_held_stream_that_nobody_releases_goes_on_by_itself)
{
    find(_i);
    if (ops->unified || !ops->stream_hold)
        return;
    uint32_t *release = (uint32_t *)(void *)host_new(BYTES);
    leat_stream stream = stream_new();
    *release = 0;
    ck_assert_int_eq(ops->stream_hold(device, release, 0.01, stream), LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ops->stream_destroy(device, stream);
    ops->host_free(device, release, BYTES);
}
END_TEST

START_TEST(a_kernel_reads_and_writes_host_memory)
{
    find(_i);
    if (ops->unified || !ops->kernel_copy)
        return;
    unsigned char *host = host_new(BYTES);
    void *memory = device_new(BYTES);
    leat_stream stream = stream_new();
    /* The last few words, and none before or after them. */
    const size_t begin = 16, end = BYTES - 32;
    for (size_t i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i * 7);
    ck_assert_int_eq(ops->kernel_copy(device, memory, host, BYTES,
                                      LEAT_COPY_TO_DEVICE, stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    memset(host, 0, BYTES);
    ck_assert_int_eq(ops->kernel_copy(device, host + begin,
                                      (char *)memory + begin, end - begin,
                                      LEAT_COPY_TO_HOST, stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_int_eq(host[i],
                         i >= begin && i < end ? (unsigned char)(i * 7) : 0);
    ops->stream_destroy(device, stream);
    ops->free(device, memory, BYTES);
    ops->host_free(device, host, BYTES);
}
END_TEST

START_TEST(memory_on_a_node_is_like_other_pinned_memory)
{
    find(_i);
    if (ops->unified || !ops->host_alloc_on)
        return;
    for (int node = -1; node < 2; node++) {
        void *memory;
        ck_assert_int_eq(ops->host_alloc_on(device, node, BYTES, &memory),
                         LEAT_OK);
        ck_assert(is_filled(memory, BYTES, 0));
        ops->host_free(device, memory, BYTES);
    }
}
END_TEST

/* On its way there and back, in host memory and the device's. */
typedef struct area {
    unsigned char *host;
    char *memory;
} area;

/* Sends them there, to `over` bytes after a multiple of 256. */
static const void *send(const area *way, const void *from, size_t bytes,
                        size_t over, leat_stream stream)
{
    ck_assert_uint_le(bytes + over, ROOM);
    memcpy(way->host, from, bytes);
    ck_assert_int_eq(ops->copy(device, way->memory + over, way->host, bytes,
                               LEAT_COPY_TO_DEVICE, stream),
                     LEAT_OK);
    return way->memory + over;
}

static void send_means(const transform_case *job, leat_device_transform *what,
                       const area *way, leat_stream stream)
{
    if (what->mean)
        what->mean = send(way, what->mean, job->mean_floats * sizeof(float),
                          job->mean_over * sizeof(float), stream);
    if (what->mean_value)
        what->mean_value =
            send(way, what->mean_value,
                 (size_t)what->mean_values * sizeof(float), 0, stream);
}

static void check_batch(const transform_case *job, const area way[4],
                        leat_stream stream)
{
    leat_device_transform what = job->what;
    what.pixels =
        send(&way[0], what.pixels, job->pixel_bytes, job->pixels_over, stream);
    what.choices = send(&way[1], what.choices,
                        (size_t)what.images * sizeof(*what.choices), 0, stream);
    send_means(job, &what, &way[2], stream);
    what.top = way[3].memory;
    ck_assert_int_eq(ops->transform(device, &what, stream), LEAT_OK);
    ck_assert_int_eq(ops->copy(device, way[3].host, what.top, job->top_bytes,
                               LEAT_COPY_TO_HOST, stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    ck_assert_msg(memcmp(way[3].host, job->expected, job->top_bytes) == 0, "%s",
                  transform_case_text(job));
}

/* Its images as batches of one each, with room between them. */
static void check_apart(const transform_case *job, const area way[4],
                        leat_stream stream)
{
    leat_device_transform what = job->what;
    size_t images = (size_t)what.images;
    size_t pixels = job->pixel_bytes / images;
    size_t each = job->top_bytes / images;
    size_t choices = (job->pixels_over + pixels + 255) / 256 * 256;
    what.stride = choices + 256;
    what.top_stride = (each + 255) / 256 * 256 + 256;
    if (images * what.stride > ROOM || images * what.top_stride > ROOM)
        return;
    memset(way[0].host, 0, images * what.stride);
    for (size_t i = 0; i < images; i++) {
        unsigned char *to = way[0].host + i * what.stride;
        memcpy(to + job->pixels_over, job->what.pixels + i * pixels, pixels);
        memcpy(to + choices, &job->what.choices[i], sizeof(*what.choices));
    }
    ck_assert_int_eq(ops->copy(device, way[0].memory, way[0].host,
                               images * what.stride, LEAT_COPY_TO_DEVICE,
                               stream),
                     LEAT_OK);
    send_means(job, &what, &way[2], stream);
    what.pixels = (unsigned char *)way[0].memory + job->pixels_over;
    what.choices = (const void *)(way[0].memory + choices);
    what.top = way[3].memory;
    what.images = 1;
    what.further = (int)images - 1;
    ck_assert_int_eq(ops->transform(device, &what, stream), LEAT_OK);
    ck_assert_int_eq(ops->copy(device, way[3].host, what.top,
                               images * what.top_stride, LEAT_COPY_TO_HOST,
                               stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    for (size_t i = 0; i < images; i++)
        ck_assert_msg(memcmp(way[3].host + i * what.top_stride,
                             (const char *)job->expected + i * each, each) == 0,
                      "image %zu of %s", i, transform_case_text(job));
}

START_TEST(a_transform_has_the_bits_of_the_cpu)
{
    area way[4];
    find(_i);
    if (ops->unified || !ops->transform)
        return;
    leat_stream stream = stream_new();
    for (int i = 0; i < 4; i++)
        way[i] = (area){host_new(ROOM), device_new(ROOM)};
    for (uint32_t k = 0; k < BATCHES; k++) {
        transform_case job;
        transform_case_init(&job, k);
        check_batch(&job, way, stream);
        check_apart(&job, way, stream);
        transform_case_finish(&job);
    }
    for (int i = 0; i < 4; i++) {
        ops->host_free(device, way[i].host, ROOM);
        ops->free(device, way[i].memory, ROOM);
    }
    ops->stream_destroy(device, stream);
}
END_TEST

/* More than a grid of CUDA's has along one side. */
START_TEST(a_transform_has_as_many_images_as_it_likes)
{
    enum { IMAGES = 600000, EVERY = 7 };
    find(_i);
    if (ops->unified || !ops->transform)
        return;
    size_t bytes = IMAGES * sizeof(leat_device_choice);
    leat_stream stream = stream_new();
    unsigned char *pixels = host_new(IMAGES);
    leat_device_choice *choices = (void *)host_new(bytes);
    leat_device_transform what = {
        .pixels = device_new(IMAGES),
        .choices = device_new(bytes),
        .top = device_new(IMAGES),
        .scale = 1,
        .top_type = LEAT_UINT8,
        .images = IMAGES,
        .channels = 1,
        .height = 1,
        .width = 1,
    };
    for (int i = 0; i < IMAGES; i++) {
        pixels[i] = (unsigned char)(i % 251);
        choices[i].is_zero = i % EVERY == 0;
    }
    ck_assert_int_eq(ops->copy(device, (void *)(uintptr_t)what.pixels, pixels,
                               IMAGES, LEAT_COPY_TO_DEVICE, stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->copy(device, (void *)(uintptr_t)what.choices, choices,
                               bytes, LEAT_COPY_TO_DEVICE, stream),
                     LEAT_OK);
    int status = ops->transform(device, &what, stream);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(
        ops->copy(device, pixels, what.top, IMAGES, LEAT_COPY_TO_HOST, stream),
        LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, stream), LEAT_OK);
    for (int i = 0; i < IMAGES; i++)
        if (pixels[i] != (i % EVERY ? i % 251 : 0))
            ck_abort_msg("image %d is %d", i, pixels[i]);
    ops->free(device, what.top, IMAGES);
    ops->free(device, (void *)(uintptr_t)what.choices, bytes);
    ops->free(device, (void *)(uintptr_t)what.pixels, IMAGES);
    ops->host_free(device, choices, bytes);
    ops->host_free(device, pixels, IMAGES);
    ops->stream_destroy(device, stream);
}
END_TEST

START_TEST(a_device_that_describes_itself_has_versions)
{
    find(_i);
    if (!ops->describe)
        return;
    leat_device_description what;
    ck_assert_int_eq(ops->describe(device, &what), LEAT_OK);
    ck_assert_ptr_nonnull(memchr(what.bus_id, 0, sizeof(what.bus_id)));
    ck_assert_int_ge(what.driver_version / 1000, what.runtime_version / 1000);
    ck_assert_int_ge(what.capability, 0);
}
END_TEST

static int find_all(void)
{
    leat_device *found;
    late_device_register();
    for (int i = 0; i < nnames; i++) {
        if (leat_device_find(&found, names[i]) == LEAT_OK)
            continue;
        printf("skipped: %s\n", leat_last_error());
        return 77;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        names = (const char *const *)argv + 1;
        nnames = argc - 1;
    }
    int n = nnames;
    int absent = suite_look_first(find_all);
    if (absent)
        return absent;
    Suite *suite = suite_create("devices");
    TCase *tcase = tcase_create("devices");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_device_is_found_again_under_its_name, 0, n);
    tcase_add_loop_test(tcase, host_memory_is_zero_and_aligned, 0, n);
    tcase_add_loop_test(tcase, device_memory_is_zero, 0, n);
    tcase_add_loop_test(tcase, copies_go_there_and_across_and_back_in_order, 0,
                        n);
    tcase_add_loop_test(tcase, the_default_stream_takes_copies_too, 0, n);
    tcase_add_loop_test(tcase, an_event_orders_two_streams, 0, n);
    tcase_add_loop_test(
        tcase, an_event_that_was_never_recorded_makes_nobody_wait, 0, n);
    tcase_add_loop_test(tcase, an_event_that_is_asked_for_tells_what_came_of_it,
                        0, n);
    tcase_add_loop_test(tcase, a_stream_is_not_captured_unless_somebody_does, 0,
                        n);
    tcase_add_loop_test(tcase, a_timer_tells_how_long_a_copy_took, 0, n);
    tcase_add_loop_test(tcase, what_occupies_a_stream_takes_its_time, 0, n);
    tcase_add_loop_test(tcase, a_held_stream_goes_on_when_it_is_released, 0, n);
    tcase_add_loop_test(
        tcase, a_held_stream_that_nobody_releases_goes_on_by_itself, 0, n);
    tcase_add_loop_test(tcase, a_kernel_reads_and_writes_host_memory, 0, n);
    tcase_add_loop_test(tcase, memory_on_a_node_is_like_other_pinned_memory, 0,
                        n);
    tcase_add_loop_test(tcase, a_transform_has_the_bits_of_the_cpu, 0, n);
    tcase_add_loop_test(tcase, a_transform_has_as_many_images_as_it_likes, 0,
                        n);
    tcase_add_loop_test(tcase, a_device_that_describes_itself_has_versions, 0,
                        n);
    return suite_run(suite);
}
