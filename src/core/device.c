/* device.c: the registry of devices. */
#include <string.h>
#include "device.h"
#include "error.h"
#include "gpu/gpu.h"

/* The best device first, the CPU last. */
static wk_device *device_at(int i)
{
    wk_device *gpu = wk_gpu_at(i);
    if (gpu)
        return gpu;
    return i == 0 || wk_gpu_at(i - 1) ? wk_cpu() : NULL;
}

int wk_device_count(void)
{
    int n = 0;
    while (device_at(n))
        n++;
    return n;
}

const char *wk_device_name_at(int i)
{
    wk_device *d = i < 0 ? NULL : device_at(i);
    return d ? d->name : NULL;
}

wk_device *wk_device_open(const char *name)
{
    if (!name) {
        wk_fail(WK_ERR_ARGUMENT, "device_open: name: expected a device name, got NULL");
        return NULL;
    }
    if (strcmp(name, "auto") == 0)
        return device_at(0);
    if (strcmp(name, "cpu") == 0) /* without looking for GPUs */
        return wk_cpu();
    wk_device *d = NULL;
    for (int i = 0; (d = device_at(i)) && strcmp(d->name, name) != 0; i++) {
    }
    if (d)
        return d;
    const char *why = wk_gpu_missing(name);
    wk_fail(WK_ERR_DEVICE, "device_open: no device '%.40s' here%s%s; `wick info` lists the ones there are",
            name, why ? ": " : "", why ? why : "");
    return NULL;
}

const char *wk_device_name(const wk_device *device) { return device ? device->name : ""; }
const char *wk_device_description(const wk_device *device) { return device ? device->description : ""; }

static wk_status need_device(const wk_device *device, const char *call)
{
    return device ? WK_OK : wk_fail(WK_ERR_ARGUMENT, "%s: device: expected a device, got NULL", call);
}

wk_status wk_sync(wk_device *device)
{
    WK_TRY(need_device(device, "sync"));
    return device->table->sync(device);
}

wk_status wk_memory(const wk_device *device, wk_memory_stats *stats)
{
    WK_TRY(need_device(device, "memory"));
    if (!stats)
        return wk_fail(WK_ERR_ARGUMENT, "memory: stats: expected a place for the figures, got NULL");
    device->table->stats(device, stats);
    return WK_OK;
}

wk_status wk_memory_trim(wk_device *device)
{
    WK_TRY(need_device(device, "memory_trim"));
    device->table->trim(device);
    return WK_OK;
}

wk_status wk_memory_limit(wk_device *device, uint64_t bytes)
{
    WK_TRY(need_device(device, "memory_limit"));
    device->table->limit(device, bytes);
    return WK_OK;
}
