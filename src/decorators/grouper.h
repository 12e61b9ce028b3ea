/*
 * grouper.h: a decorator that makes a group of several samples, whose samples
 * workers complete and write.
 */
#ifndef LEAT_DECORATORS_GROUPER_H
#define LEAT_DECORATORS_GROUPER_H

#include "decorators/decorator.h"
#include "decorators/group_pool.h"
#include "decorators/grouping.h"

#include <leat/decorators.h>

/*
 * The first member of such a decorator's own struct. Group i has the samples i
 * shift, i shift + stride, ... of an epoch, at most `size`; a decorator of
 * another kind leaves these three 0.
 */
typedef struct leat__grouper {
    leat__decorator decorator; /* first */
    leat__grouping grouping;
    leat__group_pool pool;
    int64_t size;
    int64_t shift;
    int64_t stride;
    bool drops_last; /* groups of fewer samples */
    int64_t samples; /* upstream; -1: not known */
    bool is_planned; /* of one caller at a time */
} leat__grouper;

/* The most samples of one group. */
#define LEAT__GROUP_MAX (1 << 24)

#define LEAT__DROP_LAST_ARGUMENT                                               \
    {                                                                          \
        .name = "drop_last", .kind = LEAT_ARGUMENT_NUMBER, .initial = "0",     \
        .max = 1,                                                              \
        .help = "1: an epoch's last group is left out where it is "            \
                "short"                                                        \
    }

/*
 * A grouper of `bytes` bytes with groups of up to `room` samples. It plans over
 * random access at once, as read_at has any threads; else when it is first
 * read. Freed by leat__grouper_close; after a failure of open by
 * leat__grouper_free. Errors: LEAT_EINVAL, LEAT_ENOMEM and those of the
 * upstream reader.
 */
int leat__grouper_new(const leat_open *open, const leat_reader_ops *ops,
                      size_t bytes, int room, leat__grouper **out);
void leat__grouper_free(leat__grouper *grouper);

/* Plans over what the upstream reader promises, unless that is done. */
int leat__grouper_plan(leat__grouper *grouper);

/* Sets which samples a group has. */
int leat__grouper_set_window(leat__grouper *grouper, int64_t size,
                             int64_t shift, int64_t stride);

/* The groups of an epoch of so many samples. */
int64_t leat__grouper_groups(const leat__grouper *grouper, int64_t samples);

/* Where group `index` begins, at most right after the last sample. */
int64_t leat__grouper_begin(const leat__grouper *grouper, int64_t index);

/*
 * `status`, of sample `i` of the group, which is given back: `out` names the
 * sample.
 */
int leat__grouper_fail(leat__grouper *grouper, leat__group *group, int i,
                       int status, leat_sample *out);

/*
 * A pipeline of the type, whose arguments are the written `scalars` and those
 * of `options`; NULL: all defaults.
 */
int leat__grouper_create(leat_pipeline **out, const leat_reader_type *type,
                         leat_pipeline *upstream, const char *scalars,
                         const leat_group_options *options);

/* Operations. */
int leat__grouper_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n);
int leat__grouper_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got);
int leat__grouper_count(leat_reader *reader, int64_t *out);
int leat__grouper_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got);
void leat__grouper_advise(leat_reader *reader, const leat_position at[], int n);
int64_t leat__grouper_memory(leat_reader *reader);
/* What groups take that samples of `reader` may be waiting for: its own, and
 * those of the readers below it. */
int64_t leat__grouper_held_below(const leat_reader *reader);
void leat__grouper_close(leat_reader *reader);

#endif
