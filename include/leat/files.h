/*
 * leat/files.h: pipelines over files of records, by code. Each function makes
 * what the pipeline text of the same name makes (`leat readers NAME`).
 *
 * `path` has `n` texts, at least one, whose files are read as one, in their
 * order: a path; a pattern with * ? or [ (of bytes, not letters, whatever the
 * locale), unless a file has that very name, and whose files are sorted by
 * bytes; `@LIST`, a file with a path on each line; `-`, standard input, in a
 * list too.
 * What a pattern finds is a file whatever its name, and so is `@x` in a list.
 * They are copied, and relative to the working directory at open. Nothing is
 * opened yet.
 *
 * Plain files are mapped: they have a count, are read in any order, and views
 * of them live as long as the reader. More than 60,000 of them are LEAT_ELIMIT,
 * and go with `files` and `interleave`. Compressed files, pipes and standard
 * input are read in order. The result is owned by the caller:
 * leat_pipeline_unref. Errors of all: LEAT_EINVAL for values out of range or
 * options that are not initialised, LEAT_ENOMEM. All may be called on any
 * thread. Provenance is a sample's file, and the number of its record in that.
 *
 * A record that is damaged is LEAT_EDATA where the next one can be found, else
 * reading ends with LEAT_EFORMAT; both name file, record and byte. A mapped
 * file whose size or time of modification changes is LEAT_EIO when it is next
 * begun or indexed, when a record of it is first read by its index in another
 * epoch, and in the place of both errors above; so is any other file that has
 * changed when another epoch opens it. A file must not be shortened while it is
 * mapped: the access to a page that is gone raises SIGBUS, as it does for every
 * map.
 */
#ifndef LEAT_FILES_H
#define LEAT_FILES_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How files are compressed. */
typedef enum leat_compression {
    LEAT_COMPRESSION_AUTO = 0, /* gzip where its magic begins the file, or not
                                  at all */
    LEAT_COMPRESSION_NONE = 1,
    LEAT_COMPRESSION_GZIP = 2,
    LEAT_COMPRESSION_ZLIB = 3
} leat_compression;

/**
 * Where the index of a mapped file, the offset of each record, is kept. It is
 * made by a pass over the records' headers, on several threads over several
 * files, when it is first needed: for a count, a position, random access, and
 * by a data layer at setup. That pass reads a page or two for each record of a
 * file that is not in memory; for such files use KEEP.
 */
typedef enum leat_file_index {
    LEAT_FILE_INDEX_MEMORY = 0, /* in memory, 8 bytes a record, made at need */
    LEAT_FILE_INDEX_KEEP = 1    /* in .NAME.leat-index beside each file as well,
                                   for the next reader; made again where the file
                                   has another size or time of modification, and
                                   not kept where that is yet to come, or for a
                                   link to a descriptor, as /dev/stdin is. A
                                   regular file of that name is replaced if it
                                   is no index of the file. In a sticky
                                   directory, as /tmp, an index of another user
                                   is made again, unless they are root or own
                                   the file or the directory. */
} leat_file_index;

/**
 * Options of all file readers; but for `compression` they do not affect the
 * samples. Zero is the default of every field but `size`; a pipeline text takes
 * the fields by name.
 */
typedef struct leat_file_options {
    size_t size;                  /* of this struct, as the caller knows it */
    leat_compression compression; /* of the files */
    int64_t max_record; /* bytes of the longest record of a compressed file or
                           pipe, where one longer than max_memory is
                           LEAT_ELIMIT, and of any line of text; with a line's
                           end, a TFRecord's frame of 16 bytes, or a RecordIO
                           record's whole chunk; 0: 64 MiB */
    leat_file_index index; /* of mapped files, as are all that follow */
    int64_t read_ahead;    /* as in leat_lmdb_options */
    int drop_behind;       /* likewise */
    int64_t keep_behind;   /* likewise */
} leat_file_options;

/** Every default, written out. */
#define LEAT_FILE_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(leat_file_options), LEAT_COMPRESSION_AUTO, 0,                   \
            LEAT_FILE_INDEX_MEMORY, 0, 0, 0                                    \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_file_options_init(leat_file_options *options);

/**
 * @name Readers of files
 * Thread safety: any thread.
 * @{
 */

/**
 * `tfrecord:FILES`: TensorFlow's TFRecord. Field: `record`, the bytes of each
 * record, whose checksum is verified on the thread that completes the sample. A
 * record whose length alone has a wrong checksum is bad, and the next one is
 * read, if its data has the right one: TensorFlow ends there. A record that is
 * longer than max_record is bad, and ends reading if it is longer by more than
 * 64 KiB, as it may be all that is left. `options` may be NULL. Errors and
 * thread safety: see above.
 */
LEAT_API int leat_pipeline_tfrecord(leat_pipeline **out,
                                    const char *const path[], int n,
                                    const leat_file_options *options);

/** A field of records of one size. */
typedef struct leat_fixed_field {
    const char *name;             /* at most 63 letters; copied */
    leat_dtype dtype;             /* LEAT_BYTES has one dimension */
    int is_big_endian;            /* 1: the elements' bytes are in that order */
    int64_t offset;               /* of the first byte, in the record */
    int ndim;                     /* 0: a scalar */
    int64_t shape[LEAT_MAX_DIMS]; /* at least 1 each */
} leat_fixed_field;

/**
 * Of records of one size. Zero is the default of every field but `size`, and
 * either `record` or `fields` has to be given.
 */
typedef struct leat_fixed_options {
    size_t size;    /* of this struct, as the caller knows it */
    int64_t record; /* bytes; 0: up to the last field's end */
    int64_t header; /* bytes before the first record of each file */
    int64_t footer; /* bytes after the last record of each file */
    const leat_fixed_field *fields; /* NULL: one, `record`, of bytes */
    int nfields;                    /* at most LEAT_MAX_FIELDS */
} leat_fixed_options;

/** Every default, written out. */
#define LEAT_FIXED_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(leat_fixed_options), 0, 0, 0, NULL, 0                           \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_fixed_options_init(leat_fixed_options *options);

/**
 * `fixed:FILES,record=N,header=H,footer=F,fields=(NAME=TYPE@OFFSET:SHAPE,...)`:
 * records of one size, as tf.data's FixedLengthRecordDataset. A file whose body
 * is no number of records is LEAT_EFORMAT when it is opened. `fixed` and
 * `options` may be NULL. Errors and thread safety: see above.
 */
LEAT_API int leat_pipeline_fixed(leat_pipeline **out, const char *const path[],
                                 int n, const leat_fixed_options *fixed,
                                 const leat_file_options *options);

/**
 * `text:FILES`: lines. Field: `line`, the bytes of each without its end, which
 * is LF, CR LF, or that of the file; empty lines are samples, and CR elsewhere
 * is a byte as any other. A line longer than max_record is a bad record.
 * `options` may be NULL. Errors and thread safety: see above.
 */
LEAT_API int leat_pipeline_text_lines(leat_pipeline **out,
                                      const char *const path[], int n,
                                      const leat_file_options *options);

/**
 * `idx:IMAGES,LABELS`: IDX, the files of MNIST. Fields: `data`, of the file's
 * type and shape; rows and columns get a channel before them, as Caffe's images
 * have; and `label`, an int32 scalar, if there are labels. Both name files as
 * `path` does above, and there are as many of labels as of images; labels are
 * read whole when a reader is opened, into a quarter of max_memory, or 1 GiB
 * where that is not set (LEAT_ELIMIT). A file that its header does not fit is
 * LEAT_EFORMAT then, or, compressed, where it shows. `labels` and `options` may
 * be NULL. Errors and thread safety: see above.
 */
LEAT_API int leat_pipeline_idx(leat_pipeline **out, const char *images,
                               const char *labels,
                               const leat_file_options *options);

/**
 * `recordio:FILES`: PaddlePaddle's RecordIO, Fluid's and Go's, and ElasticDL's,
 * told apart by the first checksum that is right, of the first 16 chunks, in a
 * compressed file or a pipe those that max_record and max_memory hold together,
 * where their headers do not tell; a reader's mapped files are all of one.
 * Field: `record`, the bytes of each. Chunks may be compressed by snappy, where
 * leat is built with libsnappy, or gzip; a reader over such files reads in
 * order. Records of a chunk whose checksum is wrong are bad; a compressed chunk
 * is one bad record then, as is any chunk of a compressed file or a pipe. Fluid
 * takes up to 3 bytes at the end of a file for none; they are LEAT_EFORMAT
 * here. `options` may be NULL. Errors and thread safety: see above.
 */
LEAT_API int leat_pipeline_recordio(leat_pipeline **out,
                                    const char *const path[], int n,
                                    const leat_file_options *options);

/**
 * `files:FILES`: the files themselves, which need not exist, such as for
 * interleave. Field: `name`, the bytes of each path, which is also the key.
 * Errors and thread safety: see above.
 */
LEAT_API int leat_pipeline_files(leat_pipeline **out, const char *const path[],
                                 int n);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
