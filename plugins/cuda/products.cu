// Products of matrices: ops/linear.h, ops/row_linear.h, ops/next_tokens.h.
#include <cmath>

#include "column_sums.h"
#include "epilogue.h"
#include "product_bfloat16.h"
#include "product_float32.h"
#include "table.h"

namespace qkv::cuda {

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

// Y = X Wᵀ + b
void linear(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, qkv_matrix Y, const qkv_epilogue* epilogue) {
  with_type(e, [&]<class T>(T) {
    product<false>(rows_of<T>(X), rows_of<T>(W), X.cols, Bias<T>{static_cast<const T*>(b)},
                   Finish<T>{Epilogue<T>(*epilogue), matrix<T>(Y)});
  });
}

// logits = cap(X Wᵀ + b)
void logits(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, float cap, qkv_matrix to) {
  with_type(e, [&]<class T>(T) {
    product<false>(rows_of<T>(X), rows_of<T>(W), X.cols, Bias<T>{static_cast<const T*>(b)},
                   StoreCapped{matrix<float>(to), cap});
  });
}

// dX = dY W, dW += dYᵀ X, db += Σ_n dY_n
void linear_backward(qkv_element e, qkv_matrix X, qkv_matrix W, qkv_matrix dY, qkv_matrix dX, qkv_matrix dW, float* db,
                     int accumulate, const qkv_epilogue* epilogue) {
  with_type(e, [&]<class T>(T) {
    if (dX.data) {
      const Before<T> before{accumulate ? matrix<const T>(dX) : Matrix<const T>()};
      product<false>(rows_of<T>(dY), columns_of<T>(W), dY.cols, before,
                     Finish<T>{Epilogue<T>(*epilogue), matrix<T>(dX)});
    }
    if (dW.data)
      product<true>(columns_of<T>(dY), columns_of<T>(X), dY.rows, Before<float>{matrix<const float>(dW)},
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
