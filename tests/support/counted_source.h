/*
 * counted_source.h: a source whose samples say which they are, as a file reader
 * would be written by a user of leat.
 */
#ifndef LEAT_TESTS_COUNTED_SOURCE_H
#define LEAT_TESTS_COUNTED_SOURCE_H

#include <leat/ext/reader.h>

/*
 * Registers `counted:COUNT`, once a process. Sample i has a field of int64:
 * `first` + i, and the epoch.
 *     field=x      the field's name
 *     first=0      of the first sample's number
 *     size=2       elements of the field, from 2 on
 *     form=index   or stream, or deferred (a stream whose samples are too)
 *     stable=0     1: of memory that lives as long as the reader; no epoch
 *     bad=-1       every tenth sample from that on is bad
 *     every=10     instead of every tenth
 *     fails=-1     this sample is LEAT_EIO
 *     key=-1       the keys are numbers from that on; below 0: no keys
 *     name=counted the source in the provenance
 *     holds=0      1: a descriptor is open as long as the reader is
 *     counts=0     1: counted_source_made counts its samples
 *     waits=-1     next waits at this sample until it is cancelled
 *
 * And `numbered:COUNT`, whose samples are the names of numbers from 0 on, with
 * form and bad.
 */
void counted_source_register(void);

/* Readers that are open, and the most that were at a time; reset sets them. */
int counted_source_open(void);
int counted_source_most_open(void);
void counted_source_reset(void);

/* Good samples so far of the readers that count them, in any order or again. */
int counted_source_made(void);

/* The number and the epoch of field `i` of a sample. */
int64_t counted_source_number(const leat_sample *sample, int i);
int64_t counted_source_epoch(const leat_sample *sample, int i);

/* A pipeline of the text, which must parse. */
leat_pipeline *counted_source_parse(const char *text);

/* A reader of the text, which must open. */
leat_reader *counted_source_reader(const char *text);

/* Fails the test unless the text's opening fails with this status, and a line
 * that has `part`. */
void counted_source_refused(const char *text, int status, const char *part);

#endif
