/*
 * train_digits: trains a small convolutional net on what leat's data layer
 * delivers, and says how often it is right on the records of the test phase.
 */
#include "convnet.h"

#include <leat.h>

#include <cblas.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Exit statuses. */
enum { DONE = 0, FAILED = 1, USAGE = 2, INTERRUPTED = 130 };

#define CLASSES 10

/*
 * Training takes this many passes over the records, within these bounds: a
 * quarter of a minute at most on two cores, and the same each time.
 */
#define PASSES 10
#define IMAGES_MIN 40000
#define IMAGES_MAX 120000

#define RATE 0.05
#define MOMENTUM 0.9f
#define DECAY 5e-4f

typedef struct settings {
    const char *net;
    int64_t iterations; /* 0: as the number of records wants */
    int64_t seed;
    int threads; /* of BLAS; leat has its own */
} settings;

/* A data layer with its tops, and how long forward took. */
typedef struct feed {
    leat_data_layer *layer;
    leat_blob *top[2]; /* the layer's own */
    int64_t shape[4];  /* n x height x width x channels */
    int64_t records;   /* in an epoch */
    int64_t valid;     /* images of the batch; the rest of it is padding */
    double waited;     /* seconds */
} feed;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether there is a progress bar, which the next line takes the place of. */
static int bar_open;

static void end_bar(void)
{
    if (bar_open)
        fputs("\r\033[K", stdout);
    fflush(stdout);
    bar_open = 0;
}

static int fail(const char *line)
{
    end_bar();
    fprintf(stderr, "train_digits: %s\n", line);
    return FAILED;
}

static int fail_leat(void)
{
    return fail(leat_last_error());
}

/* Whether the tops are what the net can take: NHWC floats of one shape. */
static int check_tops(const feed *f)
{
    for (int i = 0; i < 4; i++)
        if (leat_blob_ndim(f->top[0]) != 4 ||
            leat_blob_dim(f->top[0], i) != f->shape[i])
            return fail("the images differ in shape from batch to batch");
    if (leat_blob_dtype(f->top[0]) != LEAT_FLOAT32 ||
        leat_blob_dtype(f->top[1]) != LEAT_FLOAT32)
        return fail("the tops must be float32");
    return DONE;
}

static int feed_open(feed *f, const settings *s, leat_phase phase)
{
    const leat_data_layer_options options = {
        .size = sizeof(options),
        .layout = LEAT_NHWC,
        .random_seed = s->seed,
        .has_random_seed = 1, /* 0 is a seed too */
    };
    if (leat_data_layer_create_from_net(&f->layer, s->net, phase, &options))
        return fail_leat();
    if (leat_data_layer_top_count(f->layer) != 2)
        return fail("the data layer needs two tops, images and labels");
    if (leat_data_layer_get_options(f->layer)->layout != LEAT_NHWC)
        return fail("the data layer must leave the layout open");
    if (leat_data_layer_setup(f->layer, NULL, 0) ||
        leat_data_layer_count(f->layer, &f->records))
        return fail_leat();
    for (int i = 0; i < 2; i++)
        f->top[i] = leat_data_layer_top(f->layer, i);
    for (int i = 0; i < 4; i++)
        f->shape[i] = leat_blob_dim(f->top[0], i);
    return check_tops(f);
}

static void feed_close(feed *f)
{
    leat_data_layer_destroy(f->layer);
}

static int check_labels(const feed *f, const float *labels)
{
    const leat_batch *batch = leat_data_layer_batch(f->layer);
    for (int64_t i = 0; i < f->valid; i++) {
        if (labels[i] >= 0.0f && labels[i] < CLASSES &&
            labels[i] == floorf(labels[i]))
            continue;
        end_bar();
        fprintf(stderr,
                "train_digits: %s: record %" PRId64
                ": label %g, expected 0 to %d\n",
                batch->from[i].source, batch->from[i].record, labels[i],
                CLASSES - 1);
        return FAILED;
    }
    return DONE;
}

/* The next batch, borrowed until the one after it. */
static int feed_next(feed *f, const float **images, const float **labels)
{
    double start = seconds();
    int rc = leat_data_layer_forward(f->layer, NULL, 0, LEAT_HOST);
    f->waited += seconds() - start;
    if (rc)
        return fail_leat();
    if (check_tops(f))
        return FAILED;
    f->valid = leat_data_layer_batch(f->layer)->valid;
    *images = leat_blob_cpu_data(f->top[0]);
    *labels = leat_blob_cpu_data(f->top[1]);
    if (!*images || !*labels)
        return fail_leat();
    return check_labels(f, *labels);
}

static int make_net(convnet **net, const feed *train, const feed *test,
                    const settings *s)
{
    static const convnet_layer layers[] = {
        {CONVNET_CONVOLUTION, 16, 5},
        {CONVNET_MAX_POOLING, 0, 2},
        {CONVNET_RELU, 0, 0},
        {CONVNET_CONVOLUTION, 32, 5},
        {CONVNET_MAX_POOLING, 0, 2},
        {CONVNET_RELU, 0, 0},
        {CONVNET_INNER_PRODUCT, 128, 0},
        {CONVNET_RELU, 0, 0},
        {CONVNET_INNER_PRODUCT, CLASSES, 0},
    };
    const int64_t *shape = train->shape;
    for (int i = 1; i < 4; i++)
        if (shape[i] != test->shape[i])
            return fail("the images to train and to test differ in shape");
    int64_t batch = shape[0] > test->shape[0] ? shape[0] : test->shape[0];
    int rc = convnet_create(net, layers, sizeof(layers) / sizeof(layers[0]),
                            (int)batch, (int)shape[1], (int)shape[2],
                            (int)shape[3], (uint64_t)s->seed);
    if (rc == CONVNET_NO_MEMORY)
        return fail("out of memory for the net");
    if (rc == CONVNET_BAD_SHAPE)
        return fail("images or batches of this size do not suit the net");
    return DONE;
}

/* The terminal's width, which may change at any time. */
static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return 80;
    return size.ws_col;
}

/* The tool's bar. On a narrow terminal it is shorter, and what leaves it no
   room is left out: a line that wrapped could not be drawn over. */
static void show_bar(int64_t done, int64_t all, double loss, double rate,
                     double elapsed)
{
    enum { WIDTH = 30, LEAST_WIDTH = 10, PARTS = 3 };
    char bar[WIDTH + 1], text[160], part[PARTS][48];
    int room = terminal_columns() - 1 - (int)strlen("[]");
    double left = (double)(all - done) / (double)done;
    snprintf(text, sizeof(text), " %3d %%", (int)(done * 100 / all));
    snprintf(part[0], sizeof(part[0]), "  loss %.4f", loss);
    snprintf(part[1], sizeof(part[1]), "  %.0f images/s", rate);
    snprintf(part[2], sizeof(part[2]), "  %.0f s left", left * elapsed);
    for (int i = 0; i < PARTS; i++)
        if ((int)(strlen(text) + strlen(part[i])) + LEAST_WIDTH <= room)
            strcat(text, part[i]);
    room -= (int)strlen(text);
    int width = room < WIDTH ? room : WIDTH;
    for (int i = 0; i < width; i++)
        bar[i] = i < (int)(done * width / all) ? '#' : '.';
    bar[width < 0 ? 0 : width] = 0;
    printf("\r[%s]%s\033[K", bar, text);
    bar_open = 1;
    fflush(stdout);
}

/*
 * Shows how far training is: a bar on a terminal, redrawn ten times a second;
 * ten lines anywhere else.
 */
static void show_progress(int64_t done, int64_t all, double loss, double start,
                          double images)
{
    static double drawn;
    double now = seconds();
    double rate = images / (now - start);
    if (isatty(STDOUT_FILENO)) {
        if (done < all && now - drawn < 0.1)
            return;
        show_bar(done, all, loss, rate, now - start);
        drawn = now;
    } else if (done == all || done * 10 / all != (done - 1) * 10 / all) {
        printf("iteration %" PRId64 " of %" PRId64
               ", loss %.4f, %.0f images/s\n",
               done, all, loss, rate);
    }
}

static int64_t choose_iterations(const feed *train, const settings *s)
{
    if (s->iterations)
        return s->iterations;
    int64_t images = IMAGES_MAX;
    if (train->records < IMAGES_MAX / PASSES)
        images = train->records * PASSES;
    if (images < IMAGES_MIN)
        images = IMAGES_MIN;
    return (images + train->shape[0] - 1) / train->shape[0];
}

/* Trains with a rate that falls to zero in a straight line. */
static int train_net(convnet *net, feed *train, int64_t iterations,
                     double *elapsed)
{
    double start = seconds();
    double shown = 0.0;
    for (int64_t i = 0; i < iterations; i++) {
        const float *images;
        const float *labels;
        if (feed_next(train, &images, &labels))
            return FAILED;
        double loss = convnet_forward(net, images, labels, (int)train->valid);
        if (!isfinite(loss))
            return fail("training diverged: are the images scaled to 0..1?");
        convnet_backward(net);
        double left = (double)(iterations - i) / (double)iterations;
        convnet_update(net, (float)(RATE * left), MOMENTUM, DECAY);
        shown = i ? 0.95 * shown + 0.05 * loss : loss;
        show_progress(i + 1, iterations, shown, start,
                      (double)((i + 1) * train->shape[0]));
        if (interrupted)
            return INTERRUPTED;
    }
    end_bar();
    *elapsed = seconds() - start;
    return DONE;
}

/* What bounds the feed, or does not, and by what evidence. */
static int print_verdict(const feed *f)
{
    char verdict[LEAT_VERDICT_MAX];
    leat_stats stats = {.size = sizeof(stats)};
    if (leat_data_layer_stats(f->layer, &stats) ||
        leat_stats_verdict(&stats, NULL, verdict))
        return fail_leat();
    printf("verdict: %s\n", verdict);
    return DONE;
}

/*
 * One pass over the test records. Of a net file whose batches run on into the
 * next epoch the last one counts in part.
 */
static int test_net(convnet *net, feed *test, double *accuracy)
{
    int64_t correct = 0;
    for (int64_t done = 0; done < test->records; done += test->valid) {
        const float *images;
        const float *labels;
        if (feed_next(test, &images, &labels))
            return FAILED;
        int64_t n = test->records - done;
        convnet_forward(net, images, labels,
                        (int)(n < test->valid ? n : test->valid));
        correct += convnet_correct(net);
        if (interrupted)
            return INTERRUPTED;
    }
    *accuracy = 100.0 * (double)correct / (double)test->records;
    return DONE;
}

static int run(const settings *s, feed *train, feed *test, convnet **net)
{
    double elapsed;
    double accuracy;
    if (feed_open(train, s, LEAT_TRAIN) || feed_open(test, s, LEAT_TEST) ||
        make_net(net, train, test, s))
        return FAILED;
    int64_t iterations = choose_iterations(train, s);
    printf("%" PRId64 " records to train on, %" PRId64 " to test; %" PRId64
           " iterations of %" PRId64 " images\n",
           train->records, test->records, iterations, train->shape[0]);
    int rc = train_net(*net, train, iterations, &elapsed);
    if (rc == DONE)
        rc = print_verdict(train);
    if (rc == DONE)
        rc = test_net(*net, test, &accuracy);
    if (rc)
        return rc;
    printf("accuracy: %.1f %%\n", accuracy);
    printf("images/s: %.0f\n",
           (double)(iterations * train->shape[0]) / elapsed);
    printf("waited for data: %.1f %%\n", 100.0 * train->waited / elapsed);
    return DONE;
}

/* A whole number from `least` on; anything else is wrong usage. */
static int parse_number(const char *text, int64_t least, int64_t *out)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < least || number > INT32_MAX)
        return USAGE;
    *out = number;
    return DONE;
}

static int usage(FILE *to)
{
    fputs("usage: train_digits [--iterations N] [--seed S] [--threads N] "
          "NET.prototxt\n"
          "Trains a small net on the TRAIN phase of the net file's data layer "
          "and tests it\non its TEST phase. --threads is for BLAS; default "
          "1, which leaves leat a core.\n",
          to);
    return to == stdout ? DONE : USAGE;
}

static int parse_arguments(int argc, char **argv, settings *s)
{
    static const struct option known[] = {
        {"iterations", required_argument, NULL, 'i'},
        {"seed", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int64_t threads = 1;
    int rc = DONE;
    int option;
    while (rc == DONE &&
           (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'i':
            rc = parse_number(optarg, 1, &s->iterations);
            break;
        case 's':
            rc = parse_number(optarg, 0, &s->seed);
            break;
        case 't':
            rc = parse_number(optarg, 1, &threads);
            break;
        case 'h':
            exit(usage(stdout));
        default:
            rc = USAGE;
        }
    }
    if (rc || optind != argc - 1)
        return usage(stderr);
    s->net = argv[optind];
    s->threads = (int)threads;
    return DONE;
}

int main(int argc, char **argv)
{
    settings s = {.seed = 1};
    feed train = {0};
    feed test = {0};
    convnet *net = NULL;
    int rc = parse_arguments(argc, argv, &s);
    if (rc)
        return rc;
    /* Each line is seen at once, also at the other end of a pipe. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* The second Ctrl-C ends the program at once. */
    struct sigaction action = {.sa_handler = on_interrupt,
                               .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    openblas_set_num_threads(s.threads);
    rc = run(&s, &train, &test, &net);
    if (rc == INTERRUPTED)
        fail("interrupted");
    convnet_destroy(net);
    feed_close(&test);
    feed_close(&train);
    return rc;
}
