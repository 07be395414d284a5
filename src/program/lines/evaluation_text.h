// The result of `qkv evaluate --rows` as text.
#pragma once

#include <string>

#include "qkv/text_evaluation.h"

namespace qkv {

// Returns the measures in one line, the table of labels and, of at most 10 labels, the confusion matrix, otherwise the
// 10 most frequent confusions. Ends with a line break.
std::string to_text(const TextEvaluation& evaluation);

}  // namespace qkv
