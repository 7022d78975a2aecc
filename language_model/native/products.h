/* Products of a few rows with a matrix of weights, which is read once for up to eight rows.

   Vectors are GCC's and clang's extension, so this names no processor; where one has an instruction for whole numbers
   (VNNI, AVX2), `dots` uses it, with the same result. A sum is taken in the same order whatever else is computed with
   it, and whoever helps. */

#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "team.h"

enum { LANES = 16, PANEL = 2 * LANES, BLOCK = 8, TASKS = 16 /* that a product is cut into */ };
enum { AHEAD = 8192 }; /* bytes of weights that are asked for before they are used */
enum { GROUP = 128 };  /* weights of a column that share a scale, where weights are whole numbers */

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

static inline vec load(const float *p) { return *(const vec *)p; }
static inline void store(float *p, vec v) { *(vec *)p = v; }
static inline vec all(float x) { return x - (vec){0}; } /* x + 0 would be an addition: it changes -0 */

static inline vec pick(ivec where, vec a, vec b) { return (vec)((where & (ivec)a) | (~where & (ivec)b)); }
static inline ivec load_ints(const void *p) { return *(const ivec *)p; }
static inline ivec all_ints(int x) { return x - (ivec){0}; }

/* bfloat16 as floats, and floats as the nearest bfloat16: of two that are as near, the even one. */
static inline vec widen(const uint16_t *p) { return (vec)(__builtin_convertvector(*(const halves *)p, ivec) << 16); }
static inline halves narrow(vec v) {
    ivec bits = (ivec)v;
    return __builtin_convertvector((bits + 0x7fff + (bits >> 16 & 1)) >> 16, halves);
}

/* What a weight is: a float; a bfloat16; a byte that means itself less 128; half a byte that means itself less 8. */
enum { FLOATS, BFLOATS, BYTES, NIBBLES };

/* Weights [depth, width] in panels of PANEL columns, row after row, and a bias for each column.

   BFLOATS: an int holds column j in its lower and column j + LANES in its upper half. BYTES: an int holds four rows of
   a column. NIBBLES: an int holds eight rows of a column, the first four in the lower halves of its bytes. Both have
   `scales` [width / PANEL, depth / GROUP, PANEL]. `depth` is whole groups there, of which a row has only `taken`. */
typedef struct {
    long kind, depth, taken, width;
    const void *panels;
    const float *scales, *bias;
} matrix;

/* Rows as whole numbers between -127 and 127: of each group its scale and the sum of its numbers. */
typedef struct {
    int8_t *numbers;
    float *scales;
    int *sums;
} whole_rows;

static inline long bytes_a_panel(const matrix *w) {
    static const long bits[] = {32, 16, 8, 4};
    return w->depth * PANEL * bits[w->kind] / 8;
}

/* out[m][0:PANEL] = bias (+ out[m], if `add`) + a[m][0:depth] . panel[0:depth][PANEL] for a constant number of rows. */
static inline __attribute__((always_inline)) void multiply_floats(int kind, int rows, long depth, const float *a,
                                                                  long a_stride, const char *panel, const float *bias,
                                                                  int add, float *out, long out_stride) {
    vec left[BLOCK], right[BLOCK];
#pragma GCC unroll 8
    for (int m = 0; m < rows; m++) {
        left[m] = load(bias);
        right[m] = load(bias + LANES);
        if (add) {
            left[m] += load(out + m * out_stride);
            right[m] += load(out + m * out_stride + LANES);
        }
    }
    for (long k = 0; k < depth; k++) {
        vec w0, w1;
        if (kind == FLOATS) {
            w0 = load((const float *)panel);
            w1 = load((const float *)panel + LANES);
            panel += 4 * PANEL;
            __builtin_prefetch(panel + AHEAD + 2 * PANEL);
        } else {
            ivec both = load_ints(panel);
            w0 = (vec)(both << 16);
            w1 = (vec)(both & (int)0xffff0000);
            panel += 2 * PANEL;
        }
        __builtin_prefetch(panel + AHEAD);
#pragma GCC unroll 8
        for (int m = 0; m < rows; m++) {
            vec x = all(a[m * a_stride + k]);
            left[m] += x * w0;
            right[m] += x * w1;
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < rows; m++) {
        store(out + m * out_stride, left[m]);
        store(out + m * out_stride + LANES, right[m]);
    }
}

/* total + the product of each lane's four bytes, which have no sign, with the four of `x`, which have one. */
static inline ivec dots(ivec total, ivec w, ivec x) {
#if defined(__AVX512VNNI__)
    return (ivec)_mm512_dpbusd_epi32((__m512i)total, (__m512i)w, (__m512i)x);
#elif defined(__AVX2__)
    union { ivec all; __m256i half[2]; } t = {total}, a = {w & 0x00ff00ff}, b = {w >> 8 & 0x00ff00ff};
    __m256i numbers = _mm256_set1_epi32(x[0]);
    __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(numbers, 8), 8), odd = _mm256_srai_epi16(numbers, 8);
    for (int i = 0; i < 2; i++) {
        __m256i pair = _mm256_add_epi32(_mm256_madd_epi16(a.half[i], even), _mm256_madd_epi16(b.half[i], odd));
        t.half[i] = _mm256_add_epi32(t.half[i], pair);
    }
    return t.all;
#else
    for (int byte = 0; byte < 4; byte++) total += (w >> 8 * byte & 0xff) * (x << (24 - 8 * byte) >> 24);
    return total;
#endif
}

/* As multiply_floats, of rows as whole numbers. */
static inline __attribute__((always_inline)) void multiply_whole(int kind, int rows, long depth, const whole_rows *a,
                                                                 const char *panel, const float *scales,
                                                                 const float *bias, int add, float *out,
                                                                 long out_stride) {
    const int zero = kind == BYTES ? 128 : 8, rows_an_int = kind == BYTES ? 4 : 8;
    long groups = depth / GROUP;
    vec left[BLOCK], right[BLOCK];
#pragma GCC unroll 8
    for (int m = 0; m < rows; m++) {
        left[m] = load(bias);
        right[m] = load(bias + LANES);
        if (add) {
            left[m] += load(out + m * out_stride);
            right[m] += load(out + m * out_stride + LANES);
        }
    }
    for (long group = 0; group < groups; group++, scales += PANEL) {
        ivec sums_left[BLOCK], sums_right[BLOCK];
#pragma GCC unroll 8
        for (int m = 0; m < rows; m++) sums_left[m] = sums_right[m] = all_ints(-zero * a->sums[m * groups + group]);
        const int8_t *numbers = a->numbers + group * GROUP;
        for (int k = 0; k < GROUP; k += rows_an_int, panel += 4 * PANEL) {
            ivec w0 = load_ints(panel), w1 = load_ints(panel + 4 * LANES);
            ivec later0 = w0 >> 4 & 0x0f0f0f0f, later1 = w1 >> 4 & 0x0f0f0f0f;
            __builtin_prefetch(panel + AHEAD);
            __builtin_prefetch(panel + AHEAD + 4 * LANES);
            if (kind == NIBBLES) {
                w0 &= 0x0f0f0f0f;
                w1 &= 0x0f0f0f0f;
            }
#pragma GCC unroll 8
            for (int m = 0; m < rows; m++) {
                ivec x = all_ints(*(const int *)(numbers + m * depth + k));
                sums_left[m] = dots(sums_left[m], w0, x);
                sums_right[m] = dots(sums_right[m], w1, x);
                if (kind == NIBBLES) {
                    ivec next = all_ints(*(const int *)(numbers + m * depth + k + 4));
                    sums_left[m] = dots(sums_left[m], later0, next);
                    sums_right[m] = dots(sums_right[m], later1, next);
                }
            }
        }
        vec scale_left = load(scales), scale_right = load(scales + LANES);
#pragma GCC unroll 8
        for (int m = 0; m < rows; m++) {
            float scale = a->scales[m * groups + group];
            left[m] += __builtin_convertvector(sums_left[m], vec) * (scale * scale_left);
            right[m] += __builtin_convertvector(sums_right[m], vec) * (scale * scale_right);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < rows; m++) {
        store(out + m * out_stride, left[m]);
        store(out + m * out_stride + LANES, right[m]);
    }
}

/* A product to be shared: out [rows, width] = a [rows, taken] . panels + bias (+ out, if `add`). A task is some
   panels, all rows of each. */
typedef struct {
    const matrix *w;
    long rows, a_stride, out_stride, panels_a_task;
    const float *a;
    whole_rows whole;
    int add;
    float *out;
} product;

static inline __attribute__((always_inline)) void multiply_panel(const product *p, int kind, int rows, long row,
                                                                 long column) {
    const matrix *w = p->w;
    const char *panel = (const char *)w->panels + column / PANEL * bytes_a_panel(w);
    float *to = p->out + row * p->out_stride + column;
    if (kind == FLOATS || kind == BFLOATS) {
        const float *from = p->a + row * p->a_stride;
        multiply_floats(kind, rows, w->depth, from, p->a_stride, panel, w->bias + column, p->add, to, p->out_stride);
    } else {
        long groups = w->depth / GROUP;
        whole_rows from = {p->whole.numbers + row * w->depth, p->whole.scales + row * groups,
                           p->whole.sums + row * groups};
        multiply_whole(kind, rows, w->depth, &from, panel, w->scales + groups * column, w->bias + column, p->add, to,
                       p->out_stride);
    }
}

/* Eight rows at a time, and what is left in pieces: each number of rows is code of its own. */
static inline __attribute__((always_inline)) void multiply_panels(const product *p, int kind, long index) {
    long first = index * p->panels_a_task * PANEL, end = first + p->panels_a_task * PANEL;
    for (long column = first; column < end && column < p->w->width; column += PANEL)
        for (long row = 0, rows = p->rows; row < rows;) {
#define ROWS(n) if (rows - row >= n) { multiply_panel(p, kind, n, row, column); row += n; continue; }
            ROWS(8) ROWS(4) ROWS(2) ROWS(1)
#undef ROWS
        }
}

static void multiply_some(void *work, long index, int who) {
    (void)who;
    const product *p = work;
    switch (p->w->kind) {
        case FLOATS: multiply_panels(p, FLOATS, index); break;
        case BFLOATS: multiply_panels(p, BFLOATS, index); break;
        case BYTES: multiply_panels(p, BYTES, index); break;
        default: multiply_panels(p, NIBBLES, index);
    }
}

/* Row `index` as whole numbers, a group after the other. */
static void make_whole(void *work, long index, int who) {
    (void)who;
    const product *p = work;
    const matrix *w = p->w;
    const vec shifter = all(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
    long groups = w->depth / GROUP;
    for (long group = 0; group < groups; group++) {
        float x[GROUP] = {0};
        long from = group * GROUP, count = w->taken - from < GROUP ? w->taken - from : GROUP;
        memcpy(x, p->a + index * p->a_stride + from, count * sizeof(float));
        vec most = all(0);
        for (int i = 0; i < GROUP; i += LANES) {
            vec size = (vec)((ivec)load(x + i) & 0x7fffffff);
            most = pick(size > most, size, most);
        }
        float highest = 0;
        for (int i = 0; i < LANES; i++) highest = most[i] > highest ? most[i] : highest;
        float steps = highest > 0 ? 127.0f / highest : 0;
        ivec sums = {0};
        int8_t *numbers = p->whole.numbers + index * w->depth + from;
        for (int i = 0; i < GROUP; i += LANES) {
            ivec n = __builtin_convertvector(load(x + i) * steps + shifter - shifter, ivec);
            sums += n;
            *(bytes *)(numbers + i) = __builtin_convertvector(n, bytes);
        }
        int sum = 0;
        for (int i = 0; i < LANES; i++) sum += sums[i];
        p->whole.scales[index * groups + group] = highest / 127.0f;
        p->whole.sums[index * groups + group] = sum;
    }
}

/* Floats of scratch that a product of `rows` rows with up to `depth` weights a column needs. */
static long whole_size(long rows, long depth) { return rows * (depth / 4 + 2 * (depth / GROUP)); }

/* out [rows, width] = a [rows, taken] . w + bias (+ out, if `add`); `width` is whole panels. */
static void multiply(int together, long rows, const float *a, long a_stride, const matrix *w, int add, float *out,
                     long out_stride, float *scratch) {
    long panels = w->width / PANEL, each = (panels + TASKS - 1) / TASKS;
    product p = {w, rows, a_stride, out_stride, each, a, {0}, add, out};
    if (w->kind == BYTES || w->kind == NIBBLES) {
        float *scales = scratch + rows * (w->depth / 4);
        p.whole = (whole_rows){(int8_t *)scratch, scales, (int *)(scales + rows * (w->depth / GROUP))};
        share(together, rows, make_whole, &p);
    }
    share(together, (panels + each - 1) / each, multiply_some, &p);
}

#endif
