#include "decode/encoder/text_encoder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/fail.h"
#include "decode/encoder/spelled_piece.h"
#include "io/runs/run.h"

namespace qkv {
namespace {

std::vector<std::string> pieces_of(const TextCodec& codec, const TextEdges& edges, const std::vector<int32_t>& ids) {
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(spelled_piece(codec, id));
  const auto marked = [](const std::string& piece) { return piece.starts_with(kWordStart); };
  if (std::ranges::none_of(pieces, marked)) return pieces;
  for (size_t i = 0; i < pieces.size(); i++) {
    // The first token of the text begins a word, and those around it are words of their own.
    const bool begins = i <= edges.before.size() || pieces.size() - i <= edges.after.size();
    if (begins && !marked(pieces[i]) && !pieces[i].starts_with('<')) pieces[i] = std::string(kWordStart) + pieces[i];
  }
  return pieces;
}

TextEncoder text_encoder_of(EncoderRun run) {
  const auto ids = [codec = run.codec](const std::string& text, const std::string& where) {
    return codec.encode(text, where);
  };
  const auto pieces = [codec = run.codec, edges = run.edges](const std::vector<int32_t>& tokens) {
    return pieces_of(codec, edges, tokens);
  };
  return {std::move(run.model), ids, pieces, std::move(run.edges), std::move(run.embedding), std::move(run.dense)};
}

TextEncoder text_encoder_of(TranslatorRun run) {
  EmbeddingConfig config;
  config.lowercase = run.tokens.lowercase;
  const auto ids = [tokenizer = run.tokenizers.source](const std::string& text, const std::string&) {
    return tokenizer.encode(text);
  };
  return {std::move(run.model), ids, {}, {run.tokens.source_before, run.tokens.source_after}, config};
}

TextEncoder text_encoder_of(LanguageRun run) {
  EmbeddingConfig config;
  config.pooling = Pooling::last;
  const auto ids = [codec = run.codec, ends = run.ends](const std::string& text, const std::string& where) {
    const std::vector<int32_t> prompt = codec.encode(text, where);
    return ends.starts_prompts ? prompt : ends.beginning(prompt);
  };
  TextEdges edges;
  if (run.ends.starts_prompts) edges.before.push_back(run.ends.start);
  return {std::move(run.model), ids, {}, std::move(edges), config};
}

}  // namespace

TextEncoder load_text_encoder(const std::string& directory) {
  TextEncoder loaded = std::visit([](auto&& run) { return text_encoder_of(std::move(run)); },
                                  load_one_of<EncoderRun, ClassifierRun, TranslatorRun, LanguageRun>(directory));
  const int64_t longest = loaded.model->config().max_length;
  int64_t& max_length = loaded.config.max_length;
  if (max_length < 0 || max_length > longest)
    fail("{}: max_length must be between 0 and {}, the model's (is {})", RunDirectory(directory).embedding(), longest,
         max_length);
  if (max_length == 0) max_length = longest;
  return loaded;
}

}  // namespace qkv
