#include "text/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <unordered_map>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/system/start_thread.h"
#include "core/to_size.h"
#include "text/pieces/sentencepiece_check.h"
#include "text/pieces/unknown_runs.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer_json/added_tokens.h"

namespace qkv {
namespace {

namespace sp = sentencepiece;

constexpr int64_t kMaxVocab = 500'000;              // SentencePiece starts from a million candidates
constexpr size_t kMaxModelBytes = size_t{1} << 30;  // of a model or a sentence

// Returns the cause of an error in one line. SentencePiece says "Internal: file(line) [condition] text"; the text
// alone, if there is one. It may quote a piece, which may hold anything.
std::string reason(const sp::util::Status& status) {
  std::string message = status.ToString();
  const size_t place = message.rfind("] ");
  if (place != std::string::npos && place + 2 < message.size()) message.erase(0, place + 2);
  std::ranges::replace_if(
      message, [](unsigned char c) { return c < 0x20; }, ' ');
  return message;
}

// Calls SentencePiece. Its tries report a lack of memory by an exception of their own, which has lost the size.
template <class F>
sp::util::Status with_memory(const std::string& where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    fail("{}: memory for the pieces cannot be allocated: {}", where, error.what());
  }
}

std::shared_ptr<const sp::SentencePieceProcessor> load_processor(const std::string& bytes, const std::string& where) {
  if (bytes.size() > kMaxModelBytes) fail("{}: {} bytes, expected at most {}", where, bytes.size(), kMaxModelBytes);
  check_sentencepiece(bytes, where);
  auto processor = std::make_shared<sp::SentencePieceProcessor>();
  const auto status = with_memory(where, [&] { return processor->LoadFromSerializedProto(bytes); });
  if (!status.ok()) fail("{}: not a SentencePiece model: {}", where, reason(status));
  return processor;
}

// Returns why no vocabulary was trained. SentencePiece says "smaller than required_chars. SIZE vs LEAST. Increase …",
// and advises an option of its own program.
std::string vocabulary_problem(const sp::util::Status& status) {
  const std::string why = reason(status);
  const size_t versus = why.find(" vs "), end = why.find(". Increase", versus);
  if (versus == why.npos || end == why.npos) return why;
  return fmt::format("{}; the characters of the text and the special pieces need at least {}", why.substr(0, end),
                     why.substr(versus + 4, end - versus - 4));
}

void check(const sp::util::Status& status, size_t size, const char* of) {
  if (!status.ok()) fail("tokenizer: {} {}: {}", size, of, reason(status));
}

const std::string kUnknownText = " \u2047 ";

// The tokens that a text does not spell. A piece with its own number as name only fills a gap.
AddedTokens control_tokens(const sp::SentencePieceProcessor& processor) {
  std::vector<AddedToken> tokens;
  for (int32_t id = 0; id < processor.GetPieceSize(); id++)
    if (const std::string& piece = processor.IdToPiece(id);
        (processor.IsControl(id) || processor.IsUnknown(id)) && piece != fmt::format("<unused_{}>", id))
      tokens.push_back({.id = id, .text = piece});
  return AddedTokens(tokens, false, [](std::string_view text) { return std::string(text); });
}

// Whether the model puts a space before every text.
bool puts_space_first(const sp::SentencePieceProcessor& processor) {
  std::vector<std::string> pieces;
  return processor.Encode("a", &pieces).ok() && !pieces.empty() && pieces.front().starts_with("\u2581");
}

// The name of a language at the start of a text, ">>de<<"; "" where there is none.
std::string_view language_of(std::string_view text) {
  const size_t end = text.starts_with(">>") ? text.find("<<") : std::string_view::npos;
  return end == std::string_view::npos ? "" : text.substr(0, end + 2);
}

// Between spaces and tabs; other white space may be a part of a token.
std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> pieces;
  for (;;) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return pieces;
    text.remove_prefix(begin);
    pieces.emplace_back(text.substr(0, text.find_first_of(" \t")));
    text.remove_prefix(pieces.back().size());
  }
}

// Does anything of a sentence reach the training? SentencePiece takes its own names and "▁" for spaces, skips a line
// with U+2585 (its mark of a rare character), and ends the program if no line is left.
bool is_usable(std::string sentence, const std::vector<std::string>& control) {
  if (sentence.find("\u2585") != std::string::npos) return false;
  std::vector<std::string> names = {"<unk>", "<s>", "</s>"};
  names.insert(names.end(), control.begin(), control.end());
  for (const std::string& name : names)
    for (size_t at; (at = sentence.find(name)) != std::string::npos;) sentence.replace(at, name.size(), 1, ' ');
  const int64_t length = static_cast<int64_t>(sentence.size());
  for (int64_t i = 0; i < length;) {
    UChar32 c;
    U8_NEXT_OR_FFFD(sentence.data(), i, length, c);
    if (u_isgraph(c) && c != 0x2581 && c != 0xFFFD) return true;
  }
  return false;
}

std::vector<const std::string*> usable_of(const std::vector<std::string>& sentences,
                                          const std::vector<std::string>& control) {
  std::vector<const std::string*> usable;
  for (const std::string& sentence : sentences)
    if (is_usable(sentence, control)) usable.push_back(&sentence);
  return usable;
}

class Sentences : public sp::SentenceIterator {
 public:
  explicit Sentences(std::vector<const std::string*> sentences) : sentences_(std::move(sentences)) {}
  bool done() const override { return next_ == sentences_.size(); }
  void Next() override { next_++; }
  const std::string& value() const override { return *sentences_[next_]; }
  sp::util::Status status() const override { return {}; }

 private:
  std::vector<const std::string*> sentences_;
  size_t next_ = 0;
};

}  // namespace

struct Tokenizer::Model {
  std::shared_ptr<const sp::SentencePieceProcessor> processor;  // null where pieces stand between spaces
  std::string bytes;                                            // of the processor
  std::unique_ptr<const Vocabulary> vocabulary;                 // null where the ids are the processor's
  std::optional<HuggingFaceTokenizer> library;                  // instead of these
  AddedTokens control;  // tokens of a SentencePiece model that text does not spell
  int32_t start = -1, end = -1, unknown = -1;

  void set_processor(const SentencePieceFile& file) {
    processor = load_processor(file.bytes, file.where);
    bytes = file.bytes;
  }

  // Returns those of the processor, made for the first long text.
  const UnknownRuns& unknown_runs() const {
    std::call_once(runs_made, [&] {
      std::vector<std::string> pieces;
      bool has_bytes = false;  // which spell unknown characters
      for (int id = 0; id < processor->GetPieceSize(); id++) {
        has_bytes |= processor->IsByte(id);
        if (!processor->IsControl(id) && !processor->IsUnknown(id)) pieces.push_back(processor->IdToPiece(id));
      }
      if (!has_bytes) runs = UnknownRuns(pieces, charsmap_of(bytes));
    });
    return runs;
  }

  // Result: ids or pieces.
  template <class Result>
  void encode(std::string_view text, Result& result) const {
    const bool is_short = text.size() <= UnknownRuns::kShortText;
    const std::string shorter = is_short ? "" : unknown_runs().without_middles(text);
    check(processor->Encode(shorter.empty() ? text : shorter, &result), text.size(), "bytes of text");
  }

  int32_t size() const {
    if (library) return library->size();
    return vocabulary ? vocabulary->size() : processor->GetPieceSize();
  }

 private:
  mutable std::once_flag runs_made;
  mutable UnknownRuns runs;
};

Tokenizer Tokenizer::train(const std::vector<std::string>& sentences, const TokenizerOptions& options) {
  if (options.vocab_size < 4 || options.vocab_size > kMaxVocab)
    fail("tokenizer: vocab_size {}, expected 4 to {}", options.vocab_size, kMaxVocab);
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1))
    fail("tokenizer: character_coverage {}, expected 0.98 to 1", options.character_coverage);
  std::vector<const std::string*> usable = usable_of(sentences, options.control);
  if (usable.empty()) fail("tokenizer: {} sentences, none of them with text to learn from", sentences.size());
  size_t longest = 10;  // SentencePiece takes no lower limit
  for (const std::string* sentence : usable) longest = std::max(longest, sentence->size());
  if (longest > kMaxModelBytes) fail("tokenizer: a sentence of {} bytes, expected at most {}", longest, kMaxModelBytes);

  // The threads share the sums of the training, so their fixed number is a part of the result.
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.kind == TokenizerKind::unigram ? "unigram" : "bpe"},
      {"vocab_size", fmt::format("{}", options.vocab_size)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"normalization_rule_name", options.normalization == Normalization::none ? "identity" : "nmt_nfkc"},
      {"max_sentence_length", fmt::format("{}", longest)},
      {"input_sentence_size", "0"},
      {"num_threads", "16"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"minloglevel", "3"}};
  if (!options.control.empty()) settings["control_symbols"] = fmt::format("{}", fmt::join(options.control, ","));
  if (options.exact)
    for (const auto& [name, value] : {std::pair{"normalization_rule_name", "identity"},
                                      {"remove_extra_whitespaces", "false"},
                                      {"add_dummy_prefix", "false"},
                                      {"allow_whitespace_only_pieces", "true"},
                                      {"byte_fallback", "true"}})
      settings[name] = value;
  if (!options.reserved.empty()) settings["user_defined_symbols"] = fmt::format("{}", fmt::join(options.reserved, ","));
  Sentences iterator(std::move(usable));
  std::string bytes;
  const auto train = [&] { return sp::SentencePieceTrainer::Train(settings, &iterator, &bytes); };
  const auto status = with_memory("tokenizer", [&] { return starting_threads("tokenizer", train); });
  if (!status.ok()) fail("tokenizer: vocab_size {}: {}", options.vocab_size, vocabulary_problem(status));
  return from_serialized(std::move(bytes), "tokenizer");
}

SentencePieceFile SentencePieceFile::read(const std::string& path) { return {read_file(path, kMaxModelBytes), path}; }

Tokenizer Tokenizer::load(const std::string& path) {
  SentencePieceFile file = SentencePieceFile::read(path);
  return from_serialized(std::move(file.bytes), path);
}

Tokenizer Tokenizer::from_serialized(std::string bytes, const std::string& where) {
  const auto model = std::make_shared<Model>();
  model->set_processor({std::move(bytes), where});
  const sp::SentencePieceProcessor& processor = *model->processor;
  if (processor.eos_id() < 0) fail("{}: the vocabulary has no end token </s>", where);
  model->start = processor.bos_id() >= 0 ? processor.bos_id() : processor.eos_id();
  model->end = processor.eos_id();
  model->unknown = processor.unk_id();
  model->control = control_tokens(processor);
  return Tokenizer(model);
}

Tokenizer Tokenizer::with_pieces(const std::optional<SentencePieceFile>& splitter, std::vector<std::string> pieces,
                                 const std::string& unknown, const std::string& where) {
  const auto model = std::make_shared<Model>();
  model->vocabulary = std::make_unique<Vocabulary>(std::move(pieces), where);
  if (splitter) model->set_processor(*splitter);
  if (unknown.empty()) return Tokenizer(model);
  const auto id = model->vocabulary->id(unknown);
  if (!id) fail("{}: the unknown token {} is not in the vocabulary", where, excerpt(unknown));
  model->unknown = *id;
  return Tokenizer(model);
}

Tokenizer Tokenizer::of_hugging_face(HuggingFaceTokenizer tokenizer) {
  const auto model = std::make_shared<Model>();
  model->library = std::move(tokenizer);
  return Tokenizer(model);
}

Tokenizer Tokenizer::fitted(int64_t wanted, const std::string& where) const {
  Tokenizer copy = *this;
  copy.padding_ = 0;
  if (model_->library && wanted < model_->size()) {
    const HuggingFaceTokenizer shorter = model_->library->shortened(static_cast<int32_t>(wanted), where);
    copy = of_hugging_face(shorter);
    copy.without_text_ = without_text_;
  }
  const int64_t padding = wanted - copy.model_->size();
  if (padding < 0 || padding > kMaxPadding)
    fail("{}: must have {} pieces, one for each embedding, or at most {} fewer (has {})", where, wanted, kMaxPadding,
         copy.model_->size());
  copy.padding_ = static_cast<int32_t>(padding);
  return copy;
}

void Tokenizer::check_id(int32_t id) const {
  if (id < 0 || id >= size()) fail("tokenizer: id {}, expected 0 to {}", id, size() - 1);
}

Tokenizer Tokenizer::without_text(std::vector<int32_t> ids) const {
  Tokenizer copy = *this;
  std::ranges::sort(ids);
  copy.without_text_ = std::move(ids);
  return copy;
}

Tokenizer Tokenizer::with_spelled(std::vector<AddedToken> tokens, const std::string& where) const {
  if (!model_->vocabulary) fail("{}: the tokenizer has no list of pieces, of which tokens could be spelled", where);
  for (AddedToken& token : tokens) {
    const auto piece = id(token.text);
    if (!piece) fail("{}: spelled holds {}, which is not in the vocabulary", where, excerpt(token.text));
    token.id = *piece;
  }
  Tokenizer copy = *this;
  copy.spelled_ = std::make_shared<AddedTokens>(tokens, false, [](std::string_view text) { return std::string(text); });
  return copy;
}

const HuggingFaceTokenizer* Tokenizer::hugging_face() const { return model_->library ? &*model_->library : nullptr; }

std::vector<std::string> Tokenizer::pieces_of(const SentencePieceFile& file) {
  const auto processor = load_processor(file.bytes, file.where);
  std::vector<std::string> pieces;
  for (int id = 0; id < processor->GetPieceSize(); id++) pieces.push_back(processor->IdToPiece(id));
  return pieces;
}

const std::string& Tokenizer::serialized() const { return model_->bytes; }

const std::vector<std::string>* Tokenizer::own_pieces() const {
  return model_->vocabulary ? &model_->vocabulary->pieces() : nullptr;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  return spelled_ ? encode_with(*spelled_, text) : encode_plain(text);
}

std::vector<int32_t> Tokenizer::encode_plain(std::string_view text) const {
  if (model_->library) return model_->library->encode(text);
  std::vector<int32_t> ids;
  if (!model_->vocabulary) {
    model_->encode(text, ids);
    return ids;
  }
  const Vocabulary& vocabulary = *model_->vocabulary;
  if (const auto language = vocabulary.id(language_of(text))) {
    ids.push_back(*language);
    text.remove_prefix(language_of(text).size());
  }
  std::vector<std::string> pieces;
  if (model_->processor)
    model_->encode(text, pieces);
  else
    pieces = split_at_spaces(text);
  for (const std::string& piece : pieces) {
    ids.push_back(vocabulary.id(piece).value_or(model_->unknown));
    if (ids.back() < 0) fail("tokenizer: {} is not in the vocabulary, which has no unknown token", excerpt(piece));
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text) const {
  if (model_->library || !model_->processor || model_->vocabulary) return encode(text);
  return encode_with(model_->control, text);
}

std::vector<int32_t> Tokenizer::encode_with(const AddedTokens& tokens, std::string_view text) const {
  std::vector<int32_t> ids;
  for (const auto& part : tokens.find(text)) {
    if (const auto* id = std::get_if<int32_t>(&part)) {
      ids.push_back(*id);
      continue;
    }
    const std::vector<int32_t> between = encode_plain(std::get<std::string_view>(part));
    ids.insert(ids.end(), between.begin(), between.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) check_id(id);
  const bool is_text = model_->library || model_->processor;
  std::vector<int32_t> shown;
  if (padding_ > 0 || (is_text && !without_text_.empty())) {
    std::ranges::copy_if(ids, std::back_inserter(shown), [&](int32_t id) {
      return id < model_->size() && !(is_text && std::ranges::binary_search(without_text_, id));
    });
    ids = shown;
  }
  if (model_->library) return model_->library->decode(ids, true);
  if (!model_->processor) return fmt::format("{}", fmt::join(pieces(ids), " "));
  std::string text;
  check(model_->vocabulary ? model_->processor->Decode(pieces(ids), &text)
                           : model_->processor->Decode(std::vector<int>(ids.begin(), ids.end()), &text),
        ids.size(), "ids");
  return text;
}

std::string Tokenizer::decode_part(std::span<const int32_t> ids, bool first) const {
  constexpr std::string_view kSpace = "\u2581";
  const sp::SentencePieceProcessor& processor = *model_->processor;
  std::string text;
  for (const int32_t id : ids) {
    const std::string& spelt = piece(id);
    if (processor.IsControl(id)) continue;
    if (processor.IsByte(id)) {  // <0x0A>
      text += static_cast<char>(std::stoi(spelt.substr(3, 2), nullptr, 16));
      continue;
    }
    const std::string& written = processor.IsUnknown(id) ? kUnknownText : spelt;
    for (size_t begin = 0; begin < written.size();) {
      const size_t end = std::min(written.find(kSpace, begin), written.size());
      text.append(written, begin, end - begin);
      if (end < written.size()) text += ' ';
      begin = end + kSpace.size();
    }
  }
  if (first && puts_space_first(processor) && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

const std::string& Tokenizer::piece(int32_t id) const {
  check_id(id);
  static const std::string none;
  if (id >= model_->size()) return none;
  if (model_->library) return model_->library->piece(id);
  return model_->vocabulary ? model_->vocabulary->pieces()[to_size(id)] : model_->processor->IdToPiece(id);
}

std::vector<std::string> Tokenizer::pieces(std::span<const int32_t> ids) const {
  std::vector<std::string> result;
  for (const int32_t id : ids) result.push_back(piece(id));
  return result;
}

std::optional<int32_t> Tokenizer::id(std::string_view piece) const {
  if (model_->library) return model_->library->id(piece);
  if (model_->vocabulary) return model_->vocabulary->id(piece);
  const int32_t id = model_->processor->PieceToId(piece);  // of an unknown piece, the id of <unk>
  if (model_->processor->IdToPiece(id) != piece) return {};
  return id;
}

int32_t Tokenizer::size() const { return model_->size() + padding_; }
int32_t Tokenizer::start() const { return model_->start; }
int32_t Tokenizer::end() const { return model_->end; }
int32_t Tokenizer::unknown() const { return model_->unknown; }

}  // namespace qkv
