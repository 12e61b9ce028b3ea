/* fuzz_mean.c: any bytes as a mean file. */
#include "data/mean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keeps what is read from being optimised away. */
static volatile double sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat__mean mean;
    if (leat__mean_parse(&mean, "mean", data, size))
        return 0;
    int64_t n = (int64_t)mean.channels * mean.height * mean.width;
    for (int64_t i = 0; i < n; i++)
        sink += mean.values[i];
    leat__mean_finish(&mean);
    return 0;
}
