/* tfdep.dll, what the others import. -DEXTRA adds an export that the shipped copy lacks; -DFAIL makes its start fail (1114). */
#include <windows.h>
#ifdef FAIL
BOOL WINAPI DllMain(HINSTANCE h, DWORD reason, LPVOID p) { return reason != DLL_PROCESS_ATTACH; }
#else
BOOL WINAPI DllMain(HINSTANCE h, DWORD reason, LPVOID p) { return TRUE; }
#endif
__declspec(dllexport) int dep_value(void) { return 42; }
#ifdef EXTRA
__declspec(dllexport) int dep_extra(void) { return 43; }
#endif
