// Products of matrices by a simple kernel, not optimized: tiles in shared memory, no matrix instructions.
// ops/linear.h, ops/row_linear.h, ops/next_tokens.h. A number is a sum over K in order by one thread, so its bits depend
// on its row and column alone.
#include <cmath>

#include "arguments.h"
#include "column_sums.h"
#include "epilogue.h"
#include "grid.h"
#include "table.h"

namespace qkv::cuda {

constexpr int kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;  // a thread has kEach × kEach numbers

// A matrix or its transpose.
template <class T>
struct Factor {
  const T* data;
  int64_t rows, row_stride, col_stride;

  __device__ float at(int64_t r, int64_t k) const { return float(data[r * row_stride + k * col_stride]); }
};
template <class T>
Factor<T> rows_of(const qkv_matrix& m) {
  return {static_cast<const T*>(m.data), m.rows, m.stride, 1};
}
template <class T>
Factor<T> columns_of(const qkv_matrix& m) {
  return {static_cast<const T*>(m.data), m.cols, 1, m.stride};
}

namespace kernel {

// Loads a tile of kTile rows and kDepth numbers of a factor; zeros outside of it.
template <class T>
__device__ void load_tile(Factor<T> factor, int64_t row, int64_t k, int64_t K, float (&tile)[kTile][kDepth + 1]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kSide * kSide) {
    // Adjacent threads read adjacent elements.
    const int r = factor.col_stride == 1 ? i / kDepth : i % kTile, c = factor.col_stride == 1 ? i % kDepth : i / kTile;
    const bool inside = row + r < factor.rows && k + c < K;
    tile[r][c] = inside ? factor.at(row + r, k + c) : 0;
  }
}

// C(m, n) = first(m, n) + Σ_k A(m, k) B(n, k). A block has a tile of C. `first(m, n)` is read and `last(m, n, z)` is
// called once for each number.
template <class T, class First, class Last>
__global__ void product(Factor<T> A, Factor<T> B, int64_t K, First first, Last last) {
  __shared__ float a_tile[kTile][kDepth + 1], b_tile[kTile][kDepth + 1];
  const int64_t tiles = (B.rows + kTile - 1) / kTile;
  const int64_t row = blockIdx.x / tiles * kTile, col = blockIdx.x % tiles * kTile;
  const int y = static_cast<int>(threadIdx.x) / kSide, x = static_cast<int>(threadIdx.x) % kSide;
  float sum[kEach][kEach];
  for (int i = 0; i < kEach; i++)
    for (int j = 0; j < kEach; j++) {
      const int64_t m = row + y + i * kSide, n = col + x + j * kSide;
      sum[i][j] = m < A.rows && n < B.rows ? first(m, n) : 0;
    }
  for (int64_t k = 0; k < K; k += kDepth) {
    load_tile(A, row, k, K, a_tile);
    load_tile(B, col, k, K, b_tile);
    __syncthreads();
    for (int c = 0; c < kDepth; c++)
      for (int i = 0; i < kEach; i++)
        for (int j = 0; j < kEach; j++) sum[i][j] += a_tile[y + i * kSide][c] * b_tile[x + j * kSide][c];
    __syncthreads();
  }
  for (int i = 0; i < kEach; i++)
    for (int j = 0; j < kEach; j++) {
      const int64_t m = row + y + i * kSide, n = col + x + j * kSide;
      if (m < A.rows && n < B.rows) last(m, n, sum[i][j]);
    }
}

}  // namespace kernel

namespace {

// The beginnings of sums: a bias, or a matrix, or zeros without data.
template <class T>
struct Bias {
  const T* b;
  __device__ float operator()(int64_t, int64_t n) const { return b ? float(b[n]) : 0; }
};
template <class T>
struct Before {
  Matrix<const T> c;
  __device__ float operator()(int64_t m, int64_t n) const { return c.data ? float(c(m, n)) : 0; }
};

// The ends of sums.
template <class T>
struct Finish {
  Epilogue<T> epilogue;
  Matrix<T> result;
  __device__ void operator()(int64_t m, int64_t n, float z) const { epilogue.assign(result, m, n, z); }
};
struct Store {
  Matrix<float> result;
  __device__ void operator()(int64_t m, int64_t n, float z) const { result(m, n) = z; }
};
struct StoreCapped {
  Matrix<float> result;
  float cap;  // 0: none
  __device__ void operator()(int64_t m, int64_t n, float z) const {
    result(m, n) = cap == 0 ? z : cap * std::tanh(z / cap);
  }
};

template <class T, class First, class Last>
void product(Factor<T> A, Factor<T> B, int64_t K, First first, Last last) {
  launch(kernel::product<T, First, Last>, blocks_for(A.rows, kTile) * blocks_for(B.rows, kTile), kSide * kSide, A, B, K,
         first, last);
}

// Y = X Wᵀ + b
void linear(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, qkv_matrix Y, const qkv_epilogue* epilogue) {
  with_type(e, [&]<class T>(T) {
    product(rows_of<T>(X), rows_of<T>(W), X.cols, Bias<T>{static_cast<const T*>(b)},
            Finish<T>{Epilogue<T>(*epilogue), matrix<T>(Y)});
  });
}

// logits = cap(X Wᵀ + b)
void logits(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, float cap, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    product(rows_of<T>(X), rows_of<T>(W), X.cols, Bias<T>{static_cast<const T*>(b)},
            StoreCapped{matrix<float>(to), cap});
  });
}

// dX = dY W, dW += dYᵀ X, db += Σ_n dY_n
void linear_backward(qkv_element e, qkv_matrix X, qkv_matrix W, qkv_matrix dY, qkv_matrix dX, qkv_matrix dW, float* db,
                     int accumulate, const qkv_epilogue* epilogue) {
  with_type(e, [&]<class T>(T) {
    if (dX.data) {
      const Before<T> before{accumulate ? matrix<const T>(dX) : Matrix<const T>()};
      product(rows_of<T>(dY), columns_of<T>(W), dY.cols, before, Finish<T>{Epilogue<T>(*epilogue), matrix<T>(dX)});
    }
    if (dW.data)
      product(columns_of<T>(dY), columns_of<T>(X), dY.rows, Before<float>{matrix<const float>(dW)},
              Store{matrix<float>(dW)});
    if (db) add_column_sums(dY.rows, dY.cols, Elements<T>{matrix<const T>(dY)}, db);
  });
}

}  // namespace

void add_products(qkv_device& t) {
  t.linear = t.row_linear = entry<linear>;
  t.linear_backward = entry<linear_backward>;
  t.logits = entry<logits>;
}

}  // namespace qkv::cuda
