#include "io/runs/run_directory.h"

#include <fmt/format.h>

#include <utility>

namespace qkv {

RunDirectory::RunDirectory(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string RunDirectory::weights(int64_t step) const {
  return fmt::format("{}/weights-{:08}.safetensors", checkpoints(), step);
}

std::string RunDirectory::negatives(int64_t each, int64_t seed) const {
  return fmt::format("{}/negatives-{}-{}.safetensors", root_, each, seed);
}

}  // namespace qkv
