/*
 * limit.h: what the machine can do at most on a layer's records.
 *
 * Each of several threads, one for each core, walks round the records with a
 * reader of its own, each from a place of its own, and transforms them into its
 * part of a ring as large as the layer's slots. There are no queues and no
 * order. From the last record to the first it goes as the layer does, by a
 * reset: a seek may look at storage, for longer than few records take. Where
 * the layer does no more than crop, a bare copy of rows is a limit that owes
 * nothing to leat's transform.
 */
#ifndef LEAT_TOOLS_BENCH_LIMIT_H
#define LEAT_TOOLS_BENCH_LIMIT_H

#include <leat/data_layer.h>

struct limit;

/* What one or several runs did. Zeroed memory is nothing. */
struct limit_result {
    int64_t images;
    int64_t bytes; /* of the records' payload */
    int64_t bad;   /* records left out, in every pass over them */
    double seconds;
};

/*
 * Opens readers and takes the memory; `layer` is created, and borrowed during
 * the call. `copies`: rows of crops are copied and not even mirrored; of uint8
 * images into uint8 tops, LEAT_EUNSUPPORTED of others. `threads`: 1 to 256.
 * Bad records end a run, unless the layer's on_error lets them pass.
 * Errors: those of the readers and the transform.
 */
int limit_open(struct limit **out, const leat_data_layer *layer, int copies,
               int threads);

/* Runs all threads for so long and adds what they did. */
int limit_run(struct limit *limit, double seconds, struct limit_result *result);

int limit_threads(const struct limit *limit);

/* Takes NULL. */
void limit_close(struct limit *limit);

#endif
