/* first_batch: three batches of a Caffe net's data layer, in a page. */
#include <leat.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *net = argc > 1 ? argv[1] : "train_test.prototxt";
    const float *label = NULL;
    leat_data_layer *layer = NULL;
    leat_blob *top[2] = {NULL, NULL};
    int failed =
        leat_data_layer_create_from_net(&layer, net, LEAT_TRAIN, NULL) ||
        leat_blob_create(&top[0], NULL) || leat_blob_create(&top[1], NULL) ||
        leat_data_layer_setup(layer, top, 2);
    for (int batch = 0; batch < 3 && !failed; batch++) {
        failed = leat_data_layer_forward(layer, top, 2, LEAT_HOST) ||
                 !(label = leat_blob_cpu_data(top[1]));
        if (!failed)
            printf("%d x %d x %d x %d, first label %g\n",
                   (int)leat_blob_dim(top[0], 0), (int)leat_blob_dim(top[0], 1),
                   (int)leat_blob_dim(top[0], 2), (int)leat_blob_dim(top[0], 3),
                   label[0]);
    }
    if (failed)
        fprintf(stderr, "first_batch: %s\n", leat_last_error());
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    return failed;
}
