#define ROW_KERNELS leat__row_kernels_c
#define ROW_NAME "c"
#define ROW_LANES 4
#define ROW_HAS_BYTE_SHUFFLE 0
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Interleaved with zeros twice: what SSE2 and NEON alike widen bytes by. */
#define ROW_FLOATS_OF_BYTES(p) floats_of_word(load_word(p))
#define ROW_WIDENS_WORDS 1
#else
#define ROW_FLOATS_OF_BYTES(p) ((float_vector){(p)[0], (p)[1], (p)[2], (p)[3]})
#endif
#define ROW_DOUBLES_OF_BYTES(p) ((double_vector){(p)[0], (p)[1]})
#include "device/transform_rows_body.h"
