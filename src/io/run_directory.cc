#include "io/run_directory.h"

#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/weights.h"
#include "qkv/train.h"

namespace qkv {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

}  // namespace

RunDirectory::RunDirectory(std::string root) : root_(std::move(root)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::string RunDirectory::weights(int64_t step) const {
  return fmt::format("{}/weights-{:08}.safetensors", checkpoints(), step);
}

Recipe load_recipe(const RunDirectory& run) {
  std::error_code error;
  if (!std::filesystem::is_directory(run.root(), error)) fail("{}: is not a run directory", run.root());
  Recipe recipe;
  recipe.model = model_config_from_json(read_file(run.config(), kMaxConfigBytes), run.config());
  fields_from_json(recipe.training, read_file(run.training(), kMaxConfigBytes), run.training(), Missing::refused);
  return recipe;
}

TokenizerPair load_tokenizers(const RunDirectory& run) {
  if (std::filesystem::exists(run.tokenizer())) {
    const Tokenizer both = Tokenizer::load(run.tokenizer());
    return {both, both};
  }
  return {Tokenizer::load(run.source_tokenizer()), Tokenizer::load(run.target_tokenizer())};
}

void create_run(const RunDirectory& run, const Recipe& recipe, const TokenizerPair& tokenizers) {
  const RunDirectory partial(run.root() + ".partial");
  std::error_code error;
  std::filesystem::remove_all(partial.root(), error);
  make_directory(partial.checkpoints());
  write_file_atomic(partial.config(), to_json(recipe.model));
  write_file_atomic(partial.training(), json_from_fields(recipe.training));
  if (recipe.training.joint_vocabulary) {
    write_file_atomic(partial.tokenizer(), tokenizers.source.serialized());
  } else {
    write_file_atomic(partial.source_tokenizer(), tokenizers.source.serialized());
    write_file_atomic(partial.target_tokenizer(), tokenizers.target.serialized());
  }
  std::filesystem::rename(partial.root(), run.root(), error);
  if (error) fail("{}: cannot be made: {}", run.root(), error.message());
}

LoadedRun load_run(const std::string& directory) {
  const RunDirectory run(directory);
  const Recipe recipe = load_recipe(run);
  LoadedRun loaded{load_tokenizers(run), nullptr, recipe.training.lowercase};
  const ModelConfig& model = recipe.model;
  for (const auto& [side, size, vocab] : {std::tuple{"source", loaded.tokenizers.source.size(), model.source_vocab},
                                          {"target", loaded.tokenizers.target.size(), model.target_vocab}})
    if (size != vocab) fail("{}: the {} tokeniser has {} pieces, config.json says {}", directory, side, size, vocab);
  loaded.model = load_model(run.model(), model);
  return loaded;
}

}  // namespace qkv
