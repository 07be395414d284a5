#include "analysis/table_text.h"

#include <fmt/format.h>

namespace qkv {

std::string layer_name(size_t layer) { return layer == 0 ? "embeddings" : fmt::format("layer {}", layer); }

}  // namespace qkv
