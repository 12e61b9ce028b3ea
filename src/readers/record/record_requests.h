/* record_requests.h: reads ahead of random access to files that are not in
 * memory. */
#ifndef LEAT_READERS_RECORD_REQUESTS_H
#define LEAT_READERS_RECORD_REQUESTS_H

#include "readers/record/record_index.h"

#include <leat/sample.h>

/* Zeroed: nothing was probed yet. */
typedef struct leat__record_requests {
    _Atomic int64_t unprobed; /* records to read before the next probe */
} leat__record_requests;

/* Has records in [0, count) read ahead, unless all of a recent probe were in
 * memory. Any threads. */
void leat__record_requests_make(leat__record_requests *requests,
                                const leat__record_index *index,
                                const leat_position at[], int n);

#endif
