/*
 * transform_option_table.h: every option of a transform, once. The lines are
 * those of data_layer_option_table.h; their fields are transform_param's.
 */
#ifndef LEAT_DATA_TRANSFORM_OPTION_TABLE_H
#define LEAT_DATA_TRANSFORM_OPTION_TABLE_H

#include <leat/option.h>
#include <leat/transform.h>
#include <limits.h>

/* clang-format off */
#define LEAT__TRANSFORM_OPTIONS(X)                                             \
    X(crop_size, INT, UINT32, .most = INT_MAX, .initial = "0",                 \
      .unit = "pixels", .argument = "crop", .value = "SIDE",                   \
      .help = "with --reader: crop to a square; 0: none")                      \
    X(mirror, BOOL, BOOL, .initial = "false", .argument = "mirror",            \
      .help = "with --reader: mirror at random")                               \
    X(scale, FLOAT, FLOAT, .initial = "1",                                     \
      .given = offsetof(leat_transform_options, has_scale),                    \
      .argument = "scale", .value = "X",                                       \
      .help = "with --reader: multiply by (1)")                                \
    X(mean_file, TEXT, STRING, .argument = "mean-file", .value = "FILE",       \
      .help = "subtract this mean image; with --net, not the file's mean")      \
    X(mean_value, OTHER, NONE, .help = "one for all channels, or one for each")\
    X(force_color, BOOL, BOOL, .initial = "false", .argument = "color",        \
      .help = "with --reader: decode images to 3 channels")                    \
    X(force_gray, BOOL, BOOL, .initial = "false", .argument = "gray",          \
      .help = "with --reader: decode images to 1 channel")
/* clang-format on */

#endif
