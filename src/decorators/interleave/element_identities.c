#include "decorators/interleave/element_identities.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/arguments.h"

static const uint64_t no_hash = 0xcbf29ce484222325u;

static int grow(leat__element_identities *identities)
{
    if (identities->n < identities->room)
        return LEAT_OK;
    int64_t room = identities->room ? 2 * identities->room : 16;
    leat__element_identity *grown = leat__realloc(
        identities->element, (size_t)room * sizeof(*identities->element));
    if (!grown)
        return LEAT_ENOMEM;
    leat__counter_add(&identities->bytes,
                      (room - identities->room) * (int64_t)sizeof(*grown));
    identities->element = grown;
    identities->room = room;
    return LEAT_OK;
}

/* Adds the identity of a reader's data to the hash. */
static int hash_data(leat_reader *reader, uint64_t *hash)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_identify(reader, &token);
    const char *text = status ? NULL : leat_token_text(&token);
    if (!status && !text)
        status = LEAT_ENOMEM;
    if (!status)
        *hash = leat__hash_text(*hash, text);
    leat_token_finish(&token);
    return status;
}

/* Of the first `n`. */
static uint64_t hash_of(const leat__element_identities *identities, int64_t n)
{
    return n > 0 ? identities->element[n - 1].data : no_hash;
}

uint64_t
leat__element_identities_hash(const leat__element_identities *identities)
{
    return hash_of(identities, identities->n);
}

int leat__element_identities_add(leat__element_identities *identities,
                                 const char *name, leat_reader *reader)
{
    leat__element_identity added = {leat__hash_text(no_hash, name),
                                    leat__element_identities_hash(identities)};
    int status = reader ? hash_data(reader, &added.data) : LEAT_OK;
    if (!status)
        status = grow(identities);
    if (!status)
        identities->element[identities->n++] = added;
    return status;
}

int leat__element_identities_check(const leat__element_identities *identities,
                                   int64_t element, const char *name,
                                   leat_reader *reader)
{
    if (element >= identities->n ||
        identities->element[element].name != leat__hash_text(no_hash, name))
        return LEAT_OK;
    uint64_t hash = hash_of(identities, element);
    int status = hash_data(reader, &hash);
    if (status || hash == identities->element[element].data)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "was written or replaced since it was opened first; open "
                      "the pipeline again");
}

void leat__element_identities_finish(leat__element_identities *identities)
{
    leat__free(identities->element);
}
