
#ifdef __wasm__
/* Functions of wasi.c. */
#define _WASI_EMULATED_SIGNAL 1
#define _WASI_EMULATED_PROCESS_CLOCKS 1
#define _WASI_EMULATED_GETPID 1
#define L_tmpnam 20
#define TMP_MAX 10000

/* What <math.h> takes for built in. */
int __fpclassify(double);
int __fpclassifyf(float);
int __signbit(double);
#define __kiso_class(x) (sizeof(x) == sizeof(float) ? __fpclassifyf((float)(x)) : __fpclassify((double)(x)))
#define __builtin_fpclassify(nan, infinite, normal, subnormal, zero, x) __kiso_class(x)
#define __builtin_isnan(x) (__kiso_class(x) == 0)
#define __builtin_isinf(x) (__kiso_class(x) == 1)
#define __builtin_isfinite(x) (__kiso_class(x) > 1)
#define __builtin_isnormal(x) (__kiso_class(x) == 4)
#define __builtin_signbit(x) __signbit((double)(x))
#define __builtin_isunordered(x, y) (__builtin_isnan(x) || __builtin_isnan(y))
#define __builtin_isless(x, y) ((x) < (y))
#define __builtin_islessequal(x, y) ((x) <= (y))
#define __builtin_islessgreater(x, y) ((x) < (y) || (x) > (y))
#define __builtin_isgreater(x, y) ((x) > (y))
#define __builtin_isgreaterequal(x, y) ((x) >= (y))

/* The formats of <inttypes.h>. */
