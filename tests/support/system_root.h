/* system_root.h: a folder in place of /, with files as the system has in /sys.
 */
#ifndef LEAT_TESTS_SYSTEM_ROOT_H
#define LEAT_TESTS_SYSTEM_ROOT_H

/* A fixture's: makes an empty one, and removes it. */
void system_root_set_up(void);
void system_root_tear_down(void);

/* Its path, without a slash at the end. */
const char *system_root(void);

/* Writes the file of an absolute path, and the folders that it is in. */
void system_root_write(const char *path, const char *text);

#endif
