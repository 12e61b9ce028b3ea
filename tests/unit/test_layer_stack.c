/* Layers on threads with small stacks, and leat's threads where little is
   granted. */
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "support/decorator_chain.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Frames are larger with them: what is measured below does not hold. */
__attribute__((weak)) void __asan_init(void);
__attribute__((weak)) void __tsan_init(void);

/* What the tests themselves take of a stack, and the C library besides what it
   keeps for threads. */
enum { SPARE_BYTES = 8 << 10, IMAGE_BYTES = 1 << 16 };

static const char *const images[] = {"arithmetic-progressive.jpg",
                                     "exif-8-progressive.jpg", "cmyk.jpg",
                                     "exif-rgba.png", "data-bad-sum.png"};
enum { IMAGES = sizeof(images) / sizeof(images[0]) };

static leat_data_layer_options options;
static leat_transform_options transform;
static unsigned char image[IMAGE_BYTES];

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    options.batch_size = 2;
    options.random_seed = 3;
    transform.mirror = 1;
    layer_fixture_use_one_core(1); /* forward itself does all the work */
}

static void tear_down(void)
{
    layer_fixture_use_one_core(0);
}

/* The image, again and again; it is decoded by whoever makes a batch. */
static leat_pipeline *image_pipeline(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/images/%s", LEAT_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    size_t bytes = fread(image, 1, sizeof(image), file);
    fclose(file);
    ck_assert_uint_lt(bytes, sizeof(image));
    const leat_memory_field field = {
        "data", LEAT_BYTES, 1, {(int64_t)bytes}, image};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &field, 1, 1), LEAT_OK);
    return pipeline;
}

/* What a thread is to do with a layer, and how that went. */
typedef struct stint {
    const leat_pipeline *pipeline;
    int ntop;
    leat_data_layer *layer; /* NULL: it makes one */
    leat_blob *top[2];
    int status;
    char line[512];
} stint;

static int work_with_layer(stint *self)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_data_layer_setup(self->layer, self->top, self->ntop);
    for (int i = 0; i < 20 && status == LEAT_OK; i++) {
        status = leat_data_layer_forward(self->layer, self->top, self->ntop,
                                         LEAT_HOST);
        if (status == LEAT_EDATA)
            status = LEAT_OK;
    }
    if (status == LEAT_OK)
        status = leat_data_layer_save(self->layer, &token);
    if (status == LEAT_OK)
        status = leat_data_layer_restore(self->layer, &token);
    leat_token_finish(&token);
    return status;
}

static void *live(void *argument)
{
    stint *self = argument;
    int status = LEAT_OK;
    if (!self->layer)
        status = leat_data_layer_create(&self->layer, self->pipeline, &options);
    for (int i = 0; i < self->ntop && status == LEAT_OK; i++)
        status = leat_blob_create(&self->top[i], NULL);
    if (status == LEAT_OK)
        status = work_with_layer(self);
    self->status = status;
    if (status)
        memcpy(self->line, leat_last_error(), strlen(leat_last_error()) + 1);
    leat_data_layer_destroy(self->layer);
    for (int i = 0; i < self->ntop; i++)
        leat_blob_destroy(self->top[i]);
    return NULL;
}

static void run_on_stack(size_t bytes, void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, bytes), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, body, argument), 0);
    pthread_attr_destroy(&attributes);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static void *measure_taken(void *argument)
{
    pthread_attr_t attributes;
    void *base;
    size_t bytes;
    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
    ck_assert_int_eq(pthread_attr_getstack(&attributes, &base, &bytes), 0);
    pthread_attr_destroy(&attributes);
    *(size_t *)argument = (size_t)((char *)base + bytes - (char *)&attributes);
    return NULL;
}

/* Thread-local data of all libraries lie on a thread's stack: it differs from
   build to build. */
static size_t taken_bytes(void)
{
    size_t bytes = 0;
    run_on_stack((size_t)1 << 20, measure_taken, &bytes);
    return bytes;
}

static void check_lives(const leat_pipeline *pipeline, int ntop)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16,
                                       LEAT_FLOAT64};
    for (int i = 0; i < 12; i++) {
        stint all = {.pipeline = pipeline, .ntop = ntop};
        options.top_type = types[i % 3];
        options.layout = (leat_layout)(i / 3 % 2);
        options.rng = (leat_rng)(i / 6);
        run_on_stack(leat__pipeline_stack(pipeline) + taken_bytes() +
                         SPARE_BYTES,
                     live, &all);
        ck_assert_msg(all.status == LEAT_OK, "%s", all.line);
    }
}

START_TEST(the_least_stack_is_enough_for_raw_images)
{
    if (__asan_init || __tsan_init)
        return;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    check_lives(pipeline, 2);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(the_least_stack_is_enough_for_encoded_images_and_bad_ones)
{
    if (__asan_init || __tsan_init)
        return;
    char path[] = "/tmp/leat-stack-XXXXXX";
    close(mkstemp(path));
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    leat_pipeline *pipeline = image_pipeline(images[_i]);
    check_lives(pipeline, 1);
    leat_pipeline_unref(pipeline);
    unlink(path);
}
END_TEST

/* Patterns of a file with a record of the fixture's size, in a folder: with a
   part "./", or in so many folders with the part "[d]/". */
static leat_pipeline *pattern_pipeline(char folder[], const char *part, int n)
{
    static const leat_fixed_field fields[] = {
        {.name = "data",
         .dtype = LEAT_UINT8,
         .ndim = 3,
         .shape = {LAYER_FIXTURE_CHANNELS, LAYER_FIXTURE_HEIGHT,
                   LAYER_FIXTURE_WIDTH}},
        {.name = "label", .dtype = LEAT_UINT8, .offset = LAYER_FIXTURE_PIXELS}};
    const leat_fixed_options fixed = {
        .size = sizeof(fixed), .fields = fields, .nfields = 2};
    char path[PATH_MAX];
    char pattern[PATH_MAX];
    leat_pipeline *pipeline;
    const char *const text[] = {pattern};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    size_t at = (size_t)snprintf(path, sizeof(path), "%s/", folder);
    size_t end = (size_t)snprintf(pattern, sizeof(pattern), "%s/", folder);
    for (int i = 0; i < n; i++) {
        end +=
            (size_t)snprintf(pattern + end, sizeof(pattern) - end, "%s", part);
        if (part[0] != '[')
            continue;
        at += (size_t)snprintf(path + at, sizeof(path) - at, "d/");
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    snprintf(path + at, sizeof(path) - at, "f");
    snprintf(pattern + end, sizeof(pattern) - end, "[f]");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(image, LAYER_FIXTURE_PIXELS + 1, 1, file), 1);
    fclose(file);
    ck_assert_int_eq(leat_pipeline_fixed(&pipeline, text, 1, &fixed, NULL),
                     LEAT_OK);
    return pipeline;
}

START_TEST(the_least_stack_is_enough_for_a_pattern_of_many_parts)
{
    static const struct {
        const char *part;
        int n;
    } patterns[] = {{"./", 2000}, {"[d]/", 400}};
    if (__asan_init || __tsan_init)
        return;
    char folder[] = "/tmp/leat-stack-XXXXXX";
    char command[64];
    leat_pipeline *pipeline =
        pattern_pipeline(folder, patterns[_i].part, patterns[_i].n);
    check_lives(pipeline, 2);
    leat_pipeline_unref(pipeline);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Chains of 61 readers, which call each other, and one that transforms. */
static leat_pipeline *chain_pipeline(int which)
{
    static const char *const readers[] = {"shuffle", "cache:1M",
                                          "window:1,1 | unbatch"};
    static const int times[] = {60, 60, 30};
    enum { LONG = sizeof(times) / sizeof(times[0]), LETTERS = 1024 };
    char text[LETTERS] = "";
    if (which == LONG)
        return decorator_chain_make("transform:layout=HWC,type=FLOAT16",
                                    image_pipeline(images[0]));
    for (int i = 0, n = 0; i < times[which]; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s",
                      i ? " | " : "", readers[which]);
    return decorator_chain_make(text, layer_fixture_pipeline());
}

START_TEST(what_a_chain_needs_is_enough)
{
    if (__asan_init || __tsan_init)
        return;
    const leat_top top = {.size = sizeof(top), .name = "data"};
    leat_pipeline *pipeline = chain_pipeline(_i);
    ck_assert_msg(pipeline != NULL, "%s", leat_last_error());
    options.transform = NULL;
    options.top = &top;
    options.ntop = 1;
    check_lives(pipeline, 1);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(less_than_a_chain_needs_is_refused)
{
    if (__tsan_init)
        return;
    leat_pipeline *pipeline = chain_pipeline(0);
    stint all = {.pipeline = pipeline, .ntop = 1};
    run_on_stack(LEAT__STACK_MIN + taken_bytes() + SPARE_BYTES, live, &all);
    ck_assert_int_eq(all.status, LEAT_ELIMIT);
    ck_assert_msg(strstr(all.line, "of stack left, expected at least 308"),
                  "%s", all.line);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void check_refused(const stint *all)
{
    ck_assert_int_eq(all->status, LEAT_ELIMIT);
    ck_assert_msg(strstr(all->line, "of stack left, expected at least 64") !=
                      NULL,
                  "%s", all->line);
}

START_TEST(a_smaller_stack_is_refused_with_what_is_needed)
{
    /* It makes every stack larger. */
    if (__tsan_init)
        return;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    size_t bytes = taken_bytes() + SPARE_BYTES + ((size_t)_i << 14);
    if (__asan_init)
        bytes = LEAT__STACK_MIN;
    if (bytes < (size_t)PTHREAD_STACK_MIN)
        bytes = (size_t)PTHREAD_STACK_MIN;
    stint all = {.pipeline = pipeline, .ntop = 2};
    run_on_stack(bytes, live, &all);
    check_refused(&all);
    stint made = {.ntop = 2};
    ck_assert_int_eq(leat_data_layer_create(&made.layer, pipeline, &options),
                     LEAT_OK);
    run_on_stack(bytes, live, &made);
    check_refused(&made);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Deeper than the least; what callbacks on leat's threads may take. */
static void *use_stack(void *argument)
{
    enum { BYTES = 512 << 10 };
    volatile unsigned char frame[BYTES];
    for (int i = BYTES - 1; i >= 0; i -= 1024)
        frame[i] = 1;
    *(int *)argument = frame[BYTES - 1];
    return NULL;
}

static size_t stack_size(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &bytes);
        pthread_attr_destroy(&attributes);
    }
    return bytes;
}

static void *measure_stack(void *argument)
{
    *(size_t *)argument = stack_size();
    return NULL;
}

START_TEST(leats_threads_have_a_stack_of_known_size)
{
    leat__thread thread = {.running = 0};
    size_t bytes = 0;
    int is_used = 0;
    ck_assert_int_eq(
        leat__thread_start(&thread, "stack", measure_stack, &bytes), LEAT_OK);
    leat__thread_join(&thread);
    ck_assert_uint_eq(bytes, LEAT__STACK_BYTES);
    ck_assert_int_eq(leat__thread_start(&thread, "stack", use_stack, &is_used),
                     LEAT_OK);
    leat__thread_join(&thread);
    ck_assert_int_eq(is_used, 1);
}
END_TEST

/* This program anew with a small limit, as by `ulimit -s`: main says how a
   thread of leat's fares. */
static int run_below_limit(const char *self)
{
    enum { LIMIT = 256 << 10 };
    const struct rlimit small = {LIMIT, LIMIT};
    pid_t child = fork();
    if (child == 0) {
        if (setrlimit(RLIMIT_STACK, &small) == 0)
            execl("/proc/self/exe", self, "below-limit", (char *)NULL);
        _exit(1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static const char *program;

START_TEST(a_small_limit_of_stacks_does_not_matter_to_leats_threads)
{
    int status = run_below_limit(program);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d",
                  status);
}
END_TEST

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        size_t bytes = 0;
        leat__thread thread = {.running = 0};
        int status = leat__thread_start(&thread, "s", measure_stack, &bytes);
        leat__thread_join(&thread);
        return status || bytes != LEAT__STACK_BYTES;
    }
    Suite *suite = suite_create("layer_stack");
    TCase *tcase = tcase_create("layer_stack");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_least_stack_is_enough_for_raw_images);
    tcase_add_loop_test(
        tcase, the_least_stack_is_enough_for_encoded_images_and_bad_ones, 0,
        IMAGES);
    tcase_add_loop_test(
        tcase, the_least_stack_is_enough_for_a_pattern_of_many_parts, 0, 2);
    tcase_add_loop_test(tcase, what_a_chain_needs_is_enough, 0, 4);
    tcase_add_test(tcase, less_than_a_chain_needs_is_refused);
    tcase_add_loop_test(tcase, a_smaller_stack_is_refused_with_what_is_needed,
                        0, 4);
    tcase_add_test(tcase, leats_threads_have_a_stack_of_known_size);
    tcase_add_test(tcase,
                   a_small_limit_of_stacks_does_not_matter_to_leats_threads);
    return suite_run(suite);
}
