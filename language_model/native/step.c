/* One step of GPT-J on a processor: new tokens in, logits out. Weights are float32, bfloat16, bytes or half bytes; what
   is computed with them is float32, but for the products of whole numbers in `products.h`.

   For a model of a few million parameters the arithmetic of a step takes less time than the dispatch of its
   operations. Here a step is one call, without Python's lock. Vectors are GCC's and clang's extension, so the source
   names no processor. `step.py` packs the weights; the arithmetic is that of `language_model/gptj.py`, which is the
   oracle of its tests. Last come the two questions that choosing a token asks of logits. */

#include "products.h"
#include "team.h"

/* `in` gives queries, keys, values and what the feed-forward layer starts from; `out` takes what attention and that
   layer end with. Where the normalisation before `in` has a scale and a shift of its own, they stand here. */
typedef struct {
    const float *scale, *shift;
    matrix in, out;
} layer;

/* `inner` and `vocabulary` are whole panels. */
typedef struct {
    long layers, width, heads, head_width, rotated, inner, vocabulary;
    float epsilon;
    long embedding_kind; /* FLOATS, or BFLOATS one after the other */
    const void *embedding; /* [vocabulary, width] */
    const float *rotations; /* [positions, rotated / 2, 2]: cosine and sine */
    const layer *layers_of;
    layer head; /* without `out` */
} model;

/* Where a step's tokens go: keys and then values of a token lie together, FLOATS or BFLOATS. Strides count these. */
typedef struct {
    long kind;
    void *tokens;
    long layer_stride, row_stride, token_stride;
} cache;

/* Put `count` numbers into the cache, from its number `at` on; `count` is whole vectors. */
static void keep(const cache *c, long at, const float *x, long count) {
    if (c->kind == FLOATS) memcpy((float *)c->tokens + at, x, count * sizeof(float));
    else
        for (long i = 0; i < count; i += LANES) *(halves *)((uint16_t *)c->tokens + at + i) = narrow(load(x + i));
}

/* `width` numbers of each of up to LANES tokens, from number `at` of the cache on: where they lie, or, widened, in
   `aside` [LANES, width]. */
static inline __attribute__((always_inline)) const float *kept_floats(int kind, const cache *c, long at, long tokens,
                                                                      long width, float *aside) {
    if (kind == FLOATS) return (const float *)c->tokens + at;
    for (long t = 0; t < tokens; t++)
        for (long i = 0; i < width; i += LANES)
            store(aside + t * width + i, widen((const uint16_t *)c->tokens + at + t * c->token_stride + i));
    return aside;
}

static inline float sum_lanes(vec v) {
    float parts[LANES];
    store(parts, v);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) parts[i] += parts[i + half];
    return parts[0];
}

static float sum(const float *x, long size) {
    vec parts = all(0);
    float rest = 0;
    long i = 0;
    for (; i + LANES <= size; i += LANES) parts += load(x + i);
    for (; i < size; i++) rest += x[i];
    return sum_lanes(parts) + rest;
}

static inline float dot(const float *a, const float *b, long size) {
    vec parts = all(0);
    float rest = 0;
    long i = 0;
    for (; i + LANES <= size; i += LANES) parts += load(a + i) * load(b + i);
    for (; i < size; i++) rest += a[i] * b[i];
    return sum_lanes(parts) + rest;
}

/* e^x for x <= 88 to 2 ulp: 2^n * e^r, |r| <= ln(2) / 2, with a minimax polynomial of e^r. */
static inline vec exponential(vec x) {
    x = pick(x < all(-87.0f), all(-87.0f), x);
    x = pick(x > all(88.0f), all(88.0f), x);
    const vec shifter = all(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
    vec n = x * all(1.44269504f) + shifter - shifter;
    vec r = x - n * all(0.693359375f) + n * all(2.12194440e-4f);
    vec p = all(1.9875691500e-4f);
    p = p * r + all(1.3981999507e-3f);
    p = p * r + all(8.3334519073e-3f);
    p = p * r + all(4.1665795894e-2f);
    p = p * r + all(1.6666665459e-1f);
    p = p * r + all(5.0000001201e-1f);
    p = p * r * r + r + all(1.0f);
    ivec exponent = (__builtin_convertvector(n, ivec) + 127) << 23;
    return p * (vec)exponent;
}

/* GELU by its tanh form, as in GPT-J: x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)). */
static inline vec gelu(vec x) {
    vec u = all(-1.5957691216f) * x * (all(1.0f) + all(0.044715f) * x * x);
    return x / (all(1.0f) + exponential(u));
}

/* Zero mean and unit variance, then a scale and a shift if they are not part of the next weights. */
static void normalise(const float *x, long width, float epsilon, const layer *l, float *out) {
    float mean = sum(x, width) / width;
    for (long i = 0; i < width; i++) out[i] = x[i] - mean;
    float scale = 1.0f / sqrtf(dot(out, out, width) / width + epsilon);
    for (long i = 0; i < width; i++) out[i] *= scale;
    if (l->scale)
        for (long i = 0; i < width; i++) out[i] = out[i] * l->scale[i] + l->shift[i];
}

/* Turn neighbouring pairs of each head's first `rotated` dimensions (Su et al., 2021). */
static void rotate(float *x, long heads, long head_width, long rotated, const float *turn) {
    for (long head = 0; head < heads; head++, x += head_width)
        for (long i = 0; i < rotated; i += 2) {
            float a = x[i], b = x[i + 1];
            x[i] = a * turn[i] - b * turn[i + 1];
            x[i + 1] = a * turn[i + 1] + b * turn[i];
        }
}

/* The sums of 16 vectors as one vector: halves of pairs are added until a lane is left of each. */
static inline vec sums(vec v[LANES]) {
#define FOLD(pairs, low, high) for (int i = 0; i < pairs; i++) \
        v[i] = __builtin_shuffle(v[i], v[i + pairs], (ivec)low) + __builtin_shuffle(v[i], v[i + pairs], (ivec)high)
#define LIST(...) {__VA_ARGS__}
    FOLD(8, LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
         LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    FOLD(4, LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
         LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    FOLD(2, LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
         LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
    FOLD(1, LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
         LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31));
#undef LIST
#undef FOLD
    return v[0];
}

/* Scores of up to LANES tokens' keys; what lies past them is garbage. */
static inline __attribute__((always_inline)) vec score(const float *query, const float *keys, long stride, long width,
                                                       long tokens) {
    vec parts[LANES];
#pragma GCC unroll 16
    for (int t = 0; t < LANES; t++) {
        parts[t] = all(0);
        if (t < tokens)
            for (long i = 0; i < width; i += LANES) parts[t] += load(query + i) * load(keys + t * stride + i);
    }
    return sums(parts);
}

/* Neighbouring tokens of a row, whose keys and values are then read once for all of them. */
typedef struct {
    long first, count, row, position; /* of the first */
} run;

enum { RUN = 8 };

/* The attention of `heads` heads for the tokens of a run, each over its row's tokens up to itself. `queries` and `out`
   are those of the first token and head, a token `query_stride` or `out_stride` floats behind the other; `keys` is
   where in the cache the first head's of the row's first token are, and a token's values are `values_at` behind its
   keys. `scores` is [count, heads, whole vectors], `aside` [LANES, width]. A block of tokens is read for all heads
   before the next, as it lies in memory. */
static inline __attribute__((always_inline)) void attend(int kind, const run *r, long heads, long width,
                                                         const float *queries, long query_stride, const cache *c,
                                                         long keys, long values_at, float *scores, float *aside,
                                                         float *out, long out_stride) {
    long longest = r->position + r->count, room = (longest + LANES - 1) / LANES * LANES;
    const long kept_stride = c->token_stride, stride = kind == FLOATS ? kept_stride : width;
    float scale = 1.0f / sqrtf((float)width);
    for (long t = 0; t < longest; t += LANES)
        for (long head = 0; head < heads; head++) {
            long tokens = longest - t < LANES ? longest - t : LANES;
            const float *from = kept_floats(kind, c, keys + t * kept_stride + head * width, tokens, width, aside);
            for (long i = 0; i < r->count; i++) {
                const float *query = queries + i * query_stride + head * width;
                long left = r->position + i + 1 - t;
                if (left <= 0) continue;
                vec s = left < LANES ? score(query, from, stride, width, left)
                                     : score(query, from, stride, width, LANES);
                store(scores + (i * heads + head) * room + t, scale * s);
            }
        }
    for (long i = 0; i < r->count; i++) {
        long length = r->position + i + 1, whole = (length + LANES - 1) / LANES * LANES;
        for (long head = 0; head < heads; head++) {
            float *s = scores + (i * heads + head) * room;
            for (long t = length; t < whole; t++) s[t] = -INFINITY;
            vec most = load(s), total = all(0);
            for (long t = LANES; t < whole; t += LANES) most = pick(load(s + t) > most, load(s + t), most);
            float highest = most[0];
            for (int lane = 1; lane < LANES; lane++) highest = most[lane] > highest ? most[lane] : highest;
            for (long t = 0; t < whole; t += LANES) {
                vec share = exponential(load(s + t) - highest);
                store(s + t, share);
                total += share;
            }
            float scaling = 1.0f / sum_lanes(total);
            for (long t = 0; t < whole; t += LANES) store(s + t, load(s + t) * scaling);
        }
        memset(out + i * out_stride, 0, heads * width * sizeof(float));
    }
    for (long t = 0; t < longest; t += LANES)
        for (long head = 0; head < heads; head++) {
            long tokens = longest - t < LANES ? longest - t : LANES;
            long at = keys + values_at + t * kept_stride + head * width;
            const float *values = kept_floats(kind, c, at, tokens, width, aside);
            for (long i = 0; i < r->count; i++) {
                const float *shares = scores + (i * heads + head) * room + t;
                float *to = out + i * out_stride + head * width;
                long left = r->position + i + 1 - t, seen = left < LANES ? left : LANES;
                for (long j = 0; j < width && left > 0; j += LANES) {
                    vec total = load(to + j);
                    for (long k = 0; k < seen; k++) total += shares[k] * load(values + k * stride + j);
                    store(to + j, total);
                }
            }
        }
}

static long padded(long size) { return (size + PANEL - 1) / PANEL * PANEL; }

/* What the middle of a layer does for each token, to be shared: attention, and the feed-forward layer's GELU. A task is
   a run, or a half of its heads where there are few runs. */
typedef struct {
    const model *m;
    const cache *c;
    const run *runs;
    long layer_at; /* where in the cache the layer begins */
    const float *in;
    float *mid, *scores;
    long in_stride, mid_stride, scores_stride, parts;
} middle;

static void finish_middle(void *work, long index, int who) {
    const middle *w = work;
    const model *m = w->m;
    const run *r = w->runs + index / w->parts;
    long part = index % w->parts, width = m->head_width;
    long head = part * m->heads / w->parts, heads = (part + 1) * m->heads / w->parts - head;
    const float *from = w->in + r->first * w->in_stride;
    float *to = w->mid + r->first * w->mid_stride, *scores = w->scores + who * w->scores_stride;
    long keys = w->layer_at + r->row * w->c->row_stride + head * width;
    float *aside = scores + w->scores_stride - LANES * width;
#define ATTEND(kind) attend(kind, r, heads, width, from + head * width, w->in_stride, w->c, keys, m->width, scores, \
                            aside, to + head * width, w->mid_stride)
    if (w->c->kind == FLOATS) ATTEND(FLOATS);
    else ATTEND(BFLOATS);
#undef ATTEND
    for (long i = 0; i < r->count && part == 0; i++, from += w->in_stride, to += w->mid_stride)
        for (long j = 0; j < m->inner; j += LANES) store(to + m->width + j, gelu(load(from + 3 * m->width + j)));
}

/* Cut tokens into runs; returns how many. */
static long make_runs(long tokens, const long *rows, const long *positions, run *runs) {
    long count = 0;
    for (long i = 0; i < tokens; i++) {
        run *last = runs + count - 1;
        if (count && last->count < RUN && last->row == rows[i] && last->position + last->count == positions[i])
            last->count++;
        else
            runs[count++] = (run){i, 1, rows[i], positions[i]};
    }
    return count;
}

static void embed(const model *m, long id, float *out) {
    if (m->embedding_kind == FLOATS) memcpy(out, (const float *)m->embedding + id * m->width, m->width * sizeof(float));
    else {
        const uint16_t *from = (const uint16_t *)m->embedding + id * m->width;
        for (long i = 0; i < m->width; i += LANES) store(out + i, widen(from + i));
    }
}

/* Floats that a member of the team needs for attention. */
static long scores_size(const model *m, long length) { return RUN * m->heads * padded(length) + LANES * m->head_width; }

/* Floats of scratch that a step of `tokens` tokens over rows of up to `length` tokens needs. */
long scratch_size(const model *m, long tokens, long length) {
    long width = padded(m->width), in = padded(3 * m->width + m->inner);
    long groups = (m->width + m->inner + GROUP - 1) / GROUP;
    return tokens * (2 * width + in + m->width + m->inner) + (1 + MOST_HELPERS) * scores_size(m, length) +
           whole_size(tokens, groups * GROUP);
}

/* Append token `ids[i]` at position `positions[i]` of row `rows[i]`; a row's tokens come in order. The logits after
   token `wanted[j]` become row j of `logits` [n_wanted, vocabulary]. */
void step(const model *m, const cache *c, long tokens, const long *ids, const long *rows, const long *positions,
          long n_wanted, const long *wanted, long length, float *scratch, float *logits) {
    long width = m->width, wide = padded(width), in_width = padded(3 * width + m->inner);
    long mid_width = width + m->inner;
    float *x = scratch, *normed = x + tokens * wide, *in = normed + tokens * wide;
    float *mid = in + tokens * in_width, *scores = mid + tokens * mid_width;
    float *whole = scores + (1 + MOST_HELPERS) * scores_size(m, length);
    run runs[tokens];
    long n_runs = make_runs(tokens, rows, positions, runs);
    middle mine = {m, c, runs, 0, in, mid, scores, in_width, mid_width, scores_size(m, length),
                   n_runs == 1 && m->heads > 1 ? 2 : 1};

    int together = gather();
    for (long i = 0; i < tokens; i++) embed(m, ids[i], x + i * wide);
    for (long number = 0; number < m->layers; number++) {
        const layer *l = m->layers_of + number;
        mine.layer_at = number * c->layer_stride;
        for (long i = 0; i < tokens; i++) normalise(x + i * wide, width, m->epsilon, l, normed + i * wide);
        multiply(together, tokens, normed, wide, &l->in, 0, in, in_width, whole);
        for (long i = 0; i < tokens; i++) {
            float *qkv = in + i * in_width;
            rotate(qkv, 2 * m->heads, m->head_width, m->rotated, m->rotations + positions[i] * m->rotated);
            keep(c, mine.layer_at + rows[i] * c->row_stride + positions[i] * c->token_stride, qkv + width, 2 * width);
        }
        share(together, n_runs * mine.parts, finish_middle, &mine);
        multiply(together, tokens, mid, mid_width, &l->out, 1, x, wide, whole);
    }
    for (long i = 0; i < n_wanted; i++)
        normalise(x + wanted[i] * wide, width, m->epsilon, &m->head, normed + i * wide);
    multiply(together, n_wanted, normed, wide, &m->head.in, 0, logits, m->vocabulary, whole);
    if (together) disperse();
}

enum { AT_ONCE = 64 }; /* rows of a product: few enough to stay near while each weight is used */

/* A product by itself, of a model that others compute: out [rows, width] = a [rows, taken] . w + bias. `width` is whole
   panels, `scratch` has `product_size` floats. */
void lone_product(const matrix *w, long rows, const float *a, float *out, float *scratch) {
    int together = gather();
    for (long row = 0; row < rows; row += AT_ONCE) {
        long some = rows - row < AT_ONCE ? rows - row : AT_ONCE;
        multiply(together, some, a + row * w->taken, w->taken, w, 0, out + row * w->width, w->width, scratch);
    }
    if (together) disperse();
}

/* Floats of scratch that a product with `w` by itself needs. */
long product_size(const matrix *w) {
    return w->kind == BYTES || w->kind == NIBBLES ? whole_size(AT_ONCE, w->depth) : 0;
}

/* The most likely token of each row of `logits`, whose rows begin `stride` floats apart: the first of equals. */
void most_likely(const float *logits, long rows, long vocabulary, long stride, long *tokens) {
    for (long row = 0; row < rows; row++, logits += stride) {
        vec most = all(-INFINITY);
        long i = 0;
        for (; i + LANES <= vocabulary; i += LANES) most = pick(load(logits + i) > most, load(logits + i), most);
        float highest = -INFINITY;
        for (int lane = 0; lane < LANES; lane++) highest = most[lane] > highest ? most[lane] : highest;
        for (; i < vocabulary; i++) highest = logits[i] > highest ? logits[i] : highest;
        long token = 0;
        while (token < vocabulary - 1 && logits[token] != highest) token++;
        tokens[row] = token;
    }
}

/* For each row: which of the `candidates` is the most likely, and how many tokens are more likely than that. */
void rank(const float *logits, long rows, long vocabulary, long stride, const long *candidates, long n_candidates,
          long *best, long *above) {
    for (long row = 0; row < rows; row++, logits += stride) {
        best[row] = candidates[0];
        for (long i = 1; i < n_candidates; i++)
            if (logits[candidates[i]] > logits[best[row]]) best[row] = candidates[i];
        ivec counts = {0};
        long i = 0, total = 0;
        for (; i + LANES <= vocabulary; i += LANES) counts -= load(logits + i) > all(logits[best[row]]);
        for (int lane = 0; lane < LANES; lane++) total += counts[lane];
        for (; i < vocabulary; i++) total += logits[i] > logits[best[row]];
        above[row] = total;
    }
}
