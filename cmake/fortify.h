/* fortify.h: before every source, glibc's checked calls where they work. */
#ifndef LEAT_FORTIFY_H
#define LEAT_FORTIFY_H

/* Without optimisation glibc warns of it. The flags alone do not tell: they
 * come from the build type, the user and the project around leat. A compiler
 * of a distribution's may have defined it already, with another value. */
#if defined(__OPTIMIZE__)
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#endif

#endif
