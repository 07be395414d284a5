#include "text/tokenizer_json/hugging_face_tokenizer.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/byte_pairs.h"
#include "text/pieces/word_pieces.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;  // of a text
constexpr size_t kMaxAdded = 1024;                 // bytes of an added token

// All pieces by id, the added ones that the model does not have behind the model's.
std::vector<std::string> all_pieces(const TokenizerSpec& spec, const std::string& where) {
  std::vector<std::string> pieces = spec.pieces;
  if (const auto empty = std::ranges::find(pieces, ""); empty != pieces.end())
    fail("{}: piece {} is empty", where, empty - pieces.begin());
  for (const AddedToken& token : spec.added) {
    if (token.text.empty() || token.text.size() > kMaxAdded)
      fail("{}: the added token {} has {} bytes, expected 1 to {}", where, token.id, token.text.size(), kMaxAdded);
    if (token.id == std::ssize(pieces))
      pieces.push_back(token.text);
    else if (token.id < 0 || token.id > std::ssize(pieces))
      fail("{}: the added token {} has id {}, expected at most the next one, {}", where, excerpt(token.text), token.id,
           pieces.size());
    else if (pieces[to_size(token.id)] != token.text)
      fail("{}: the added token {} has id {}, which is that of {}", where, excerpt(token.text), token.id,
           excerpt(pieces[to_size(token.id)]));
  }
  return pieces;
}

using ModelOfWords = std::variant<BytePairs, WordPieces, Pipeline>;

ModelOfWords model_of_words(const TokenizerSpec& spec, const Vocabulary& vocabulary, const std::string& where) {
  if (const auto* bytes = std::get_if<BytePieces>(&spec.model)) return BytePairs(vocabulary, bytes->merges, where);
  if (const auto* pipeline = std::get_if<PipelineSpec>(&spec.model))
    return Pipeline(*pipeline, vocabulary, static_cast<int32_t>(spec.pieces.size()), where);
  const auto& words = std::get<WordPieceModel>(spec.model);
  return WordPieces(spec.pieces, words.unknown, words.continuation, words.max_characters, where);
}

}  // namespace

struct HuggingFaceTokenizer::Model {
  const TokenizerSpec spec;
  const Vocabulary vocabulary;  // of all pieces
  const ModelOfWords words;
  std::vector<bool> is_added, is_special;  // by id
  AddedTokens raw, normalized;

  Model(TokenizerSpec s, const std::string& where)
      : spec(std::move(s)),
        vocabulary(all_pieces(spec, where), where),
        words(model_of_words(spec, vocabulary, where)),
        is_added(to_size(vocabulary.size())),
        is_special(to_size(vocabulary.size())),
        raw(spec.added, false, [](std::string_view text) { return std::string(text); }),
        normalized(spec.added, true, [&](std::string_view text) { return normalize(text); }) {
    for (const AddedToken& token : spec.added) {
      is_added[to_size(token.id)] = true;
      if (token.special) is_special[to_size(token.id)] = true;
    }
    for (const std::optional<int32_t>& id : {spec.before, spec.after})
      if (id) check_id(*id, where);
  }

  void check_id(int32_t id, const std::string& where) const {
    if (id < 0 || id >= vocabulary.size()) fail("{}: token {}, expected 0 to {}", where, id, vocabulary.size() - 1);
  }

  std::string normalize(std::string_view text) const {
    if (const auto* bytes = std::get_if<BytePieces>(&spec.model))
      return bytes->compose ? compose(text) : std::string(text);
    if (const auto* pipeline = std::get_if<Pipeline>(&words)) return pipeline->normalize(text);
    return clean(std::get<WordPieceModel>(spec.model).cleaning, text);
  }

  // The ids of text without added tokens, normalized. `first`: whether the whole text begins with it.
  void encode(std::string_view text, bool first, std::vector<int32_t>& ids) const {
    if (const auto* pipeline = std::get_if<Pipeline>(&words)) return pipeline->encode(text, first, ids);
    if (const auto* bytes = std::get_if<BytePieces>(&spec.model)) {
      encode_bytes(*bytes, text, ids);
      return;
    }
    std::vector<std::string_view> found;
    split_bert_words(text, found);
    for (const std::string_view word : found) std::get<WordPieces>(words).encode(word, ids);
  }

  void encode_bytes(const BytePieces& how, std::string_view text, std::vector<int32_t>& ids) const {
    std::vector<std::string_view> parts = {text}, cut;
    const auto split = [&](WordPattern pattern) {
      cut.clear();
      for (const std::string_view part : parts) split_words(pattern, part, cut);
      parts.swap(cut);
    };
    for (const WordPattern pattern : how.splits) split(pattern);
    std::deque<std::string> spaced;  // where the parts lie that got a space
    if (how.space_first)
      for (std::string_view& part : parts)
        if (!part.starts_with(' ')) part = spaced.emplace_back(std::string(" ").append(part));
    if (how.gpt2_words) split(WordPattern::gpt2);
    for (const std::string_view word : parts) {
      const auto whole = how.whole_words ? vocabulary.id(spell_bytes(word)) : std::optional<int32_t>();
      if (whole && *whole < std::ssize(spec.pieces))
        ids.push_back(*whole);
      else
        std::get<BytePairs>(words).encode(word, ids);
    }
  }
};

HuggingFaceTokenizer::HuggingFaceTokenizer(TokenizerSpec spec, const std::string& where)
    : model_(std::make_shared<const Model>(std::move(spec), where)) {}

const TokenizerSpec& HuggingFaceTokenizer::spec() const { return model_->spec; }
int32_t HuggingFaceTokenizer::size() const { return model_->vocabulary.size(); }
std::optional<int32_t> HuggingFaceTokenizer::id(std::string_view piece) const { return model_->vocabulary.id(piece); }

const std::string& HuggingFaceTokenizer::piece(int32_t id) const {
  model_->check_id(id, "tokenizer");
  return model_->vocabulary.pieces()[to_size(id)];
}

std::vector<int32_t> HuggingFaceTokenizer::encode_plain(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    fail("tokenizer: a text of {} bytes, expected at most {}", text.size(), kMaxTextBytes);
  std::vector<int32_t> ids;
  model_->encode(model_->normalize(text), true, ids);
  return ids;
}

std::vector<int32_t> HuggingFaceTokenizer::encode(std::string_view text) const { return encode(text, {}); }

std::vector<int32_t> HuggingFaceTokenizer::encode(std::string_view text, const AddedTokens::Accept& accept) const {
  if (text.size() > kMaxTextBytes)
    fail("tokenizer: a text of {} bytes, expected at most {}", text.size(), kMaxTextBytes);
  std::vector<int32_t> ids;
  for (const auto& part : model_->raw.find(text, accept)) {
    if (const auto* id = std::get_if<int32_t>(&part)) {
      ids.push_back(*id);
      continue;
    }
    const auto raw = std::get<std::string_view>(part);
    const std::string normal = model_->normalize(raw);
    const auto offset = static_cast<size_t>(raw.data() - text.data());
    AddedTokens::Accept in_normal;
    if (accept)
      in_normal = [&](const AddedToken& token, size_t begin, size_t end) {
        if (normal != raw) return accept(token, offset, offset + raw.size());
        return accept(token, offset + begin, offset + end);
      };
    for (const auto& inner : model_->normalized.find(normal, in_normal)) {
      if (const auto* id = std::get_if<int32_t>(&inner)) {
        ids.push_back(*id);
        continue;
      }
      const auto between = std::get<std::string_view>(inner);
      model_->encode(between, raw.data() == text.data() && between.data() == normal.data(), ids);
    }
  }
  return ids;
}

std::vector<int32_t> HuggingFaceTokenizer::special_ids() const {
  std::vector<int32_t> ids;
  for (const AddedToken& token : spec().added)
    if (token.special) ids.push_back(token.id);
  return ids;
}

HuggingFaceTokenizer HuggingFaceTokenizer::shortened(int32_t size, const std::string& where) const {
  TokenizerSpec shorter = spec();
  while (size < std::ssize(shorter.pieces)) {
    if (std::ranges::find(shorter.added, shorter.pieces.back(), &AddedToken::text) == shorter.added.end())
      fail("{}: must have at most {} pieces, one for each embedding (has {})", where, size, shorter.pieces.size());
    shorter.pieces.pop_back();
    if (auto* pipeline = std::get_if<PipelineSpec>(&shorter.model))
      if (auto* unigram = std::get_if<UnigramModel>(&pipeline->model)) unigram->scores.pop_back();
  }
  std::erase_if(shorter.added, [&](const AddedToken& token) { return token.id >= size; });
  return HuggingFaceTokenizer(std::move(shorter), where);
}

std::string HuggingFaceTokenizer::decode(std::span<const int32_t> ids, bool first) const {
  if (const auto* pipeline = std::get_if<Pipeline>(&model_->words)) {
    std::string text;
    for (const int32_t id : ids) {
      const std::string& spelling = piece(id);
      if (model_->is_special[to_size(id)]) continue;
      text += pipeline->decode(spelling, std::exchange(first, false));
    }
    return text;
  }
  const auto* words = std::get_if<WordPieceModel>(&spec().model);
  std::string text;
  for (const int32_t id : ids) {
    std::string_view spelling = piece(id);
    const bool added = model_->is_added[to_size(id)];
    if (!words) {
      text += added ? std::string(spelling) : bytes_of_spelling(spelling);
      continue;
    }
    if (!added && spelling.starts_with(words->continuation))
      spelling.remove_prefix(words->continuation.size());
    else if (!first || !text.empty())
      text += ' ';
    text += spelling;
  }
  return text;
}

}  // namespace qkv
