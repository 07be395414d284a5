#include "model/layers/finite_check.h"

#include <utility>

#include "core/device.h"
#include "ops/rows.h"

namespace qkv {

FiniteCheck::Part::Part(FiniteCheck* check, const char* name, int64_t number) : check_(check) {
  if (check_) check_->parts_.push_back({name, number, check_->side()});
}

FiniteCheck::Part::Part(FiniteCheck* check, const char* name, TokenSide side) : check_(check) {
  if (check_) check_->parts_.push_back({name, -1, side});
}

FiniteCheck::Part::~Part() {
  if (check_) check_->parts_.pop_back();
}

void FiniteCheck::Part::rename(const char* name) {
  if (check_) check_->parts_.back().name = name;
}

// "decoder layer 3, feed-forward, linear, forward": the side, and what it consists of.
std::string FiniteCheck::place(const char* op, const char* pass) const {
  std::string text;
  for (size_t i = 0; i < parts_.size(); i++) {
    text += parts_[i].name;
    if (parts_[i].number >= 0) text += " " + std::to_string(parts_[i].number);
    text += i == 0 && parts_.size() > 1 ? " " : ", ";
  }
  return text + op + ", " + pass;
}

template <class Real>
void FiniteCheck::output(const char* op, Pass pass, Matrix<const Real> m, int64_t first) {
  if (found_ || !m.data) return;
  std::vector<int64_t> rows = rows_not_finite(m);
  if (rows.empty()) return;
  for (int64_t& row : rows) row += first;
  if (side() == TokenSide::none) rows.clear();
  found_ = NotFinite{place(op, pass == Pass::forward ? "forward" : "backward"), side(), std::move(rows)};
}

template <class Real>
void FiniteCheck::gradient(const char* op, Matrix<const Real> m) {
  if (found_ || !m.data || rows_not_finite(m).empty()) return;
  found_ = NotFinite{place(op, "gradient of the weights")};
}

void FiniteCheck::take(const FiniteCheck& other, int64_t first_source, int64_t first_target) {
  if (found_ || !other.found_) return;
  found_ = other.found_;
  for (int64_t& row : found_->rows) row += found_->side == TokenSide::source ? first_source : first_target;
}

#define QKV_INSTANTIATE(T)                                                        \
  template void FiniteCheck::output(const char*, Pass, Matrix<const T>, int64_t); \
  template void FiniteCheck::gradient(const char*, Matrix<const T>);
QKV_FOR_EACH_ELEMENT(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
