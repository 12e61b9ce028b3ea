#include "config/net_diagnosis.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

typedef leat__prototxt_field field;

/* The fields of a solver that name its nets, and those that hold them. */
static const char *const net_files[] = {"net", "train_net", "test_net"};
static const char *const own_nets[] = {"net_param", "train_net_param",
                                       "test_net_param"};
/* A solver has some of these; a net has none. */
static const char *const other_fields[] = {"base_lr", "lr_policy", "max_iter",
                                           "solver_mode", "snapshot_prefix"};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const field *find_any(const leat__prototxt *file,
                             const char *const names[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const field *found = leat__prototxt_find(&file->root, names[i]);
        if (found)
            return found;
    }
    return NULL;
}

/* `"a.prototxt" (train_net), "b.prototxt" (test_net)` */
static void list_nets(char *list, size_t size, const leat__prototxt *file)
{
    char shown[LEAT__PROTOTXT_SHOWN_MAX];
    list[0] = 0;
    for (size_t i = 0; i < COUNT(net_files); i++) {
        const field *net = leat__prototxt_find(&file->root, net_files[i]);
        for (; net; net = leat__prototxt_find_next(net)) {
            size_t used = strlen(list);
            snprintf(list + used, size - used, "%s%s (%s)", used ? ", " : "",
                     leat__prototxt_show(shown, net), net->name);
        }
    }
}

int leat__net_diagnose_solver(const leat__prototxt *file)
{
    char nets[320];
    if (leat__prototxt_find(&file->root, "layer") ||
        leat__prototxt_find(&file->root, "layers"))
        return LEAT_OK;
    const field *found = find_any(file, net_files, COUNT(net_files));
    if (found) {
        list_nets(nets, sizeof(nets), file);
        return leat__prototxt_error(
            file, found->at,
            "expected a net, found a solver: give the net that it names, %s",
            nets);
    }
    found = find_any(file, own_nets, COUNT(own_nets));
    if (found)
        return leat__prototxt_error(
            file, found->at,
            "expected a net, found a solver: put what is in its %s { } into a "
            "file of its own and give that",
            found->name);
    found = find_any(file, other_fields, COUNT(other_fields));
    return found ? leat__prototxt_error(
                       file, found->at,
                       "expected a net, found a solver that names none")
                 : LEAT_OK;
}

static const char deployment[] =
    "this is a net for deployment: give the one that is trained";

/* What to do about a layer that data comes from, by its type in each form. */
static const struct advice {
    const char *types[3];
    const char *text;
} advices[] = {
    {{"ImageData", "IMAGE_DATA", "images"},
     "make an LMDB of the images with leat import images, and a Data layer"},
    {{"Input", "Input", "Input"}, deployment},
    {{"AnnotatedData", "AnnotatedData", "AnnotatedData"},
     "leat has no boxes: make an LMDB of Datum, and a Data layer"},
};

static const char *find_advice(const field *type)
{
    for (size_t i = 0; i < COUNT(advices); i++)
        for (size_t k = 0; k < COUNT(advices[i].types); k++)
            if (!strcmp(type->text, advices[i].types[k]))
                return advices[i].text;
    return "leat has Data layers alone: make an LMDB of Datum, and a Data "
           "layer";
}

static const field *find_source(const field *layer, const field **type)
{
    const field *v0 = leat__prototxt_find(layer, "layer");
    const field *described =
        v0 && v0->type == LEAT__PROTOTXT_MESSAGE ? v0 : layer;
    *type = leat__prototxt_find(described, "type");
    /* Layers of parameters have a top alone, as those of data do. */
    if (!*type || !(*type)->text || !strcmp((*type)->text, "Parameter") ||
        leat__prototxt_find(layer, "bottom") ||
        !leat__prototxt_find(layer, "top"))
        return NULL;
    return described;
}

/* Appends `ImageData "photos" (line 12)`. */
static void list_source(char *list, size_t size, const field *described,
                        const field *type, int line)
{
    char type_text[LEAT__KEY_TEXT_MAX];
    char name_text[LEAT__KEY_TEXT_MAX];
    const field *name = leat__prototxt_find(described, "name");
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s \"%s\" (line %d)",
             used ? ", " : "",
             leat__key_text(type_text, type->text, type->text_size),
             leat__key_text(name_text, name && name->text ? name->text : "",
                            name && name->text ? name->text_size : 0),
             line);
}

int leat__net_diagnose_types(const leat__prototxt *file, int layers)
{
    char list[240] = "";
    const char *advice = NULL;
    const field *layer = file->root.first;
    for (; layer; layer = layer->next) {
        const field *type = NULL;
        const field *described = NULL;
        if (layer->type == LEAT__PROTOTXT_MESSAGE &&
            (!strcmp(layer->name, "layer") || !strcmp(layer->name, "layers")))
            described = find_source(layer, &type);
        if (!described)
            continue;
        if (!advice)
            advice = find_advice(type);
        list_source(list, sizeof(list), described, type, layer->at.line);
    }
    const field *input = leat__prototxt_find(&file->root, "input");
    if (!advice && input) {
        advice = deployment;
        snprintf(list, sizeof(list), "input (line %d)", input->at.line);
    }
    return leat_error(LEAT_EINVAL,
                      "%s: expected a layer of type \"Data\", found none among "
                      "%d layers%s%s%s%s",
                      file->name, layers, advice ? ", but " : "", list,
                      advice ? ": " : "", advice ? advice : "");
}
