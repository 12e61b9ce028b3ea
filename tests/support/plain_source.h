/*
 * plain_source.h: a source of numbered records for tests of decorators, of each
 * kind that a file reader can be. Its samples lie in their own buffers.
 */
#ifndef LEAT_TESTS_PLAIN_SOURCE_H
#define LEAT_TESTS_PLAIN_SOURCE_H

#include <leat/ext/reader.h>

/*
 * Registers `plain:KIND,RECORDS`. KIND is
 *
 *     random      random access
 *     counted     next and seek, with a count
 *     seekable    next and seek, without
 *     sequential  finds index 0 alone
 *     marked      the same, but goes to its marks
 *     once        a single pass
 *
 * Samples are `data`, `wide=3` bytes of the record's number, and `label`, 1000
 * and the number; the key is the number as text. Options: the number of the
 * `first` record, `bad=1`: records with number mod 10 = 3 are bad, `defers=1`:
 * next leaves all work to materialize, `long=1`: labels are int64, `name=` of
 * the second field. Once a process.
 */
void plain_source_register(void);

/* Records that all sources have read or deferred so far. */
long plain_source_reads(void);

#endif
