/* pthread_create of the tests in tests/threadless.txt, which the thread
   sanitizer does not see. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    (void)thread;
    (void)attributes;
    (void)body;
    (void)argument;
    fprintf(stderr,
            "a thread starts: take this test out of tests/threadless.txt\n");
    abort();
}
