// qkv::quantize_run: a copy of a run directory with 8-bit weights.
#include "qkv/quantize.h"

#include <filesystem>

#include "core/fail.h"
#include "io/int8_weights.h"
#include "io/run.h"

namespace qkv {

QuantizeReport quantize_run(const std::string& run, const std::string& out) {
  const RunDirectory from(run), to(out.empty() ? from.root() + "-int8" : out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  const auto loaded = load_one_of<TranslatorRun, LanguageRun, RecommenderRun, EncoderRun, ClassifierRun>(run);
  return std::visit(
      [&](const auto& parts) -> QuantizeReport {
        ParameterList<float>& weights = parts.model->parameters();
        if (count_int8(weights) > 0) fail("{}: already has 8-bit weights", from.model());
        const int64_t bytes_before = weight_bytes(weights);
        quantize(weights);
        if (count_int8(weights) == 0)
          fail("{}: has no matrix whose number of columns is a multiple of 4", from.model());
        create_run(to, parts, [&](const RunDirectory& partial) { save_int8(partial.model(), weights); });
        return {to.root(), count_int8(weights), bytes_before, weight_bytes(weights)};
      },
      loaded);
}

}  // namespace qkv
