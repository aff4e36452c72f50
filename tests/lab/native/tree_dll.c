/* One DLL of a random tree. A template: the names of what it imports are long place holders that are overwritten in
 * the file, so that thousands of DLLs need no compiler.
 *
 * -DSLOTS=n imports entry0 ... from n place holders, -DPYTHON makes it an extension module. The table of one delay-loaded
 * library is there, but the header does not point at it; "@fail:0" overwritten with "@fail:1" makes the start fail (1114).
 * Each start writes "attach NAME" to standard error. One function comes through an API set. */
#include <windows.h>
#ifdef PYTHON
typedef struct _object PyObject;
__declspec(dllimport) PyObject *PyModule_Create2(void *, int);
static struct { /* PyModuleDef as CPython 3.8 to 3.11 lay it out on Win64 */
    long long refcount;
    void *type, *init, *index, *copy;
    const char *name, *doc;
    long long size;
    void *methods, *slots, *traverse, *clear, *release;
} module = {1, 0, 0, 0, 0, "agree", 0, -1, 0, 0, 0, 0, 0};
__declspec(dllexport) PyObject *PyInit_agree(void) { return PyModule_Create2(&module, 1013); }
#endif
__declspec(dllimport) int entry0(void), entry1(void), entry2(void);

static volatile char verdict[] = "@fail:0";

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID p) {
    WCHAR path[600];
    char line[700] = {'a', 't', 't', 'a', 'c', 'h', ' '};
    DWORD i, start = 0, length, done;
    if (reason != DLL_PROCESS_ATTACH) return TRUE;
    length = GetModuleFileNameW(self, path, 600);
    for (i = 0; i < length; i++) if (path[i] == '\\') start = i + 1;
    for (i = start; i < length; i++) line[7 + i - start] = (char)path[i];
    line[7 + length - start] = '\n';
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), line, 8 + length - start, &done, 0);
    return verdict[6] == '0';
}
int own0(void) { return 1; }
int own1(void) { return 1; }
int own2(void) { return 1; }
int used(void) {
    int sum = 0;
#if SLOTS > 0
    sum += entry0();
#endif
#if SLOTS > 1
    sum += entry1();
#endif
#if SLOTS > 2
    sum += entry2();
#endif
    return sum;
}
/* a delay import descriptor (PE format, "Delay Import Descriptor"); nobody calls through it */
__asm__(".section .rdata\n.balign 8\n.globl late_table\nlate_table:\n"
        ".long 1\n.rva late_name\n.rva late_module\n.rva late_calls\n.rva late_names\n.long 0, 0, 0\n"
        ".long 0, 0, 0, 0, 0, 0, 0, 0\n"
        "late_names:\n.rva late_hint\n.long 0, 0, 0\nlate_hint:\n.short 0\n.asciz \"entry0\"\n"
        "late_name:\n.asciz \"late_____________________________________.dll\"\n"
        ".data\n.balign 8\nlate_module:\n.quad 0\nlate_calls:\n.quad 0, 0\n.text\n");
