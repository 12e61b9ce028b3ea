/*
 * fuzz_sequence_example.c: any bytes as a tf.train.SequenceExample: leat and
 * protobuf-c read the same values of every feature and step, or both refuse it.
 */
#include "support/example_oracle.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const features[] = {
    "a=int64?0",          "b=bytes?",      "c=[int64]?",     "d=[float32[2]]?",
    "e=[int64[-1]]?",     "f=[bytes]?",    "g=[bytes[-1]]?", "h=[uint8[3]]?",
    "i=[float32[-1x2]]?", "j=[bytes[2]]?",
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
    if (example_oracle_compare(&plan, 1, data, size, &what) ==
        ORACLE_DISAGREES) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
    return 0;
}
