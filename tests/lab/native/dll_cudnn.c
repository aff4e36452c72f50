/* cudnn64_7.dll that only knows its version, -DVERSION=7605; with dll_cudnn.rc it carries a file version, too. */
#include <windows.h>
BOOL WINAPI DllMain(HINSTANCE h, DWORD reason, LPVOID p) { return TRUE; }
__declspec(dllexport) size_t cudnnGetVersion(void) { return VERSION; }
