#include "model/layers/finite_check.h"

#include <utility>

#include "ops/rows.h"

namespace qkv {

// "decoder layer 3, feed-forward, linear, forward": the side, and what it consists of.
std::string FiniteCheck::place(std::string_view op, const char* pass) const {
  std::string text;
  for (size_t i = 0; i < parts().size(); i++) {
    text += parts()[i].name;
    if (parts()[i].number >= 0) text += " " + std::to_string(parts()[i].number);
    text += i == 0 && parts().size() > 1 ? " " : ", ";
  }
  return text.append(op) + ", " + pass;
}

template <class Real>
void FiniteCheck::check(std::string_view op, Pass pass, Matrix<const Real> m, int64_t first) {
  if (found_ || !m.data) return;
  std::vector<int64_t> rows = rows_not_finite(m);
  if (rows.empty()) return;
  for (int64_t& row : rows) row += first;
  if (side() == TokenSide::none) rows.clear();
  found_ = NotFinite{place(op, pass == Pass::forward ? "forward" : "backward"), side(), std::move(rows)};
}

template <class Real>
void FiniteCheck::check_gradient(std::string_view op, Matrix<const Real> m) {
  if (found_ || !m.data || rows_not_finite(m).empty()) return;
  found_ = NotFinite{place(op, "gradient of the weights")};
}

void FiniteCheck::take(const Probe& part, int64_t first_source, int64_t first_target) {
  const auto& other = dynamic_cast<const FiniteCheck&>(part);
  if (found_ || !other.found_) return;
  found_ = other.found_;
  for (int64_t& row : found_->rows) row += found_->side == TokenSide::source ? first_source : first_target;
}

#define QKV_DEFINE(T)                                                                    \
  void FiniteCheck::output(std::string_view op, Pass pass, Matrix<T> m, int64_t first) { \
    check<T>(op, pass, m, first);                                                        \
  }                                                                                      \
  void FiniteCheck::gradient(std::string_view op, Matrix<const T> m) { check_gradient<T>(op, m); }
QKV_FOR_EACH_ELEMENT(QKV_DEFINE)
#undef QKV_DEFINE

}  // namespace qkv
