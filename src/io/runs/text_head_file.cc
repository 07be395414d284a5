#include "io/runs/text_head_file.h"

#include "io/weights/weights.h"

namespace qkv {

void write_text_head(const RunDirectory& run, const Transformer<float>& model) {
  const TextHead<float>* head = model.text_head();
  if (!head) return;
  const ParameterList<float>& list = model.parameters();
  const int64_t begin = model.trunk_parameters();
  const int64_t end = std::ssize(list.all()) - (head->temperature() ? 1 : 0);
  if (begin == end) return;
  const bool has_labels = head->config().kind == TextHeadConfig::Kind::labels;
  save_weights(has_labels ? run.classifier() : run.dense(), list, list.values(), begin, end);
}

}  // namespace qkv
