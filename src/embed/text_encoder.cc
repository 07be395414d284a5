#include "embed/text_encoder.h"

#include <filesystem>
#include <utility>

#include "core/fail.h"
#include "io/language_run.h"

namespace qkv {
namespace {

TextEncoder of_encoder(const std::string& directory) {
  EncoderRun run = load_encoder(directory);
  const auto ids = [codec = run.codec](const std::string& text, const std::string& where) {
    return codec.encode(text, where);
  };
  return {std::move(run.model), ids, std::move(run.edges), std::move(run.config)};
}

TextEncoder of_translator(const std::string& directory) {
  LoadedRun run = load_run(directory);
  EmbeddingConfig config;
  config.lowercase = run.translation.lowercase;
  const auto ids = [tokenizer = run.tokenizers.source](const std::string& text, const std::string&) {
    return tokenizer.encode(text);
  };
  return {std::move(run.model), ids, {run.translation.source_before, run.translation.source_after}, config};
}

TextEncoder of_language_model(const std::string& directory) {
  LanguageRun run = load_language_model(directory);
  EmbeddingConfig config;
  config.pooling = Pooling::last;
  const auto ids = [codec = run.codec, ends = run.ends](const std::string& text, const std::string& where) {
    const std::vector<int32_t> prompt = codec.encode(text, where);
    return ends.starts_prompts ? prompt : ends.beginning(prompt);
  };
  TextEdges edges;
  if (run.ends.starts_prompts) edges.before.push_back(run.ends.start);
  return {std::move(run.model), ids, std::move(edges), config};
}

TextEncoder load_any(const std::string& directory) {
  const RunDirectory run(directory);
  if (std::filesystem::exists(run.embedding())) return of_encoder(directory);
  if (std::filesystem::exists(run.translation())) return of_translator(directory);
  if (std::filesystem::exists(run.language())) return of_language_model(directory);
  load_config(run);  // names what is no run directory
  fail("{}: holds none of embedding.json, translation.json, language.json, wanted a model that reads text", run.root());
}

}  // namespace

TextEncoder load_text_encoder(const std::string& directory) {
  TextEncoder loaded = load_any(directory);
  const int64_t longest = loaded.model->config().max_length;
  int64_t& max_length = loaded.config.max_length;
  if (max_length < 0 || max_length > longest)
    fail("{}: max_length is {}, wanted 0 to {}, the model's", RunDirectory(directory).embedding(), max_length, longest);
  if (max_length == 0) max_length = longest;
  return loaded;
}

}  // namespace qkv
