/* protected_open.h: files of another user in a directory that all may write to.
 * For programs whose linker puts __wrap_open in front of libc's open. */
#ifndef LEAT_TESTS_PROTECTED_OPEN_H
#define LEAT_TESTS_PROTECTED_OPEN_H

/* Whether every file that is there is such a one: O_CREAT without O_EXCL is
 * refused for it, as by fs.protected_regular (sysctl). */
extern int protected_open;

/* So many openings of a lock.mdb find no directory for it. */
extern int absent_locks;

/* Whether the mount knows no name for this user, who can make no file then. */
extern int nameless_user;

#endif
