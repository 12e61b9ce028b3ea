/* leat/config.h: the data layer of a Caffe net file. */
#ifndef LEAT_CONFIG_H
#define LEAT_CONFIG_H

#include <leat/data_layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The data layer of a net file, parsed but not opened. */
typedef struct leat_net leat_net;

/**
 * Parses the data layer of a Caffe net file for `phase`; `choice` (may be NULL)
 * gives the options that the file does not set, and layer, stages and level.
 * `choice` is copied. docs/prototxt.md lists the supported fields. Owned by the
 * caller: leat_net_close. Errors: LEAT_EINVAL, naming file, line and column;
 * LEAT_EIO; LEAT_EFORMAT for a file of more than 16 MiB; LEAT_ENOMEM. Thread
 * safety: any thread.
 */
LEAT_API int leat_net_open(leat_net **out, const char *prototxt,
                           leat_phase phase,
                           const leat_data_layer_options *choice);

/**
 * The same from `size` bytes of text; `name` stands for the file in errors.
 * Thread safety: any thread.
 */
LEAT_API int leat_net_parse(leat_net **out, const char *name, const char *text,
                            size_t size, leat_phase phase,
                            const leat_data_layer_options *choice);

/**
 * @name Properties
 *
 * A net is immutable. All pointers are borrowed until leat_net_close. Thread
 * safety: any threads.
 *
 * @{
 */
/** The options; what they point to is borrowed, too. */
LEAT_API const leat_data_layer_options *leat_net_options(const leat_net *net);
/** The pipeline; take a reference to keep it. */
LEAT_API leat_pipeline *leat_net_pipeline(const leat_net *net);
/** The number of tops: 1 or 2. */
LEAT_API int leat_net_top_count(const leat_net *net);
/** The name of top `i`; NULL: none. */
LEAT_API const char *leat_net_top_name(const leat_net *net, int i);
/** @} */

/** Frees the net. Takes NULL. Thread safety: one caller. */
LEAT_API void leat_net_close(leat_net *net);

#ifdef __cplusplus
}
#endif
#endif
