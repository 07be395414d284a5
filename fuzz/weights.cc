// The weights of a model, in 32 and in 8 bits: those that are accepted are finite.
#include "io/weights.h"

#include <cmath>

#include "fuzz/reader.h"
#include "fuzz/small.h"

void qkv::fuzz::read(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto model = load_model(file.path(), small_model());
  for (const float weight : model->parameters().values()) require(std::isfinite(weight), "weights are finite");
}
