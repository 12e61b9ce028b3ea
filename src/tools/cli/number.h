/* number.h: reads numbers as people, and output.h, write them: 28.0 ms. Whole
   ones, as 10k and 1.5GiB, are leat__decimal_quantity's. */
#ifndef LEAT_TOOLS_CLI_NUMBER_H
#define LEAT_TOOLS_CLI_NUMBER_H

#include <stdint.h>

/* Reads a decimal number, such as -2.5 or 1e-3; neither 0x10, inf nor 1e999. */
int number_read_real(const char *text, char **end, double *out);
int number_read_float(const char *text, char **end, float *out);

/*
 * Reads all of a text as a time with the unit ns, us, ms, s, min or h; without
 * one it is in units of `unit` seconds. *out is in these units, too.
 */
int number_read_time(const char *text, double unit, double *out);

#endif
