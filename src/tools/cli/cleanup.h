/* cleanup.h: what is closed when an error or a signal ends the program. */
#ifndef LEAT_TOOLS_CLI_CLEANUP_H
#define LEAT_TOOLS_CLI_CLEANUP_H

/*
 * Has `close(object)` called where output_exit ends the program, the latest
 * first: a reader or a layer then removes what it has begun to write, such as
 * the directory of a cache. For few objects, on the main thread.
 */
void cleanup_add(void (*close)(void *object), void *object);

/* The object is closed by its owner. */
void cleanup_remove(const void *object);

/* Closes all, unless another thread than that of cleanup_add ends the program,
 * as objects may be in use. */
void cleanup_run(void);

#endif
