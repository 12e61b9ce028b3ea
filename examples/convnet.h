/* convnet.h: a small convolutional net, trained on the CPU with BLAS. */
#ifndef CONVNET_H
#define CONVNET_H

#include <stddef.h>
#include <stdint.h>

/*
 * A chain of layers that ends in a softmax loss. Images go through as
 * n x height x width x channels (NHWC), so that a patch of an image is a few
 * long runs of floats, and the rows of a convolution's output are the rows of
 * one matrix product over the whole batch.
 *
 * All memory is taken by convnet_create. The same seed, batches and number of
 * BLAS threads give the same weights, bit for bit.
 */
typedef struct convnet convnet;

typedef enum convnet_kind {
    CONVNET_CONVOLUTION,   /* kernel x kernel, stride 1, no padding */
    CONVNET_MAX_POOLING,   /* kernel x kernel, stride kernel */
    CONVNET_RELU,          /* in place; not the first layer */
    CONVNET_INNER_PRODUCT, /* of the whole image */
} convnet_kind;

typedef struct convnet_layer {
    convnet_kind kind;
    int outputs; /* channels, of CONVOLUTION and INNER_PRODUCT */
    int kernel;  /* pixels, of CONVOLUTION and MAX_POOLING */
} convnet_layer;

enum { CONVNET_OK = 0, CONVNET_NO_MEMORY = -1, CONVNET_BAD_SHAPE = -2 };

/*
 * Makes a net for batches of up to `batch` images. The last layer's outputs are
 * the classes. Owned by the caller: convnet_destroy.
 * CONVNET_BAD_SHAPE when an image is too small for a kernel, or too large.
 */
int convnet_create(convnet **out, const convnet_layer layers[], int nlayers,
                   int batch, int height, int width, int channels,
                   uint64_t seed);

/* Takes NULL. */
void convnet_destroy(convnet *net);

/*
 * Runs `n` images through the net, and returns their mean loss. Each label is a
 * whole number in [0, classes). The images are borrowed until backward.
 */
double convnet_forward(convnet *net, const float *images, const float *labels,
                       int n);

/* How many of the last forward's images the net put in their class. */
int convnet_correct(const convnet *net);

/* Computes the gradients of the last forward's loss. Once for each forward. */
void convnet_backward(convnet *net);

/* One step of SGD: v = momentum v - rate (gradient + decay w); w = w + v. */
void convnet_update(convnet *net, float rate, float momentum, float decay);

/* All weights and biases, and their gradients, in the same order. */
size_t convnet_parameter_count(const convnet *net);
float *convnet_parameters(convnet *net);
const float *convnet_gradients(const convnet *net);

#endif
