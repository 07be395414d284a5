// qkv::quantize_run: a copy of a run directory with weights in 8 or 4 bits.
#include <filesystem>

#include "core/fail.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "qkv/runs.h"

namespace qkv {

QuantizeReport quantize_run(const std::string& run, const std::string& out, int bits) {
  if (bits != 4 && bits != 8) fail("quantize: bits must be 4 or 8 (is {})", bits);
  const RunDirectory from(run), to(out.empty() ? fmt::format("{}-int{}", from.root(), bits) : out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  const auto loaded = load_one_of<TranslatorRun, LanguageRun, RecommenderRun, EncoderRun, ClassifierRun>(run);
  return std::visit(
      [&](const auto& parts) -> QuantizeReport {
        ParameterList<float>& weights = parts.model->parameters();
        if (is_quantized(weights)) fail("{}: is quantized already", from.model());
        const int64_t bytes_before = weight_bytes(weights);
        quantize(weights, bits);
        if (bits == 8 && count_int8(weights) == 0)
          fail("{}: has no matrix whose number of columns is a multiple of 4", from.model());
        if (bits == 4 && count_int4(weights) == 0)
          fail("{}: has no linear layer of which the outputs are a multiple of 16 and the inputs of 64", from.model());
        create_run(to, parts, [&](const RunDirectory& partial) {
          save_quantized(partial.model(), weights);
          copy_decoding_defaults(from, partial);
        });
        return {to.root(), count_int8(weights), count_int4(weights), bytes_before, weight_bytes(weights)};
      },
      loaded);
}

}  // namespace qkv
