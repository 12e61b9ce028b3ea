#include "config/net_choice.h"
#include "base/error.h"
#include "base/log.h"
#include "config/net_schema.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef leat__prototxt_field field;

/* The fields of Caffe's NetParameter. */
static const char *const net_fields[] = {
    "name",  "input",      "input_shape", "input_dim", "force_backward",
    "state", "debug_info", "layer",       "layers",    NULL};

static int is_known(const char *name)
{
    for (int i = 0; net_fields[i]; i++)
        if (!strcmp(net_fields[i], name))
            return 1;
    return 0;
}

static int is_layer(const field *value)
{
    return !strcmp(value->name, "layer") || !strcmp(value->name, "layers");
}

/* The V0 form, `layers { layer { ... } }`, is older than LMDB. */
static int check_net_field(const leat__prototxt *file, const field *value)
{
    if (!strcmp(value->name, "leat_param"))
        return leat__prototxt_error(file, value->at,
                                    "leat_param belongs inside the data layer");
    if (!is_known(value->name))
        leat__log(LEAT_LOG_WARNING,
                  "%s:%d:%d: %s is no field of a net, skipped", file->name,
                  value->at.line, value->at.column, value->name);
    if (!is_layer(value) || value->kind == LEAT__PROTOTXT_NOTHING)
        return LEAT_OK;
    if (value->kind != LEAT__PROTOTXT_MESSAGE)
        return leat__prototxt_error(file, value->value_at, "%s: expected {",
                                    value->name);
    if (!strcmp(value->name, "layers") && leat__prototxt_find(value, "layer"))
        return leat__prototxt_error(
            file, value->at,
            "layers { layer { } } is Caffe's V0 form, which knows no LMDB: "
            "upgrade the file with upgrade_net_proto_text");
    return LEAT_OK;
}

/*
 * Whether a type stands for the data layer. The newest form has a string and
 * V1 an enum: each in the other's place is an error that is worth naming.
 */
static int match_type(const leat__prototxt *file, const field *type, int is_v1,
                      int *out)
{
    int number = 0;
    if (is_v1 && type->kind == LEAT__PROTOTXT_INTEGER) {
        *out = !leat__prototxt_int32(file, type, &number) && number == 5;
        return LEAT_OK;
    }
    int has_form = type->kind ==
                   (is_v1 ? LEAT__PROTOTXT_IDENTIFIER : LEAT__PROTOTXT_STRING);
    if (has_form) {
        *out = !strcmp(type->text, is_v1 ? "DATA" : "Data");
        return LEAT_OK;
    }
    if (type->text && !strcasecmp(type->text, "data"))
        return leat__prototxt_error(
            file, type->value_at,
            is_v1 ? "type: expected DATA, as the type of layers { } is an enum"
                  : "type: expected \"Data\", as the type of layer { } is a "
                    "string");
    *out = 0;
    return LEAT_OK;
}

static int is_data_layer(const leat__prototxt *file, const field *layer,
                         int *out)
{
    int is_v1 = !strcmp(layer->name, "layers");
    const field *type = leat__prototxt_find(layer, "type");
    *out = 0;
    for (; type && !*out; type = leat__prototxt_find_next(type)) {
        int status = match_type(file, type, is_v1, out);
        if (status)
            return status;
    }
    return LEAT_OK;
}

static const char *layer_name(const field *layer)
{
    const field *name = leat__prototxt_find(layer, "name");
    return name ? name->text : "";
}

/* One more data layer for an error's list: `, "cifar" (line 3, TRAIN)`. */
static void list_layer(char *list, size_t size, const leat__net_state *state,
                       const field *layer)
{
    char shown[LEAT__KEY_TEXT_MAX];
    const char *name = layer_name(layer);
    int in[2] = {0, 0};
    size_t used = strlen(list);
    for (int phase = 0; phase < 2; phase++) {
        leat__net_state other = *state;
        other.phase = (leat_phase)phase;
        /* What cannot be told is told when the layer is chosen. */
        (void)leat__net_state_includes(&other, layer, &in[phase]);
    }
    const char *phases = in[0] && in[1] ? "TRAIN and TEST"
                         : in[0]        ? "TRAIN"
                         : in[1]        ? "TEST"
                                        : "no phase at this level and stage";
    snprintf(list + used, size - used, "%s\"%s\" (line %d, %s)",
             used ? ", " : "", leat__key_text(shown, name, strlen(name)),
             layer->at.line, phases);
}

typedef struct search {
    const leat__net_state *state;
    const char *name;
    const field *found;
    int matches;
    int data_layers;
    int layers;
    char all[320];      /* every data layer */
    char matching[320]; /* those that match */
} search;

static int visit_layer(search *search, const field *layer)
{
    const leat__prototxt *file = search->state->file;
    int is_data;
    int is_included;
    search->layers++;
    int status = is_data_layer(file, layer, &is_data);
    if (status || !is_data)
        return status;
    status = leat__net_schema_check(file, layer,
                                    strcmp(layer->name, "layers")
                                        ? &leat__net_schema_layer
                                        : &leat__net_schema_v1_layer);
    if (!status)
        status = leat__net_state_includes(search->state, layer, &is_included);
    if (status)
        return status;
    search->data_layers++;
    list_layer(search->all, sizeof(search->all), search->state, layer);
    if (!is_included ||
        (search->name && strcmp(search->name, layer_name(layer)) != 0))
        return LEAT_OK;
    search->matches++;
    search->found = layer;
    list_layer(search->matching, sizeof(search->matching), search->state,
               layer);
    return LEAT_OK;
}

static int refuse(const search *search)
{
    const leat__prototxt *file = search->state->file;
    const char *phase = search->state->phase == LEAT_TRAIN ? "TRAIN" : "TEST";
    char named[96] = "";
    if (search->name)
        snprintf(named, sizeof(named), " named \"%s\"", search->name);
    if (!search->layers)
        return leat_error(LEAT_EINVAL,
                          "%s: expected a net with a data layer, found no "
                          "layer { } at all",
                          file->name);
    if (!search->data_layers)
        return leat_error(LEAT_EINVAL,
                          "%s: expected a layer of type \"Data\", found none "
                          "among %d layers",
                          file->name, search->layers);
    if (!search->matches)
        return leat_error(LEAT_EINVAL,
                          "%s: no data layer%s for phase %s; there are: %s",
                          file->name, named, phase, search->all);
    return leat_error(LEAT_EINVAL,
                      "%s: %d data layers%s for phase %s: %s; choose one by "
                      "name, stage or level",
                      file->name, search->matches, named, phase,
                      search->matching);
}

int leat__net_choice_find(const field **out, int *is_v1,
                          const leat__net_state *state, const char *name)
{
    search search = {.state = state, .name = name};
    const leat__prototxt *file = state->file;
    const field *v1 = leat__prototxt_find(&file->root, "layers");
    if (v1 && leat__prototxt_find(&file->root, "layer"))
        return leat__prototxt_error(
            file, v1->at,
            "expected either layer { } or layers { }, found both in one file");
    const field *value = file->root.first;
    for (; value; value = value->next) {
        int status = check_net_field(file, value);
        if (!status && is_layer(value) && value->kind == LEAT__PROTOTXT_MESSAGE)
            status = visit_layer(&search, value);
        if (status)
            return status;
    }
    if (search.matches != 1)
        return refuse(&search);
    *out = search.found;
    *is_v1 = !strcmp(search.found->name, "layers");
    return LEAT_OK;
}
