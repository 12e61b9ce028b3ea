/*
 * dump_writer.h: writes batches as NumPy's .npy files into a directory.
 *
 * Batches of one shape go into NAME.npy, one after the other along the first
 * axis. Once a shape differs each batch has a file of its own, NAME.0000.npy
 * and so on. The files have temporary names until they are published, all or
 * none of them.
 */
#ifndef LEAT_TOOLS_DELIVERY_DUMP_WRITER_H
#define LEAT_TOOLS_DELIVERY_DUMP_WRITER_H

#include <leat/blob.h>

#include <stdbool.h>

struct dump_writer;

/*
 * Makes the directory if need be and locks it. With `force` other files in it
 * stay, and an earlier dump is replaced. Errors: LEAT_EINVAL for a database's
 * directory, for .npy files of others, for other files without `force`, and
 * while another process writes there; LEAT_EIO, LEAT_ENOMEM. What a killed dump
 * left, of `token`, too, goes with the success of this one; NULL: no token.
 */
int dump_writer_open(struct dump_writer **out, const char *directory,
                     const char *token, bool force);

/* Before there are batches: whether dump_writer_open would refuse the
   directory, or no file can be made in it. Errors: likewise. */
int dump_writer_probe(const char *directory, const char *token, bool force);

/* Whether a file of that path is none of the dump's. Errors: LEAT_EINVAL for a
   .npy in its directory, LEAT_ENOMEM. */
int dump_writer_check(const struct dump_writer *writer, const char *path);

/* Begins array `i`, the next one; a `/` in its name, which is borrowed until
   close, becomes `_`. Errors: LEAT_EINVAL where another array has the same
   files. */
int dump_writer_add(struct dump_writer *writer, int i, const char *name,
                    bool is_split);

/* Appends a batch to array `i`. Errors: LEAT_EIO, LEAT_ENOMEM; LEAT_ECANCELLED
   where a signal comes before its files are split. */
int dump_writer_put(struct dump_writer *writer, int i, leat_blob *batch);

/* Completes the files, after the last batch, and lists those of an earlier dump
   that they replace. Errors: LEAT_EIO, LEAT_ENOMEM, LEAT_ECANCELLED. */
int dump_writer_complete(struct dump_writer *writer);

/* Gives them their names, in place of those of an earlier dump, all or none of
   them; a second signal meanwhile is held by the caller (interrupt_hold).
   Errors: LEAT_EIO, LEAT_ENOMEM, LEAT_ECANCELLED after a signal. */
int dump_writer_publish(struct dump_writer *writer);

/* Takes a published dump back, after an error: an earlier one has its place
   again. Returns `status`, with the thread's error line. */
int dump_writer_unpublish(struct dump_writer *writer, int status);

/* The files of array `i`, and the path of one; borrowed until the next call. */
int64_t dump_writer_files(const struct dump_writer *writer, int i);
const char *dump_writer_path(struct dump_writer *writer, int i, int64_t file);

/* Removes an unpublished dump, the directory too, and what a published one has
   replaced. Takes NULL. */
void dump_writer_close(struct dump_writer *writer);

#endif
