/* leat/choice.h: random choices that depend on their position alone. */
#ifndef LEAT_CHOICE_H
#define LEAT_CHOICE_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes four random words for `operation` on the sample at `position` of
 * `epoch`: Philox4x32-10 with the seed as its key. They depend on the arguments
 * alone, so any thread can make any choice, in any order, and a resumed run
 * makes it again. `operation` is a number of the caller's, another one for each
 * kind of choice. Positions below 2^40 and epochs below 2^32 differ.
 * Thread safety: any thread.
 */
LEAT_API void leat_choice(uint64_t seed, int64_t epoch, int64_t position,
                          uint32_t operation, uint32_t out[4]);

/**
 * Maps two of these words to [0, n), n at least 1; the bias is below n / 2^64.
 * Thread safety: any thread.
 */
LEAT_API uint64_t leat_choice_below(const uint32_t words[2], uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
