#include "config/net_schema.h"
#include "base/log.h"
#include "data/transform_option_table.h"
#include "layer/options/data_layer_option_table.h"

#include <stdbool.h>
#include <string.h>

typedef leat__prototxt_field field;

typedef enum field_type {
    TYPE_STRING,
    TYPE_BOOL,
    TYPE_FLOAT,
    TYPE_INT32,
    TYPE_UINT32,
    TYPE_INT64,
    TYPE_UINT64,
    TYPE_ENUM,
    TYPE_MESSAGE, /* with a schema; NULL: any contents */
    TYPE_WORD,    /* leat's own enums: read by net_option.c */
    TYPE_NONE,    /* an option that net files do not have here: no field */
    TYPE_PLANNED  /* leat knows the name and does not have it yet */
} field_type;

typedef struct schema_field {
    const char *name;
    field_type type;
    bool is_repeated;
    const leat__prototxt_enum *values; /* of an enum */
    const leat__net_schema *message;
    const char *idle; /* why the field has no effect; NULL: it has one */
} schema_field;

/* The list of fields ends with a NULL name. */
struct leat__net_schema {
    const char *name;
    const schema_field *fields;
};

#define FIELD(name, type, is_repeated, values, message, idle)                  \
    {                                                                          \
        name, TYPE_##type, is_repeated, values, message, idle                  \
    }
#define ONE(name, type) FIELD(name, type, 0, NULL, NULL, NULL)
#define MANY(name, type) FIELD(name, type, 1, NULL, NULL, NULL)
#define ONE_ENUM(name, values) FIELD(name, ENUM, 0, values, NULL, NULL)
#define MANY_ENUMS(name, values) FIELD(name, ENUM, 1, values, NULL, NULL)
#define ONE_MESSAGE(name, schema) FIELD(name, MESSAGE, 0, NULL, schema, NULL)
#define MANY_MESSAGES(name, schema) FIELD(name, MESSAGE, 1, NULL, schema, NULL)
/* Caffe 1.0 knows the field and ignores it. */
#define IDLE(name, type)                                                       \
    FIELD(name, type, 0, NULL, NULL, "does nothing, as in Caffe")
/* Another Caffe's field that changes no byte, at least not with these values.
 */
#define FOREIGN(name, type) FIELD(name, type, 0, NULL, NULL, foreign)
#define FOREIGN_ENUM(name, values) FIELD(name, ENUM, 0, values, NULL, foreign)
/* A line of an option table. */
#define OPTION(name, type, proto, ...) ONE(#name, proto),
#define END FIELD(NULL, STRING, 0, NULL, NULL, NULL)

static const char foreign[] =
    "is not Caffe 1.0's, changes no byte and is ignored";

const leat__prototxt_enum leat__net_schema_phase[] = {
    {"TRAIN", 0}, {"TEST", 1}, {NULL, 0}};
const leat__prototxt_enum leat__net_schema_backend[] = {
    {"LEVELDB", 0}, {"LMDB", 1}, {NULL, 0}};
static const leat__prototxt_enum dim_check_mode[] = {
    {"STRICT", 0}, {"PERMISSIVE", 1}, {NULL, 0}};
/* NVIDIA's Caffe: another type would change the tops' elements. */
static const leat__prototxt_enum forward_type[] = {{"FLOAT", 1}, {NULL, 0}};
/* Of all V1 layers only those whose type is DATA are checked. */
static const leat__prototxt_enum v1_layer_type[] = {{"DATA", 5}, {NULL, 0}};

static const schema_field state_fields[] = {
    ONE_ENUM("phase", leat__net_schema_phase),
    ONE("level", INT32),
    MANY("stage", STRING),
    END,
};
const leat__net_schema leat__net_schema_state = {"state", state_fields};

static const schema_field rule_fields[] = {
    ONE_ENUM("phase", leat__net_schema_phase),
    ONE("min_level", INT32),
    ONE("max_level", INT32),
    MANY("stage", STRING),
    MANY("not_stage", STRING),
    END,
};
static const leat__net_schema rule_schema = {"a rule", rule_fields};

static const schema_field param_fields[] = {
    ONE("name", STRING),
    ONE_ENUM("share_mode", dim_check_mode),
    ONE("lr_mult", FLOAT),
    ONE("decay_mult", FLOAT),
    END,
};
static const leat__net_schema param_schema = {"param", param_fields};

static const schema_field transform_fields[] = {
    MANY("mean_value", FLOAT),
    FOREIGN("use_gpu_transform", BOOL),
    FOREIGN("display", BOOL),
    LEAT__TRANSFORM_OPTIONS(OPTION) END,
};
const leat__net_schema leat__net_schema_transform = {"transform_param",
                                                     transform_fields};

static const schema_field data_fields[] = {
    ONE("source", STRING),
    ONE("batch_size", UINT32),
    IDLE("rand_skip", UINT32),
    ONE_ENUM("backend", leat__net_schema_backend),
    ONE("scale", FLOAT),
    ONE("mean_file", STRING),
    ONE("crop_size", UINT32),
    ONE("mirror", BOOL),
    IDLE("force_encoded_color", BOOL),
    ONE("prefetch", UINT32),
    FOREIGN("threads", UINT32),
    FOREIGN("parser_threads", UINT32),
    FOREIGN("cache", BOOL),
    ONE("shuffle", BOOL), /* of NVIDIA's and Intel's Caffes */
    END,
};
static const leat__net_schema data_schema = {"data_param", data_fields};

static const schema_field top_fields[] = {
    ONE("name", STRING),
    ONE("field", STRING),
    ONE("dtype", WORD),
    ONE("form", WORD),
    ONE("is_image", BOOL),
    ONE("cast_lossy", BOOL),
    ONE("choices_of", STRING),
    ONE("pad_value", FLOAT),
    MANY("shape", INT64),
    ONE_MESSAGE("transform_param", &leat__net_schema_transform),
    END,
};
static const leat__net_schema top_schema = {"top", top_fields};

static const schema_field leat_fields[] = {
    MANY_MESSAGES("top", &top_schema),
    ONE("reader", STRING),
    ONE("shuffle", PLANNED),
    LEAT__DATA_LAYER_OPTIONS(OPTION) END,
};
static const leat__net_schema leat_schema = {"leat_param", leat_fields};

static const schema_field layer_fields[] = {
    ONE("name", STRING),
    ONE("type", STRING),
    MANY("bottom", STRING),
    MANY("top", STRING),
    ONE_ENUM("phase", leat__net_schema_phase),
    MANY("loss_weight", FLOAT),
    MANY_MESSAGES("param", &param_schema),
    MANY_MESSAGES("blobs", NULL),
    MANY("propagate_down", BOOL),
    MANY_MESSAGES("include", &rule_schema),
    MANY_MESSAGES("exclude", &rule_schema),
    ONE_MESSAGE("transform_param", &leat__net_schema_transform),
    ONE_MESSAGE("data_param", &data_schema),
    ONE_MESSAGE("leat_param", &leat_schema),
    FOREIGN_ENUM("forward_type", forward_type),
    FOREIGN("backward_type", WORD),
    FOREIGN("forward_math", WORD),
    FOREIGN("backward_math", WORD),
    FOREIGN("cudnn_math_override", INT32),
    FOREIGN("debug", BOOL),
    FOREIGN("engine", STRING),
    /* Parameters of other layers, which a data layer may carry for nothing. */
    ONE_MESSAGE("loss_param", NULL),
    ONE_MESSAGE("accuracy_param", NULL),
    ONE_MESSAGE("argmax_param", NULL),
    ONE_MESSAGE("batch_norm_param", NULL),
    ONE_MESSAGE("bias_param", NULL),
    ONE_MESSAGE("clip_param", NULL),
    ONE_MESSAGE("concat_param", NULL),
    ONE_MESSAGE("contrastive_loss_param", NULL),
    ONE_MESSAGE("convolution_param", NULL),
    ONE_MESSAGE("crop_param", NULL),
    ONE_MESSAGE("dropout_param", NULL),
    ONE_MESSAGE("dummy_data_param", NULL),
    ONE_MESSAGE("eltwise_param", NULL),
    ONE_MESSAGE("elu_param", NULL),
    ONE_MESSAGE("embed_param", NULL),
    ONE_MESSAGE("exp_param", NULL),
    ONE_MESSAGE("flatten_param", NULL),
    ONE_MESSAGE("hdf5_data_param", NULL),
    ONE_MESSAGE("hdf5_output_param", NULL),
    ONE_MESSAGE("hinge_loss_param", NULL),
    ONE_MESSAGE("image_data_param", NULL),
    ONE_MESSAGE("infogain_loss_param", NULL),
    ONE_MESSAGE("inner_product_param", NULL),
    ONE_MESSAGE("input_param", NULL),
    ONE_MESSAGE("log_param", NULL),
    ONE_MESSAGE("lrn_param", NULL),
    ONE_MESSAGE("memory_data_param", NULL),
    ONE_MESSAGE("mvn_param", NULL),
    ONE_MESSAGE("parameter_param", NULL),
    ONE_MESSAGE("pooling_param", NULL),
    ONE_MESSAGE("power_param", NULL),
    ONE_MESSAGE("prelu_param", NULL),
    ONE_MESSAGE("python_param", NULL),
    ONE_MESSAGE("recurrent_param", NULL),
    ONE_MESSAGE("reduction_param", NULL),
    ONE_MESSAGE("relu_param", NULL),
    ONE_MESSAGE("reshape_param", NULL),
    ONE_MESSAGE("scale_param", NULL),
    ONE_MESSAGE("sigmoid_param", NULL),
    ONE_MESSAGE("softmax_param", NULL),
    ONE_MESSAGE("spp_param", NULL),
    ONE_MESSAGE("slice_param", NULL),
    ONE_MESSAGE("swish_param", NULL),
    ONE_MESSAGE("tanh_param", NULL),
    ONE_MESSAGE("threshold_param", NULL),
    ONE_MESSAGE("tile_param", NULL),
    ONE_MESSAGE("window_data_param", NULL),
    END,
};
const leat__net_schema leat__net_schema_layer = {"layer", layer_fields};

static const leat__prototxt_enum v0_pool[] = {
    {"MAX", 0}, {"AVE", 1}, {"STOCHASTIC", 2}, {NULL, 0}};

/* Every V0 layer has the parameters of all types. */
static const schema_field v0_layer_fields[] = {
    ONE("name", STRING),
    ONE("type", STRING),
    ONE("source", STRING),
    ONE("scale", FLOAT),
    ONE("meanfile", STRING),
    ONE("batchsize", UINT32),
    ONE("cropsize", UINT32),
    ONE("mirror", BOOL),
    IDLE("rand_skip", UINT32),
    MANY_MESSAGES("blobs", NULL),
    MANY("blobs_lr", FLOAT),
    MANY("weight_decay", FLOAT),
    ONE("num_output", UINT32),
    ONE("biasterm", BOOL),
    ONE_MESSAGE("weight_filler", NULL),
    ONE_MESSAGE("bias_filler", NULL),
    ONE("pad", UINT32),
    ONE("kernelsize", UINT32),
    ONE("group", UINT32),
    ONE("stride", UINT32),
    ONE_ENUM("pool", v0_pool),
    ONE("dropout_ratio", FLOAT),
    ONE("local_size", UINT32),
    ONE("alpha", FLOAT),
    ONE("beta", FLOAT),
    ONE("k", FLOAT),
    ONE("det_fg_threshold", FLOAT),
    ONE("det_bg_threshold", FLOAT),
    ONE("det_fg_fraction", FLOAT),
    ONE("det_context_pad", UINT32),
    ONE("det_crop_mode", STRING),
    ONE("new_num", INT32),
    ONE("new_channels", INT32),
    ONE("new_height", INT32),
    ONE("new_width", INT32),
    ONE("shuffle_images", BOOL),
    ONE("concat_dim", UINT32),
    ONE_MESSAGE("hdf5_output_param", NULL),
    END,
};
static const leat__net_schema v0_layer_schema = {"layer", v0_layer_fields};

static const schema_field v1_layer_fields[] = {
    ONE_MESSAGE("layer", &v0_layer_schema),
    MANY("bottom", STRING),
    MANY("top", STRING),
    ONE("name", STRING),
    MANY_MESSAGES("include", &rule_schema),
    MANY_MESSAGES("exclude", &rule_schema),
    ONE_ENUM("type", v1_layer_type),
    MANY_MESSAGES("blobs", NULL),
    MANY("param", STRING),
    MANY_ENUMS("blob_share_mode", dim_check_mode),
    MANY("blobs_lr", FLOAT),
    MANY("weight_decay", FLOAT),
    MANY("loss_weight", FLOAT),
    ONE_MESSAGE("transform_param", &leat__net_schema_transform),
    ONE_MESSAGE("data_param", &data_schema),
    ONE_MESSAGE("leat_param", &leat_schema),
    ONE_MESSAGE("accuracy_param", NULL),
    ONE_MESSAGE("argmax_param", NULL),
    ONE_MESSAGE("concat_param", NULL),
    ONE_MESSAGE("contrastive_loss_param", NULL),
    ONE_MESSAGE("convolution_param", NULL),
    ONE_MESSAGE("dropout_param", NULL),
    ONE_MESSAGE("dummy_data_param", NULL),
    ONE_MESSAGE("eltwise_param", NULL),
    ONE_MESSAGE("exp_param", NULL),
    ONE_MESSAGE("hdf5_data_param", NULL),
    ONE_MESSAGE("hdf5_output_param", NULL),
    ONE_MESSAGE("hinge_loss_param", NULL),
    ONE_MESSAGE("image_data_param", NULL),
    ONE_MESSAGE("infogain_loss_param", NULL),
    ONE_MESSAGE("inner_product_param", NULL),
    ONE_MESSAGE("loss_param", NULL),
    ONE_MESSAGE("lrn_param", NULL),
    ONE_MESSAGE("memory_data_param", NULL),
    ONE_MESSAGE("mvn_param", NULL),
    ONE_MESSAGE("pooling_param", NULL),
    ONE_MESSAGE("power_param", NULL),
    ONE_MESSAGE("relu_param", NULL),
    ONE_MESSAGE("sigmoid_param", NULL),
    ONE_MESSAGE("slice_param", NULL),
    ONE_MESSAGE("softmax_param", NULL),
    ONE_MESSAGE("tanh_param", NULL),
    ONE_MESSAGE("threshold_param", NULL),
    ONE_MESSAGE("window_data_param", NULL),
    END,
};
const leat__net_schema leat__net_schema_v1_layer = {"layers", v1_layer_fields};

static const schema_field *find_known(const leat__net_schema *schema,
                                      const char *name)
{
    for (const schema_field *known = schema->fields; known->name; known++)
        if (known->type != TYPE_NONE && !strcmp(known->name, name))
            return known;
    return NULL;
}

static int check_message(const leat__prototxt *file, const field *value,
                         const leat__net_schema *schema)
{
    char shown[LEAT__PROTOTXT_SHOWN_MAX];
    if (value->type != LEAT__PROTOTXT_MESSAGE)
        return leat__prototxt_error(file, value->value_at,
                                    "%s: expected {, found %s", value->name,
                                    leat__prototxt_show(shown, value));
    /* Depth is bounded by the parser, and the schemas do not recurse. */
    return schema ? leat__net_schema_check(file, value, schema) : LEAT_OK;
}

static int check_value(const leat__prototxt *file, const field *value,
                       const schema_field *known)
{
    union {
        const char *text;
        float f;
        bool b;
        int i;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
    } read;
    switch (known->type) {
    case TYPE_STRING:
        return leat__prototxt_string(file, value, &read.text);
    case TYPE_BOOL:
        return leat__prototxt_bool(file, value, &read.b);
    case TYPE_FLOAT:
        return leat__prototxt_float(file, value, &read.f);
    case TYPE_INT32:
        return leat__prototxt_int32(file, value, &read.i32);
    case TYPE_UINT32:
        return leat__prototxt_uint32(file, value, &read.u32);
    case TYPE_INT64:
        return leat__prototxt_int64(file, value, &read.i64);
    case TYPE_UINT64:
        return leat__prototxt_uint64(file, value, &read.u64);
    case TYPE_ENUM:
        return leat__prototxt_enum_value(file, value, known->values, &read.i);
    case TYPE_MESSAGE:
        return check_message(file, value, known->message);
    case TYPE_PLANNED:
        return leat__prototxt_error(
            file, value->at, "%s is not in this version of leat", value->name);
    case TYPE_WORD:
    case TYPE_NONE:
        break;
    }
    return LEAT_OK;
}

static int check_field(const leat__prototxt *file, const field *message,
                       const field *value, const leat__net_schema *schema)
{
    const schema_field *known = find_known(schema, value->name);
    if (!known)
        return leat__prototxt_error(file, value->at,
                                    "%s has no field named \"%s\"",
                                    schema->name, value->name);
    if (value->is_listed && !known->is_repeated)
        return leat__prototxt_error(file, value->at,
                                    "%s: expected one value, found a list",
                                    value->name);
    if (!known->is_repeated &&
        leat__prototxt_find(message, value->name) != value)
        return leat__prototxt_error(
            file, value->at, "%s is given twice in %s, and may be given once",
            value->name, schema->name);
    if (value->type != LEAT__PROTOTXT_NOTHING)
        return check_value(file, value, known);
    if (!value->has_colon && known->type != TYPE_MESSAGE)
        return leat__prototxt_error(file, value->value_at,
                                    "expected :, found [");
    return LEAT_OK;
}

int leat__net_schema_check(const leat__prototxt *file, const field *message,
                           const leat__net_schema *schema)
{
    for (const field *value = message->first; value; value = value->next) {
        int status = check_field(file, message, value, schema);
        if (status)
            return status;
    }
    return LEAT_OK;
}

void leat__net_schema_warn(const leat__prototxt *file, const field *message,
                           const leat__net_schema *schema)
{
    for (const field *value = message->first; value; value = value->next) {
        const schema_field *known = find_known(schema, value->name);
        if (!known || value->type == LEAT__PROTOTXT_NOTHING)
            continue;
        if (known->idle)
            leat__log(LEAT_LOG_WARNING, "%s:%d:%d: %s %s", file->name,
                      value->at.line, value->at.column, value->name,
                      known->idle);
        else if (known->message)
            leat__net_schema_warn(file, value, known->message);
    }
}
