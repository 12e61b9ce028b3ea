/* A stranger's program: asks leat for a data layer and reads its error line. */
#include <leat.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer = NULL;
    int status = leat_data_layer_create_from_net(&layer, "no/such/net.prototxt",
                                                 LEAT_TRAIN, &options);
    leat_data_layer_destroy(layer);
    if (status >= 0 || strstr(leat_last_error(), "no/such/net") == NULL) {
        printf("%s: expected an error about the net: %s\n",
               leat_status_name(status), leat_last_error());
        return 1;
    }
    printf("leat %s: %s\n", leat_version(), leat_last_error());
    return 0;
}
