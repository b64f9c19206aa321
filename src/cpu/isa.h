/* isa.h: names for the files of this folder, each of which is compiled once for every instruction-set level.
 *
 * The build compiles every .c file of src/cpu with WK_ISA_NAME set to base, avx2 or avx512 and the compiler flags of
 * that level. A symbol that another file uses is written WK_ISA(name) and becomes name_avx512; everything
 * else is static. device.c picks the level at run time. */
#ifndef WK_CPU_ISA_H
#define WK_CPU_ISA_H

#ifndef WK_ISA_NAME
#define WK_ISA_NAME base
#endif

#define WK_ISA_JOIN2(a, b) a##_##b
#define WK_ISA_JOIN(a, b) WK_ISA_JOIN2(a, b)
#define WK_ISA(name) WK_ISA_JOIN(name, WK_ISA_NAME)

/* Before a loop: its steps do not depend on each other, though the compiler cannot see that (an output may be the very
 * same memory as an input). */
#if defined(__clang__)
#define WK_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WK_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Of a function that is to be part of its callers, for its speed or because arguments are constants there. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Before a loop over a few vectors of an array, which then live in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Both compilers have a shuffle of two vectors by constant indices, under two names. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__((a) == (b))){__VA_ARGS__})
#endif

/* An output of at least so many bytes (most of a last-level cache) will not be found there by its reader: it is written
 * past it. */
#define WK_STREAM_BYTES (24 << 20)

/* Bytes of the widest vector of this level. */
#if defined(__AVX512F__)
#define WK_VEC_BYTES 64
#elif defined(__AVX2__)
#define WK_VEC_BYTES 32
#else
#define WK_VEC_BYTES 16
#endif

#endif
