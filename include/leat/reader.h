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
 * Reads the next sample into `sample`, which the caller has initialised.
 *
 * LEAT_END at the end, and from every further call until reset. LEAT_EDATA for
 * a bad record, which sample->from names; the next call continues after it. Any
 * other error is sticky until reset or restore. Blocks as the storage does;
 * woken by leat_reader_cancel. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_next(leat_reader *reader, leat_sample *sample);

/**
 * Reads up to `n` samples, in order, and returns their number in `*got`: the
 * good prefix with LEAT_OK; the following call returns the status that ended
 * it. Otherwise like leat_reader_next. Errors: also LEAT_EINVAL for `n` below
 * 1. Blocks as the storage does; woken by leat_reader_cancel. Thread safety:
 * one caller at a time.
 */
LEAT_API int leat_reader_next_batch(leat_reader *reader,
                                    leat_sample *const out[], int n, int *got);

/**
 * The fields of each sample; `*out` is borrowed until close. May read the first
 * sample, and block as the storage does. Errors: those of leat_reader_next.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n);

/**
 * Returns to the first sample, for the next epoch. Clears sticky errors.
 * Errors: LEAT_EUNSUPPORTED if the reader has a single pass. Thread safety: one
 * caller at a time.
 */
LEAT_API int leat_reader_reset(leat_reader *reader);

/**
 * Makes every blocked and every later read return LEAT_ECANCELLED, permanently.
 * Thread safety: any thread, at any time before close.
 */
LEAT_API void leat_reader_cancel(leat_reader *reader);

/**
 * Frees the reader and the memory that views of its stable samples point to.
 * Takes NULL. In a forked child, closing a parent's LMDB reader does not affect
 * the parent. Thread safety: one caller, and no other call at the same time.
 */
LEAT_API void leat_reader_close(leat_reader *reader);

/**
 * The number of samples in an epoch, bad ones included. Errors:
 * LEAT_EUNSUPPORTED if it is unknown before reading. Thread safety: any
 * threads.
 */
LEAT_API int leat_reader_count(leat_reader *reader, int64_t *out);

/**
 * Whether the reader supports random access: 1 or 0. Thread safety: any thread.
 */
LEAT_API int leat_reader_is_random_access(const leat_reader *reader);

/**
 * Reads the samples at index[0..n-1], each in [0, count). After an error, which
 * concerns out[0], the caller continues with index + 1. Errors: LEAT_EINVAL for
 * an index out of range, LEAT_EUNSUPPORTED, and those of leat_reader_next; none
 * is sticky. Blocks as the storage does; woken by leat_reader_cancel. Thread
 * safety: any threads, in parallel.
 */
LEAT_API int leat_reader_read_at(leat_reader *reader, const int64_t index[],
                                 leat_sample *const out[], int n, int *got);

/**
 * Announces that the samples at index[0..n-1], each in [0, count), will be read
 * soon, so that the storage can prefetch them in its own order. A hint: it does
 * nothing without random access. May block as the storage does. Thread safety:
 * any threads, in parallel.
 */
LEAT_API void leat_reader_advise(leat_reader *reader, const int64_t index[],
                                 int n);

/**
 * Whether reads may block, as far as is known now: 1 for a file that is only
 * partly in memory, for a callback, for a pipe. Thread safety: any thread.
 */
LEAT_API int leat_reader_may_block(leat_reader *reader);

/**
 * Positions the reader before the sample at `index`, in [0, count]. Errors:
 * LEAT_EINVAL, LEAT_EUNSUPPORTED, and those of leat_reader_next. Thread safety:
 * one caller at a time.
 */
LEAT_API int leat_reader_seek(leat_reader *reader, int64_t index);

/**
 * Appends the data set's identity and state that seek cannot restore to the
 * token. The caller keeps the position in the pass. Errors: LEAT_EUNSUPPORTED,
 * LEAT_ENOMEM. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_save(leat_reader *reader, leat_token *token);

/**
 * Reads from the token what save appended. Errors: LEAT_EUNSUPPORTED;
 * LEAT_EINVAL for a token of another data set. Thread safety: one caller at a
 * time.
 */
LEAT_API int leat_reader_restore(leat_reader *reader, leat_token *token);

#ifdef __cplusplus
}
#endif
#endif
