#include "tools/cli/cleanup.h"

#include <pthread.h>
#include <stddef.h>

enum { MOST = 4 };

static struct {
    void (*close)(void *object);
    void *object; /* NULL: none */
} pending[MOST];
static pthread_t owner; /* set with the first of them */

void cleanup_add(void (*close)(void *object), void *object)
{
    owner = pthread_self();
    for (int i = 0; i < MOST; i++)
        if (!pending[i].object) {
            pending[i].close = close;
            pending[i].object = object;
            return;
        }
}

void cleanup_remove(const void *object)
{
    for (int i = 0; i < MOST; i++)
        if (pending[i].object == object)
            pending[i].object = NULL;
}

void cleanup_run(void)
{
    for (int i = MOST - 1; i >= 0; i--) {
        void *object = pending[i].object;
        if (!object || !pthread_equal(owner, pthread_self()))
            continue;
        pending[i].object = NULL;
        pending[i].close(object);
    }
}
