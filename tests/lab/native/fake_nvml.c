/* A pretend NVML: nvml.dll (to C:\windows\system32) or libnvidia-ml.so.1 (found by LD_LIBRARY_PATH).
 *
 * Windows: x86_64-w64-mingw32-gcc -shared -O1 -s -w -o nvml.dll fake_nvml.c
 * Linux:   gcc -shared -fPIC -O1 -w -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 *
 * Settings (environment), where one is left out the value in brackets:
 *   FAKE_NVML_INIT    nvmlReturn_t of nvmlInit: 9 driver not loaded, 18 library mismatch, 999 unknown (0)
 *   FAKE_NVML_FAIL    FUNCTION:CODE, that function answers CODE: 3 not supported, 15 GPU is lost
 *   FAKE_NVML_COUNT (1)  FAKE_NVML_NAME (GeForce GTX 1060 6GB)  FAKE_NVML_CC (6.1)
 *   FAKE_NVML_DRIVER (441.22)  FAKE_NVML_CUDA (10020)  FAKE_NVML_MODEL 0 WDDM, 1 WDM (0)
 *   FAKE_NVML_MEM_MB (6144)  FAKE_NVML_USED_MB (1144)
 *   FAKE_NVML_UTIL percent (37)  FAKE_NVML_MEM_UTIL percent (12)  FAKE_NVML_TEMP Celsius (61)
 *   FAKE_NVML_POWER mW (71234)  FAKE_NVML_POWER_LIMIT mW (120000)
 *   FAKE_NVML_CLOCK MHz (1506)  FAKE_NVML_CLOCK_MAX MHz (1911)  FAKE_NVML_PSTATE (2)
 *   FAKE_NVML_THROTTLE bits of nvmlClocksThrottleReasons: 4 power cap, 64 hardware thermal (0)
 *   FAKE_NVML_PCIE "GENxWIDTH" now (3x16)  FAKE_NVML_PCIE_MAX (3x16)
 *   FAKE_NVML_PROCESSES "PID:MIB,PID:MIB" of computing processes (none)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define API EXPORT int /* every entry point returns an nvmlReturn_t */
typedef unsigned int u;
typedef unsigned long long ull;
enum { OK = 0, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };

static const char *text(const char *name, const char *otherwise) {
    const char *v = getenv(name);
    return v && *v ? v : otherwise;
}
static long number(const char *name, long otherwise) {
    const char *v = getenv(name);
    return v && *v ? atol(v) : otherwise;
}
static int told_to_fail(const char *function) {
    const char *f = getenv("FAKE_NVML_FAIL");
    size_t n = strlen(function);
    return f && !strncmp(f, function, n) && f[n] == ':' ? atoi(f + n + 1) : OK;
}
#define TRY do { int code = told_to_fail(__func__); if (code) return code; } while (0)
static int put(char *out, u size, const char *value) {
    if (strlen(value) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return OK;
}
static int pair(const char *value, const char *form, int *a, int *b) { return sscanf(value, form, a, b) == 2 ? OK : UNKNOWN; }

API nvmlInitWithFlags(u flags) { return (int)number("FAKE_NVML_INIT", OK); }
API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlInit(void) { return nvmlInitWithFlags(0); }
API nvmlShutdown(void) { return OK; }
EXPORT const char *nvmlErrorString(int r) { /* texts of nvml.h */
    switch (r) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

API nvmlSystemGetDriverVersion(char *o, u n) { TRY; return put(o, n, text("FAKE_NVML_DRIVER", "441.22")); }
API nvmlSystemGetNVMLVersion(char *o, u n) {
    char b[64];
    TRY; snprintf(b, sizeof b, "10.%s", text("FAKE_NVML_DRIVER", "441.22")); return put(o, n, b);
}
API nvmlSystemGetCudaDriverVersion(int *v) { TRY; *v = (int)number("FAKE_NVML_CUDA", 10020); return OK; }
API nvmlSystemGetCudaDriverVersion_v2(int *v) { TRY; *v = (int)number("FAKE_NVML_CUDA", 10020); return OK; }
API nvmlDeviceGetCount_v2(u *n) { TRY; *n = (u)number("FAKE_NVML_COUNT", 1); return OK; }
API nvmlDeviceGetHandleByIndex_v2(u i, void **d) {
    TRY;
    if ((long)i >= number("FAKE_NVML_COUNT", 1)) return INVALID_ARGUMENT;
    *d = (void *)(size_t)(0x1000 + i);
    return OK;
}
API nvmlDeviceGetIndex(void *d, u *i) { TRY; *i = (u)((size_t)d - 0x1000); return OK; }
API nvmlDeviceGetName(void *d, char *o, u n) { TRY; return put(o, n, text("FAKE_NVML_NAME", "GeForce GTX 1060 6GB")); }
API nvmlDeviceGetUUID(void *d, char *o, u n) { TRY; return put(o, n, "GPU-00000000-0000-0000-0000-000000000001"); }
API nvmlDeviceGetCudaComputeCapability(void *d, int *a, int *b) { TRY; return pair(text("FAKE_NVML_CC", "6.1"), "%d.%d", a, b); }
API nvmlDeviceGetDriverModel(void *d, int *now, int *pending) { TRY; *now = *pending = (int)number("FAKE_NVML_MODEL", 0); return OK; }
API nvmlDeviceGetDriverModel_v2(void *d, int *now, int *pending) { TRY; *now = *pending = (int)number("FAKE_NVML_MODEL", 0); return OK; }
API nvmlDeviceGetMemoryInfo(void *d, ull *m) { /* total, free, used */
    TRY;
    m[0] = (ull)number("FAKE_NVML_MEM_MB", 6144) << 20;
    m[2] = (ull)number("FAKE_NVML_USED_MB", 1144) << 20;
    m[1] = m[0] - m[2];
    return OK;
}
API nvmlDeviceGetUtilizationRates(void *d, u *x) { TRY; x[0] = (u)number("FAKE_NVML_UTIL", 37); x[1] = (u)number("FAKE_NVML_MEM_UTIL", 12); return OK; }
API nvmlDeviceGetTemperature(void *d, int sensor, u *t) { TRY; *t = (u)number("FAKE_NVML_TEMP", 61); return OK; }
API nvmlDeviceGetTemperatureV(void *d, int *t) { TRY; t[2] = (int)number("FAKE_NVML_TEMP", 61); return OK; }
API nvmlDeviceGetPowerUsage(void *d, u *mw) { TRY; *mw = (u)number("FAKE_NVML_POWER", 71234); return OK; }
API nvmlDeviceGetPowerManagementLimit(void *d, u *mw) { TRY; *mw = (u)number("FAKE_NVML_POWER_LIMIT", 120000); return OK; }
API nvmlDeviceGetEnforcedPowerLimit(void *d, u *mw) { TRY; *mw = (u)number("FAKE_NVML_POWER_LIMIT", 120000); return OK; }
API nvmlDeviceGetClockInfo(void *d, int which, u *mhz) { TRY; *mhz = which == 2 ? 4004 : (u)number("FAKE_NVML_CLOCK", 1506); return OK; }
API nvmlDeviceGetMaxClockInfo(void *d, int which, u *mhz) { TRY; *mhz = which == 2 ? 4004 : (u)number("FAKE_NVML_CLOCK_MAX", 1911); return OK; }
API nvmlDeviceGetPerformanceState(void *d, int *p) { TRY; *p = (int)number("FAKE_NVML_PSTATE", 2); return OK; }
API nvmlDeviceGetPowerState(void *d, int *p) { TRY; *p = (int)number("FAKE_NVML_PSTATE", 2); return OK; }
API nvmlDeviceGetCurrentClocksThrottleReasons(void *d, ull *bits) { TRY; *bits = (ull)number("FAKE_NVML_THROTTLE", 0); return OK; }
API nvmlDeviceGetCurrentClocksEventReasons(void *d, ull *bits) { TRY; *bits = (ull)number("FAKE_NVML_THROTTLE", 0); return OK; }
API nvmlDeviceGetCurrPcieLinkGeneration(void *d, int *v) { int x; TRY; return pair(text("FAKE_NVML_PCIE", "3x16"), "%dx%d", v, &x); }
API nvmlDeviceGetCurrPcieLinkWidth(void *d, int *v) { int x; TRY; return pair(text("FAKE_NVML_PCIE", "3x16"), "%dx%d", &x, v); }
API nvmlDeviceGetMaxPcieLinkGeneration(void *d, int *v) { int x; TRY; return pair(text("FAKE_NVML_PCIE_MAX", "3x16"), "%dx%d", v, &x); }
API nvmlDeviceGetMaxPcieLinkWidth(void *d, int *v) { int x; TRY; return pair(text("FAKE_NVML_PCIE_MAX", "3x16"), "%dx%d", &x, v); }

struct process { u pid; ull bytes; u gpu_instance, compute_instance; }; /* nvmlProcessInfo_t since _v2 */
static int processes(const char *list, u *count, struct process *out) {
    u room = *count, n = 0, pid;
    ull mib;
    for (; list && sscanf(list, "%u:%llu", &pid, &mib) == 2; n++) {
        if (out && n < room) { out[n].pid = pid; out[n].bytes = mib << 20; out[n].gpu_instance = out[n].compute_instance = 0xffffffffu; }
        list = strchr(list, ',');
        if (list) list++;
    }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : OK;
}
API nvmlDeviceGetComputeRunningProcesses_v3(void *d, u *n, struct process *out) { TRY; return processes(getenv("FAKE_NVML_PROCESSES"), n, out); }
API nvmlDeviceGetComputeRunningProcesses_v2(void *d, u *n, struct process *out) { TRY; return processes(getenv("FAKE_NVML_PROCESSES"), n, out); }
API nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, u *n, struct process *out) { TRY; return processes(NULL, n, out); }
API nvmlDeviceGetGraphicsRunningProcesses_v2(void *d, u *n, struct process *out) { TRY; return processes(NULL, n, out); }
