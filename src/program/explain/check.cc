#include "program/explain/check.h"

#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"
#include "program/explain/attention_steps.h"

namespace qkv {
namespace {

class ShapeCheck {
 public:
  explicit ShapeCheck(std::string where) : where_(std::move(where)) {}

  void require(const NumberTable& table, const std::string& name, int64_t rows, int64_t columns) const {
    if (table.rows != rows || table.columns != columns)
      fail("{}: {} is {} × {}, expected {} × {}", where_, name, table.rows, table.columns, rows, columns);
    values(table, name);
  }
  void size(const NumberTable& table, const std::string& name) const {
    const auto fits = [](int64_t count) { return count >= 1 && count <= kLargestTable; };
    if (!fits(table.rows) || !fits(table.columns))
      fail("{}: {} is {} × {}, expected 1 to {} rows and columns", where_, name, table.rows, table.columns,
           kLargestTable);
    values(table, name);
  }
  void labels(const std::vector<std::string>& labels, const std::string& name, int64_t count) const {
    if (std::ssize(labels) != count) fail("{}: {} has {} labels, expected {}", where_, name, labels.size(), count);
  }
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void values(const NumberTable& table, const std::string& name) const {
    if (std::ssize(table.values) != table.rows * table.columns)
      fail("{}: {} has {} values, expected {} × {}", where_, name, table.values.size(), table.rows, table.columns);
  }

  std::string where_;
};

void check_heads(const ExplainInput& in, const ShapeCheck& check) {
  if (in.heads.empty() || std::ssize(in.heads) > kMostHeads)
    check.wrong("{} heads, expected 1 to {}", in.heads.size(), kMostHeads);
  check.size(in.heads.front().W_Q, "W_Q");
  check.size(in.heads.front().W_V, "W_V");
  for (const ExplainedHead& head : in.heads) {
    check.require(head.W_Q, "W_Q", in.X.columns, in.key_width());
    check.require(head.W_K, "W_K", in.X.columns, in.key_width());
    check.require(head.W_V, "W_V", in.X.columns, in.value_width());
  }
}

void check_layer(const ExplainInput& in, int64_t output, const ShapeCheck& check) {
  const ExplainedLayer& layer = in.layer;
  const int64_t d = in.X.columns, F = layer.W_1.columns;
  if (output != d)
    check.wrong("layer: the attention's output has width {}, expected that of X, {}: give W_O", output, d);
  if (!(layer.epsilon > 0)) check.wrong("layer: epsilon is {}, expected a number above 0", layer.epsilon);
  check.size(layer.W_1, "W_1");
  check.require(layer.W_1, "W_1", d, F);
  check.require(layer.b_1, "b_1", 1, F);
  check.require(layer.W_2, "W_2", F, d);
  check.require(layer.b_2, "b_2", 1, d);
  for (const auto& [table, name] : {std::pair{&layer.gamma_1, "gamma_1"},
                                    {&layer.beta_1, "beta_1"},
                                    {&layer.gamma_2, "gamma_2"},
                                    {&layer.beta_2, "beta_2"}})
    check.require(*table, name, 1, d);
}

}  // namespace

void check_explain_input(const ExplainInput& in, const std::string& where) {
  const ShapeCheck check(where);
  check.size(in.X, "X");
  check.labels(in.tokens, "tokens", in.X.rows);
  if (!in.memory.empty()) {
    check.size(in.memory, "memory");
    check.require(in.memory, "memory", in.memory.rows, in.X.columns);
    check.labels(in.memory_tokens, "memory_tokens", in.memory.rows);
    if (in.causal) check.wrong("causal is true, expected false with a memory");
  }
  check_heads(in, check);
  if (!std::isfinite(in.scale)) check.wrong("scale is not finite");
  if (!in.mask.empty()) check.require(in.mask, "mask", in.X.rows, keys_from(in).rows);
  const int64_t heads = std::ssize(in.heads) * in.value_width();
  if (!in.W_O.empty()) check.require(in.W_O, "W_O", heads, in.X.columns);
  const int64_t output = in.W_O.empty() ? heads : in.X.columns;
  if (!in.dO.empty()) check.require(in.dO, "dO", in.X.rows, output);
  if (!in.layer.empty()) check_layer(in, output, check);
}

}  // namespace qkv
