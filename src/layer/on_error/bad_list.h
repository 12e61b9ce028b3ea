/* bad_list.h: bad records, each with its error line. */
#ifndef LEAT_LAYER_ON_ERROR_BAD_LIST_H
#define LEAT_LAYER_ON_ERROR_BAD_LIST_H

#include "base/error.h"

#include <leat/sample.h>

/* Bytes of a key kept for samples whose own key does not last. */
#define LEAT__KEY_MAX 64

typedef struct leat__bad {
    int sample;           /* its index in the chunk, then in the batch */
    leat_provenance from; /* its source borrowed from the reader */
    char key[LEAT__KEY_MAX];
    char line[LEAT__ERROR_MAX];
} leat__bad;

/* A zeroed one is empty. One owner at a time. */
typedef struct leat__bad_list {
    leat__bad *item;
    int n;
    int capacity;
} leat__bad_list;

/* Describes the record of sample `sample` in `bad`; `from` may be NULL. */
void leat__bad_set(leat__bad *bad, int sample, const leat_provenance *from,
                   const char line[LEAT__ERROR_MAX]);

/* Copies the key, as far as it is kept, and has `from` point to the copy. */
void leat__key_keep(char kept[LEAT__KEY_MAX], leat_provenance *from);

/* Where the record came from, its key pointing into `bad`. */
leat_provenance leat__bad_from(const leat__bad *bad);

/* Adds a record with the thread's error line. Errors: LEAT_ENOMEM. */
int leat__bad_list_add(leat__bad_list *list, int sample,
                       const leat_provenance *from);

/* Appends all of `from`, whose sample 0 is `first`. Errors: LEAT_ENOMEM. */
int leat__bad_list_append(leat__bad_list *list, const leat__bad_list *from,
                          int first);

/* By sample. */
void leat__bad_list_sort(leat__bad_list *list);

void leat__bad_list_finish(leat__bad_list *list);

#endif
