/* number.h: reads numbers as people, and output.h, write them: 10k, 64M,
   1.5GiB, 28.0 ms. */
#ifndef LEAT_TOOLS_CLI_NUMBER_H
#define LEAT_TOOLS_CLI_NUMBER_H

#include <stdint.h>

/* Of a count k, M, G and T are powers of 1000. Of bytes they are powers of
   1024, as are KiB to TiB; kB to TB are powers of 1000. Case does not matter.
 */
enum number_quantity { NUMBER_COUNT, NUMBER_BYTES };

/*
 * Reads a whole number and sets *end after it: a sign, decimal digits, of which
 * up to six may follow a point, and a unit, which one blank may precede. A
 * fraction must make a whole number with its unit; of a power of 1024 it is
 * rounded. Returns 0, or -1 without a number or where it exceeds 64 bits.
 */
int number_read(const char *text, char **end, enum number_quantity quantity,
                int64_t *out);

/* Reads a decimal number, such as -2.5 or 1e-3; neither 0x10, inf nor 1e999. */
int number_read_real(const char *text, char **end, double *out);
int number_read_float(const char *text, char **end, float *out);

/*
 * Reads all of a text as a time with the unit ns, us, ms, s, min or h; without
 * one it is in units of `unit` seconds. *out is in these units, too.
 */
int number_read_time(const char *text, double unit, double *out);

#endif
