#include "decorators/interleave/element_identities.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/arguments.h"

#include <string.h>

enum { ROOM_MIN = 16 };

static const uint64_t no_hash = 0xcbf29ce484222325u;

/* Adds a number to a hash, as FNV-1a adds a byte. */
static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * 0x100000001b3u;
}

uint64_t leat__element_key(const char *name, int64_t number)
{
    uint64_t key =
        hash_number(leat__hash_text(no_hash, name), (uint64_t)number);
    return key ? key : 1;
}

/* The entry of a key, or an empty one for it. There is room. */
static leat__element_identity *find(leat__element_identity *element,
                                    int64_t room, uint64_t key)
{
    uint64_t at = key & (uint64_t)(room - 1);
    while (element[at].key && element[at].key != key)
        at = (at + 1) & (uint64_t)(room - 1);
    return &element[at];
}

static int grow(leat__element_identities *identities)
{
    int64_t room = identities->room;
    if (2 * (identities->n + 1) <= room)
        return LEAT_OK;
    room = room ? 2 * room : ROOM_MIN;
    leat__element_identity *grown =
        leat__alloc_zero((size_t)room, sizeof(*grown));
    if (!grown)
        return LEAT_ENOMEM;
    for (int64_t i = 0; i < identities->room; i++) {
        const leat__element_identity *one = &identities->element[i];
        if (one->key)
            *find(grown, room, one->key) = *one;
    }
    leat__counter_add(&identities->bytes,
                      (room - identities->room) * (int64_t)sizeof(*grown));
    leat__free(identities->element);
    identities->element = grown;
    identities->room = room;
    return LEAT_OK;
}

void leat__element_identities_clear(leat__element_identities *identities)
{
    if (identities->room)
        memset(identities->element, 0,
               (size_t)identities->room * sizeof(*identities->element));
    identities->n = 0;
    identities->hash = no_hash;
}

/* NULL: it was not added. */
static const leat__element_identity *
look_up(const leat__element_identities *identities, uint64_t key)
{
    if (identities->room == 0)
        return NULL;
    const leat__element_identity *found =
        find(identities->element, identities->room, key);
    return found->key ? found : NULL;
}

bool leat__element_identities_repeat(leat__element_identities *identities,
                                     uint64_t key)
{
    const leat__element_identity *found = look_up(identities, key);
    if (found)
        identities->hash = hash_number(identities->hash, found->data);
    return found != NULL;
}

/* Adds the identity of a reader's data to a hash; none of no reader. */
static int hash_data(leat_reader *reader, uint64_t *hash)
{
    leat_token token;
    leat_token_init(&token);
    int status = reader ? leat_reader_identify(reader, &token) : LEAT_OK;
    const char *text = status || !reader ? "" : leat_token_text(&token);
    if (!text)
        status = LEAT_ENOMEM;
    if (!status)
        *hash = leat__hash_text(*hash, text);
    leat_token_finish(&token);
    return status;
}

int leat__element_identities_add(leat__element_identities *identities,
                                 uint64_t key, leat_reader *reader)
{
    leat__element_identity added = {key, no_hash};
    int status = grow(identities);
    if (!status)
        status = hash_data(reader, &added.data);
    if (status)
        return status;
    identities->hash = hash_number(identities->hash, added.data);
    *find(identities->element, identities->room, key) = added;
    identities->n++;
    return LEAT_OK;
}

int leat__element_identities_check(const leat__element_identities *identities,
                                   uint64_t key, leat_reader *reader)
{
    uint64_t data = no_hash;
    const leat__element_identity *found = look_up(identities, key);
    int status = found ? hash_data(reader, &data) : LEAT_OK;
    if (status || !found || data == found->data)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "was written or replaced since it was opened first; open "
                      "the pipeline again");
}

void leat__element_identities_finish(leat__element_identities *identities)
{
    leat__free(identities->element);
}
