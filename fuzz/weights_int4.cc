// The weights of a model with matrices that may have 4 bits: those that are accepted have finite scales, and the
// matrices of one layer, which are used as one, are neighbours.
#include <cmath>

#include "fuzz/reader.h"
#include "fuzz/small.h"
#include "io/weights/weights.h"
#include "ops/reference/int4_linear_reference.h"

void qkv::fuzz::fuzz_weights_int4(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto model = load_model(file.path(), small_int4_model());
  const std::byte* next = nullptr;
  for (const auto& p : model->parameters().all()) {
    const Int4Matrix& W = p.int4;
    if (p.joined) require(W.blocks == next, "matrices in 4 bits of one layer are neighbours");
    next = W.blocks ? W.blocks + W.bytes() : nullptr;
    if (!W.blocks) continue;
    for (int64_t o = 0; o < W.rows; o++)
      for (int64_t i = 0; i < W.cols; i += Int4Matrix::kGroup)
        require(std::isfinite(reference::int4_scale(W, o, i)), "scales are finite");
  }
}
