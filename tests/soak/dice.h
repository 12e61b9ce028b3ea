/* dice.h: random numbers that are the same whenever they are asked for. */
#ifndef LEAT_TESTS_DICE_H
#define LEAT_TESTS_DICE_H

#include <stdint.h>

/* Begins the sequence of configuration `number` of a seed. */
void dice_begin(long long seed, long long number);

uint64_t dice(void);

/* In [0, n). */
int below(int n);

/* In [low, high]. */
int between(int low, int high);

/* 1 one time in n. */
int once_in(int n);

#endif
