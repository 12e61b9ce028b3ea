/* leat/reader.h: a running pass over the samples of a pipeline. */
#ifndef LEAT_READER_H
#define LEAT_READER_H

#include <leat/pipeline.h>
#include <leat/sample.h>
#include <leat/token.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads the next sample into `sample`, an initialised box of the caller's.
 *
 * LEAT_END at the end, again and again until reset. LEAT_EDATA for a bad
 * record, which sample->from names; the next call gives the one behind it.
 * Any other error is sticky until reset.
 * Blocks where the storage does; woken by leat_reader_cancel.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_next(leat_reader *reader, leat_sample *sample);

/**
 * Reads up to `n` samples, in order, and says in `*got` how many: the good
 * prefix with LEAT_OK, and what ended it from the following call.
 * Otherwise like leat_reader_next.
 */
LEAT_API int leat_reader_next_batch(leat_reader *reader,
                                    leat_sample *const out[], int n, int *got);

/**
 * The fields that each sample has; `*out` is borrowed until close.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n);

/** Goes back to the first sample. Thread safety: one caller at a time. */
LEAT_API int leat_reader_reset(leat_reader *reader);

/**
 * Makes every blocked and every later read return LEAT_ECANCELLED.
 * Thread safety: any thread, at any time before close.
 */
LEAT_API void leat_reader_cancel(leat_reader *reader);

/** Ends the pass and frees the reader. Takes NULL. */
LEAT_API void leat_reader_close(leat_reader *reader);

/**
 * The number of samples in an epoch, bad ones counted.
 * Errors: LEAT_EUNSUPPORTED when it cannot be known without reading.
 */
LEAT_API int leat_reader_count(leat_reader *reader, int64_t *out);

/** Whether samples can be read in any order: 1 or 0. Any thread. */
LEAT_API int leat_reader_is_random_access(const leat_reader *reader);

/**
 * Reads the samples at index[0..n-1], each in [0, count).
 * After an error at out[0] the caller goes on with index + 1.
 * Errors: LEAT_EINVAL for an index out of range, LEAT_EUNSUPPORTED, and those
 * of leat_reader_next. Thread safety: any threads, in parallel.
 */
LEAT_API int leat_reader_read_at(leat_reader *reader, const int64_t index[],
                                 leat_sample *const out[], int n, int *got);

/**
 * The next read gives the sample at `index`, in [0, count].
 * Errors: LEAT_EINVAL, LEAT_EUNSUPPORTED. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_seek(leat_reader *reader, int64_t index);

/**
 * Appends the reader's identity and state to the token, or takes them back.
 * Errors: LEAT_EUNSUPPORTED; restore: LEAT_EINVAL when the data set is another.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_save(leat_reader *reader, leat_token *token);
LEAT_API int leat_reader_restore(leat_reader *reader, leat_token *token);

#ifdef __cplusplus
}
#endif
#endif
