/* few_users.h: what a superuser does in a user namespace that knows the first
 * 65536 users and groups alone, as a container's. */
#ifndef LEAT_TESTS_FEW_USERS_H
#define LEAT_TESTS_FEW_USERS_H

#include <stdbool.h>

/* Whether `work` was done, in a forked child, in which it may assert; false
 * where there are no such namespaces. For a superuser. */
bool few_users_do(void (*work)(void));

#endif
