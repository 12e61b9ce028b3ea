#include "convnet.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most floats in one array: BLAS counts rows and columns in int. */
#define MAX_FLOATS ((int64_t)1 << 30)

/*
 * Patches of this many floats are multiplied at a time: about what stays in the
 * second-level cache between their gathering and their use.
 */
#define PATCH_FLOATS ((int64_t)1 << 16)

typedef struct shape {
    int height;
    int width;
    int channels;
} shape;

typedef struct layer {
    convnet_kind kind;
    int kernel;
    shape in;
    shape out;
    int fan_in;       /* rows of the weight matrix: inputs of one output */
    int chunk;        /* images whose patches are multiplied at a time */
    float *weights;   /* fan_in x out.channels */
    float *bias;      /* out.channels */
    float *d_weights; /* gradients of both */
    float *d_bias;
    float *output; /* batch x out; in place: that of the layer before */
    float *d_output;
    int *winners; /* MAX_POOLING: index in the image of each output */
} layer;

struct convnet {
    int nlayers;
    int batch;
    int n; /* images in the last forward */
    int classes;
    int correct;
    layer *layers;
    const float *images;
    int *labels;
    size_t parameter_count;
    float *parameters;
    float *gradients;
    float *velocities;
    float *patches;
    float *d_patches;
    void *memory;
};

static int64_t shape_floats(shape s)
{
    return (int64_t)s.height * s.width * s.channels;
}

/* Whether batch images of that shape can be held in one array. */
static int shape_fits(shape s, int64_t batch)
{
    int64_t floats;
    return s.height > 0 && s.width > 0 && s.channels > 0 &&
           !__builtin_mul_overflow((int64_t)s.height, s.width, &floats) &&
           !__builtin_mul_overflow(floats, s.channels, &floats) &&
           !__builtin_mul_overflow(floats, batch, &floats) &&
           floats <= MAX_FLOATS;
}

static int has_weights(const layer *l)
{
    return l->kind == CONVNET_CONVOLUTION || l->kind == CONVNET_INNER_PRODUCT;
}

/* Fills in a layer's shapes from its description and the layer before. */
static int layer_init(layer *l, const convnet_layer *wanted, shape in,
                      int batch)
{
    l->kind = wanted->kind;
    l->kernel = wanted->kernel;
    l->in = in;
    l->out = in;
    switch (l->kind) {
    case CONVNET_CONVOLUTION:
        l->out.height = in.height - l->kernel + 1;
        l->out.width = in.width - l->kernel + 1;
        l->out.channels = wanted->outputs;
        break;
    case CONVNET_MAX_POOLING:
        l->out.height = in.height / l->kernel;
        l->out.width = in.width / l->kernel;
        break;
    case CONVNET_RELU:
        break;
    case CONVNET_INNER_PRODUCT:
        l->out = (shape){1, 1, wanted->outputs};
        break;
    }
    if (!shape_fits(l->out, batch))
        return CONVNET_BAD_SHAPE;
    shape patch = {l->kernel, l->kernel, in.channels};
    l->fan_in = (int)shape_floats(l->kind == CONVNET_CONVOLUTION ? patch : in);
    shape patches = {l->out.height, l->out.width, l->fan_in};
    if (has_weights(l) &&
        (!shape_fits(patches, 1) ||
         !shape_fits((shape){1, l->fan_in, l->out.channels}, 1)))
        return CONVNET_BAD_SHAPE;
    int64_t chunk = PATCH_FLOATS / shape_floats(patches);
    l->chunk = chunk < 1 ? 1 : chunk < batch ? (int)chunk : batch;
    return CONVNET_OK;
}

/*
 * Takes `n` elements of 4 bytes from the block at `base`, from a cache line on.
 * With base NULL it only counts.
 */
static void *take(char *base, size_t *used, int64_t n)
{
    void *taken = base ? base + *used : NULL;
    *used += ((size_t)n * 4 + 63) / 64 * 64;
    return taken;
}

static void place_parameters(convnet *net, char *base, size_t *used)
{
    int64_t n = 0;
    for (layer *l = net->layers; l < net->layers + net->nlayers; l++)
        if (has_weights(l))
            n += ((int64_t)l->fan_in + 1) * l->out.channels;
    net->parameter_count = (size_t)n;
    net->parameters = take(base, used, n);
    net->gradients = take(base, used, n);
    net->velocities = take(base, used, n);
    size_t at = 0;
    for (layer *l = net->layers; base && l < net->layers + net->nlayers; l++) {
        if (!has_weights(l))
            continue;
        size_t weights = (size_t)l->fan_in * (size_t)l->out.channels;
        l->weights = net->parameters + at;
        l->d_weights = net->gradients + at;
        l->bias = l->weights + weights;
        l->d_bias = l->d_weights + weights;
        at += weights + (size_t)l->out.channels;
    }
}

/* Gives every array its place after `base`; returns the bytes in all. */
static size_t place(convnet *net, char *base)
{
    size_t used = 0;
    int64_t patches = 0;
    place_parameters(net, base, &used);
    for (layer *l = net->layers; l < net->layers + net->nlayers; l++) {
        int64_t floats = net->batch * shape_floats(l->out);
        if (l->kind == CONVNET_RELU) {
            l->output = l[-1].output;
            l->d_output = l[-1].d_output;
            continue;
        }
        l->output = take(base, &used, floats);
        l->d_output = take(base, &used, floats);
        if (l->kind == CONVNET_MAX_POOLING)
            l->winners = take(base, &used, floats);
        shape wanted = {l->out.height, l->out.width, l->fan_in};
        if (l->kind == CONVNET_CONVOLUTION &&
            l->chunk * shape_floats(wanted) > patches)
            patches = l->chunk * shape_floats(wanted);
    }
    net->patches = take(base, &used, patches);
    net->d_patches = take(base, &used, patches);
    net->labels = take(base, &used, net->batch);
    return used;
}

/* Sebastiano Vigna's splitmix64, as a uniform number in [-1, 1). */
static float draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

/* Weights that keep the variance through ReLU (He et al. 2015); biases 0. */
static void draw_weights(convnet *net, uint64_t seed)
{
    for (layer *l = net->layers; l < net->layers + net->nlayers; l++) {
        if (!has_weights(l))
            continue;
        float limit = sqrtf(6.0f / (float)l->fan_in);
        for (float *w = l->weights; w < l->bias; w++)
            *w = limit * draw(&seed);
    }
}

int convnet_create(convnet **out, const convnet_layer layers[], int nlayers,
                   int batch, int height, int width, int channels,
                   uint64_t seed)
{
    int rc = CONVNET_NO_MEMORY;
    shape in = {height, width, channels};
    convnet *net = calloc(1, sizeof(*net));
    if (!net)
        return rc;
    net->layers = calloc((size_t)nlayers, sizeof(*net->layers));
    if (!net->layers)
        goto fail;
    net->nlayers = nlayers;
    net->batch = batch;
    rc = shape_fits(in, batch) && layers[0].kind != CONVNET_RELU
             ? CONVNET_OK
             : CONVNET_BAD_SHAPE;
    for (int i = 0; rc == CONVNET_OK && i < nlayers; i++) {
        rc = layer_init(&net->layers[i], &layers[i], in, batch);
        in = net->layers[i].out;
    }
    if (rc != CONVNET_OK)
        goto fail;
    net->classes = (int)shape_floats(in);
    rc = CONVNET_NO_MEMORY;
    size_t bytes = place(net, NULL);
    net->memory = aligned_alloc(64, bytes);
    if (!net->memory)
        goto fail;
    /* Touched now, so that no page is taken in the first batches. */
    memset(net->memory, 0, bytes);
    place(net, net->memory);
    draw_weights(net, seed);
    *out = net;
    return CONVNET_OK;
fail:
    convnet_destroy(net);
    return rc;
}

void convnet_destroy(convnet *net)
{
    if (!net)
        return;
    free(net->memory);
    free(net->layers);
    free(net);
}

/* Copies each kernel x kernel patch of `n` images to a row of its own. */
static void gather_patches(const layer *l, const float *images, int n,
                           float *row)
{
    size_t stride = (size_t)l->in.width * (size_t)l->in.channels;
    int run = l->kernel * l->in.channels;
    for (int i = 0; i < n; i++, images += shape_floats(l->in))
        for (int y = 0; y < l->out.height; y++)
            for (int x = 0; x < l->out.width; x++) {
                const float *from = images + (size_t)y * stride +
                                    (size_t)x * (size_t)l->in.channels;
                for (int ky = 0; ky < l->kernel; ky++, from += stride)
                    for (int k = 0; k < run; k++)
                        *row++ = from[k];
            }
}

/* The reverse: adds each row to the patch of the images that it stands for. */
static void scatter_patches(const layer *l, const float *row, int n,
                            float *images)
{
    size_t stride = (size_t)l->in.width * (size_t)l->in.channels;
    int run = l->kernel * l->in.channels;
    memset(images, 0, (size_t)(n * shape_floats(l->in)) * sizeof(*images));
    for (int i = 0; i < n; i++, images += shape_floats(l->in))
        for (int y = 0; y < l->out.height; y++)
            for (int x = 0; x < l->out.width; x++) {
                float *to = images + (size_t)y * stride +
                            (size_t)x * (size_t)l->in.channels;
                for (int ky = 0; ky < l->kernel; ky++, to += stride)
                    for (int k = 0; k < run; k++)
                        to[k] += *row++;
            }
}

/* output = rows x weights + bias, for `n` rows of fan_in floats. */
static void multiply(const layer *l, const float *rows, int n, float *output)
{
    int m = l->out.channels;
    for (int i = 0; i < n; i++)
        memcpy(output + (size_t)i * (size_t)m, l->bias,
               (size_t)m * sizeof(*output));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, l->fan_in,
                1.0f, rows, l->fan_in, l->weights, m, 1.0f, output, m);
}

/* Adds the gradients of `n` rows; those of the rows too, unless d_rows NULL. */
static void multiply_back(const layer *l, const float *rows,
                          const float *d_output, int n, float *d_rows)
{
    int m = l->out.channels;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            l->d_bias[k] += d_output[(size_t)i * (size_t)m + (size_t)k];
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, l->fan_in, m, n, 1.0f,
                rows, l->fan_in, d_output, m, 1.0f, l->d_weights, m);
    if (d_rows)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, l->fan_in, m,
                    1.0f, d_output, m, l->weights, m, 0.0f, d_rows, l->fan_in);
}

static void convolve(const convnet *net, const layer *l, const float *input)
{
    int rows = l->out.height * l->out.width;
    for (int i = 0; i < net->n; i += l->chunk) {
        int n = net->n - i < l->chunk ? net->n - i : l->chunk;
        gather_patches(l, input + i * shape_floats(l->in), n, net->patches);
        multiply(l, net->patches, n * rows,
                 l->output + i * shape_floats(l->out));
    }
}

/* The patches are gathered again: keeping them all would cost more memory
 * traffic than copying them twice. */
static void convolve_back(const convnet *net, const layer *l,
                          const float *input, float *d_input)
{
    int rows = l->out.height * l->out.width;
    for (int i = 0; i < net->n; i += l->chunk) {
        int n = net->n - i < l->chunk ? net->n - i : l->chunk;
        gather_patches(l, input + i * shape_floats(l->in), n, net->patches);
        multiply_back(l, net->patches, l->d_output + i * shape_floats(l->out),
                      n * rows, d_input ? net->d_patches : NULL);
        if (d_input)
            scatter_patches(l, net->d_patches, n,
                            d_input + i * shape_floats(l->in));
    }
}

/*
 * Takes the larger of output and pixel for each channel, and notes the index of
 * the pixel that won. Written with a mask so that compilers use vectors.
 */
static void pool_pixel(const float *restrict pixel, int index, int channels,
                       float *restrict output, int *restrict winners)
{
    for (int k = 0; k < channels; k++) {
        int wins = -(pixel[k] > output[k]);
        output[k] = pixel[k] > output[k] ? pixel[k] : output[k];
        winners[k] = (winners[k] & ~wins) | ((index + k) & wins);
    }
}

static void pool_image(const layer *l, const float *image, float *output,
                       int *winners)
{
    int c = l->in.channels;
    for (int y = 0; y < l->out.height; y++)
        for (int x = 0; x < l->out.width; x++, output += c, winners += c) {
            int corner = (y * l->in.width + x) * l->kernel * c;
            for (int k = 0; k < c; k++) {
                output[k] = image[corner + k];
                winners[k] = corner + k;
            }
            for (int i = 1; i < l->kernel * l->kernel; i++) {
                int down = i / l->kernel;
                int right = i % l->kernel;
                int at = corner + (down * l->in.width + right) * c;
                pool_pixel(image + at, at, c, output, winners);
            }
        }
}

static void pool(const convnet *net, const layer *l, const float *input)
{
    for (int i = 0; i < net->n; i++)
        pool_image(l, input + i * shape_floats(l->in),
                   l->output + i * shape_floats(l->out),
                   l->winners + i * shape_floats(l->out));
}

static void pool_back(const convnet *net, const layer *l, float *d_input)
{
    int64_t outputs = shape_floats(l->out);
    memset(d_input, 0,
           (size_t)(net->n * shape_floats(l->in)) * sizeof(*d_input));
    for (int i = 0; i < net->n; i++, d_input += shape_floats(l->in))
        for (int64_t k = i * outputs; k < (i + 1) * outputs; k++)
            d_input[l->winners[k]] += l->d_output[k];
}

static void rectify(const convnet *net, const layer *l)
{
    for (int64_t i = 0; i < net->n * shape_floats(l->out); i++)
        l->output[i] = l->output[i] > 0.0f ? l->output[i] : 0.0f;
}

static void rectify_back(const convnet *net, const layer *l)
{
    for (int64_t i = 0; i < net->n * shape_floats(l->out); i++)
        l->d_output[i] = l->output[i] > 0.0f ? l->d_output[i] : 0.0f;
}

/*
 * The loss of one image, -log softmax(scores)[label], and its gradient, which
 * is softmax(scores), less 1 at the label, over the number of images.
 */
static double softmax(const convnet *net, const float *scores, int label,
                      float *d_scores)
{
    float largest = scores[0];
    double sum = 0.0;
    for (int k = 1; k < net->classes; k++)
        largest = scores[k] > largest ? scores[k] : largest;
    for (int k = 0; k < net->classes; k++)
        sum += exp((double)scores[k] - largest);
    for (int k = 0; k < net->classes; k++)
        d_scores[k] =
            (float)((exp((double)scores[k] - largest) / sum - (k == label)) /
                    net->n);
    return log(sum) - ((double)scores[label] - largest);
}

static double loss(convnet *net, const float *labels)
{
    const layer *last = &net->layers[net->nlayers - 1];
    double sum = 0.0;
    net->correct = 0;
    for (int i = 0; i < net->n; i++) {
        size_t row = (size_t)i * (size_t)net->classes;
        int label = (int)labels[i];
        int best = 0;
        for (int k = 1; k < net->classes; k++)
            if (last->output[row + (size_t)k] >
                last->output[row + (size_t)best])
                best = k;
        net->correct += best == label;
        sum += softmax(net, last->output + row, label, last->d_output + row);
    }
    return sum / net->n;
}

double convnet_forward(convnet *net, const float *images, const float *labels,
                       int n)
{
    const float *input = images;
    net->images = images;
    net->n = n;
    for (layer *l = net->layers; l < net->layers + net->nlayers; l++) {
        switch (l->kind) {
        case CONVNET_CONVOLUTION:
            convolve(net, l, input);
            break;
        case CONVNET_MAX_POOLING:
            pool(net, l, input);
            break;
        case CONVNET_RELU:
            rectify(net, l);
            break;
        case CONVNET_INNER_PRODUCT:
            multiply(l, input, n, l->output);
            break;
        }
        input = l->output;
    }
    return loss(net, labels);
}

int convnet_correct(const convnet *net)
{
    return net->correct;
}

void convnet_backward(convnet *net)
{
    memset(net->gradients, 0, net->parameter_count * sizeof(*net->gradients));
    for (int i = net->nlayers - 1; i >= 0; i--) {
        const layer *l = &net->layers[i];
        const float *input = i ? l[-1].output : net->images;
        float *d_input = i ? l[-1].d_output : NULL;
        switch (l->kind) {
        case CONVNET_CONVOLUTION:
            convolve_back(net, l, input, d_input);
            break;
        case CONVNET_MAX_POOLING:
            if (d_input)
                pool_back(net, l, d_input);
            break;
        case CONVNET_RELU:
            rectify_back(net, l);
            break;
        case CONVNET_INNER_PRODUCT:
            multiply_back(l, input, l->d_output, net->n, d_input);
            break;
        }
    }
}

void convnet_update(convnet *net, float rate, float momentum, float decay)
{
    float *w = net->parameters;
    float *v = net->velocities;
    const float *d = net->gradients;
    for (size_t i = 0; i < net->parameter_count; i++) {
        v[i] = momentum * v[i] - rate * (d[i] + decay * w[i]);
        w[i] += v[i];
    }
}

size_t convnet_parameter_count(const convnet *net)
{
    return net->parameter_count;
}

float *convnet_parameters(convnet *net)
{
    return net->parameters;
}

const float *convnet_gradients(const convnet *net)
{
    return net->gradients;
}
