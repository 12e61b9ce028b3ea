/*
 * leat/reader.h: a running pass over the samples of a pipeline.
 *
 * fork(). A reader belongs to the process that opened it. In a forked child its
 * calls return LEAT_ESTATE at once; cancel and advise do nothing, may_block is
 * 0, and close leaves it. The child opens the pipeline again. The child of
 * vfork() calls exec or _exit; children made by clone() or _Fork() are not
 * noticed.
 *
 * pthread_cancel(). A thread must not be cancelled in these calls, unlike in a
 * layer's: it may hold a lock that others wait for. One that may be cancelled
 * disables that around them (pthread_setcancelstate); leat_reader_cancel wakes
 * it.
 *
 * Stacks. These calls and leat_pipeline_open take as much of the caller's stack
 * as a layer's (leat/data_layer.h), but do not check it.
 */
#ifndef LEAT_READER_H
#define LEAT_READER_H

#include <leat/blob.h>
#include <leat/pipeline.h>
#include <leat/sample.h>
#include <leat/token.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads the next sample into `sample`, which the caller has initialised; what
 * it had is gone.
 *
 * LEAT_END at the end, and from every further call until seek. LEAT_EDATA for a
 * bad record, which sample->from names; the next call continues after it. Any
 * other error is sticky until seek or restore. Blocks as the storage does;
 * woken by leat_reader_cancel. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_next(leat_reader *reader, leat_sample *sample);

/**
 * Reads up to `n` samples, in order, and returns the number of good ones in
 * `*got`. With LEAT_OK it is at least 1; another status may follow good samples
 * in one call, and LEAT_EDATA concerns out[*got]. Otherwise like
 * leat_reader_next. Errors: also LEAT_EINVAL for `n` below 1. Blocks as the
 * storage does; woken by leat_reader_cancel. Thread safety: one caller at a
 * time.
 */
LEAT_API int leat_reader_next_batch(leat_reader *reader,
                                    leat_sample *const out[], int n, int *got);

/**
 * Reads the next sample into blobs, one for each field in the order of
 * leat_reader_fields: their types and shapes are set, and the contents copied.
 * A blob that is NULL is left out. A field of LEAT_BYTES has its number of
 * bytes as its shape, unless it is a group's, a scalar one element. For feeding
 * a net without a data layer; nothing is allocated once blobs and the reader's
 * own sample have grown to the largest.
 *
 * Errors: those of leat_reader_next, with the same meaning; LEAT_EINVAL, and
 * nothing is read, where `n` is not the number of fields; LEAT_ENOMEM and those
 * of the blobs' devices, where the sample is lost. Blocks as the storage does;
 * woken by leat_reader_cancel. Thread safety: one caller at a time.
 */
LEAT_API int leat_read(leat_reader *reader, leat_blob *const blobs[], int n);

/**
 * Passes by up to `n` samples, bad ones included, where the reader can without
 * reading them; `*skipped` is their number. LEAT_END if the epoch ends before.
 * Errors: those of leat_reader_next, but for LEAT_EDATA; LEAT_EINVAL for `n`
 * below 0. Blocks as the storage does; woken by leat_reader_cancel. Thread
 * safety: one caller at a time.
 */
LEAT_API int leat_reader_skip(leat_reader *reader, int64_t n, int64_t *skipped);

/**
 * The fields of each sample; `*out` is borrowed until close. May read the first
 * sample, and block as the storage does. Errors: those of leat_reader_next.
 * Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n);

/**
 * Goes to `position`. Index 0 always works, unless the reader has a single pass
 * that was read from (LEAT_EUNSUPPORTED); another one
 * does where the reader can seek, else it is LEAT_EUNSUPPORTED: index 0 and
 * leat_reader_skip lead there. Clears sticky errors, but does not undo cancel.
 * `mark`, if not NULL, has what leat_reader_mark (leat/ext/reader.h) appended
 * there, from its cursor on. Errors: LEAT_EINVAL for an index out of range, and
 * those of leat_reader_next but LEAT_EDATA; LEAT_END for a mark beyond the end.
 * Where they may have left the reader elsewhere they are sticky, until a seek
 * or restore succeeds. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_seek(leat_reader *reader, leat_position position,
                              leat_token *mark);

/**
 * Makes every blocked and every later read return LEAT_ECANCELLED, permanently;
 * at the end of an epoch leat_reader_next may still return LEAT_END, and after
 * a sticky error that error.
 * Thread safety: any thread, at any time before close.
 */
LEAT_API void leat_reader_cancel(leat_reader *reader);

/**
 * Frees the reader and the memory that views of its stable samples point to.
 * Takes NULL. In a forked child a parent's reader is left as it is, with its
 * memory and files, until the child ends: a thread of the parent may have been
 * inside it at the fork. Thread safety: one caller, and no other call at the
 * same time.
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
 * Reads the samples at positions at[0..n-1], whose indices are in [0, count),
 * the first `*got` of them, with LEAT_OK 1 to n: the caller asks for the others
 * again. An error concerns out[*got]; the caller continues after it. Errors:
 * LEAT_EINVAL for an index out of range, LEAT_EUNSUPPORTED, and those of
 * leat_reader_next; none is sticky. Blocks as the storage does; woken by
 * leat_reader_cancel. Thread safety: any threads, in parallel.
 */
LEAT_API int leat_reader_read_at(leat_reader *reader, const leat_position at[],
                                 leat_sample *const out[], int n, int *got);

/**
 * Announces that the samples at these positions, with indices in [0, count),
 * will be read soon, so that the storage can prefetch them in its own order. A
 * hint: it does nothing without random access. May block as the storage does.
 * Thread safety: any threads, in parallel.
 */
LEAT_API void leat_reader_advise(leat_reader *reader, const leat_position at[],
                                 int n);

/**
 * Whether reads may block, as far as is known now: 1 for a file that is only
 * partly in memory, for a callback, for a pipe. Thread safety: any thread.
 */
LEAT_API int leat_reader_may_block(leat_reader *reader);

/**
 * Appends the data set's identity and state that seek cannot restore to the
 * token. The caller keeps the position in the pass. Errors: LEAT_EUNSUPPORTED,
 * LEAT_ENOMEM; after cancel LEAT_ECANCELLED, where files are yet to be looked
 * up. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_save(leat_reader *reader, leat_token *token);

/**
 * Appends what save does, with the revision of each reader (leat/ext/reader.h),
 * by which the data also differ from what they were before they were written
 * again: for what keeps samples, as a cache or an unfinished import. Restore
 * does not take it. Errors: those of save. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_identify(leat_reader *reader, leat_token *token);

/**
 * Reads from the token what save appended, and returns to the first sample.
 * Clears sticky errors, but does not undo cancel. Errors: LEAT_EUNSUPPORTED;
 * LEAT_EINVAL for a token of another data set, and those of leat_reader_next
 * but LEAT_EDATA. All but LEAT_EUNSUPPORTED are sticky, until a seek or restore
 * succeeds. Thread safety: one caller at a time.
 */
LEAT_API int leat_reader_restore(leat_reader *reader, leat_token *token);

#ifdef __cplusplus
}
#endif
#endif
