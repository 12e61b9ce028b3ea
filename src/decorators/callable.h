/*
 * callable.h: functions of the caller's that decorators call for each sample.
 *
 * DESIGN. A callable belongs to the pipeline and is immutable, so any threads
 * call it at once. Under a decorator that joins several readers a sample has
 * other readers' fields before: a call hides them, so that the function counts
 * its fields from 0.
 */
#ifndef LEAT_DECORATORS_CALLABLE_H
#define LEAT_DECORATORS_CALLABLE_H

#include "decorators/decorator.h"
#include "decorators/field.h"

/* The first member of what a pipeline holds of such a function. */
typedef struct leat__callable {
    char name[LEAT__FIELD_NAME_MAX]; /* for errors */
    void *user;
    uint64_t id;
    bool may_block;
    void (*cancel)(void *user);  /* NULL: calls do not block */
    void (*release)(void *user); /* NULL: nothing */
} leat__callable;

/* `name` NULL: that of the decorator, `kind`. The rest is the caller's. */
void leat__callable_init(leat__callable *callable, const char *kind,
                         const char *name, void *user, uint64_t id);

/* For leat_pipeline_create and a type's object_id: objects that begin with a
 * callable, of leat__alloc. */
void leat__callable_release(void *object);
uint64_t leat__callable_id(const void *object);

void leat__callable_cancel(const leat__callable *callable);

/* A call for one sample. */
typedef struct leat__call {
    unsigned lines;                     /* of errors, before it */
    int first;                          /* fields of other readers: */
    leat_field before[LEAT_MAX_FIELDS]; /* these */
    const char *buffer;                 /* the sample's, before it */
    size_t buffer_size;
} leat__call;

/* Hides the sample's fields before `first` from the function. */
void leat__call_begin(leat__call *call, leat_sample *sample, int first);

/*
 * Restores them, and checks the status that the function returned, which may be
 * LEAT_OK, LEAT_END if `may_end`, or an error. LEAT_ECANCELLED wins over
 * failures once the decorator is cancelled.
 */
int leat__call_end(const leat__call *call, const leat__callable *callable,
                   const leat__decorator *decorator, leat_sample *sample,
                   int status, bool may_end);

#endif
