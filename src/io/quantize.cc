// qkv::quantize_run: a run directory in 8 bits of one in float32.
#include "qkv/quantize.h"

#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/encoder_run.h"
#include "io/int8_weights.h"
#include "io/language_run.h"
#include "io/recommender_run.h"
#include "io/run_directory.h"

namespace qkv {
namespace {

// Writes the run `to` with the weights of `model` in 8 bits; create(write) makes it with what write(run) writes
// besides.
template <class Create>
QuantizeReport quantize_model(const RunDirectory& from, const RunDirectory& to, Transformer<float>& model,
                              Create&& create) {
  ParameterList<float>& weights = model.parameters();
  if (count_int8(weights) > 0) fail("{}: is in 8 bits already", from.model());
  const int64_t bytes_before = weight_bytes(weights);
  quantize(weights);
  if (count_int8(weights) == 0) fail("{}: has no matrix whose columns are a multiple of 4", from.model());
  create([&](const RunDirectory& partial) { save_int8(partial.model(), weights); });
  return {to.root(), count_int8(weights), bytes_before, weight_bytes(weights)};
}

}  // namespace

QuantizeReport quantize_run(const std::string& run, const std::string& out) {
  const RunDirectory from(run), to(out.empty() ? from.root() + "-int8" : out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: exists already", to.root());
  const ModelConfig config = load_config(from);
  if (std::filesystem::exists(from.language())) {
    const LanguageRun loaded = load_language_model(run);
    return quantize_model(from, to, *loaded.model, [&](const auto& save) {
      make_run(to, [&](const RunDirectory& partial) {
        write_file_atomic(partial.config(), to_json(config));
        write_file_atomic(partial.language(), json_from_fields(load_language(from)));
        save_codec(partial, loaded.codec);
        save(partial);
      });
    });
  }
  if (config.decoder_layers == 0) {
    const EncoderRun loaded = load_encoder(run);
    return quantize_model(from, to, *loaded.model, [&](const auto& save) {
      make_run(to, [&](const RunDirectory& partial) {
        write_file_atomic(partial.config(), to_json(config));
        save_encoder_text(partial, loaded.config, loaded.codec);
        save(partial);
      });
    });
  }
  if (config.encoder_layers == 0) {
    const RecommenderRun loaded = load_recommender(run);
    return quantize_model(from, to, *loaded.model, [&](const auto& save) {
      make_run(to, [&](const RunDirectory& partial) {
        write_file_atomic(partial.config(), to_json(config));
        write_file_atomic(partial.recommendation(), json_from_fields(loaded.recommendation));
        save_interactions(partial, loaded.log.data, loaded.log.sha256);
        save(partial);
      });
    });
  }
  const LoadedRun loaded = load_run(run);
  return quantize_model(from, to, *loaded.model, [&](const auto& save) {
    create_run(to, {config, loaded.tokenizers, load_translation(from)}, save);
  });
}

}  // namespace qkv
