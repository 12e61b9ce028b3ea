/* leat/dtype.h: the types of elements in fields and blobs. */
#ifndef LEAT_DTYPE_H
#define LEAT_DTYPE_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most dimensions a field or blob can have. */
#define LEAT_MAX_DIMS 8

/** Every element type: its name, its text and its size in bytes. */
#define LEAT_DTYPE_MAP(X)                                                      \
    X(BYTES, "bytes", 1)                                                       \
    X(UINT8, "uint8", 1)                                                       \
    X(INT32, "int32", 4)                                                       \
    X(INT64, "int64", 8)                                                       \
    X(FLOAT16, "float16", 2)                                                   \
    X(BFLOAT16, "bfloat16", 2)                                                 \
    X(FLOAT32, "float32", 4)                                                   \
    X(FLOAT64, "float64", 8)                                                   \
    X(UINT16, "uint16", 2)                                                     \
    X(INT8, "int8", 1)                                                         \
    X(INT16, "int16", 2)                                                       \
    X(UINT32, "uint32", 4)

/**
 * The type of an element, in the machine's byte order. LEAT_BYTES is a string
 * of bytes whose meaning lies inside it: an encoded image, a line of text.
 */
typedef enum leat_dtype {
#define LEAT_DTYPE_CODE(name, text, bytes) LEAT_##name,
    LEAT_DTYPE_MAP(LEAT_DTYPE_CODE)
#undef LEAT_DTYPE_CODE
} leat_dtype;

/**
 * The size of one element in bytes; 0 for an unknown type.
 * Thread safety: any thread.
 */
LEAT_API size_t leat_dtype_size(leat_dtype dtype);

/**
 * The type's name, such as "float32"; "?" for an unknown one. Static.
 * Thread safety: any thread.
 */
LEAT_API const char *leat_dtype_name(leat_dtype dtype);

/**
 * The type of that name.
 * Errors: LEAT_EINVAL when there is none. Thread safety: any thread.
 */
LEAT_API int leat_dtype_parse(leat_dtype *out, const char *name);

#ifdef __cplusplus
}
#endif
#endif
