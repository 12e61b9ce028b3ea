/* transformer.h: what the layer asks of a transformer beyond its public face.
 */
#ifndef LEAT_DATA_TRANSFORMER_H
#define LEAT_DATA_TRANSFORMER_H

#include <leat/transform.h>

/* How many words of Caffe's generator each image takes. */
int leat__transformer_draws(const leat_transformer *transformer);

/* Images so far whose codec warned. */
int64_t leat__transformer_warnings(const leat_transformer *transformer);

#endif
