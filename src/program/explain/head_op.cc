#include "program/explain/head_op.h"

#include "core/fail.h"

namespace qkv {
namespace {

Heads<const double> one_head(const NumberTable& table) { return {table.values.data(), table.columns, 0}; }

}  // namespace

std::string which_head(const ExplainedAttention& in, size_t h) {
  return in.heads.size() == 1 ? "" : fmt::format(", head {} of {}", h + 1, in.heads.size());
}

std::string lower_case(std::string title) {
  if (title.front() >= 'A' && title.front() <= 'Z') title.front() = static_cast<char>(title.front() - 'A' + 'a');
  return title;
}

AttentionInput<double> attention_op_input(const ExplainedAttention& in, const HeadSteps& head) {
  const NumberTable &Q = head.Q->values, &K = head.K->values, &V = head.V->values;
  AttentionInput<double> input;
  input.sequences.count = 1;
  input.sequences.T = Q.rows;
  input.sequences.S = K.rows;
  input.key_width = Q.columns;
  input.value_width = V.columns;
  input.scale = in.factor();
  input.causal = in.causal ? Causal::top_left : Causal::none;
  if (!in.mask.empty()) input.mask = {in.mask.values.data(), 0, 0, in.mask.columns, 1};
  input.q = one_head(Q), input.k = one_head(K), input.v = one_head(V);
  return input;
}

}  // namespace qkv
