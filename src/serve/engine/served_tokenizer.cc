#include "serve/engine/served_tokenizer.h"

#include <set>
#include <utility>

#include "core/fail.h"
#include "io/runs/run.h"

namespace qkv {

// Not in the unnamed namespace, because a member of ServedTokenizer::State has it.
struct TokenizerParts {
  TextCodec codec;
  EmbeddingConfig config = {};  // how an encoder prepares text; its defaults change nothing
  TextEdges edges = {};
  std::vector<int32_t> ends = {};  // further special tokens
};

namespace {

TokenizerParts parts_of(EncoderRun run) {
  run.embedding.prefix = "";
  return {std::move(run.codec), std::move(run.embedding), std::move(run.edges)};
}

TokenizerParts parts_of(LanguageRun run) {
  TextEdges edges;
  if (run.ends.starts_prompts) edges.before.push_back(run.ends.start);
  std::vector<int32_t> ends = run.ends.ends;
  ends.push_back(run.ends.start);
  return {std::move(run.codec), {}, std::move(edges), std::move(ends)};
}

TokenizerParts parts_of(TranslatorRun run) {
  EmbeddingConfig config;
  config.lowercase = run.tokens.lowercase;
  return {TextCodec::of_pieces(run.tokenizers.source), config, {run.tokens.source_before, run.tokens.source_after}};
}

TokenizerParts read_tokenizer(const std::string& directory, RunKind kind) {
  const RunDirectory run(directory);
  const ModelConfig model = read_config(run).model;
  switch (kind) {
    case RunKind::translator:
      return parts_of(TranslatorRun::read(run, model));
    case RunKind::language_model:
      return parts_of(LanguageRun::read(run, model));
    case RunKind::encoder:
    case RunKind::classifier:
      return parts_of(EncoderRun::read(run, model));
    case RunKind::recommender:
      break;
  }
  fail("{}: a recommender has no tokenizer", directory);
}

std::set<int32_t> special_of(const TokenizerParts& parts) {
  std::set<int32_t> special(parts.ends.begin(), parts.ends.end());
  special.insert(parts.edges.before.begin(), parts.edges.before.end());
  special.insert(parts.edges.after.begin(), parts.edges.after.end());
  const HuggingFaceTokenizer* tokenizer = nullptr;
  if (has_tokenizer_json(parts.codec.unit())) tokenizer = &parts.codec.hugging_face_tokenizer();
  if (parts.codec.unit() == TextUnit::pieces) tokenizer = parts.codec.tokenizer().hugging_face();
  if (tokenizer)
    for (const AddedToken& token : tokenizer->spec().added)
      if (token.special) special.insert(token.id);
  return special;
}

}  // namespace

struct ServedTokenizer::State {
  explicit State(TokenizerParts all) : parts(std::move(all)), special(special_of(parts)) {}

  const TokenizerParts parts;
  const std::set<int32_t> special;
};

ServedTokenizer::ServedTokenizer(const std::string& run_directory, RunKind kind)
    : state_(std::make_unique<const State>(
          read_consistently(run_directory, [&] { return read_tokenizer(run_directory, kind); }))) {}
ServedTokenizer::~ServedTokenizer() = default;

std::vector<int32_t> ServedTokenizer::encode(const std::string& text, bool with_edges, bool plain) const {
  const TokenizerParts& parts = state_->parts;
  const std::string prepared = prepare_text(parts.config, text);
  std::vector<int32_t> ids = plain ? parts.codec.encode_plain(prepared, "text") : parts.codec.encode(prepared, "text");
  if (!with_edges) return ids;
  ids.insert(ids.begin(), parts.edges.before.begin(), parts.edges.before.end());
  ids.insert(ids.end(), parts.edges.after.begin(), parts.edges.after.end());
  return ids;
}

std::string ServedTokenizer::decode(const std::vector<int32_t>& ids, bool skips_special) const {
  std::vector<int32_t> shown;
  for (const int32_t id : ids)
    if (!skips_special || !is_special(id)) shown.push_back(id);
  return state_->parts.codec.decode(shown);
}

std::string ServedTokenizer::bytes_of(int32_t id, bool first) const {
  return state_->parts.codec.decode({&id, 1}, first);
}

std::string ServedTokenizer::spelling(int32_t id, bool first) const {
  const TextUnit unit = state_->parts.codec.unit();
  const bool has_pieces = unit != TextUnit::bytes && unit != TextUnit::characters;
  return is_special(id) && has_pieces ? state_->parts.codec.piece(id) : bytes_of(id, first);
}

bool ServedTokenizer::is_special(int32_t id) const { return state_->special.contains(id); }
int32_t ServedTokenizer::size() const { return state_->parts.codec.size(); }

}  // namespace qkv
