/*
 * own_reader: adds two readers to leat's, and a data layer reads them by name.
 *
 *     own_reader 'cifar:data_batch_1.bin,channels=3,height=32,width=32'
 */
#include "own_reader.h"

#include <leat.h>

#include <stdio.h>

static int set_up(leat_data_layer **layer, const char *text)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_parse(&pipeline, text);
    if (status)
        return status;
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = 4};
    status = leat_data_layer_create(layer, pipeline, &options);
    leat_pipeline_unref(pipeline); /* the layer has a reference of its own */
    return status ? status : leat_data_layer_setup(*layer, NULL, 0);
}

static int print_batch(leat_data_layer *layer)
{
    leat_blob *top[2];
    int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
    if (status == LEAT_EDATA) { /* one record: the next forward goes on */
        printf("bad: %s\n", leat_last_error());
        return LEAT_OK;
    }
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        if (!(top[i] = leat_data_layer_top(layer, i)))
            status = LEAT_EINVAL;
    const float *pixels = status ? NULL : leat_blob_cpu_data(top[0]);
    const float *labels = status ? NULL : leat_blob_cpu_data(top[1]);
    if (!pixels || !labels)
        return status ? status : LEAT_ENOMEM;
    for (int64_t i = 0; i < leat_blob_dim(top[1], 0); i++)
        printf("%g:%g ", labels[i],
               pixels[i * leat_blob_count(top[0]) / leat_blob_dim(top[0], 0)]);
    printf("\n");
    return LEAT_OK;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: own_reader PIPELINE\n");
        return 2;
    }
    leat_data_layer *layer = NULL;
    int status = leat_reader_register(&reader_fixed);
    if (status == LEAT_OK)
        status = leat_reader_register(&reader_every);
    if (status == LEAT_OK)
        status = set_up(&layer, argv[1]);
    for (int batch = 0; batch < 3 && status == LEAT_OK; batch++)
        status = print_batch(layer);
    if (status)
        fprintf(stderr, "own_reader: %s\n", leat_last_error());
    leat_data_layer_destroy(layer);
    return status != LEAT_OK;
}
