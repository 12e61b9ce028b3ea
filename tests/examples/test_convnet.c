#include "convnet.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Enough for more than one chunk of patches. */
#define IMAGES 30
#define SIDE 12
#define CHANNELS 3
#define PIXELS (IMAGES * SIDE * SIDE * CHANNELS)
#define CLASSES 5

static float images[PIXELS];
static float labels[IMAGES];

/* Each image is noise, and has a class of its own making. */
static void draw_images(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        images[i] = (float)(state >> 8) * 0x1p-24f;
    }
    for (int i = 0; i < IMAGES; i++)
        labels[i] = (float)(i % CLASSES);
}

static convnet *make_net(const convnet_layer *layers, int n, int batch,
                         uint64_t seed)
{
    convnet *net = NULL;
    ck_assert_int_eq(
        convnet_create(&net, layers, n, batch, SIDE, SIDE, CHANNELS, seed),
        CONVNET_OK);
    return net;
}

static double loss_with(convnet *net, size_t at, float value)
{
    float *parameters = convnet_parameters(net);
    float kept = parameters[at];
    parameters[at] = value;
    double loss = convnet_forward(net, images, labels, IMAGES);
    parameters[at] = kept;
    return loss;
}

/*
 * Compares gradients with central differences. Where a step crosses the edge of
 * a ReLU or another pixel wins a pooling window, the slopes of its two halves
 * differ and say little; such places are few, which is checked too.
 */
static void check_gradients(const convnet_layer *layers, int n)
{
    const float step = 0.001f;
    convnet *net = make_net(layers, n, IMAGES, 7);
    size_t count = convnet_parameter_count(net);
    double loss = convnet_forward(net, images, labels, IMAGES);
    convnet_backward(net);
    int compared = 0;
    int smooth = 0;
    for (size_t i = 0; i < count; i += 1 + count / 400, compared++) {
        float w = convnet_parameters(net)[i];
        double up = (loss_with(net, i, w + step) - loss) / step;
        double down = (loss - loss_with(net, i, w - step)) / step;
        if (fabs(up - down) > 0.02 * fabs(up) + 0.004)
            continue;
        smooth++;
        ck_assert_double_eq_tol(convnet_gradients(net)[i], (up + down) / 2,
                                fabs(up - down) + 0.02 * fabs(up) + 0.001);
    }
    ck_assert_int_gt(smooth * 10, compared * 9);
    convnet_destroy(net);
}

START_TEST(gradients_of_an_inner_product_are_the_slopes_of_the_loss)
{
    const convnet_layer layers[] = {{CONVNET_INNER_PRODUCT, CLASSES, 0}};
    check_gradients(layers, 1);
}
END_TEST

START_TEST(gradients_go_back_through_an_inner_product)
{
    const convnet_layer layers[] = {{CONVNET_INNER_PRODUCT, 7, 0},
                                    {CONVNET_INNER_PRODUCT, CLASSES, 0}};
    check_gradients(layers, 2);
}
END_TEST

START_TEST(gradients_go_back_through_a_relu)
{
    const convnet_layer layers[] = {{CONVNET_INNER_PRODUCT, 7, 0},
                                    {CONVNET_RELU, 0, 0},
                                    {CONVNET_INNER_PRODUCT, CLASSES, 0}};
    check_gradients(layers, 3);
}
END_TEST

START_TEST(gradients_go_back_through_two_convolutions)
{
    const convnet_layer layers[] = {{CONVNET_CONVOLUTION, 4, 3},
                                    {CONVNET_CONVOLUTION, 6, 5},
                                    {CONVNET_INNER_PRODUCT, CLASSES, 0}};
    check_gradients(layers, 3);
}
END_TEST

/* 10 x 10 pooled by 3 leaves a row and a column that no window covers. */
START_TEST(gradients_go_back_through_max_pooling)
{
    const convnet_layer layers[] = {{CONVNET_CONVOLUTION, 4, 3},
                                    {CONVNET_MAX_POOLING, 0, 3},
                                    {CONVNET_INNER_PRODUCT, CLASSES, 0}};
    check_gradients(layers, 3);
}
END_TEST

START_TEST(max_pooling_takes_the_largest_of_each_window)
{
    const convnet_layer layers[] = {{CONVNET_MAX_POOLING, 0, 2}};
    const float image[] = {1, 2, 5, 4, 9, 3, 7, 8};
    const float zero = 0;
    convnet *net = NULL;
    /* 2 x 4 pixels give two classes, of scores 9 and 8. */
    ck_assert_int_eq(convnet_create(&net, layers, 1, 1, 2, 4, 1, 1),
                     CONVNET_OK);
    ck_assert_double_eq_tol(convnet_forward(net, image, &zero, 1),
                            log(1 + exp(-1)), 1e-6);
    ck_assert_int_eq(convnet_correct(net), 1);
    convnet_destroy(net);
}
END_TEST

static const convnet_layer small_net[] = {
    {CONVNET_CONVOLUTION, 8, 3}, {CONVNET_MAX_POOLING, 0, 2},
    {CONVNET_RELU, 0, 0},        {CONVNET_INNER_PRODUCT, 16, 0},
    {CONVNET_RELU, 0, 0},        {CONVNET_INNER_PRODUCT, CLASSES, 0},
};
#define SMALL_NET_LAYERS 6

static double train(convnet *net, int iterations)
{
    double loss = 0.0;
    for (int i = 0; i < iterations; i++) {
        loss = convnet_forward(net, images, labels, IMAGES);
        convnet_backward(net);
        convnet_update(net, 0.02f, 0.9f, 0.0f);
    }
    return loss;
}

START_TEST(training_on_a_few_images_learns_them_by_heart)
{
    convnet *net = make_net(small_net, SMALL_NET_LAYERS, IMAGES, 3);
    ck_assert_double_gt(convnet_forward(net, images, labels, IMAGES), 0.5);
    ck_assert_double_lt(train(net, 300), 0.01);
    ck_assert_int_eq(convnet_correct(net), IMAGES);
    convnet_destroy(net);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_weights)
{
    convnet *net[3];
    for (int i = 0; i < 3; i++) {
        net[i] = make_net(small_net, SMALL_NET_LAYERS, IMAGES, i < 2 ? 3 : 4);
        train(net[i], 20);
    }
    size_t bytes = convnet_parameter_count(net[0]) * sizeof(float);
    const float *first = convnet_parameters(net[0]);
    ck_assert_mem_eq(first, convnet_parameters(net[1]), bytes);
    ck_assert_mem_ne(first, convnet_parameters(net[2]), bytes);
    for (int i = 0; i < 3; i++)
        convnet_destroy(net[i]);
}
END_TEST

START_TEST(an_update_follows_momentum_and_weight_decay)
{
    convnet *net = make_net(small_net, SMALL_NET_LAYERS, IMAGES, 3);
    float before = convnet_parameters(net)[0];
    /* Without a backward all gradients are still zero. */
    convnet_update(net, 0.5f, 0.5f, 0.5f);
    ck_assert_float_eq_tol(convnet_parameters(net)[0], 0.75f * before, 1e-6f);
    convnet_update(net, 0.5f, 0.5f, 0.5f);
    ck_assert_float_eq_tol(convnet_parameters(net)[0], 0.4375f * before, 1e-6f);
    convnet_destroy(net);
}
END_TEST

START_TEST(a_batch_gives_the_mean_of_its_images)
{
    convnet *net = make_net(small_net, SMALL_NET_LAYERS, IMAGES, 5);
    double sum = 0.0;
    int correct = 0;
    for (int i = 0; i < IMAGES; i++) {
        const float *image = images + i * PIXELS / IMAGES;
        sum += convnet_forward(net, image, labels + i, 1);
        correct += convnet_correct(net);
    }
    ck_assert_double_eq_tol(convnet_forward(net, images, labels, IMAGES),
                            sum / IMAGES, 1e-5);
    ck_assert_int_eq(convnet_correct(net), correct);
    convnet_destroy(net);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_refused)
{
    const convnet_layer wide[] = {{CONVNET_CONVOLUTION, 4, 13}};
    const convnet_layer coarse[] = {{CONVNET_MAX_POOLING, 0, 13}};
    const convnet_layer hungry[] = {{CONVNET_INNER_PRODUCT, 1 << 30, 0}};
    const convnet_layer relu[] = {{CONVNET_RELU, 0, 0}};
    const convnet_layer plain[] = {{CONVNET_INNER_PRODUCT, CLASSES, 0}};
    convnet *net = NULL;
    ck_assert_int_eq(convnet_create(&net, wide, 1, 1, 12, 12, 1, 1),
                     CONVNET_BAD_SHAPE);
    ck_assert_int_eq(convnet_create(&net, coarse, 1, 1, 12, 12, 1, 1),
                     CONVNET_BAD_SHAPE);
    ck_assert_int_eq(convnet_create(&net, hungry, 1, 1, 12, 12, 1, 1),
                     CONVNET_BAD_SHAPE);
    ck_assert_int_eq(convnet_create(&net, relu, 1, 1, 12, 12, 1, 1),
                     CONVNET_BAD_SHAPE);
    ck_assert_int_eq(
        convnet_create(&net, plain, 1, 64, 1 << 30, 1 << 30, 1 << 30, 1),
        CONVNET_BAD_SHAPE);
    ck_assert_ptr_null(net);
}
END_TEST

int main(void)
{
    draw_images();
    Suite *suite = suite_create("convnet");
    TCase *tcase = tcase_create("convnet");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   gradients_of_an_inner_product_are_the_slopes_of_the_loss);
    tcase_add_test(tcase, gradients_go_back_through_an_inner_product);
    tcase_add_test(tcase, gradients_go_back_through_a_relu);
    tcase_add_test(tcase, gradients_go_back_through_two_convolutions);
    tcase_add_test(tcase, gradients_go_back_through_max_pooling);
    tcase_add_test(tcase, max_pooling_takes_the_largest_of_each_window);
    tcase_add_test(tcase, training_on_a_few_images_learns_them_by_heart);
    tcase_add_test(tcase, the_same_seed_gives_the_same_weights);
    tcase_add_test(tcase, an_update_follows_momentum_and_weight_decay);
    tcase_add_test(tcase, a_batch_gives_the_mean_of_its_images);
    tcase_add_test(tcase, shapes_that_do_not_fit_are_refused);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
