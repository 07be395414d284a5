// Products, activations and the optimizer.
#include <vector>

#include "host_device/arguments.h"
#include "host_device/table.h"
#include "ops/reference/activation_reference.h"
#include "ops/reference/adam_reference.h"
#include "ops/reference/linear_reference.h"
#include "ops/reference/rows_reference.h"
#include "ops/reference/softcap_reference.h"

namespace qkv::host_device {
namespace {

// Elements are floats here, so an epilogue sees the product before it is rounded, as on a device.
void apply(qkv_element e, const qkv_epilogue* epilogue, Matrix<float> result) {
  switch (epilogue->kind) {
    case QKV_NO_EPILOGUE:
      return;
    case QKV_ACTIVATION:
      return reference::activation<float>(activation_of(epilogue->activation), result, dropout_of(epilogue->dropout),
                                          Result(e, epilogue->other), result.whole());
    case QKV_ACTIVATION_BACKWARD:
      return reference::activation_backward<float>(activation_of(epilogue->activation), Floats(e, epilogue->other),
                                                   result, dropout_of(epilogue->dropout), result, result.whole());
    case QKV_SOFTCAP:
      return reference::softcap<float>(result, epilogue->cap);
  }
}

void apply_to_result(qkv_element e, const qkv_epilogue* epilogue, qkv_matrix result) {
  apply(e, epilogue, Result(e, result).matrix());
}

void linear(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, qkv_matrix Y, const qkv_epilogue* epilogue) {
  const bool in_place = epilogue->kind == QKV_ACTIVATION && epilogue->other.data == Y.data;
  std::vector<float> numbers(to_size(Y.rows * Y.cols));
  const Matrix<float> product(numbers.data(), Y.rows, Y.cols);
  reference::linear<float>(Floats(e, X), Floats(e, W), Vector(e, b, Y.cols), product);
  if (!in_place && epilogue->kind == QKV_ACTIVATION) reference::copy_rows<float>(product, Result(e, Y));
  apply(e, epilogue, product);
  if (epilogue->kind != QKV_ACTIVATION) reference::copy_rows<float>(product, Result(e, Y));
}

void linear_backward(qkv_element e, qkv_matrix X, qkv_matrix W, qkv_matrix dY, qkv_matrix dX, qkv_matrix dW, float* db,
                     int accumulate, const qkv_epilogue* epilogue) {
  const Result to(e, dX);
  reference::linear_backward<float>(Floats(e, X), Floats(e, W), Floats(e, dY), {to, floats(dW), db, accumulate != 0});
  apply(e, epilogue, to.matrix());
}

void gated_activation(qkv_element e, qkv_activation kind, qkv_matrix x, qkv_dropout drop, qkv_matrix y) {
  reference::gated_activation<float>(activation_of(kind), Floats(e, x), dropout_of(drop), Result(e, y));
}

void gated_activation_backward(qkv_element e, qkv_activation kind, qkv_matrix x, qkv_matrix dy, qkv_dropout drop,
                               qkv_matrix dx) {
  reference::gated_activation_backward<float>(activation_of(kind), Floats(e, x), Floats(e, dy), dropout_of(drop),
                                              Result(e, dx));
}

void adam_update(qkv_element e, const qkv_adam_step* s, int64_t count, float* w, float* gradient, float* m, float* v,
                 float* average, void* copy) {
  const AdamStep step{s->learning_rate,  s->beta1,          s->beta2, s->epsilon,      s->weight_decay,
                      s->decoupled != 0, s->gradient_scale, s->step,  s->average_decay};
  const auto all = [&](float* p) { return std::span(p, p ? to_size(count) : 0); };
  reference::adam_update<float>(step, all(w), all(gradient), all(m), all(v), all(average));
  if (copy) reference::copy_rows<float>(Matrix<float>(w, 1, count), Result(e, {copy, 1, count, count}));
}

void sum_of_squares(const float* x, int64_t count, double* sum) {
  *sum = reference::sum_of_squares<float>({x, to_size(count)});
}

}  // namespace

void add_products(qkv_device& t) {
  t.apply = entry<apply_to_result>;
  t.linear = t.row_linear = entry<linear>;
  t.linear_backward = entry<linear_backward>;
  t.gated_activation = entry<gated_activation>;
  t.gated_activation_backward = entry<gated_activation_backward>;
  t.adam_update = entry<adam_update>;
  t.sum_of_squares = entry<sum_of_squares>;
}

}  // namespace qkv::host_device
