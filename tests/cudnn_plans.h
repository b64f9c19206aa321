/* cudnn_plans.h: cuDNN plans for an H200 that is not there. Include it after a source file of src/cuda. */
#ifndef WK_TESTS_CUDNN_PLANS_H
#define WK_TESTS_CUDNN_PLANS_H

#include <dlfcn.h>
#include "test.h"

enum {
    DEVICEPROP_DESCRIPTOR = 38,
    DEVICEPROP_JSON = 2702,
    ENGINEHEUR_DEVICEPROP = 204,
    EXECUTION_PLAN_DEVICEPROP = 407,
    TYPE_CHAR = 24
};

static const char h200[] =
    "{\"deviceName\":\"H200\",\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,\"pciDeviceId\":0,"
    "\"multiProcessorCount\":132,\"smCountOrigin\":0,\"warpSize\":32,\"regsPerBlock\":65536,"
    "\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"maxBlockSize\":[1024,1024,64],\"maxGridSize\":[2147483647,65535,65535],"
    "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"memoryBusWidth\":6144,\"l2CacheSize\":62914560}";

static cudnnBackendDescriptor_t device;
static __typeof__(wk_cudnn.cudnnBackendSetAttribute) really_set;

/* The device in the place of the handle, which cannot be had without a GPU. */
static cudnnStatus_t set_for_device(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return really_set(d, EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    cudnnStatus_t status =
        name == CUDNN_ATTR_ENGINEHEUR_MODE
            ? really_set(d, ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device)
            : CUDNN_STATUS_SUCCESS;
    return status == CUDNN_STATUS_SUCCESS ? really_set(d, name, type, n, values) : status;
}

/* cuDNN makes kernels for graphs of several ops with the help of CUDA's driver. */
static bool has_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    if (driver)
        dlclose(driver);
    return driver != NULL;
}

static bool open_device(void)
{
    if (!wk_cudnn_load() ||
        wk_cudnn.cudnnBackendCreateDescriptor(DEVICEPROP_DESCRIPTOR, &device) != CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendSetAttribute(device, DEVICEPROP_JSON, TYPE_CHAR, sizeof h200 - 1, h200) !=
            CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendFinalize(device) != CUDNN_STATUS_SUCCESS)
        return false;
    really_set = wk_cudnn.cudnnBackendSetAttribute;
    wk_cudnn.cudnnBackendSetAttribute = set_for_device;
    return true;
}

#endif
