/*
 * variable_tops.h: tops whose place in a batch depends on all of its samples.
 *
 * They lie after those of one size. While these are filled each sample is
 * checked and noted (leat__variable_top_check), a replacement as what stands in
 * its place; then the sizes are known, the batch is laid out, and each byte is
 * written once.
 */
#ifndef LEAT_LAYER_TOPS_VARIABLE_TOPS_H
#define LEAT_LAYER_TOPS_VARIABLE_TOPS_H

#include "layer/batch.h"
#include "layer/tops/top_plan.h"

/*
 * The shape of a top of numbers, padded or ragged, in a batch that begins with
 * `sample`. Errors: LEAT_EINVAL names the top.
 */
int leat__top_shape(const leat__top_plan *plan, int i,
                    const leat_sample *sample, leat__top *out);

/* Whether a sample fits into the top. Errors: LEAT_EDATA names the top. */
int leat__variable_top_check(const leat__top_plan *plan, int i,
                             const leat__top *shape, const leat_sample *sample);

/* Pads a sample into `to`. Errors: LEAT_EDATA names the top. */
int leat__top_pad(const leat__planned_top *top, const leat__top *shape,
                  const leat_sample *sample, void *to);

/* Writes the sample's lengths to `to`. */
void leat__top_put_lengths(const leat__top_plan *plan, int i,
                           const leat_sample *sample, void *to);

/*
 * Writes what position `i` has without a record: zeros, and of a padded or
 * ragged top no elements.
 */
void leat__tops_put_zeros(const leat__top_plan *plan, leat__batch *batch,
                          int i);

/*
 * Lays the variable tops of these samples out after the others: `extent` gets
 * where each top is and its shape, `bytes` of the shape the size of all. A
 * sample may be NULL: one without elements. Errors: LEAT_ELIMIT names the top.
 */
int leat__variable_tops_lay_out(const leat__top_plan *plan,
                                leat__batch_shape *shape,
                                const leat_sample *const sample[], int n,
                                leat__extent extent[]);

/*
 * Lays out and writes the variable tops of `n` samples, all of which are noted
 * in the batch. Errors: LEAT_ENOMEM, LEAT_EDEVICE, LEAT_ELIMIT.
 */
int leat__variable_tops_write(const leat__top_plan *plan, leat__batch *batch,
                              int n);

#endif
