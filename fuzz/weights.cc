// The weights of a model, in 32 and in 8 bits: those that are accepted are finite, and matrices in 8 bits are
// neighbours, which are used as one.
#include "io/weights/weights.h"

#include <cmath>
#include <numeric>

#include "fuzz/reader.h"
#include "fuzz/small.h"

void qkv::fuzz::fuzz_weights(std::string_view bytes) {
  const MemoryFile file(bytes);
  attempt([&] {  // as training does, which changes them
    Transformer<float> trained(small_model());
    std::vector<float> values(trained.parameters().values().size());
    load_weights(file.path(), trained.parameters(), values);
    for (const float weight : values) require(std::isfinite(weight), "weights are finite");
  });
  const auto model = load_model(file.path(), small_model());
  for (const float weight : model->parameters().values()) require(std::isfinite(weight), "weights are finite");
  const int8_t* next = nullptr;
  for (const auto& p : model->parameters().all()) {
    const auto& [values, scale, sums] = p.int8;
    if (next && p.least_bits <= 8) require(values.data == next, "matrices in 8 bits are neighbours");
    if (!values.data) continue;
    next = values.row(values.rows);
    for (int64_t o = 0; o < values.rows; o++) {
      require(std::isfinite(scale[o]), "scales are finite");
      require(sums[o] == std::accumulate(values.row(o), values.row(o + 1), 0), "sums are those of the rows");
    }
  }
}
