/* A CPython extension that needs tfdep.dll: importing it without that DLL is a real "DLL load failed".
 *
 *   x86_64-w64-mingw32-gcc -shared -O1 -s badext.c -o badext.pyd FOLDER/python38.dll FOLDER/tfdep.dll
 *
 * It is linked straight against the DLLs, so neither Python's headers nor its import library are needed. */
typedef struct _object PyObject;
__declspec(dllimport) PyObject *PyModule_Create2(void *, int);
__declspec(dllimport) int dep_value(void);

static struct { /* PyModuleDef as CPython 3.8 to 3.11 lay it out on Win64 */
    long long refcount;
    void *type, *init, *index, *copy;
    const char *name, *doc;
    long long size;
    void *methods, *slots, *traverse, *clear, *release;
} module = {1, 0, 0, 0, 0, "badext", 0, -1, 0, 0, 0, 0, 0};

__declspec(dllexport) PyObject *PyInit_badext(void) {
    dep_value();
    return PyModule_Create2(&module, 1013);
}
