/* The interface of a device plugin: memory of an accelerator, and the ops that run on it. C99.
 *
 * A plugin is a shared library that exports
 *
 *   const qkv_device *qkv_device_1(void);
 *
 * The number is the version of this interface; a later version gets another name. Calls do not overlap, but may come
 * from several threads.
 *
 * Functions that return int return 0 for success and -1 for an error, which `error` describes, except for `count`.
 * Every function from `upload` on is a command: it may return before it is done. Commands are done in the order of
 * their calls. A function that gives a number to the host waits for the commands before it.
 *
 * Every op computes what the function of the same name computes, which a header of the library's ops defines. Only what
 * is different is stated here. Arrays are in the memory of the device, and aligned to one element only. Rows, columns
 * and counts may be 0, and then nothing is done. Matrices are row-major; row r begins at element r * stride. Elements
 * of a `void *` are those of `qkv_element`, their arithmetic is in float32, and results are rounded once. Statistics,
 * losses, and the gradients of parameters are float32. An array that may be null says so. The results of an op are a
 * function of its arguments alone: no call of the same op, on the same card, gives other bits. The caller has checked
 * that ids, positions, rows and labels are inside of their tables.
 */
#ifndef QKV_DEVICE_H
#define QKV_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { QKV_FLOAT32 = 0, QKV_BFLOAT16 = 1 } qkv_element;

typedef struct {
  void *data;
  int64_t rows, cols, stride;
} qkv_matrix;

/* qkv/dropout.h. p = 0 keeps all values. */
typedef struct {
  float p;
  uint64_t seed;
  uint32_t step, site;
} qkv_dropout;

typedef enum { QKV_RELU = 0, QKV_GELU = 1, QKV_SILU = 2, QKV_GELU_TANH = 3 } qkv_activation;

/* epilogue.h: the work on the result of a product. `other` is y of the activation, which may be the result itself, or x
 * of its gradient. */
typedef enum {
  QKV_NO_EPILOGUE = 0,
  QKV_ACTIVATION = 1,
  QKV_ACTIVATION_BACKWARD = 2,
  QKV_SOFTCAP = 3
} qkv_epilogue_kind;
typedef struct {
  qkv_epilogue_kind kind;
  qkv_activation activation;
  qkv_dropout dropout;
  qkv_matrix other;
  float cap;
} qkv_epilogue;

/* qkv/attention.h. Strides are in elements. */
typedef struct {
  void *data;
  int64_t token_stride, head_stride, sequence_stride;
} qkv_heads;
typedef struct {
  float *data; /* or null */
  int64_t sequence_stride, head_stride, row_stride, key_stride;
} qkv_mask;
typedef enum { QKV_NOT_CAUSAL = 0, QKV_BOTTOM_RIGHT = 1, QKV_TOP_LEFT = 2 } qkv_causal;
typedef struct {
  int64_t sequences;
  const int32_t *q_begin, *q_end, *k_begin, *k_end; /* [sequences]; null begins mean 0, null ends T or S */
  int64_t T, S;
  int64_t queries, keys;                 /* the numbers of queries and of keys of all sequences together */
  int64_t longest_queries, longest_keys; /* the largest numbers of queries and of keys of a sequence */
  int64_t heads, kv_heads, key_width, value_width;
  float scale, softcap;
  qkv_causal causal;
  int64_t left, right; /* the window; -1 means no limit */
  qkv_mask mask;
  const float *alibi;         /* [heads], or null */
  const float *distance_bias; /* [heads, 2 reach + 1], or null */
  int64_t reach;
  qkv_dropout dropout;
  qkv_heads q, k, v;
} qkv_attention;
typedef struct {
  qkv_heads dq, dk, dv;
  qkv_mask dmask;
  float *ddistance_bias; /* or null */
} qkv_attention_gradients;

/* cached_attention.h. The cache rows of query n are rows[begin[n]] to rows[end[n] - 1], or begin[n] to end[n] - 1 if
 * `rows` is null. */
typedef struct {
  qkv_matrix q, cache;
  const int32_t *rows; /* [row_count], or null */
  int64_t row_count;   /* 0 if `rows` is null */
  const int32_t *begin, *end;
  int64_t longest_keys; /* the largest number of keys of a query */
  int64_t heads, kv_heads, key_width, value_width;
  float scale, softcap;
  const float *alibi;         /* or null */
  const float *distance_bias; /* or null */
  int64_t reach;
} qkv_cached_attention;

/* next_tokens.h: the k best tokens of each of N rows. */
typedef struct {
  int64_t k;
  float *logits;        /* [N, k] */
  int32_t *tokens;      /* [N, k] */
  float *hidden;        /* [N, hidden_count] */
  float *lse, *lse_seen; /* [N] */
} qkv_next_tokens;

/* sampled_loss.h */
typedef enum { QKV_BINARY = 0, QKV_SAMPLED_SOFTMAX = 1 } qkv_sampled_loss_kind;
typedef struct {
  qkv_sampled_loss_kind kind;
  double beta;
} qkv_sampled_loss;

/* adam.h. The weights and all state are float32. */
typedef struct {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
  int decoupled;
  double gradient_scale;
  int64_t step;
  double average_decay;
} qkv_adam_step;

/* A device of the machine. */
typedef struct {
  char name[256]; /* such as "NVIDIA H200" */
  uint64_t bytes; /* of memory */
} qkv_device_info;

typedef struct {
  /* May be called before `open`. */
  const char *(*name)(void);    /* returns the plugin and what it uses, such as "CUDA 13.0, driver 580.95" */
  const char *(*missing)(void); /* returns what is missing to use devices, in one line; null if nothing is */
  int (*count)(void);           /* returns the number of devices, 0 if something is missing */
  int (*describe)(int device, qkv_device_info *info);
  const char *(*error)(void); /* returns the last error, in one line */

  /* Chooses a device, before all that follows. May be called again, after all memory was released. */
  int (*open)(int device);

  /* Memory. Addresses are reserved at once, and get memory from their beginning on: `commit` gives bytes [begin, end)
   * of a reservation memory of zeros; begin is the end of the last call. Sizes are multiples of 2 MiB, and `end` is a
   * multiple of 32 MiB or the end of the reservation. `release` is called when no command uses the memory. */
  int (*reserve)(size_t bytes, void **address);
  int (*commit)(void *address, size_t begin, size_t end);
  int (*release)(void *address, size_t bytes);

  /* Copies of bytes. `upload` has read its source when it returns. `download` waits for its result. */
  int (*upload)(void *to, const void *from, size_t bytes);
  int (*download)(void *to, const void *from, size_t bytes);
  int (*copy)(void *to, const void *from, size_t bytes);
  /* Waits for all commands. */
  int (*synchronize)(void);

  /* rows.h */
  int (*fill)(qkv_element, qkv_matrix m, float value);
  int (*copy_rows)(qkv_element, qkv_matrix from, qkv_matrix to);
  int (*gather_rows)(qkv_element, qkv_matrix from, const int32_t *rows, qkv_matrix to);
  int (*scatter_rows)(qkv_element, qkv_matrix from, const int32_t *rows, qkv_matrix to);
  int (*scatter_add_rows)(qkv_element, qkv_matrix from, const int32_t *rows, qkv_matrix to);
  int (*scale)(qkv_element, qkv_matrix m, float factor);
  /* Assigns to flags[r], in the memory of the host, whether row r has an element that is infinite or NaN. */
  int (*rows_not_finite)(qkv_element, qkv_matrix m, uint8_t *flags);

  /* linear.h, row_linear.h. b, dW.data and db may be null. */
  int (*linear)(qkv_element, qkv_matrix X, qkv_matrix W, const void *b, qkv_matrix Y, const qkv_epilogue *epilogue);
  int (*linear_backward)(qkv_element, qkv_matrix X, qkv_matrix W, qkv_matrix dY, qkv_matrix dX, qkv_matrix dW,
                         float *db, int accumulate, const qkv_epilogue *epilogue);
  int (*row_linear)(qkv_element, qkv_matrix X, qkv_matrix W, const void *b, qkv_matrix Y, const qkv_epilogue *epilogue);
  int (*apply)(qkv_element, const qkv_epilogue *epilogue, qkv_matrix result);

  /* activation.h */
  int (*gated_activation)(qkv_element, qkv_activation kind, qkv_matrix x, qkv_dropout drop, qkv_matrix y);
  int (*gated_activation_backward)(qkv_element, qkv_activation kind, qkv_matrix x, qkv_matrix dy, qkv_dropout drop,
                                   qkv_matrix dx);

  /* layer_norm.h. beta, mean and dbeta may be null. */
  int (*layer_norm)(qkv_element, qkv_matrix x, const void *gamma, const void *beta, float epsilon, qkv_matrix y,
                    float *mean, float *rstd);
  int (*layer_norm_backward)(qkv_element, qkv_matrix dy, qkv_matrix x, const void *gamma, const float *mean,
                             const float *rstd, qkv_matrix dx, float *dgamma, float *dbeta);

  /* dropout.h */
  int (*dropout)(qkv_element, qkv_matrix x, qkv_dropout drop, qkv_matrix y);
  int (*add_dropout)(qkv_element, qkv_matrix x, qkv_matrix f, qkv_dropout drop, qkv_matrix y);

  /* embedding.h, rotary.h. Rows of P may have stride 0. `row` may be null. turn is 1 for forward and -1 for back. */
  int (*embedding)(qkv_element, qkv_matrix E, const int32_t *ids, float scale, qkv_matrix P, const int32_t *positions,
                   qkv_matrix y);
  int (*add_embedding)(qkv_element, qkv_matrix E, const int32_t *ids, qkv_matrix y);
  int (*embedding_backward)(qkv_element, qkv_matrix dy, const int32_t *ids, float scale, qkv_matrix dE);
  int (*set_first_tokens)(qkv_element, const int32_t *positions, const void *row, qkv_matrix y);
  int (*rotary)(qkv_element, qkv_matrix x, int64_t head_width, const int32_t *positions, qkv_matrix table, int turn);

  /* distance_bias.h. bias, dbias and dtable are float32. */
  int (*distance_bias)(qkv_element, qkv_matrix table, const int32_t *buckets, qkv_matrix bias);
  int (*distance_bias_backward)(qkv_matrix dbias, const int32_t *buckets, qkv_matrix dtable);

  /* qkv/attention.h, cached_attention.h. lse is float32; in `attention` it may be null. The device has the workspace.
   */
  int (*attention)(qkv_element, const qkv_attention *in, qkv_heads out, qkv_heads lse);
  int (*attention_backward)(qkv_element, const qkv_attention *in, qkv_heads out, qkv_heads lse, qkv_heads dout,
                            const qkv_attention_gradients *gradients);
  int (*attention_weights)(qkv_element, const qkv_attention *in, qkv_heads lse, int64_t sequence, int64_t head,
                           int64_t begin, int64_t end, float *A, int64_t stride);
  int (*cached_attention)(qkv_element, const qkv_cached_attention *in, qkv_matrix y);

  /* cross_entropy.h, r_drop.h, softcap.h. sum_losses assigns its result in the memory of the host. */
  int (*cross_entropy)(qkv_element, qkv_matrix logits, const int32_t *targets, float smoothing, float *loss,
                       float *nll);
  int (*cross_entropy_with_gradient)(qkv_element, qkv_matrix logits, const int32_t *targets, float smoothing,
                                     float scale, float *loss, float *nll);
  int (*log_softmax)(qkv_element, qkv_matrix logits);
  int (*sum_losses)(const float *loss, int64_t N, int64_t block, double *sum);
  int (*r_drop_with_gradient)(qkv_element, qkv_matrix a, qkv_matrix b, const int32_t *targets, float smoothing,
                              float alpha, float *loss, float *nll);
  int (*softcap_backward)(qkv_element, qkv_matrix y, float cap, qkv_matrix d);

  /* next_tokens.h. logits = cap(X W' + b), a softcap if cap is not 0; b may be null. `hidden` has distinct columns in
   * increasing order. All results are float32, or int32. */
  int (*logits)(qkv_element, qkv_matrix X, qkv_matrix W, const void *b, float cap, qkv_matrix logits);
  int (*next_tokens)(qkv_matrix logits, const int32_t *hidden, int64_t hidden_count, const qkv_next_tokens *next);

  /* sampled_loss.h, gathered_logits.h. log_draws may be null for losses that do not read it. */
  int (*sampled_loss)(qkv_element, qkv_sampled_loss kind, const float *log_draws, qkv_matrix s, float *loss);
  int (*shared_sampled_loss)(qkv_element, qkv_sampled_loss kind, const int32_t *labels, const int32_t *ids,
                             qkv_matrix s, float *loss);
  int (*gathered_logits)(qkv_element, qkv_matrix h, qkv_matrix E, const int32_t *ids, qkv_matrix s);
  int (*gathered_logits_backward)(qkv_element, qkv_matrix h, qkv_matrix E, const int32_t *ids, qkv_matrix ds,
                                  qkv_matrix dh, qkv_matrix dE);

  /* adam.h, on `count` numbers. `average` may be null. `copy`, which may be null, is assigned the new weights as
   * elements. sum_of_squares assigns its result in the memory of the host. */
  int (*adam_update)(qkv_element, const qkv_adam_step *step, int64_t count, float *w, float *gradient, float *m,
                     float *v, float *average, void *copy);
  int (*sum_of_squares)(const float *x, int64_t count, double *sum);
} qkv_device;

#ifdef __cplusplus
}
#endif

#endif
