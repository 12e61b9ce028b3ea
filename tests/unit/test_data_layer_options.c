/* A data layer's options at each bound, copied, completed and let go. */
#include "base/memory.h"
#include "layer/options/data_layer_options.h"
#include "support/suite.h"

#include <leat/image.h>

#include <check.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

static leat_data_layer_options options;
static leat_transform_options transform;
static leat__layer_options known;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options no_transform = LEAT_TRANSFORM_OPTIONS_INIT;
    options = defaults;
    transform = no_transform;
    options.batch_size = 4;
    memset(&known, 0, sizeof(known));
}

static void tear_down(void)
{
    leat__layer_options_finish(&known);
}

static int init(void)
{
    leat__layer_options_finish(&known);
    return leat__layer_options_init(&known, &options);
}

static void assert_taken(void)
{
    ck_assert_msg(init() == LEAT_OK, "%s", leat_last_error());
}

/* Nothing is left of what was refused. */
static void assert_refused(const char *line)
{
    static const leat__layer_options none;
    ck_assert_int_eq(init(), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_mem_eq(&known, &none, sizeof(none));
}

/* Fields that take what lies between two bounds. */
START_TEST(a_number_is_taken_up_to_its_bounds)
{
    assert_taken();
    options.prefetch = LEAT_PREFETCH_AUTO;
    assert_taken();
    options.prefetch = 1;
    assert_taken();
    options.prefetch = 1 << 20;
    assert_taken();
    ck_assert_int_eq(known.values.prefetch, 1 << 20);
    options.prefetch = (1 << 20) + 1;
    assert_refused(
        "prefetch is 1048577: expected 0 to 1048576 batches or AUTO");
    options.prefetch = LEAT_PREFETCH_AUTO - 1;
    ck_assert_int_eq(init(), LEAT_EINVAL);
    options.prefetch = 0;
    assert_taken();
    ck_assert_int_eq(known.values.prefetch, LEAT_PREFETCH_DEFAULT);
    options.prefetch = 1;

    options.workers = 0;
    assert_taken();
    options.workers = 1024;
    assert_taken();
    options.workers = 1025;
    assert_refused("workers is 1025: expected 0 to 1024 threads");
    options.workers = -1;
    assert_refused("workers is -1: expected 0 to 1024 threads");
    options.workers = 0;

    options.batch_size = 1;
    assert_taken();
    options.batch_size = INT_MAX / 2;
    assert_taken();
    options.batch_size = INT_MAX / 2 + 1;
    assert_refused(
        "batch_size is 1073741824: expected 1 to 1073741823 samples");
    options.batch_size = 0;
    assert_refused("batch_size is 0: expected 1 to 1073741823 samples");
    options.batch_size = -1;
    assert_refused("batch_size is -1: expected 1 to 1073741823 samples");
}
END_TEST

START_TEST(errors_may_be_limited_where_there_is_something_to_count)
{
    options.max_errors = -1;
    assert_taken();
    options.max_errors = -2;
    assert_refused(
        "max_errors is -2: expected -1 or more records (-1: no limit)");
    static const leat_on_error counted[] = {LEAT_ON_ERROR_ZERO,
                                            LEAT_ON_ERROR_REPLACE};
    options.has_max_errors = 1;
    for (int64_t most = 0; most < 2; most++) {
        options.max_errors = most;
        for (int i = 0; i < 2; i++) {
            options.on_error = counted[i];
            assert_taken();
            ck_assert_int_eq(known.values.max_errors, most);
        }
        options.on_error = LEAT_ON_ERROR_FAIL;
        ck_assert_int_eq(init(), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "on_error is FAIL"));
    }
}
END_TEST

START_TEST(a_rank_is_below_the_number_of_ranks)
{
    static const struct {
        int rank, world_size;
        const char *line;
    } cases[] = {
        {0, 1, NULL},
        {65534, 65535, NULL},
        {1, 1,
         "rank is 1 of world_size 1: expected a rank from 0 and below "
         "world_size"},
        {-1, 2, "rank is -1: expected 0 to 65534"},
        {0, 0, NULL},
        {1, 0,
         "rank is 1 of world_size 1: expected a rank from 0 and below "
         "world_size"},
        {0, -1, "world_size is -1: expected 0 to 65535 ranks"},
        {0, 65536, "world_size is 65536: expected 0 to 65535 ranks"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options.rank = cases[i].rank;
        options.world_size = cases[i].world_size;
        if (cases[i].line)
            assert_refused(cases[i].line);
        else
            assert_taken();
    }
}
END_TEST

START_TEST(a_global_batch_is_divided_among_all_ranks)
{
    options.world_size = 4;
    options.batch_size = 0;
    options.global_batch_size = 12;
    assert_taken();
    ck_assert_int_eq(known.values.batch_size, 3);
    options.batch_size = 3;
    assert_taken();
    options.batch_size = 4;
    assert_refused("batch_size 4 and global_batch_size 12 of 4 ranks "
                   "contradict each other");
    options.batch_size = 0;
    options.global_batch_size = 13;
    assert_refused("global_batch_size is 13: expected a multiple of world_size "
                   "4");
    options.global_batch_size = -4;
    assert_refused("global_batch_size is -4: expected 1 to 70367670370305 "
                   "samples");
    options.global_batch_size = 1;
    options.world_size = 1;
    assert_taken();
    ck_assert_int_eq(known.values.batch_size, 1);
    options.global_batch_size = (int64_t)4 * INT_MAX;
    options.world_size = 4;
    assert_refused(
        "batch_size is 2147483647: expected 1 to 1073741823 samples");
}
END_TEST

/* Ranks that share what there is; in TEST they do so on demand. */
START_TEST(a_step_is_the_number_of_ranks_that_share)
{
    options.world_size = 4;
    options.phase = LEAT_TRAIN;
    ck_assert_int_eq(leat__layer_options_step(&options), 4);
    options.phase = LEAT_TEST;
    ck_assert_int_eq(leat__layer_options_step(&options), 1);
    options.shard_test = 1;
    ck_assert_int_eq(leat__layer_options_step(&options), 4);
}
END_TEST

START_TEST(types_are_those_that_tops_and_labels_may_have)
{
    /* By leat_dtype: whether tops, and whether labels, may be of it. BYTES is
       none, and stands for the default. */
    static const struct {
        leat_dtype type;
        int top, label;
    } types[] = {{LEAT_UINT8, 1, 1},    {LEAT_INT32, 0, 1},
                 {LEAT_INT64, 0, 1},    {LEAT_FLOAT32, 1, 1},
                 {LEAT_FLOAT64, 1, 1},  {LEAT_FLOAT16, 1, 0},
                 {LEAT_BFLOAT16, 1, 0}, {LEAT_BYTES, 1, 1}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        options.top_type = types[i].type;
        options.label_type = LEAT_BYTES;
        ck_assert_int_eq(init(), types[i].top ? LEAT_OK : LEAT_EINVAL);
        if (types[i].top)
            ck_assert_int_eq(known.values.label_type,
                             types[i].type == LEAT_FLOAT64 ? LEAT_FLOAT64
                                                           : LEAT_FLOAT32);
        options.top_type = LEAT_FLOAT32;
        options.label_type = types[i].type;
        ck_assert_int_eq(init(), types[i].label ? LEAT_OK : LEAT_EINVAL);
    }
}
END_TEST

START_TEST(doubles_are_not_made_on_a_device)
{
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    assert_taken();
    options.top_type = LEAT_FLOAT64;
    assert_refused("transform_on is DEVICE, top_type float64: doubles are made "
                   "on the CPU");
    options.transform_on = LEAT_TRANSFORM_ON_CPU;
    assert_taken();
}
END_TEST

/* A fourth of max_memory, from 64 MiB to the default. */
START_TEST(an_images_bound_follows_the_memory)
{
    const size_t mib = (size_t)1 << 20;
    const struct {
        size_t memory, expected;
    } cases[] = {
        {0, LEAT_IMAGE_BYTES_DEFAULT},   {1, 64 * mib},
        {256 * mib, 64 * mib},           {256 * mib + 4, 64 * mib + 1},
        {1024 * mib - 4, 256 * mib - 1}, {1024 * mib, 256 * mib},
        {1024 * mib + 4, 256 * mib},     {SIZE_MAX, 256 * mib},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options.max_memory = cases[i].memory;
        assert_taken();
        ck_assert_uint_eq(known.values.max_image_bytes, cases[i].expected);
    }
}
END_TEST

START_TEST(tops_are_named_up_to_as_many_as_there_may_be)
{
    const char *names[LEAT_MAX_FIELDS + 2];
    for (int n = 0; n <= LEAT_MAX_FIELDS; n++) {
        for (int i = 0; i < n; i++)
            names[i] = "top";
        names[n] = NULL;
        options.tops = names;
        assert_taken();
        ck_assert_int_eq(known.ntop, n);
        if (n == 0) {
            ck_assert_ptr_null(known.values.tops);
            continue;
        }
        ck_assert_ptr_null(known.values.tops[n]);
        ck_assert_str_eq(known.values.tops[n - 1], "top");
        ck_assert_ptr_ne(known.values.tops[n - 1], names[n - 1]);
    }
    names[LEAT_MAX_FIELDS] = "top";
    names[LEAT_MAX_FIELDS + 1] = NULL;
    assert_refused("more than 32 tops");
    options.tops = NULL;
    assert_taken();
    ck_assert_ptr_null(known.values.tops);
}
END_TEST

static void *give(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

static void take(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user, (void)memory, (void)bytes, (void)alignment;
}

START_TEST(an_allocator_has_its_size_alloc_and_free)
{
    static const leat_allocator whole = {
        .size = sizeof(whole), .alloc = give, .free = take};
    const struct {
        const leat_allocator **hooks;
        const leat_allocator *const *copy;
        const leat_allocator *own;
        const char *line;
    } cases[] = {
        {&options.host_allocator, &known.values.host_allocator,
         &known.host_allocator, "host_allocator lacks its size, alloc or free"},
        {&options.pinned_allocator, &known.values.pinned_allocator,
         &known.pinned_allocator,
         "pinned_allocator lacks its size, alloc or free"},
    };
    for (int i = 0; i < 2; i++) {
        leat_allocator hooks = whole;
        *cases[i].hooks = &hooks;
        assert_taken();
        ck_assert_ptr_eq(*cases[i].copy, cases[i].own);
        ck_assert(cases[i].own->alloc == give && cases[i].own->free == take);
        hooks.size--;
        assert_refused(cases[i].line);
        hooks.size = sizeof(hooks) + 8;
        assert_taken();
        hooks.alloc = NULL;
        assert_refused(cases[i].line);
        hooks = whole;
        hooks.free = NULL;
        assert_refused(cases[i].line);
        *cases[i].hooks = NULL;
    }
}
END_TEST

START_TEST(what_was_not_initialised_is_refused)
{
    options.transform = &transform;
    assert_taken();
    transform.size = 0;
    assert_refused("the transform: options have size 0: expected that of "
                   "their struct, as its INIT macro sets it");
    transform.size = sizeof(transform);
    options.size = 0;
    assert_refused("the data layer: options have size 0: expected that of "
                   "their struct, as its INIT macro sets it");
}
END_TEST

/* A later caller's struct is longer: what leat does not know must be 0. */
START_TEST(a_longer_struct_has_only_defaults_beyond_what_is_known)
{
    struct {
        leat_data_layer_options known;
        char more[64];
    } longer;
    struct {
        leat_transform_options known;
        char more[64];
    } longer_transform;
    memset(&longer, 0, sizeof(longer));
    memset(&longer_transform, 0, sizeof(longer_transform));
    longer.known = options;
    longer.known.size = sizeof(longer);
    longer_transform.known = transform;
    longer_transform.known.size = sizeof(longer_transform);
    longer.known.transform = &longer_transform.known;
    ck_assert_int_eq(leat__layer_options_init(&known, &longer.known), LEAT_OK);
    ck_assert_uint_eq(known.values.size, sizeof(known.values));
    ck_assert_uint_eq(known.transform.options.size,
                      sizeof(known.transform.options));
    ck_assert_int_eq(known.values.batch_size, 4);
    leat__layer_options_finish(&known);
    longer_transform.more[63] = 1;
    ck_assert_int_eq(leat__layer_options_init(&known, &longer.known),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "newer than the library"));
    longer_transform.more[63] = 0;
    longer.more[0] = 1;
    ck_assert_int_eq(leat__layer_options_init(&known, &longer.known),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "newer than the library"));
}
END_TEST

START_TEST(means_come_with_their_number)
{
    const float means[3] = {1, 2, 3};
    options.transform = &transform;
    transform.mean_values = 1;
    assert_refused("mean_values is 1 without values");
    transform.mean_value = means;
    for (int n = 1; n <= 3; n++) {
        transform.mean_values = n;
        assert_taken();
        ck_assert_ptr_ne(known.transform.options.mean_value, means);
        ck_assert_mem_eq(known.transform.options.mean_value, means,
                         (size_t)n * sizeof(means[0]));
    }
    transform.mean_values = -1;
    assert_refused("mean_values is -1 without values");
    transform.mean_values = 0;
    assert_refused("mean_value has values and mean_values is 0: expected how "
                   "many they are");
}
END_TEST

static char name[] = "given", device[] = "a:1", file[] = "list",
            mean_file[] = "mean";
static const char *const names[] = {"one", "two", NULL};
static const float mean = 7;

static void name_everything(void)
{
    options.name = name;
    options.device = device;
    options.bad_record_file = file;
    options.tops = names;
    options.transform = &transform;
    transform.mean_file = mean_file;
    transform.mean_value = &mean;
    transform.mean_values = 1;
}

START_TEST(what_the_caller_gave_may_go)
{
    assert_taken();
    ck_assert_str_eq(known.values.name, "data");
    ck_assert_str_eq(known.values.device, "cpu");
    ck_assert_ptr_null(known.values.bad_record_file);
    ck_assert_ptr_null(known.transform.options.mean_file);
    name_everything();
    assert_taken();
    name[0] = device[0] = file[0] = mean_file[0] = '!';
    ck_assert_str_eq(known.values.name, "given");
    ck_assert_str_eq(known.values.device, "a:1");
    ck_assert_str_eq(known.values.bad_record_file, "list");
    ck_assert_str_eq(known.values.transform->mean_file, "mean");
    ck_assert_ptr_eq(known.values.transform, &known.transform);
    ck_assert_ptr_eq(known.values.tops, known.tops);
    ck_assert_ptr_null(known.values.layer);
    ck_assert_ptr_null(known.values.stages);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error_of_memory)
{
    name_everything();
    int status = LEAT_ENOMEM, n = 0;
    for (; status != LEAT_OK; n++) {
        static const leat__layer_options none;
        ck_assert_int_lt(n, 20);
        leat__alloc_fail_at(n);
        status = init();
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        if (status)
            ck_assert_mem_eq(&known, &none, sizeof(none));
    }
    /* Name, device, two files, two tops and the mean's values. */
    ck_assert_int_eq(n - 1, 7);
}
END_TEST

/* What the options come to, names of the layer and the device apart, which are
   copies at addresses of their own. */
static leat__layer_options resolve(const leat_data_layer_options *given)
{
    leat__layer_options out;
    leat__layer_options_finish(&known);
    ck_assert_msg(leat__layer_options_init(&known, given) == LEAT_OK, "%s",
                  leat_last_error());
    ck_assert_str_eq(known.name, "data");
    ck_assert_str_eq(known.device, "cpu");
    memcpy(&out, &known, sizeof(out));
    out.name = out.device = NULL;
    out.values.name = out.values.device = NULL;
    return out;
}

/* All bytes of it, so that a field of the future is compared too. */
static void assert_same(const leat_data_layer_options *zeros,
                        const leat_data_layer_options *written,
                        const char *field)
{
    const leat__layer_options one = resolve(zeros);
    const leat__layer_options other = resolve(written);
    const void *bytes = &one;
    const void *others = &other;
    ck_assert_msg(memcmp(bytes, others, sizeof(one)) == 0, "%s", field);
}

static leat_data_layer_options zeroed(void)
{
    leat_data_layer_options out;
    memset(&out, 0, sizeof(out));
    out.size = sizeof(out);
    out.batch_size = 4; /* has no default */
    return out;
}

START_TEST(zero_is_the_default_of_every_field)
{
    static leat_data_layer_options written = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer_options zeros = zeroed();
    written.batch_size = 4;
    assert_same(&zeros, &written, "all");
    ck_assert_int_eq(known.values.prefetch, 4);
    ck_assert_int_eq(known.values.world_size, 1);
    ck_assert_int_eq(known.values.random_seed, -1);
    ck_assert_int_eq(known.values.max_errors, -1);
    ck_assert_int_eq(known.values.top_type, LEAT_FLOAT32);
    ck_assert(known.transform.options.scale == 1);
    const leat_data_layer_options named = {.size = sizeof(named),
                                           .batch_size = 4};
    assert_same(&named, &written, "a designated initialiser");
}
END_TEST

/* Each field of a zeroed struct, set alone, does what it does after INIT, and
   INIT writes nothing that setting the field back to zero would change. */
START_TEST(each_field_works_alone_in_a_zeroed_struct)
{
#define FIELD(name, value)                                                     \
    {                                                                          \
#name, offsetof(leat_data_layer_options, name),                        \
            sizeof(((leat_data_layer_options *)0)->name), value                \
    }
    static const struct {
        const char *name;
        size_t offset, size;
        int64_t value;
    } fields[] = {
        FIELD(phase, LEAT_TEST),
        FIELD(batch_size, 9),
        FIELD(global_batch_size, 4),
        FIELD(prefetch, 7),
        FIELD(prefetch, LEAT_PREFETCH_AUTO),
        FIELD(top_type, LEAT_FLOAT64),
        FIELD(label_type, LEAT_INT64),
        FIELD(layout, LEAT_NHWC),
        FIELD(top_mode, LEAT_TOP_COPY),
        FIELD(rng, LEAT_RNG_CAFFE),
        FIELD(random_seed, 5),
        FIELD(random_seed, -1),
        FIELD(world_size, 3),
        FIELD(shard_test, 1),
        FIELD(workers, 2),
        FIELD(reader_thread, LEAT_READER_OFF),
        FIELD(caller_helps, LEAT_CALLER_HELPS_OFF),
        FIELD(max_memory, 1 << 20),
        FIELD(level, 2),
        FIELD(on_error, LEAT_ON_ERROR_ZERO),
        FIELD(max_errors, -1),
        FIELD(must_pin, 1),
        FIELD(transform_on, LEAT_TRANSFORM_ON_DEVICE),
        FIELD(max_image_bytes, 12345),
    };
#undef FIELD
    static leat_data_layer_options written;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        leat_data_layer_options zeros = zeroed();
        written = zeros;
        ck_assert_int_eq(leat_data_layer_options_init(&written), LEAT_OK);
        written.batch_size = 4;
        /* The low bytes of a little-endian number. */
        memcpy((char *)&zeros + fields[i].offset, &fields[i].value,
               fields[i].size);
        memcpy((char *)&written + fields[i].offset, &fields[i].value,
               fields[i].size);
        assert_same(&zeros, &written, fields[i].name);
        const int64_t zero = 0;
        if (fields[i].offset == offsetof(leat_data_layer_options, batch_size))
            continue;
        memcpy((char *)&written + fields[i].offset, &zero, fields[i].size);
        zeros = zeroed();
        assert_same(&zeros, &written, fields[i].name);
    }
}
END_TEST

START_TEST(a_zero_that_is_meant_has_its_flag)
{
    leat_data_layer_options zeros = zeroed();
    leat_transform_options none = {.size = sizeof(none), .has_scale = 1};
    zeros.transform = &none;
    zeros.has_random_seed = 1;
    zeros.has_max_errors = 1;
    zeros.on_error = LEAT_ON_ERROR_ZERO;
    options = zeros;
    assert_taken();
    ck_assert_int_eq(known.values.random_seed, 0);
    ck_assert_int_eq(known.values.max_errors, 0);
    ck_assert(known.transform.options.scale == 0);
    /* What is in force may be given again. */
    options = known.values;
    none = known.transform.options;
    options.transform = &none;
    options.name = options.device = NULL;
    leat__layer_options first = known;
    memset(&known, 0, sizeof(known));
    assert_taken();
    ck_assert_int_eq(known.values.random_seed, 0);
    ck_assert_int_eq(known.values.max_errors, 0);
    ck_assert(known.transform.options.scale == 0);
    leat__layer_options_finish(&first);
}
END_TEST

START_TEST(init_writes_no_more_than_the_caller_has)
{
    leat_data_layer_options some;
    memset(&some, 0x55, sizeof(some));
    some.size = offsetof(leat_data_layer_options, workers);
    ck_assert_int_eq(leat_data_layer_options_init(&some), LEAT_OK);
    ck_assert_uint_eq(some.size, offsetof(leat_data_layer_options, workers));
    ck_assert_int_eq(some.prefetch, LEAT_PREFETCH_DEFAULT);
    ck_assert_ptr_null(some.transform);
    ck_assert_int_eq(some.world_size, 1);
    ck_assert_int_eq(some.workers, 0x55555555);
    leat_data_layer_options later[2]; /* of a later leat */
    memset(later, 0x55, sizeof(later));
    later[0].size = sizeof(later);
    ck_assert_int_eq(leat_data_layer_options_init(later), LEAT_OK);
    ck_assert_int_eq(later[0].workers, 0);
    ck_assert_int_eq(later[1].workers, 0);
    some.size = 0;
    ck_assert_int_eq(leat_data_layer_options_init(&some), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "size 0"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_layer_options");
    TCase *tcase = tcase_create("data_layer_options");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_number_is_taken_up_to_its_bounds);
    tcase_add_test(tcase,
                   errors_may_be_limited_where_there_is_something_to_count);
    tcase_add_test(tcase, a_rank_is_below_the_number_of_ranks);
    tcase_add_test(tcase, a_global_batch_is_divided_among_all_ranks);
    tcase_add_test(tcase, a_step_is_the_number_of_ranks_that_share);
    tcase_add_test(tcase, types_are_those_that_tops_and_labels_may_have);
    tcase_add_test(tcase, doubles_are_not_made_on_a_device);
    tcase_add_test(tcase, an_images_bound_follows_the_memory);
    tcase_add_test(tcase, tops_are_named_up_to_as_many_as_there_may_be);
    tcase_add_test(tcase, an_allocator_has_its_size_alloc_and_free);
    tcase_add_test(tcase, what_was_not_initialised_is_refused);
    tcase_add_test(tcase,
                   a_longer_struct_has_only_defaults_beyond_what_is_known);
    tcase_add_test(tcase, means_come_with_their_number);
    tcase_add_test(tcase, what_the_caller_gave_may_go);
    tcase_add_test(tcase, every_failed_allocation_is_an_error_of_memory);
    tcase_add_test(tcase, zero_is_the_default_of_every_field);
    tcase_add_test(tcase, each_field_works_alone_in_a_zeroed_struct);
    tcase_add_test(tcase, a_zero_that_is_meant_has_its_flag);
    tcase_add_test(tcase, init_writes_no_more_than_the_caller_has);
    return suite_run(suite);
}
