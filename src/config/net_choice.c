#include "config/net_choice.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/log.h"
#include "config/net_diagnosis.h"
#include "config/net_schema.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef leat__prototxt_field field;

/* The fields of Caffe's NetParameter. */
static const char *const net_fields[] = {
    "name",  "input",      "input_shape", "input_dim", "force_backward",
    "state", "debug_info", "layer",       "layers",    NULL};

static bool is_known(const char *name)
{
    for (int i = 0; net_fields[i]; i++)
        if (!strcmp(net_fields[i], name))
            return true;
    return false;
}

static bool is_layer(const field *value)
{
    return !strcmp(value->name, "layer") || !strcmp(value->name, "layers");
}

static int check_net_field(const leat__prototxt *file, const field *value)
{
    if (!strcmp(value->name, "leat_param"))
        return leat__prototxt_error(file, value->at,
                                    "leat_param belongs inside the data layer");
    if (!is_known(value->name))
        leat__log(LEAT_LOG_WARNING,
                  "%s:%d:%d: %s is not a field of a net, skipped", file->name,
                  value->at.line, value->at.column, value->name);
    if (!is_layer(value) || value->type == LEAT__PROTOTXT_NOTHING)
        return LEAT_OK;
    if (value->type != LEAT__PROTOTXT_MESSAGE)
        return leat__prototxt_error(file, value->value_at, "%s: expected {",
                                    value->name);
    return LEAT_OK;
}

/* As Caffe decides: one V0 layer makes all of the file's layers V0. */
static leat__net_form find_form(const leat__prototxt *file)
{
    const field *layer = leat__prototxt_find(&file->root, "layers");
    if (!layer)
        return LEAT__NET_V2;
    for (; layer; layer = leat__prototxt_find_next(layer))
        if (layer->type == LEAT__PROTOTXT_MESSAGE &&
            leat__prototxt_find(layer, "layer"))
            return LEAT__NET_V0;
    return LEAT__NET_V1;
}

typedef struct search {
    const leat__net_state *state;
    const char *name;
    leat__net_form form;
    const field *found;
    const field *misspelt; /* the first type that is "Data" but for its case */
    int matches;
    int data_layers;
    int layers;
    int phases[2];      /* whether a layer of that name is in TRAIN, TEST */
    char all[320];      /* every data layer */
    char matching[320]; /* those that match */
} search;

/* The index of the phase asked for in pairs of TRAIN and TEST. */
static int own_phase(const search *search)
{
    return search->state->phase == LEAT_TRAIN ? LEAT_TRAIN : LEAT_TEST;
}

static const char *const type_names[] = {
    [LEAT__NET_V2] = "Data", [LEAT__NET_V1] = "DATA", [LEAT__NET_V0] = "data"};

/*
 * Whether a type stands for the data layer. V1's is an enum, the others' are
 * strings: each in the other's place is an error that is worth naming.
 */
static int match_type(search *search, const field *type, bool *out)
{
    static const char *const expected[] = {
        [LEAT__NET_V2] = "type: expected \"Data\", as the type of layer { } is "
                         "a string",
        [LEAT__NET_V1] = "type: expected DATA, as the type of layers { } is an "
                         "enum",
        [LEAT__NET_V0] = "type: expected \"data\", as the type of layers { "
                         "layer { } } is a string"};
    const leat__prototxt *file = search->state->file;
    bool is_v1 = search->form == LEAT__NET_V1;
    int number = 0;
    *out = false;
    if (is_v1 && type->type == LEAT__PROTOTXT_INTEGER) {
        *out = !leat__prototxt_int32(file, type, &number) && number == 5;
        return LEAT_OK;
    }
    if (!type->text || !leat__ascii_is_same(type->text, "data"))
        return LEAT_OK;
    if (type->type !=
        (is_v1 ? LEAT__PROTOTXT_IDENTIFIER : LEAT__PROTOTXT_STRING))
        return leat__prototxt_error(file, type->value_at, "%s",
                                    expected[search->form]);
    *out = !strcmp(type->text, type_names[search->form]);
    if (!*out && !search->misspelt)
        search->misspelt = type;
    return LEAT_OK;
}

static int match_data_layer(search *search, const field *layer, bool *out)
{
    const field *type = leat__prototxt_find(layer, "type");
    *out = false;
    for (; type && !*out; type = leat__prototxt_find_next(type)) {
        int status = match_type(search, type, out);
        if (status)
            return status;
    }
    return LEAT_OK;
}

/* The fields that describe a layer: of V0 those of the layer { } within. */
static const field *described_in(const search *search, const field *layer)
{
    return search->form == LEAT__NET_V0 ? leat__prototxt_find(layer, "layer")
                                        : layer;
}

static const char *layer_name(const search *search, const field *layer)
{
    const field *name =
        leat__prototxt_find(described_in(search, layer), "name");
    return name ? name->text : "";
}

/* Rules of V0 layers do not count: Caffe's upgrade drops them. */
static int match_rules(const search *search, leat_phase phase,
                       const field *layer, bool *out)
{
    leat__net_state state = *search->state;
    state.phase = phase;
    *out = true;
    return search->form == LEAT__NET_V0
               ? LEAT_OK
               : leat__net_state_includes(&state, layer, out);
}

/* One more data layer for an error's list: `, "cifar" (line 3, TRAIN)`. */
static void list_layer(char *list, size_t size, const search *search,
                       const field *layer, const bool in[2])
{
    char shown[LEAT__KEY_TEXT_MAX];
    const char *name = layer_name(search, layer);
    size_t used = strlen(list);
    const char *phases = in[0] && in[1] ? "TRAIN and TEST"
                         : in[0]        ? "TRAIN"
                         : in[1]        ? "TEST"
                                        : "no phase at this level and stage";
    snprintf(list + used, size - used, "%s\"%s\" (line %d, %s)",
             used ? ", " : "", leat__key_text(shown, name, strlen(name)),
             layer->at.line, phases);
}

/* A data layer that passed its schema. */
static int visit_data_layer(search *search, const field *layer)
{
    bool in[2];
    for (int phase = 0; phase < 2; phase++) {
        int status = match_rules(search, (leat_phase)phase, layer, &in[phase]);
        if (status)
            return status;
    }
    search->data_layers++;
    list_layer(search->all, sizeof(search->all), search, layer, in);
    if (search->name && strcmp(search->name, layer_name(search, layer)) != 0)
        return LEAT_OK;
    search->phases[LEAT_TRAIN] |= in[LEAT_TRAIN];
    search->phases[LEAT_TEST] |= in[LEAT_TEST];
    if (!in[own_phase(search)])
        return LEAT_OK;
    search->matches++;
    search->found = layer;
    list_layer(search->matching, sizeof(search->matching), search, layer, in);
    return LEAT_OK;
}

static int visit_layer(search *search, const field *layer)
{
    const leat__prototxt *file = search->state->file;
    const field *described = described_in(search, layer);
    bool is_data;
    search->layers++;
    if (!described)
        return leat__prototxt_error(
            file, layer->at,
            "expected layer { } in layers { }, as other layers of the file "
            "have "
            "one: all must be of Caffe's V0 form, or none");
    if (described->type != LEAT__PROTOTXT_MESSAGE)
        return leat__prototxt_error(file, described->value_at,
                                    "layer: expected {");
    int status = match_data_layer(search, described, &is_data);
    if (status || !is_data)
        return status;
    status = leat__net_schema_check(file, layer,
                                    search->form == LEAT__NET_V2
                                        ? &leat__net_schema_layer
                                        : &leat__net_schema_v1_layer);
    return status ? status : visit_data_layer(search, layer);
}

/* The error of a net whose data layers all have other types. */
static int refuse_types(const search *search)
{
    const leat__prototxt *file = search->state->file;
    char shown[LEAT__PROTOTXT_SHOWN_MAX];
    const char *quote = search->form == LEAT__NET_V1 ? "" : "\"";
    if (search->misspelt)
        return leat__prototxt_error(
            file, search->misspelt->value_at, "type: expected %s%s%s, found %s",
            quote, type_names[search->form], quote,
            leat__prototxt_show(shown, search->misspelt));
    return leat__net_diagnose_types(file, search->layers);
}

static int refuse(const search *search)
{
    static const char *const phases[] = {"TRAIN", "TEST"};
    const leat__prototxt *file = search->state->file;
    int own = own_phase(search);
    bool has_other = search->phases[!own];
    char named[96] = "";
    if (search->name)
        snprintf(named, sizeof(named), " named \"%s\"", search->name);
    if (!search->layers)
        return leat_error(LEAT_EINVAL,
                          "%s: expected a net with a data layer, found no "
                          "layer { } at all",
                          file->name);
    if (!search->data_layers || (!search->matches && search->misspelt))
        return refuse_types(search);
    if (!search->matches)
        return leat_error(
            LEAT_EINVAL, "%s: no data layer%s for phase %s%s%s; there are: %s",
            file->name, named, phases[own], has_other ? ", only for " : "",
            has_other ? phases[!own] : "", search->all);
    return leat_error(LEAT_EINVAL,
                      "%s: %d data layers%s for phase %s: %s; choose one by "
                      "name, stage or level",
                      file->name, search->matches, named, phases[own],
                      search->matching);
}

int leat__net_choice_find(leat__net_choice *out, const leat__net_state *state,
                          const char *name)
{
    const leat__prototxt *file = state->file;
    search search = {.state = state, .name = name, .form = find_form(file)};
    const field *old = leat__prototxt_find(&file->root, "layers");
    if (old && leat__prototxt_find(&file->root, "layer"))
        return leat__prototxt_error(
            file, old->at,
            "expected either layer { } or layers { }, found both in one file");
    int status = leat__net_diagnose_solver(file);
    const field *value = file->root.first;
    for (; value && !status; value = value->next) {
        status = check_net_field(file, value);
        if (!status && is_layer(value) && value->type == LEAT__PROTOTXT_MESSAGE)
            status = visit_layer(&search, value);
    }
    if (status)
        return status;
    if (search.matches != 1)
        return refuse(&search);
    out->layer = search.found;
    out->form = search.form;
    out->v0 = search.form == LEAT__NET_V0
                  ? leat__prototxt_find(search.found, "layer")
                  : NULL;
    return LEAT_OK;
}
