// The pooling of an embedder or a classifier that is trained from another run.
#pragma once

#include <array>
#include <string_view>

#include "qkv/text_head.h"

namespace [[gnu::visibility("default")]] qkv {

// A Pooling, or that of the initial run.
enum class PoolingChoice { same, mean, first, last, max, mean_sqrt_len, weighted_mean };
constexpr std::array<std::string_view, 7> names_of(PoolingChoice) {
  return {"same", "mean", "first", "last", "max", "mean_sqrt_len", "weighted_mean"};
}

constexpr Pooling pooling_of(PoolingChoice choice, Pooling of_run) {
  return choice == PoolingChoice::same ? of_run : static_cast<Pooling>(static_cast<int>(choice) - 1);
}
constexpr PoolingChoice choice_of(Pooling pooling) { return static_cast<PoolingChoice>(static_cast<int>(pooling) + 1); }

}  // namespace qkv
