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
 * Reads the next sample into `sample`, an initialised buffer of the caller's.
 *
 * LEAT_END at the end, again and again until reset. LEAT_EDATA for a bad
 * record, which sample->from names; the next call gives the one behind it.
 * Any other error is sticky until reset or restore.
 * Blocks where the storage does; woken by leat_reader_cancel.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_next(leat_reader *reader, leat_sample *sample);

/**
 * Reads up to `n` samples, in order, and says in `*got` how many: the good
 * prefix with LEAT_OK, and what ended it from the following call.
 * Otherwise like leat_reader_next. Errors: LEAT_EINVAL for `n` below 1, too.
 * Blocks where the storage does; woken by leat_reader_cancel.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_next_batch(leat_reader *reader,
                                    leat_sample *const out[], int n, int *got);

/**
 * The fields that each sample has; `*out` is borrowed until close. May read the
 * first sample to find out, and block as the storage does.
 * Errors: those of leat_reader_next. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n);

/**
 * Goes back to the first sample: the next epoch. Clears sticky errors.
 * Errors: LEAT_EUNSUPPORTED where there is a single pass.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_reset(leat_reader *reader);

/**
 * Makes every blocked and every later read return LEAT_ECANCELLED, for good.
 * Thread safety: any thread, at any time before close.
 */
LEAT_API void leat_reader_cancel(leat_reader *reader);

/**
 * Ends the pass and frees the reader, and with it what its samples view. Takes
 * NULL. In a forked child it frees what the child has of an LMDB's reader of
 * its parent's, and nothing that the parent uses. Thread safety: one caller,
 * and no other call at the same time.
 */
LEAT_API void leat_reader_close(leat_reader *reader);

/**
 * The number of samples in an epoch, bad ones counted.
 * Errors: LEAT_EUNSUPPORTED when it cannot be known without reading.
 * Thread safety: any threads.
 */
LEAT_API int leat_reader_count(leat_reader *reader, int64_t *out);

/**
 * Whether samples can be read in any order: 1 or 0. Thread safety: any thread.
 */
LEAT_API int leat_reader_is_random_access(const leat_reader *reader);

/**
 * Reads the samples at index[0..n-1], each in [0, count).
 * After an error at out[0] the caller goes on with index + 1.
 * Errors: LEAT_EINVAL for an index out of range, LEAT_EUNSUPPORTED, and those
 * of leat_reader_next, none of them sticky. Blocks where the storage does;
 * woken by leat_reader_cancel. Thread safety: any threads, in parallel.
 */
LEAT_API int leat_reader_read_at(leat_reader *reader, const int64_t index[],
                                 leat_sample *const out[], int n, int *got);

/**
 * Says that the samples at index[0..n-1], each in [0, count), are read at soon,
 * so that storage can fetch them ahead, in its own order. Only a hint: where
 * there is no random access, or nothing to fetch, nothing is done. May block as
 * the storage does, for a part of what is asked for.
 * Thread safety: any threads, in parallel.
 */
LEAT_API void leat_reader_advise(leat_reader *reader, const int64_t index[],
                                 int n);

/**
 * Whether storage may block, as far as the reader can tell now: 1 for a file
 * that lies in memory only in part, for a callback, for a pipe. Thread safety:
 * any thread.
 */
LEAT_API int leat_reader_may_block(leat_reader *reader);

/**
 * The next read gives the sample at `index`, in [0, count].
 * Errors: LEAT_EINVAL, LEAT_EUNSUPPORTED, and those of leat_reader_next.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_seek(leat_reader *reader, int64_t index);

/**
 * Appends what identifies the data set to the token, and state that seek cannot
 * bring back. The place in the pass is the caller's to keep.
 * Errors: LEAT_EUNSUPPORTED, LEAT_ENOMEM. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_save(leat_reader *reader, leat_token *token);

/**
 * Takes back from the token what save put there.
 * Errors: LEAT_EUNSUPPORTED; LEAT_EINVAL when the data set is another.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_restore(leat_reader *reader, leat_token *token);

#ifdef __cplusplus
}
#endif
#endif
