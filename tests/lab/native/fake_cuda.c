/* A pretend NVIDIA driver API library, the lowest layer below TensorFlow: nvcuda.dll or libcuda.so.1.
 *
 * Unmodified TensorFlow 1.13 to 2.x lists a "GPU" with it and then decides by itself: it skips the device
 * because CUDA libraries are missing, ignores it because its compute capability is too low, and so on.
 * Nothing is computed: kernels are accepted and not run. "Device" memory is lazily committed host memory
 * in an address range of its own, so that copies work.
 *
 * Windows: x86_64-w64-mingw32-gcc -shared -O1 -s -w -o nvcuda.dll fake_cuda.c
 * Linux:   gcc -shared -fPIC -O1 -w -Wl,-soname,libcuda.so.1 -o libcuda.so.1 fake_cuda.c
 *
 * Settings (environment):
 *   FAKE_CUDA_COUNT    number of devices                           (1)
 *   FAKE_CUDA_NAME     device name                                 (GeForce GTX 1060 6GB)
 *   FAKE_CUDA_CC       compute capability                          (6.1)
 *   FAKE_CUDA_CORES    multiprocessors                             (10)
 *   FAKE_CUDA_DRIVER   CUDA version of the driver                  (10020)
 *   FAKE_CUDA_MEM_MB   memory                                      (6144)
 *   FAKE_CUDA_FREE_MB  free memory                                 (5000)
 *   FAKE_CUDA_INIT     result of cuInit: 100 no device, 803 library mismatch, 999 unknown (0)
 *   FAKE_CUDA_OOM_MB   an allocation of so many MiB or more fails  (never)
 *   FAKE_CUDA_LOG      file to which the name of every entry point called is appended
 *   CUDA_VISIBLE_DEVICES is honoured as by the real driver: no device left makes cuInit say 100
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#define EXPORT __declspec(dllexport)
static void *reserve(void *at, size_t n) { return VirtualAlloc(at, n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
static void *symbol(const char *name) { return (void *)GetProcAddress(GetModuleHandleA("nvcuda.dll"), name); }
#else
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0)
#endif
#define EXPORT __attribute__((visibility("default")))
static void *reserve(void *at, size_t n) {
    void *got = mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return got == MAP_FAILED ? NULL : got;
}
static void *symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }
#endif

#define API EXPORT int /* every entry point returns a CUresult */
#define MIB(n) ((size_t)(n) << 20)
#define DEVICE_FIRST 0x200000000000ull /* fake_cudart.c knows this range, too */
#define DEVICE_LAST 0x210000000000ull
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500 };

static const char *text(const char *name, const char *otherwise) {
    const char *v = getenv(name);
    return v && *v ? v : otherwise;
}
static long number(const char *name, long otherwise) {
    const char *v = getenv(name);
    return v && *v ? atol(v) : otherwise;
}
static void trace(const char *function, long detail) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log;
    if (!path || !(log = fopen(path, "a"))) return;
    if (detail >= 0) fprintf(log, "%s(%ld)\n", function, detail);
    else fprintf(log, "%s\n", function);
    fclose(log);
}
#define T trace(__func__, -1)

static void capability(int *major, int *minor) {
    if (sscanf(text("FAKE_CUDA_CC", "6.1"), "%d.%d", major, minor) != 2) { *major = 6; *minor = 1; }
}
/* the real driver reads CUDA_VISIBLE_DEVICES, too, and cuts a list at the first bad index */
static int visible(void) {
    int devices = (int)number("FAKE_CUDA_COUNT", 1), kept = 0;
    const char *v = getenv("CUDA_VISIBLE_DEVICES");
    char *end;
    if (!v) return devices;
    while (*v) {
        long index = strtol(v, &end, 10);
        if (end == v || index < 0 || index >= devices) break;
        kept++;
        v = *end == ',' ? end + 1 : end;
    }
    return kept;
}
static void *current;
static int contexts[16];

/* devices */
API cuInit(unsigned f) { int r; T; r = (int)number("FAKE_CUDA_INIT", OK); return r ? r : visible() ? OK : NO_DEVICE; }
API cuDriverGetVersion(int *v) { T; *v = (int)number("FAKE_CUDA_DRIVER", 10020); return OK; }
API cuDeviceGetCount(int *n) { T; *n = visible(); return OK; }
API cuDeviceGet(int *d, int i) { T; *d = i; return OK; }
API cuDeviceGetName(char *s, int n, int d) { T; snprintf(s, n, "%s", text("FAKE_CUDA_NAME", "GeForce GTX 1060 6GB")); return OK; }
API cuDeviceComputeCapability(int *a, int *b, int d) { T; capability(a, b); return OK; }
API cuDeviceTotalMem_v2(size_t *m, int d) { T; *m = MIB(number("FAKE_CUDA_MEM_MB", 6144)); return OK; }
API cuDeviceGetPCIBusId(char *s, int n, int d) { T; snprintf(s, n, "0000:%02x:00.0", 1 + d); return OK; }
API cuDeviceGetUuid(unsigned char *u, int d) { T; memset(u, 0x11 + d, 16); return OK; }
API cuDeviceGetUuid_v2(unsigned char *u, int d) { T; memset(u, 0x11 + d, 16); return OK; }
API cuDeviceCanAccessPeer(int *yes, int a, int b) { T; *yes = 0; return OK; }
API cuDeviceGetProperties(int *p, int d) {
    static const int legacy[14] = {1024, 1024, 1024, 64, 2147483647, 65535, 65535, 49152, 65536, 32, 2147483647, 65536, 1708500, 512};
    T; memcpy(p, legacy, sizeof legacy); return OK;
}
API cuDeviceGetAttribute(int *v, int attribute, int d) {
    int major, minor;
    trace(__func__, attribute);
    capability(&major, &minor);
    switch (attribute) {
    case 1: case 2: case 3: *v = 1024; break; /* threads a block, block x and y */
    case 4: *v = 64; break;                   /* block z */
    case 5: *v = 2147483647; break;           /* grid x */
    case 6: case 7: *v = 65535; break;        /* grid y and z */
    case 8: *v = 49152; break;                /* shared memory a block, bytes */
    case 9: *v = 65536; break;                /* constant memory, bytes */
    case 10: *v = 32; break;                  /* warp */
    case 12: *v = 65536; break;               /* registers a block */
    case 13: *v = 1708500; break;             /* clock, kHz */
    case 16: *v = (int)number("FAKE_CUDA_CORES", 10); break;
    case 32: *v = 0; break;                   /* ECC */
    case 33: *v = 1 + d; break;               /* PCI bus */
    case 34: case 50: *v = 0; break;          /* PCI device, domain */
    case 36: *v = 4004000; break;             /* memory clock, kHz */
    case 37: *v = 192; break;                 /* bus width, bits */
    case 38: *v = 1572864; break;             /* L2, bytes */
    case 39: *v = 2048; break;                /* threads a multiprocessor */
    case 75: *v = major; break;
    case 76: *v = minor; break;
    case 81: *v = 98304; break;               /* shared memory a multiprocessor, bytes */
    case 82: *v = 65536; break;               /* registers a multiprocessor */
    case 97: *v = 65536; break;               /* opt-in shared memory a block, bytes */
    default: *v = 1;
    }
    return OK;
}

/* contexts */
API cuDevicePrimaryCtxGetState(int d, unsigned *f, int *active) { T; *f = 0; *active = 1; return OK; }
API cuDevicePrimaryCtxSetFlags(int d, unsigned f) { T; return OK; }
API cuDevicePrimaryCtxSetFlags_v2(int d, unsigned f) { T; return OK; }
API cuDevicePrimaryCtxRetain(void **c, int d) { T; *c = &contexts[d & 15]; return OK; }
API cuDevicePrimaryCtxRelease(int d) { T; return OK; }
API cuDevicePrimaryCtxRelease_v2(int d) { T; return OK; }
API cuCtxGetCurrent(void **c) { T; *c = current; return OK; }
API cuCtxSetCurrent(void *c) { T; current = c; return OK; }
API cuCtxPushCurrent_v2(void *c) { T; current = c; return OK; }
API cuCtxPopCurrent_v2(void **c) { T; *c = current; return OK; }
API cuCtxGetDevice(int *d) { T; *d = current ? (int)((int *)current - contexts) : 0; return OK; }
API cuCtxSynchronize(void) { T; return OK; }
API cuCtxSetSharedMemConfig(int c) { T; return OK; }
API cuCtxGetSharedMemConfig(int *c) { T; *c = 0; return OK; }
API cuCtxEnablePeerAccess(void *c, unsigned f) { T; return OK; }

/* memory */
API cuMemGetInfo_v2(size_t *f, size_t *t) {
    T; *f = MIB(number("FAKE_CUDA_FREE_MB", 5000)); *t = MIB(number("FAKE_CUDA_MEM_MB", 6144)); return OK;
}
API cuMemAlloc_v2(void **p, size_t n) {
    static uint64_t next = DEVICE_FIRST;
    T;
    if (n >= MIB(number("FAKE_CUDA_OOM_MB", 1 << 24))) return OUT_OF_MEMORY;
    n = (n + 0xfffff) & ~(size_t)0xfffff;
    *p = reserve((void *)(uintptr_t)next, n);
    if (!*p) return OUT_OF_MEMORY;
    next += n + 0x100000;
    return OK;
}
API cuMemFree_v2(void *p) { T; return OK; }
API cuMemHostAlloc(void **p, size_t n, unsigned f) { T; *p = calloc(1, n ? n : 1); return *p ? OK : OUT_OF_MEMORY; }
API cuMemFreeHost(void *p) { T; free(p); return OK; }
API cuMemHostRegister_v2(void *p, size_t n, unsigned f) { T; return OK; }
API cuMemHostUnregister(void *p) { T; return OK; }
API cuMemcpyHtoD_v2(void *d, void *s, size_t n) { T; memcpy(d, s, n); return OK; }
API cuMemcpyDtoH_v2(void *d, void *s, size_t n) { T; memcpy(d, s, n); return OK; }
API cuMemcpyDtoD_v2(void *d, void *s, size_t n) { T; memmove(d, s, n); return OK; }
API cuMemcpyHtoDAsync_v2(void *d, void *s, size_t n, void *q) { T; memcpy(d, s, n); return OK; }
API cuMemcpyDtoHAsync_v2(void *d, void *s, size_t n, void *q) { T; memcpy(d, s, n); return OK; }
API cuMemcpyDtoDAsync_v2(void *d, void *s, size_t n, void *q) { T; memmove(d, s, n); return OK; }
API cuMemsetD8_v2(void *d, unsigned char c, size_t n) { T; memset(d, c, n); return OK; }
API cuMemsetD8Async(void *d, unsigned char c, size_t n, void *q) { T; memset(d, c, n); return OK; }
API cuMemsetD32_v2(unsigned *d, unsigned c, size_t n) { size_t i; T; for (i = 0; i < n; i++) d[i] = c; return OK; }
API cuMemsetD32Async(unsigned *d, unsigned c, size_t n, void *q) { return cuMemsetD32_v2(d, c, n); }
API cuPointerGetAttribute(void *out, int attribute, void *p) {
    uint64_t address = (uint64_t)(uintptr_t)p;
    trace(__func__, attribute);
    if (address < DEVICE_FIRST || address >= DEVICE_LAST) return INVALID_VALUE;
    if (attribute == 1) *(void **)out = &contexts[0];
    else *(int *)out = attribute == 2 ? 2 : 0;
    return OK;
}

/* streams, events */
API cuStreamCreate(void **s, unsigned f) { T; *s = malloc(8); return OK; }
API cuStreamCreateWithPriority(void **s, unsigned f, int priority) { T; *s = malloc(8); return OK; }
API cuStreamDestroy_v2(void *s) { T; return OK; }
API cuStreamQuery(void *s) { T; return OK; }
API cuStreamSynchronize(void *s) { T; return OK; }
API cuStreamWaitEvent(void *s, void *e, unsigned f) { T; return OK; }
API cuStreamGetCtx(void *s, void **c) { T; *c = &contexts[0]; return OK; }
API cuStreamAddCallback(void *s, void (*f)(void *, int, void *), void *data, unsigned flags) { T; f(s, OK, data); return OK; }
API cuEventCreate(void **e, unsigned f) { T; *e = malloc(8); return OK; }
API cuEventDestroy_v2(void *e) { T; return OK; }
API cuEventRecord(void *e, void *s) { T; return OK; }
API cuEventQuery(void *e) { T; return OK; }
API cuEventSynchronize(void *e) { T; return OK; }
API cuEventElapsedTime(float *ms, void *a, void *b) { T; *ms = 0.1f; return OK; }

/* modules, kernels: accepted, never run */
API cuModuleLoadDataEx(void **m, void *d, unsigned n, void *o, void *v) { T; *m = (void *)0x3d; return OK; }
API cuModuleLoadFatBinary(void **m, void *d) { T; *m = (void *)0x3d; return OK; }
API cuModuleGetFunction(void **f, void *m, const char *n) { T; *f = (void *)0xf1; return OK; }
API cuModuleGetGlobal_v2(void **d, size_t *b, void *m, const char *n) { T; return NOT_FOUND; }
API cuModuleUnload(void *m) { T; return OK; }
API cuFuncGetAttribute(int *v, int a, void *f) { T; *v = 32; return OK; }
API cuFuncSetCacheConfig(void *f, int c) { T; return OK; }
API cuLaunchKernel(void) { T; return OK; }
API cuOccupancyMaxPotentialBlockSize(int *g, int *b, void *f, void *u, size_t d, int l) { T; *g = 10; *b = 256; return OK; }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int b, size_t d) { T; *n = 8; return OK; }
API cuMemAllocManaged(void **p, size_t n, unsigned f) { T; return 801; /* not supported */ }
API cuMemGetAddressRange_v2(void **b, size_t *n, void *p) { T; return 801; }

/* errors: names and texts as NVIDIA's cuda.h writes them */
static const struct { int code; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "CUDA driver version is insufficient for CUDA runtime version"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
static int row(int code) {
    int i = sizeof errors / sizeof errors[0] - 1;
    while (i && errors[i].code != code) i--;
    return errors[i].code == code ? i : (int)(sizeof errors / sizeof errors[0]) - 1;
}
API cuGetErrorName(int r, const char **s) { T; *s = errors[row(r)].name; return OK; }
API cuGetErrorString(int r, const char **s) { T; *s = errors[row(r)].text; return OK; }

/* what CUDA runtimes from 11.3 on ask first */
API cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    char versioned[128];
    T;
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    *function = symbol(versioned);
    if (!*function) *function = symbol(name);
    return *function ? OK : NOT_FOUND;
}
