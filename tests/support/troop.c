#include "support/troop.h"

#include <check.h>
#include <zlib.h>

void troop_make_tops(troop *self, const char *const devices[], int n)
{
    for (int i = 0; i < n; i++) {
        leat_device *device;
        ck_assert_int_eq(leat_device_find(&device, devices[i]), LEAT_OK);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(leat_blob_create(&self->top[i][k], device), 0);
    }
    self->n = n;
}

troop troop_open(const leat_pipeline *pipeline,
                 const leat_data_layer_options *options,
                 const char *const devices[], int n)
{
    troop self = {.n = 0};
    int status = leat_data_layer_group_create(&self.group, pipeline, options,
                                              devices, n);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    troop_make_tops(&self, devices, n);
    status = leat_data_layer_group_setup(self.group, self.top[0], 2);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return self;
}

void troop_free_tops(troop *self)
{
    for (int i = 0; i < self->n; i++)
        for (int k = 0; k < 2; k++)
            leat_blob_destroy(self->top[i][k]);
}

void troop_close(troop *self)
{
    leat_data_layer_group_destroy(self->group);
    troop_free_tops(self);
}

leat_data_layer *troop_member(const troop *self, int i)
{
    return leat_data_layer_group_member(self->group, i);
}

int troop_forward(troop *self, int i)
{
    return leat_data_layer_forward(troop_member(self, i), self->top[i], 2,
                                   LEAT_HOST);
}

float troop_label(troop *self, int i, int k)
{
    return ((const float *)leat_blob_cpu_data(self->top[i][1]))[k];
}

uint32_t troop_digest(troop *self, int i)
{
    uLong sum = 0;
    for (int k = 0; k < 2; k++)
        sum = crc32_z(sum, leat_blob_cpu_data(self->top[i][k]),
                      leat_blob_bytes(self->top[i][k]));
    return (uint32_t)sum;
}
