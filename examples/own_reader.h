/* own_reader.h: the two readers that own_reader adds to leat's. */
#ifndef OWN_READER_H
#define OWN_READER_H

#include <leat/ext/reader.h>

/* `cifar:FILE,channels=C,height=H,width=W`: records of one size. */
extern const leat_reader_type reader_fixed;

/* `... | every:step=K`: the samples at 0, K, 2 K and so on of another reader.
 */
extern const leat_reader_type reader_every;

#endif
