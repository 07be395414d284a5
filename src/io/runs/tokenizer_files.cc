#include "io/runs/tokenizer_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/system/threads.h"
#include "io/atomic_file.h"
#include "text/abbreviations.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

constexpr size_t kMaxVocabularyBytes = size_t{1} << 30;
constexpr size_t kMaxTokenizerBytes = size_t{1} << 27;

bool same(const std::vector<std::string>* a, const std::vector<std::string>* b) { return a && b ? *a == *b : a == b; }

// Writes one file if both sides have the same content, else one per side; empty content has no file.
void write_sides(const std::string& both, const std::string& source, const std::string& target, bool are_same,
                 const std::string& source_content, const std::string& target_content) {
  if (are_same) {
    if (!source_content.empty()) write_file_atomic(both, source_content);
    return;
  }
  if (!source_content.empty()) write_file_atomic(source, source_content);
  if (!target_content.empty()) write_file_atomic(target, target_content);
}

// The file of one side, else that of both; "" if neither exists.
std::string file_of(const std::string& side, const std::string& both) {
  for (const std::string& path : {side, both})
    if (std::filesystem::exists(path)) return path;
  return "";
}

Tokenizer read_side(const RunDirectory& run, const std::string& model, const std::string& vocabulary,
                    const std::string& unknown) {
  if (vocabulary.empty() && model.empty()) fail("{}: has neither a tokenizer nor a vocabulary", run.root());
  if (vocabulary.empty()) return Tokenizer::load(model);
  std::optional<SentencePieceFile> splitter;
  if (!model.empty()) splitter = SentencePieceFile::read(model);
  std::vector<std::string> pieces = pieces_from_json(read_file(vocabulary, kMaxVocabularyBytes), vocabulary);
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, vocabulary);
}

HuggingFaceTokenizer read_hugging_face(const std::string& path) {
  return HuggingFaceTokenizer(parse_tokenizer_json(read_file(path, kMaxTokenizerBytes), path), path);
}

TextCodec read_tokenizer_json(const RunDirectory& run, TextUnit unit) {
  const std::string path = run.tokenizer_json();
  const TextCodec codec = TextCodec::of_tokenizer(read_hugging_face(path));
  if (codec.unit() != unit)
    fail("{}: unit must be {}, as in language.json (is {})", path, name_of(unit), name_of(codec.unit()));
  return codec;
}

}  // namespace

void write_tokenizers(const RunDirectory& run, const TokenizerPair& tokenizers) {
  const auto& [source, target] = tokenizers;
  if (source.hugging_face()) return write_file_atomic(run.tokenizer_json(), to_json(source.hugging_face()->spec()));
  write_sides(run.tokenizer(), run.source_tokenizer(), run.target_tokenizer(),
              source.serialized() == target.serialized(), source.serialized(), target.serialized());
  const auto content = [](const std::vector<std::string>* pieces) { return pieces ? pieces_to_json(*pieces) : ""; };
  write_sides(run.vocabulary(), run.source_vocabulary(), run.target_vocabulary(),
              same(source.own_pieces(), target.own_pieces()), content(source.own_pieces()),
              content(target.own_pieces()));
}

TokenizerPair read_tokenizers(const RunDirectory& run, const std::string& unknown) {
  if (std::filesystem::exists(run.tokenizer_json())) {
    const Tokenizer both = Tokenizer::of_hugging_face(read_hugging_face(run.tokenizer_json()));
    return {both, both};
  }
  const std::string source_model = file_of(run.source_tokenizer(), run.tokenizer()),
                    target_model = file_of(run.target_tokenizer(), run.tokenizer()),
                    source_list = file_of(run.source_vocabulary(), run.vocabulary()),
                    target_list = file_of(run.target_vocabulary(), run.vocabulary());
  const auto read_source = [&] { return read_side(run, source_model, source_list, unknown); };
  if (source_model == target_model && source_list == target_list) {
    const Tokenizer both = read_source();
    return {both, both};
  }
  std::optional<Tokenizer> source, target;
  parallel_for_throwing(2, [&](int64_t side) {
    side == 0 ? source = read_source() : target = read_side(run, target_model, target_list, unknown);
  });
  return {*source, *target};
}

Tokenizer with_spelled(const Tokenizer& tokenizer, const std::vector<std::string>& spelled,
                       const std::vector<std::string>& strips_left, const std::vector<std::string>& strips_right,
                       const std::string& where) {
  for (const auto& [field, tokens] : {std::pair{"strips_left", &strips_left}, {"strips_right", &strips_right}})
    for (const std::string& token : *tokens)
      if (std::ranges::find(spelled, token) == spelled.end())
        fail("{}: {} holds {}, which is not in spelled", where, field, excerpt(token));
  if (spelled.empty()) return tokenizer;
  std::vector<AddedToken> tokens;
  for (const std::string& text : spelled)
    tokens.push_back({.text = text,
                      .strips_left = std::ranges::find(strips_left, text) != strips_left.end(),
                      .strips_right = std::ranges::find(strips_right, text) != strips_right.end()});
  return tokenizer.with_spelled(std::move(tokens), where);
}

std::vector<std::string> read_abbreviations(const RunDirectory& run) {
  if (!std::filesystem::exists(run.abbreviations())) return {};
  return read_abbreviations(run.abbreviations());
}

void write_abbreviations(const RunDirectory& run, const std::vector<std::string>& abbreviations) {
  if (abbreviations.empty()) return;
  write_file_atomic(run.abbreviations(), fmt::format("{}\n", fmt::join(abbreviations, "\n")));
}

TextCodec read_codec(const RunDirectory& run, TextUnit unit) {
  if (unit == TextUnit::bytes) return {};
  if (unit == TextUnit::pieces) return TextCodec::of_pieces(Tokenizer::load(run.tokenizer()));
  if (has_tokenizer_json(unit)) return read_tokenizer_json(run, unit);
  const std::string path = run.vocabulary();
  return TextCodec::of_characters(pieces_from_json(read_file(path, kMaxTokenizerBytes), path), path);
}

void write_codec(const RunDirectory& run, const TextCodec& codec) {
  if (codec.unit() == TextUnit::characters) write_file_atomic(run.vocabulary(), pieces_to_json(codec.characters()));
  if (codec.unit() == TextUnit::pieces) write_file_atomic(run.tokenizer(), codec.tokenizer().serialized());
  if (has_tokenizer_json(codec.unit()))
    write_file_atomic(run.tokenizer_json(), to_json(codec.hugging_face_tokenizer().spec()));
}

int32_t id_of(const std::string& piece, const TextCodec& codec, const std::string& where) {
  const auto id = codec.id(piece);
  if (!id) fail("{}: token {} is not in the vocabulary", where, excerpt(piece));
  return *id;
}

}  // namespace qkv
