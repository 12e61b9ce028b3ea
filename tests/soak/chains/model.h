/* model.h: the samples of a chain, as read one after the other. */
#ifndef LEAT_TESTS_CHAINS_MODEL_H
#define LEAT_TESTS_CHAINS_MODEL_H

#include "random_chain.h"

#include <leat.h>

enum { EPOCHS = 3, SAMPLES_MAX = 64 };

/* A sample, or a bad record. */
typedef struct seen {
    uint32_t digest; /* of all fields */
    int64_t record;
    uint32_t source; /* digest of its name */
    bool is_bad;
    int id;
} seen;

typedef struct epoch_seen {
    int n;      /* SAMPLES_MAX: there may be more */
    int status; /* after them; LEAT_OK: cut */
    seen at[SAMPLES_MAX];
} epoch_seen;

typedef struct model {
    const chain *made;
    leat_pipeline *pipeline;
    leat_open_options options; /* of all readers */
    epoch_seen epoch[EPOCHS];
} model;

uint32_t digest_add(uint32_t digest, const void *data, size_t size);

/* A digest of one field, to be added to that of those before. */
uint32_t digest_field(uint32_t digest, int ndim, const int64_t shape[],
                      const void *data, size_t size);

seen model_see(const leat_sample *sample, int status);

/* Whether a status ends an epoch. */
bool model_is_end(int status);

leat_reader *model_open(const model *from);

/* Goes to a position as a layer does. */
void model_go_to(leat_reader *reader, int64_t epoch, int64_t index);

/* Reads all epochs a sample at a time. */
void model_read(model *into);

/* What chain_expect knows of them. Whether that is something. */
bool model_check_known(const model *from);

void model_compare(const model *from, const seen *one, int64_t epoch,
                   int64_t index, const char *way);

#endif
