/* tfuser.dll imports dep_value from tfdep.dll; -DEXTRA (tfuserx.dll) imports dep_extra, which the shipped tfdep.dll lacks. */
#include <windows.h>
__declspec(dllimport) int dep_value(void);
__declspec(dllimport) int dep_extra(void);
#ifndef NO_MAIN
BOOL WINAPI DllMain(HINSTANCE h, DWORD reason, LPVOID p) { return TRUE; }
#endif
#ifdef EXTRA
__declspec(dllexport) int user_value(void) { return dep_extra(); }
#else
__declspec(dllexport) int user_value(void) { return dep_value(); }
#endif
