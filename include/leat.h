/* leat.h: everything that users of the library need. */
#ifndef LEAT_H
#define LEAT_H

#include <leat/allocator.h>
#include <leat/blob.h>
#include <leat/choice.h>
#include <leat/config.h>
#include <leat/data_layer.h>
#include <leat/data_layer_group.h>
#include <leat/data_layer_options.h>
#include <leat/datum.h>
#include <leat/decorators.h>
#include <leat/device.h>
#include <leat/dtype.h>
#include <leat/example.h>
#include <leat/files.h>
#include <leat/groups.h>
#include <leat/image.h>
#include <leat/launcher.h>
#include <leat/lmdb_check.h>
#include <leat/log.h>
#include <leat/maps.h>
#include <leat/option.h>
#include <leat/pipeline.h>
#include <leat/push.h>
#include <leat/reader.h>
#include <leat/sample.h>
#include <leat/stats.h>
#include <leat/status.h>
#include <leat/token.h>
#include <leat/transform.h>
#include <leat/workspace.h>

#endif
