/*
 * DESIGN
 *
 * Types are appended under `lock` and never removed or changed, so a type that
 * was found may be used without it. A forked child resets the lock: an entry is
 * written before `ntypes` counts it, so the table is always consistent.
 */
#include "pipeline/registry.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/file_place.h"
#include "base/fork.h"
#include "base/suggestion.h"
#include "pipeline/reader_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TYPES_MAX 256
#define NAME_MAX_SIZE 63

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Protected by lock: the registered types. */
static const leat_reader_type *types[TYPES_MAX];
static atomic_int ntypes; /* a child sees no entry that is not written */

/* Built-in types come first; NULL after the last. */
static const leat_reader_type *type_at(int i)
{
    for (int own = 0; leat__readers[own]; own++) {
        if (i-- == 0)
            return leat__readers[own];
    }
    for (int own = 0; leat__decorators[own]; own++) {
        if (i-- == 0)
            return leat__decorators[own];
    }
    return i < ntypes ? types[i] : NULL;
}

static const leat_reader_type *find_locked(const char *name)
{
    const leat_reader_type *type;
    for (int i = 0; (type = type_at(i)) != NULL; i++) {
        if (strcmp(type->name, name) == 0)
            return type;
    }
    return NULL;
}

static bool is_name(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (!leat__ascii_is_letter_or_digit(*p) && *p != '_')
            return false;
    }
    return name[0] != 0 && strlen(name) <= NAME_MAX_SIZE;
}

/* Whether a path was meant: it is not a valid name, or it exists. */
static bool is_path(const char *name)
{
    return name[0] != 0 && (!is_name(name) || !leat__file_access(name, F_OK));
}

static int add_locked(const leat_reader_type *type)
{
    if (find_locked(type->name))
        return leat_error(LEAT_EINVAL, "a reader \"%s\" is registered already",
                          type->name);
    if (ntypes == TYPES_MAX)
        return leat_error(LEAT_EINVAL, "%d readers are registered already",
                          TYPES_MAX);
    types[ntypes] = type;
    ntypes++;
    return LEAT_OK;
}

int leat_reader_register(const leat_reader_type *type)
{
    int status = leat__reader_type_check(type);
    if (status)
        return status;
    if (!is_name(type->name))
        return leat_error(
            LEAT_EINVAL,
            "invalid reader name \"%s\": expected 1 to %d letters, "
            "digits or _",
            type->name, NAME_MAX_SIZE);
    leat__fork_reset_mutex(&lock);
    pthread_mutex_lock(&lock);
    status = add_locked(type);
    pthread_mutex_unlock(&lock);
    return status;
}

int leat__registry_find(const leat_reader_type **out, const char *name)
{
    char nearest[NAME_MAX_SIZE + 32];
    leat__suggestion suggestion = leat__suggestion_of(name);
    leat__fork_reset_mutex(&lock);
    pthread_mutex_lock(&lock);
    const leat_reader_type *type = find_locked(name);
    for (int i = 0; !type && type_at(i); i++)
        leat__suggestion_consider(&suggestion, type_at(i)->name);
    pthread_mutex_unlock(&lock);
    if (!type)
        return leat_error(
            LEAT_EINVAL,
            "there is no reader \"%s\"%s; \"leat readers\" lists them%s%s",
            name,
            leat__suggestion_write(&suggestion, "", nearest, sizeof(nearest)),
            is_path(name) ? "; a database is lmdb:" : "",
            is_path(name) ? name : "");
    *out = type;
    return LEAT_OK;
}

const leat_reader_type *leat_reader_type_at(int i)
{
    leat__fork_reset_mutex(&lock);
    pthread_mutex_lock(&lock);
    const leat_reader_type *type = i < 0 ? NULL : type_at(i);
    pthread_mutex_unlock(&lock);
    return type;
}
