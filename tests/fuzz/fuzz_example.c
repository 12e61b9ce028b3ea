/*
 * fuzz_example.c: any bytes as a tf.train.Example: leat and protobuf-c read the
 * same values of every feature, or both refuse it.
 */
#include "support/example_oracle.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const features[] = {
    "a=bytes?x",           "b=int64?7",          "c=float32?0.5",
    "d=int64[3]?1 2 3",    "e=float32[-1x2]",    "f=bytes[-1]",
    "g=uint8[4]?9",        "h=int64[-1]?-1 300", "i=float32[2x2]?0.5",
    "j=uint8[-1x3]?1 2 3",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat__example_plan plan;
    const char *what;
    for (size_t i = plan.n; i < sizeof(features) / sizeof(features[0]); i++)
        if (leat__example_plan_add(&plan, features[i]))
            abort();
    if (!example_oracle_lists(data, size, &what)) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
    if (example_oracle_compare(&plan, 0, data, size, &what) ==
        ORACLE_DISAGREES) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
    return 0;
}
