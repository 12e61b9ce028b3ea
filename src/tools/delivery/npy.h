/*
 * npy.h: batches as NumPy's .npy files.
 *
 * Batches of one shape go into NAME.npy, one behind the other along the first
 * axis. Once a shape differs each batch has a file of its own, NAME.0000.npy
 * and so on. The files have other names until they are published.
 */
#ifndef LEAT_TOOLS_DELIVERY_NPY_H
#define LEAT_TOOLS_DELIVERY_NPY_H

#include <leat/blob.h>

struct npy_writer;

/* Begins files of that name in a directory; a `/` in it becomes `_`. */
int npy_writer_open(struct npy_writer **out, const char *directory,
                    const char *name);

/* Whether two writers would write the same files. */
int npy_writer_clash(const struct npy_writer *a, const struct npy_writer *b);

/* Appends a batch. Errors: LEAT_EIO, LEAT_ENOMEM. */
int npy_writer_put(struct npy_writer *writer, leat_blob *batch);

/* Completes the files, under the names they have till then. Errors: LEAT_EIO.
 */
int npy_writer_finish(struct npy_writer *writer);

/* Gives finished files their names. Errors: LEAT_EIO. */
int npy_writer_publish(struct npy_writer *writer);

/* Removes the files that were published. */
void npy_writer_withdraw(struct npy_writer *writer);

/* How many files there are. */
int64_t npy_writer_files(const struct npy_writer *writer);

/* Path of file `i`; borrowed until the next call. */
const char *npy_writer_path(struct npy_writer *writer, int64_t i);

/*
 * Whether the file of that name is a regular one that a writer made, by its
 * header, which others make as long only for arrays of records.
 */
int npy_writer_wrote(int directory, const char *name);

/* Frees the writer; what was not published vanishes. Takes NULL. */
void npy_writer_close(struct npy_writer *writer);

#endif
