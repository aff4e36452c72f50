/* A pretend CUDA runtime, cuBLAS and cuDNN in one: what TensorFlow 2.1 to 2.3 touches while it creates a
 * GPU device. The same file is built once under each library's name; cuFFT, cuRAND, cuSOLVER and cuSPARSE
 * only have to be there. Nothing is computed: a product of two matrices of ones is 0.
 *
 * Windows: x86_64-w64-mingw32-gcc -shared -O1 -s -w -o cudart64_101.dll fake_cudart.c
 * Linux:   gcc -shared -fPIC -O1 -w -Wl,-soname,libcudart.so.10.1 -o libcudart.so.10.1 fake_cudart.c
 *
 * Settings (environment):
 *   FAKE_CUDART_FAIL     cudaError_t of cudaGetDevice: 35 is a driver older than the runtime  (0)
 *   FAKE_CUDNN_VERSION   7401 is cuDNN 7.4.1                                                  (7605)
 *   FAKE_CUDNN_CREATE    cudnnStatus_t of cudnnCreate: 1 not initialised, 4 internal error    (0)
 *   FAKE_CUBLAS_CREATE   cublasStatus_t of cublasCreate_v2: 1 not initialised                 (0)
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define API EXPORT int
#define MIB(n) ((size_t)(n) << 20)

static int number(const char *name, int otherwise) {
    const char *v = getenv(name);
    return v && *v ? atoi(v) : otherwise;
}

/* runtime */
API cudaGetDevice(int *d) { *d = 0; return number("FAKE_CUDART_FAIL", 0); }
API cudaSetDevice(int d) { return 0; }
API cudaGetDeviceCount(int *n) { *n = 1; return 0; }
API cudaGetLastError(void) { return 0; }
API cudaPeekAtLastError(void) { return 0; }
EXPORT const char *cudaGetErrorString(int e) {
    return e == 0 ? "no error" : e == 35 ? "CUDA driver version is insufficient for CUDA runtime version"
         : e == 100 ? "no CUDA-capable device is detected" : "unknown error";
}
EXPORT const char *cudaGetErrorName(int e) { return e ? "cudaErrorUnknown" : "cudaSuccess"; }
API cudaRuntimeGetVersion(int *v) { *v = 10010; return 0; }
API cudaDriverGetVersion(int *v) { *v = 10020; return 0; }
API cudaDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 6 : a == 76 ? 1 : a == 16 ? 10 : 1024; return 0; }
API cudaDeviceGetStreamPriorityRange(int *low, int *high) { *low = 0; *high = -1; return 0; }
API cudaGetDeviceProperties(char *p, int d) { /* offsets of cudaDeviceProp in CUDA 10.x */
    int i;
    memset(p, 0, 256);
    for (i = 256; i < 712; i += 4) *(int *)(p + i) = 1024;
    strcpy(p, "GeForce GTX 1060 6GB");
    *(int64_t *)(p + 288) = (int64_t)6144 << 20; /* memory */
    *(int64_t *)(p + 296) = 49152;               /* shared memory a block */
    *(int *)(p + 304) = 65536;                   /* registers */
    *(int *)(p + 308) = 32;                      /* warp */
    *(int *)(p + 360) = 6; *(int *)(p + 364) = 1;
    *(int *)(p + 388) = 10;                      /* multiprocessors */
    return 0;
}
API cudaPointerGetAttributes(int *a, void *p) { /* the range in which fake_cuda.c hands out memory */
    uint64_t address = (uint64_t)(uintptr_t)p;
    if (address < 0x200000000000ull || address >= 0x210000000000ull) return 1;
    a[0] = a[1] = 2; a[2] = 0;
    return 0;
}
API cudaDeviceSynchronize(void) { return 0; }
API cudaStreamSynchronize(void *s) { return 0; }
API cudaStreamQuery(void *s) { return 0; }
API cudaStreamCreateWithFlags(void **s, unsigned f) { *s = malloc(8); return 0; }
API cudaHostAlloc(void **p, size_t n, unsigned f) { *p = calloc(1, n ? n : 1); return 0; }
API cudaMalloc(void **p, size_t n) { *p = malloc(n); return 0; }
API cudaFree(void *p) { free(p); return 0; }
API cudaMemcpy(void *d, void *s, size_t n, int kind) { memmove(d, s, n); return 0; }
API cudaMemcpyAsync(void *d, void *s, size_t n, int kind, void *q) { memmove(d, s, n); return 0; }
API cudaMemset(void *d, int c, size_t n) { memset(d, c, n); return 0; }
API cudaMemsetAsync(void *d, int c, size_t n, void *q) { memset(d, c, n); return 0; }
API cudaMemGetInfo(size_t *f, size_t *t) { *f = MIB(5000); *t = MIB(6144); return 0; }
API cudaFuncGetAttributes(void *a, void *f) { memset(a, 0, 56); return 0; }
API cudaFuncSetAttribute(void *f, int a, int v) { return 0; }
API cudaFuncSetSharedMemConfig(void *f, int c) { return 0; }
API cudaLaunchKernel(void) { return 0; }
API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int b, size_t s) { *n = 8; return 0; }
API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, void *f, int b, size_t s, unsigned g) { *n = 8; return 0; }
static void *fatbin[4];
EXPORT void **__cudaRegisterFatBinary(void *b) { return fatbin; }
EXPORT void __cudaRegisterFatBinaryEnd(void **h) {}
EXPORT void __cudaUnregisterFatBinary(void **h) {}
EXPORT void __cudaRegisterFunction(void) {}
EXPORT void __cudaRegisterVar(void) {}
EXPORT char __cudaInitModule(void **h) { return 1; }
EXPORT unsigned __cudaPushCallConfiguration(void) { return 0; }
API __cudaPopCallConfiguration(void *grid, void *block, void *shared, void *stream) {
    memset(grid, 0, 12); memset(block, 0, 12);
    return 0;
}

/* cuDNN */
EXPORT size_t cudnnGetVersion(void) { return number("FAKE_CUDNN_VERSION", 7605); }
EXPORT size_t cudnnGetCudartVersion(void) { return 10010; }
API cudnnGetProperty(int which, int *v) {
    int n = number("FAKE_CUDNN_VERSION", 7605);
    *v = which == 0 ? n / 1000 : which == 1 ? n / 100 % 10 : n % 100;
    return 0;
}
EXPORT const char *cudnnGetErrorString(int s) {
    return s == 0 ? "CUDNN_STATUS_SUCCESS" : s == 1 ? "CUDNN_STATUS_NOT_INITIALIZED"
         : s == 4 ? "CUDNN_STATUS_INTERNAL_ERROR" : "CUDNN_STATUS_EXECUTION_FAILED";
}
API cudnnCreate(void **h) { static int handle; *h = &handle; return number("FAKE_CUDNN_CREATE", 0); }
API cudnnDestroy(void *h) { return 0; }
API cudnnSetStream(void *h, void *s) { return 0; }

/* cuBLAS */
API cublasCreate_v2(void **h) { static int handle; *h = &handle; return number("FAKE_CUBLAS_CREATE", 0); }
API cublasDestroy_v2(void *h) { return 0; }
API cublasGetVersion_v2(void *h, int *v) { *v = 10201; return 0; }
API cublasSetStream_v2(void *h, void *s) { return 0; }
API cublasSetPointerMode_v2(void *h, int m) { return 0; }
API cublasGetPointerMode_v2(void *h, int *m) { *m = 0; return 0; }
API cublasSetMathMode(void *h, int m) { return 0; }
API cublasGetMathMode(void *h, int *m) { *m = 0; return 0; }
API cublasSgemm_v2(void) { return 0; }
API cublasGemmEx(void) { return 0; }
