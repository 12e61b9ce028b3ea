/* net_diagnosis.h: explains why a file has no layer of type "Data". */
#ifndef LEAT_CONFIG_NET_DIAGNOSIS_H
#define LEAT_CONFIG_NET_DIAGNOSIS_H

#include "config/prototxt.h"

/*
 * LEAT_EINVAL, naming the net that it trains, where the file is a solver's;
 * else LEAT_OK.
 */
int leat__net_diagnose_solver(const leat__prototxt *file);

/*
 * LEAT_EINVAL, naming the layers that data comes from, for a net of `layers`
 * layers of which none is of type "Data".
 */
int leat__net_diagnose_types(const leat__prototxt *file, int layers);

#endif
