/* first_batch: three batches of a Caffe net's data layer, in a page. */
#include <leat.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *net = argc > 1 ? argv[1] : "train_test.prototxt";
    const float *label = NULL;
    leat_data_layer *layer = NULL;
    leat_blob *data = NULL, *labels = NULL;
    int failed =
        leat_data_layer_create_from_net(&layer, net, LEAT_TRAIN, NULL) ||
        leat_data_layer_setup(layer, NULL, 0) ||
        !(data = leat_data_layer_top(layer, 0)) ||
        !(labels = leat_data_layer_top(layer, 1));
    for (int batch = 0; batch < 3 && !failed; batch++) {
        failed = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST) ||
                 !(label = leat_blob_cpu_data(labels));
        if (!failed)
            printf("%d images, %d values, first label %g\n",
                   (int)leat_blob_dim(data, 0), (int)leat_blob_count(data),
                   label[0]);
    }
    if (failed)
        fprintf(stderr, "first_batch: %s\n", leat_last_error());
    leat_data_layer_destroy(layer);
    return failed;
}
