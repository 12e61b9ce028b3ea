/*
 * leat/maps.h: decorators that work on each sample. What leat/decorators.h says
 * of all holds for these.
 */
#ifndef LEAT_MAPS_H
#define LEAT_MAPS_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Work on each sample
 * Thread safety: any thread.
 * @{
 */

/*
 * These keep order, count and random access. Their work is done where samples
 * are materialized: by all workers of a data layer, in parallel.
 */

/**
 * Changes a sample, which is complete: its fields in place by leat_sample_set,
 * their number by nfields. leat_sample_set removes the fields after the one
 * that it sets: a function that keeps them sets nfields back. A view need
 * not be aligned, and no NUL follows a text. Memory of new fields is the
 * sample's own (leat_sample_take, which may move the views of fields), or valid
 * as long as the reader; what views point to is not written to. `sample->from`
 * says where it came from; `sample->at` its position, with the option
 * uses_position or in_order. A function that chooses at random calls
 * leat_choice with these, and so chooses the same again.
 *
 * Returns LEAT_OK; LEAT_EDATA for this sample alone; any other error, which
 * ends reading; LEAT_END with the option may_end. leat_error sets the reason,
 * else leat does.
 */
typedef int leat_map_function(void *user, leat_sample *sample);

/** Options of leat_pipeline_map. Zero is the default of all but `size`. */
typedef struct leat_map_options {
    size_t size;                   /* of this struct, as the caller knows it */
    const leat_field_spec *fields; /* of each sample that the function gives,
                                      copied; one that has others is LEAT_EDATA.
                                      NULL: the upstream reader's */
    int nfields;                   /* 1 to LEAT_MAX_FIELDS */
    const char *name;              /* for errors; NULL: "map" */
    /**
     * 1: called for one sample at a time, in order, on whatever thread reads,
     * for functions that are not thread-safe. Random access is lost. The
     * function is not called for samples that are passed by: those of other
     * ranks, and those before the position of a resume.
     */
    int in_order;
    /**
     * 1: the function may return LEAT_END, which ends the epoch without that
     * sample. It is then called in order, for all samples, and count and seek
     * by index are lost: a layer resumes by marks.
     */
    int may_end;
    int uses_position;           /* 1: sample->at is set */
    int may_block;               /* 1: calls may block, as on a socket */
    void (*cancel)(void *user);  /* any thread; needed if calls can block */
    void (*release)(void *user); /* after the pipeline and all its readers, or
                                    when it could not be made */
} leat_map_options;

/** Every default, written out. */
#define LEAT_MAP_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(leat_map_options), NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL        \
    }

/** Writes every default, as leat_open_options_init does. */
LEAT_API int leat_map_options_init(leat_map_options *options);

/**
 * Each sample, changed by the function, which any of leat's threads call in
 * parallel. `user` is borrowed until the pipeline and all its readers are
 * freed; `id` identifies function and user to resume tokens, which are refused
 * with another. `options` may be NULL.
 */
LEAT_API int leat_pipeline_map(leat_pipeline **out, leat_pipeline *upstream,
                               leat_map_function *function, void *user,
                               uint64_t id, const leat_map_options *options);

/**
 * `cast:label=int64,data=float32`: a field's elements in another type, as C
 * converts them: floats become integers towards zero, what does not fit the
 * nearest value that does, NaN 0; floats are rounded once, to nearest, ties to
 * even. The elements of a field of LEAT_BYTES are its bytes, and uint8 becomes
 * LEAT_BYTES, of one dimension unless it is a group's; neither copies.
 */
LEAT_API int leat_pipeline_cast(leat_pipeline **out, leat_pipeline *upstream,
                                const char *field, leat_dtype dtype);

/**
 * `reshape:data=3x32x32`: the same elements in another shape, without a copy.
 * One dimension may be -1, and follows from the others; `label=scalar` is one
 * element without dimensions. A sample whose elements do not fit is LEAT_EDATA.
 */
LEAT_API int leat_pipeline_reshape(leat_pipeline **out, leat_pipeline *upstream,
                                   const char *field, int ndim,
                                   const int64_t shape[]);

/** The channels of decoded images. */
typedef enum leat_decode_color {
    LEAT_DECODE_NATIVE = 0, /* the file's: 1, 3 (B G R) or 4 (B G R A); no
                               rotation by EXIF */
    LEAT_DECODE_BGR = 1,    /* 3, as Caffe's force_color */
    LEAT_DECODE_GRAY = 2,   /* 1, as Caffe's force_gray */
    LEAT_DECODE_RGB = 3     /* 3, red first */
} leat_decode_color;

/** Options of leat_pipeline_decode. Zero is the default of all but `size`. */
typedef struct leat_decode_options {
    size_t size;             /* of this struct, as the caller knows it */
    const char *field;       /* NULL: the first field of LEAT_BYTES */
    leat_decode_color color; /* channels that are made */
    leat_layout layout;      /* NCHW: channels first */
    int64_t max_image_bytes; /* memory of decoding one image; 0:
                                LEAT_IMAGE_BYTES_DEFAULT */
} leat_decode_options;

/** Every default, written out. */
#define LEAT_DECODE_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(leat_decode_options), NULL, LEAT_DECODE_NATIVE, LEAT_NCHW, 0    \
    }

/** Writes every default, as leat_open_options_init does. */
LEAT_API int leat_decode_options_init(leat_decode_options *options);

/**
 * `decode:data,color=BGR`: a JPEG or PNG as its pixels, uint8 of channels x
 * height x width, or with layout=HWC of height x width x channels; decoded as
 * Caffe's OpenCV does. An image that cannot be decoded is LEAT_EDATA. Each
 * thread has a decoder, whose memory `memory` of the reader reports. `options`
 * may be NULL.
 */
LEAT_API int leat_pipeline_decode(leat_pipeline **out, leat_pipeline *upstream,
                                  const leat_decode_options *options);

/**
 * `datum`: a serialized Caffe Datum in a field of LEAT_BYTES (NULL: the first
 * one), in whose place come `data` and `label`, as leat_datum_fields makes
 * them. `type` is that of `data`: LEAT_UINT8, LEAT_FLOAT32 (float_data), or
 * LEAT_BYTES for encoded images; `labels` 0: the class, an int32 scalar, else
 * so many floats, -1 if their number varies. A Datum with another type is
 * LEAT_EDATA.
 */
LEAT_API int leat_pipeline_datum(leat_pipeline **out, leat_pipeline *upstream,
                                 const char *field, leat_dtype type,
                                 int labels);

/**
 * `columns:label=int32,x=float32*784,_,name=bytes,sep=;`: the columns of a line
 * of text as fields, in place of the first field of LEAT_BYTES, or that of
 * `field=`. NAME=TYPE is one column, a scalar; NAME=TYPE*N the next N of them,
 * in one dimension; NAME=bytes the text as it is, a view; _ skips one, _*N
 * so many. `sep` is a letter (a comma), tab, or space for any blanks. Blanks
 * around a column do not count, and nothing quotes. Numbers have a decimal
 * point in every locale, and whole ones have to fit; a line with other columns
 * is LEAT_EDATA, and the error names the record and the column.
 */
LEAT_API int leat_pipeline_columns(leat_pipeline **out, leat_pipeline *upstream,
                                   const char *columns);

/**
 * `select:image=data,again=data,label`: the fields that samples have, in this
 * order; NEW=FIELD renames, and a field may be used twice. No byte is copied.
 */
LEAT_API int leat_pipeline_select(leat_pipeline **out, leat_pipeline *upstream,
                                  const char *fields);

/** Options of example and sequence_example; zero is the default of each. */
typedef struct leat_example_options {
    size_t size;       /* of this struct, as the caller knows it */
    const char *field; /* the field that is parsed; NULL: the first of
                          LEAT_BYTES */
} leat_example_options;

/** Every default, written out. */
#define LEAT_EXAMPLE_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(leat_example_options), NULL                                     \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_example_options_init(leat_example_options *options);

/**
 * `example:image=bytes,label=int64,x=float32[3]?0,ids=int64[-1]`: the features
 * of the serialized tf.train.Example in a field of each sample, in the place of
 * all its fields, in the order given.
 *
 * A feature is `name=type[shape]?default`, without blanks. Types: int64;
 * float32; bytes, one string, as a field of LEAT_BYTES; uint8, the bytes of one
 * string as numbers (tf.io.decode_raw). Without a shape there is one value; [3]
 * or [3x4] are as many as that, else the record is bad; [-1] or [-1x4] as many
 * rows as there are. bytes[3] and bytes[-1] are several strings: a uint8 field
 * of their bytes, and a field NAME.offsets of 0 and where each of them ends.
 * The default, of a feature that is missing or has no kind, is one number for
 * all elements, or all of them with blanks between them; a string is taken as
 * it is. Without one a missing feature is a bad record, but for one of shape
 * [-1], which is empty.
 *
 * Strings, and floats in one packed piece, are views of the record. Keys are
 * compared by their bytes; of several entries with one key the last counts.
 * Features that are not asked for are not read. A bad record is LEAT_EDATA,
 * whose line has source, record, feature, what was expected and what was found.
 * As for protobuf-c, and unlike protobuf's C++, a field of the schema with
 * another wire type is malformed. A feature that is not described so is
 * LEAT_EINVAL when the pipeline is opened.
 */
LEAT_API int leat_pipeline_example(leat_pipeline **out, leat_pipeline *upstream,
                                   const char *const features[], int n,
                                   const leat_example_options *options);

/**
 * `sequence_example:label=int64,ids=[int64],words=[bytes[-1]]?`: the same of a
 * tf.train.SequenceExample: features of its context and, in brackets, of each
 * step of its feature_lists.
 *
 * Type and shape in brackets are those of a step: [int64] gives a field of one
 * dimension, [float32[4]] one of steps x 4. Where steps differ ([int64[-1]],
 * [float32[-1x4]]) their rows follow each other, and NAME.offsets has 0 and
 * where each step ends. Strings are a uint8 field of their bytes with
 * NAME.offsets, where each ends, and, for [bytes[-1]], NAME.offsets.1, which
 * groups them by step. Lists need not be of equal length. A missing list is a
 * bad record, or, where its feature ends with `?`, has no steps.
 */
LEAT_API int
leat_pipeline_sequence_example(leat_pipeline **out, leat_pipeline *upstream,
                               const char *const features[], int n,
                               const leat_example_options *options);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
