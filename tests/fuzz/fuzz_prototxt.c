/* fuzz_prototxt.c: any text as a net file, in both phases. */
#include <leat/config.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keeps what is read from being optimised away. */
static volatile size_t sink;

/* Reads every text that the options lead to. */
static size_t touch(const leat_net *net)
{
    const leat_data_layer_options *options = leat_net_options(net);
    const leat_transform_options *transform = options->transform;
    size_t sum = options->name ? strlen(options->name) : 0;
    for (int i = 0; i < leat_net_top_count(net); i++)
        sum += strlen(leat_net_top_name(net, i)) + strlen(options->tops[i]);
    sum += transform->mean_file ? strlen(transform->mean_file) : 0;
    for (int i = 0; i < transform->mean_values; i++)
        sum += transform->mean_value[i] > 0;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int phase = LEAT_TRAIN; phase <= LEAT_TEST; phase++) {
        leat_net *net;
        if (leat_net_parse(&net, "net", (const char *)data, size,
                           (leat_phase)phase, NULL))
            continue;
        sink += touch(net);
        leat_net_close(net);
    }
    return 0;
}
