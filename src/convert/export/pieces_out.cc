#include "convert/export/pieces_out.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/charsmap.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/pieces/sentencepiece_writer.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr std::string_view kSpace = "▁";

enum class SplitterKind : int32_t { unigram = 1, pairs = 2 };

json replace(const json& pattern, const char* by) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", by}};
}

json sequence(const char* member, const json& steps) {
  if (steps.empty()) return {};
  return {{"type", "Sequence"}, {member, steps}};
}

std::string text_of(const json& part) { return part.is_null() ? "" : part.dump(); }

// Whether words can be cut before each space: no piece continues behind one, and a space alone is a piece.
bool cuts_at_spaces(const SentencePieceContents& model) {
  bool has_space = false;
  for (const auto& piece : model.pieces) {
    if (piece.type != kNormalPiece && piece.type != kUserDefinedPiece) continue;
    if (piece.text.find(kSpace, 1) != std::string_view::npos) return false;
    has_space = has_space || piece.text == kSpace;
  }
  return has_space;
}

// Sets how a text becomes the words of a model.
void set_words(const SentencePieceContents& model, json steps, PipelineSpec& pipeline) {
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  const json space = {{"String", kSpace}};
  if (!model.strips_spaces) {  // as Llama's tokenizers
    if (model.space_first) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    steps.push_back(replace({{"String", " "}}, "▁"));
    pipeline.normalizer = text_of(sequence("normalizers", steps));
    json decoder = {replace(space, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (model.space_first) decoder.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    pipeline.decoder = text_of(sequence("decoders", decoder));
    return;
  }
  steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
  steps.push_back(replace({{"Regex", " {2,}"}}, " "));
  pipeline.normalizer = text_of(sequence("normalizers", steps));
  const json words = {{"type", "Metaspace"},
                      {"replacement", kSpace},
                      {"prepend_scheme", model.space_first ? "always" : "never"},
                      {"split", cuts_at_spaces(model)}};
  pipeline.pre_tokenizer = words.dump();
  pipeline.decoder =
      model.byte_fallback ? text_of(sequence("decoders", {{{"type", "ByteFallback"}}, words})) : words.dump();
}

// The pairs that make the pieces of a BPE model, in the order of the scores of these.
PairsModel pairs_of_scores(const SentencePieceContents& model, const std::string& unknown) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t id = 0; id < model.pieces.size(); id++)
    if (model.pieces[id].type == kNormalPiece) places.emplace(model.pieces[id].text, id);
  struct Merge {
    size_t piece, left, right;
  };
  std::vector<Merge> merges;
  for (const auto& [text, id] : places) {
    for (size_t cut = 1; cut < text.size(); cut++) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
      const auto left = places.find(text.substr(0, cut)), right = places.find(text.substr(cut));
      if (left != places.end() && right != places.end()) merges.push_back({id, left->second, right->second});
    }
  }
  std::ranges::sort(merges, {},
                    [&](const Merge& m) { return std::tuple(-model.pieces[m.piece].score, m.piece, m.left, m.right); });
  PairsModel pairs;
  for (const Merge& m : merges) add_pair(model.pieces[m.left].text, model.pieces[m.right].text, pairs.merges);
  pairs.options = {.unknown = unknown, .fuse_unknown = true, .byte_fallback = model.byte_fallback};
  return pairs;
}

// The score of a piece that no text has: below those of all other pieces that can make up its characters.
double score_of_no_text(const SentencePieceContents& model) {
  constexpr double kCharacters = 64;
  double least = -1;
  for (const auto& piece : model.pieces) least = std::min(least, static_cast<double>(piece.score));
  return kCharacters * least;
}

// Returns the score by which the library chooses a piece as SentencePiece does, which takes user-defined pieces before
// all others, and never takes those of the other kinds from a text.
double score_of(const SentencePieceContents::Piece& piece, double highest, double of_no_text) {
  if (piece.type == kUserDefinedPiece) return static_cast<double>(piece.text.size()) * highest - 0.1;
  return piece.type == kNormalPiece ? piece.score : of_no_text;
}

// The scores of a list of pieces; those that the model lacks are special.
UnigramModel scores_of(const SentencePieceContents& model, const std::vector<std::string>& pieces, int32_t unknown) {
  std::unordered_map<std::string_view, double> scores;
  const double of_no_text = score_of_no_text(model);
  double highest = of_no_text;
  for (const auto& piece : model.pieces)
    if (piece.type == kNormalPiece) highest = std::max<double>(highest, piece.score);
  for (const auto& piece : model.pieces) scores.emplace(piece.text, score_of(piece, highest, of_no_text));
  UnigramModel unigram{.unknown = unknown, .byte_fallback = model.byte_fallback};
  for (const std::string& piece : pieces) {
    const auto place = scores.find(piece);
    unigram.scores.push_back(place == scores.end() ? of_no_text : place->second);
  }
  return unigram;
}

// Throws Error for settings and pieces that have no counterpart.
void check_splitter(const SentencePieceContents& model, const std::vector<std::string>& pieces,
                    const std::string& where) {
  const auto kind = static_cast<SplitterKind>(model.kind);
  if (kind != SplitterKind::unigram && kind != SplitterKind::pairs)
    fail("{}: model_type must be unigram or bpe to export an encoder (is {})", where,
         model.kind == 3 ? "word" : "char");
  if (model.space_behind) fail("{}: treat_whitespace_as_suffix must be false to export an encoder (is true)", where);
  if (!model.marks_spaces) fail("{}: escape_whitespaces must be true to export an encoder (is false)", where);
  const std::set<std::string_view> listed(pieces.begin(), pieces.end());
  for (const auto& piece : model.pieces) {
    if (piece.type == kUserDefinedPiece && kind == SplitterKind::pairs)
      fail("{}: a bpe model must have no user-defined piece to export an encoder (has {})", where,
           excerpt(std::string(piece.text)));
    if (piece.type == kNormalPiece && !listed.contains(piece.text))
      fail("{}: the vocabulary must have all pieces of the model to export an encoder (lacks {})", where,
           excerpt(std::string(piece.text)));
  }
}

// The tokens that a text may spell: those of a list, or the control tokens of a SentencePiece model.
std::set<std::string> spelled_of(const EmbeddingConfig& config, const Tokenizer& tokenizer,
                                 const EncoderSpecials& specials) {
  std::set<std::string> all(config.spelled.begin(), config.spelled.end());
  for (const auto* token : {&specials.start, &specials.end, &specials.unknown, &specials.padding, &specials.mask})
    if (token->id >= 0) all.insert(token->text);
  if (tokenizer.own_pieces()) return all;
  for (const auto& piece : sentencepiece_contents(tokenizer.serialized()).pieces)
    if (piece.type == kControlPiece || piece.type == kUnknownPiece) all.insert(std::string(piece.text));
  return all;
}

void add_tokens(const EmbeddingConfig& config, const Tokenizer& tokenizer, const EncoderSpecials& specials,
                TokenizerSpec& spec) {
  const auto holds = [](const std::vector<std::string>& list, const std::string& token) {
    return std::ranges::find(list, token) != list.end();
  };
  for (const std::string& text : spelled_of(config, tokenizer, specials))
    spec.added.push_back({.id = *tokenizer.id(text),
                          .text = text,
                          .strips_left = holds(config.strips_left, text),
                          .strips_right = holds(config.strips_right, text)});
  std::ranges::sort(spec.added, {}, &AddedToken::id);
}

}  // namespace

json text_changes(const EmbeddingConfig& config) {
  json steps = json::array();
  if (config.plain_quotes)
    for (const char* quotes : {"``", "''"}) steps.push_back(replace({{"String", quotes}}, "\""));
  if (config.strip_accents) {
    steps.push_back({{"type", "NFKD"}});
    steps.push_back({{"type", "StripAccents"}});
  }
  if (config.lowercase) steps.push_back({{"type", "Lowercase"}});
  return steps;
}

TokenizerSpec spec_of_pieces(const EncoderRun& run, const EncoderSpecials& specials, const RunDirectory& directory) {
  const Tokenizer& tokenizer = run.codec.tokenizer();
  TokenizerSpec spec;
  for (int32_t id = 0; id < tokenizer.size(); id++) spec.pieces.push_back(tokenizer.piece(id));
  while (!spec.pieces.empty() && spec.pieces.back().empty()) spec.pieces.pop_back();  // ids without a piece
  PipelineSpec pipeline;
  const json steps = text_changes(run.embedding);
  if (specials.unknown.id < 0)
    fail("{}: unknown must be a token to export an encoder (is empty)", directory.embedding());
  if (tokenizer.serialized().empty()) {  // words
    pipeline.normalizer = text_of(sequence("normalizers", steps));
    pipeline.pre_tokenizer =
        json({{"type", "Split"}, {"pattern", {{"Regex", "[ \t]+"}}}, {"behavior", "Removed"}, {"invert", false}})
            .dump();
    pipeline.model = WholeWordsModel{specials.unknown.text};
  } else {
    const SentencePieceContents model = sentencepiece_contents(tokenizer.serialized());
    check_splitter(model, spec.pieces, directory.tokenizer());
    set_words(model, steps, pipeline);
    if (static_cast<SplitterKind>(model.kind) == SplitterKind::unigram)
      pipeline.model = scores_of(model, spec.pieces, specials.unknown.id);
    else
      pipeline.model = pairs_of_scores(model, specials.unknown.text);
  }
  add_tokens(run.embedding, tokenizer, specials, spec);
  spec.model = std::move(pipeline);
  return spec;
}

}  // namespace qkv
