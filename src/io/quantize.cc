// qkv::quantize_run: a run directory in 8 bits of one in float32.
#include "qkv/quantize.h"

#include <filesystem>

#include "core/fail.h"
#include "io/int8_weights.h"
#include "io/run_directory.h"

namespace qkv {

QuantizeReport quantize_run(const std::string& run, const std::string& out) {
  const RunDirectory from(run), to(out.empty() ? from.root() + "-int8" : out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: exists already", to.root());
  const LoadedRun loaded = load_run(run);
  ParameterList<float>& weights = loaded.model->parameters();
  if (count_int8(weights) > 0) fail("{}: is in 8 bits already", from.model());
  const int64_t bytes_before = weight_bytes(weights);
  quantize(weights);
  if (count_int8(weights) == 0) fail("{}: has no matrix whose columns are a multiple of 4", from.model());
  create_run(to, {loaded.model->config(), loaded.tokenizers, load_translation(from)},
             [&](const RunDirectory& partial) { save_int8(partial.model(), weights); });
  return {to.root(), count_int8(weights), bytes_before, weight_bytes(weights)};
}

}  // namespace qkv
