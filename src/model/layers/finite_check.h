// Finds the first output of a pass over a model that is not finite.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/layers/probe.h"

namespace qkv {

// An output that is not finite.
struct NotFinite {
  std::string place;                 // such as "decoder layer 3, feed-forward, linear, forward"
  TokenSide side = TokenSide::none;  // of the rows
  std::vector<int64_t> rows = {};    // that are not finite: tokens of the batch; empty without a side
};

// Reads the outputs of one pass over a batch, in the order in which they are computed.
class FiniteCheck final : public Probe {
 public:
#define QKV_DECLARE(T)                                                              \
  void output(std::string_view op, Pass pass, Matrix<T> m, int64_t first) override; \
  void gradient(std::string_view op, Matrix<const T> m) override;
  QKV_FOR_EACH_ELEMENT(QKV_DECLARE)
#undef QKV_DECLARE

  std::unique_ptr<Probe> of_part() const override { return std::make_unique<FiniteCheck>(); }
  void take(const Probe& part, int64_t first_source, int64_t first_target) override;

  const std::optional<NotFinite>& found() const { return found_; }

 private:
  template <class Real>
  void check(std::string_view op, Pass pass, Matrix<const Real> m, int64_t first);
  template <class Real>
  void check_gradient(std::string_view op, Matrix<const Real> m);
  std::string place(std::string_view op, const char* pass) const;

  std::optional<NotFinite> found_;
};

}  // namespace qkv
