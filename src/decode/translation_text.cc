#include "decode/translation_text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "decode/search/search.h"
#include "decode/terms/inline_terms.h"
#include "decode/terms/parts_to_keep.h"
#include "decode/terms/stand_ins.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/translation_config.h"
#include "text/pieces/byte_pairs.h"
#include "text/sentence_characters.h"
#include "text/split_long.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Returns the place of the k-th hypothesis of a part, or of sample k.
size_t hypothesis_of(const LinePart& part, size_t k, bool is_sample) {
  const auto sample = std::ranges::find(part.found, static_cast<int64_t>(k), &Decoded::number);
  if (is_sample && sample != part.found.end()) return to_size(sample - part.found.begin());
  return std::min(k, part.found.size() - 1);
}

// Appends a hypothesis of the next part of a line, which has `space` before it. sources: number of source tokens of the
// parts before it.
void append(Hypothesis& all, const Hypothesis& next, const std::string& space, size_t sources) {
  const int32_t targets_before = static_cast<int32_t>(all.tokens.size());
  append_sentence(all.text, space, next.text);
  all.log_probability += next.log_probability;
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(all.tokens, next.tokens), add(all.token_scores, next.token_scores), add(all.words, next.words);
  add(all.attention, next.attention), add(all.missing_terms, next.missing_terms);
  for (const Alignment& a : next.alignment)
    all.alignment.push_back({a.source + static_cast<int32_t>(sources), a.target + targets_before});
}

// The score of several hypotheses together: Σ log q of all, divided by a power of all their tokens.
class JoinedScore {
 public:
  explicit JoinedScore(double length_penalty) : length_penalty_(length_penalty) {}

  void add(double score, int64_t tokens) {
    sum_ += score * power(tokens);
    tokens_ += tokens;
  }
  double score() const { return sum_ / power(tokens_); }

 private:
  double power(int64_t tokens) const { return std::pow(static_cast<double>(tokens), length_penalty_); }

  const double length_penalty_;
  double sum_ = 0;
  int64_t tokens_ = 0;
};

// Returns the score of a hypothesis whose tokens are some of those of another one. forced: see tokens_forced.
double score_without_tokens(const Decoded& whole, const Decoded& rest, double length_penalty, int64_t forced) {
  const auto power = [&](const Decoded& d) {
    return std::pow(static_cast<double>(std::max<int64_t>(1, std::ssize(d.token_log_probabilities) + forced)),
                    length_penalty);
  };
  return (whole.score * power(whole) - whole.log_probability + rest.log_probability) / power(rest);
}

// Returns the beginning of a message about a line.
std::string named(const Line& line) {
  if (!line.source.name.empty()) return line.source.name + ": ";
  return line.number < 0 ? "" : fmt::format("line {}: ", line.number + 1);
}

void check_text(const std::string& text) {
  const size_t bad = find_invalid_utf8(text);
  if (bad != std::string::npos) fail("byte {} is not valid UTF-8{}", bad + 1, mark_hint(text));
}

// Takes the parts within a range of the text from the front of those that are left, as bytes of the range.
std::vector<ProtectedPart> take_within(std::span<const ProtectedPart>& left, size_t begin, size_t end) {
  std::vector<ProtectedPart> inside;
  for (; !left.empty() && left.front().begin < end; left = left.subspan(1))
    if (left.front().begin >= begin) inside.push_back({left.front().begin - begin, left.front().end - begin});
  return inside;
}

// Joins sentences that a part reaches across. Parts are in order and do not overlap.
void join_across(TextSentences& split, std::string_view text, std::span<const ProtectedPart> parts) {
  std::vector<SpacedSentence> joined;
  const auto offset = [&](std::string_view view) { return to_size(view.data() - text.data()); };
  for (const SpacedSentence& next : split.sentences) {
    const size_t begin = offset(next.text),
                 space = joined.empty() ? begin : offset(joined.back().text) + joined.back().text.size();
    while (!parts.empty() && parts.front().end <= space) parts = parts.subspan(1);
    if (joined.empty() || parts.empty() || parts.front().begin >= begin)
      joined.push_back(next);
    else
      joined.back().text =
          text.substr(offset(joined.back().text), begin + next.text.size() - offset(joined.back().text));
  }
  split.sentences = std::move(joined);
}

// Takes the parts that stood before a byte of the text from the front of those that are left. begin: the first byte of
// the piece that gets them.
std::vector<KeptPart> take_kept(std::span<KeptPart>& left, size_t begin, size_t end) {
  std::vector<KeptPart> taken;
  for (; !left.empty() && left.front().at < end; left = left.subspan(1)) {
    taken.push_back(std::move(left.front()));
    taken.back().at -= begin;
  }
  return taken;
}

// Returns for each piece whether it continues the word before it, if the vocabulary marks where words begin.
std::vector<bool> pieces_that_continue_words(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  const auto any_begins_with = [&](std::string_view mark) {
    return std::ranges::any_of(pieces, [&](const std::string& piece) { return piece.starts_with(mark); });
  };
  const bool has_bytes = any_begins_with("Ġ"), has_marks = has_bytes || any_begins_with("▁"),
             has_continuations = !has_marks && any_begins_with("##");
  std::vector<bool> continuing;
  for (const std::string& piece : pieces) {
    const std::string text = has_bytes ? bytes_of_spelling(piece) : piece;
    const int32_t first = sentence::character_at(text, 0).code;
    continuing.push_back(has_continuations
                             ? piece.starts_with("##") && piece.size() > 2
                             : has_marks && sentence::is_alphanumeric(first) && sentence::has_spaced_words(first));
  }
  return continuing;
}

// The text of a source with its prefix, and the places in it of what was taken out.
ReducedText text_of(const LinePart& part) {
  ReducedText source{part.edges.prefix + part.text, part.kept};
  for (KeptPart& kept : source.kept) kept.at += part.edges.prefix.size();
  return source;
}

// The tokens of a source of `size` tokens without those around it. The last one of a prefix may hold the beginning of
// the text.
PieceRange source_range(const LinePart& part, size_t size) {
  const size_t end = size - part.edges.after.size();
  const size_t others = part.source.size() - size;  // translations of terms
  const int64_t tokens = part.source_tokens() + part.inline_tokens - static_cast<int64_t>(others);
  return {end - to_size(std::max<int64_t>(1, tokens)), end};
}

}  // namespace

TranslationText::TranslationText(const TranslatorRun& run, int64_t max_length)
    : tokenizers_(run.tokenizers),
      tokens_(run.tokens),
      splitter_(run.abbreviations),
      max_length_(max_length),
      lengths_(run.lengths),
      continues_word_(pieces_that_continue_words(run.tokenizers.target)) {
  for (int32_t id = 0; id < tokenizers_.target.size(); id++) target_id_.emplace(tokenizers_.target.piece(id), id);
}

SentenceEdges TranslationText::edges_between(const std::string& from, const std::string& to,
                                             const std::string& prefix) const {
  if (tokens_.target_language == TargetLanguage::none) refuse_tagged_language(tokenizers_.source, to);
  SentenceEdges edges = edges_of(tokens_, from, to);
  if (!prefix.empty()) {
    edges.prefix = prepare(prefix);
    edges.prefix_tokens = std::ssize(tokenizers_.source.encode(edges.prefix));
  }
  return edges;
}

void TranslationText::check_source_prefix(const std::string& prefix) const {
  qkv::check_source_prefix(prefix, "source_prefix");
  if (const size_t bad = find_invalid_utf8(prefix); bad != std::string::npos)
    fail("source_prefix: byte {} is not valid UTF-8", bad + 1);
  if (const int64_t tokens = std::ssize(tokenizers_.source.encode(prefix)); tokens > max_length_ / 2)
    fail("source_prefix must have at most {} tokens, half of the model's maximum (has {})", max_length_ / 2, tokens);
  refuse_reserved(prefix, "source_prefix");
}

bool TranslationText::has_reserved(std::string_view text) const {
  return std::ranges::any_of(tokens_.reserved, [&](const std::string& c) { return text.find(c) != text.npos; });
}

void TranslationText::refuse_reserved(std::string_view text, const char* option) const {
  for (const std::string& character : tokens_.reserved)
    if (text.find(character) != text.npos)
      fail("{} must not have the character U+{:04X}, which the model reserves for protected parts and terms", option,
           sentence::character_at(character, 0).code);
}

std::string TranslationText::prepare(const std::string& text) const {
  check_text(text);
  return tokens_.lowercase ? lowercase(text) : text;
}

std::vector<int32_t> TranslationText::source_ids(std::string_view text, const SentenceEdges& edges) const {
  const Tokenizer& source = tokenizers_.source;
  const bool has_prefix = !edges.prefix.empty();
  std::vector<int32_t> ids = has_prefix ? source.encode(edges.prefix + std::string(text)) : source.encode(text);
  // Behind a prefix, only a text without letters and digits, or one that adds no token, can be nothing by itself.
  const bool may_be_empty = std::ssize(ids) <= edges.prefix_tokens || !sentence::has_letter_or_digit(text);
  if (ids.empty() || (has_prefix && may_be_empty && source.encode(text).empty())) return {};
  ids.insert(ids.begin(), edges.before.begin(), edges.before.end());
  ids.insert(ids.end(), edges.after.begin(), edges.after.end());
  return ids;
}

std::vector<int32_t> TranslationText::target_ids(const std::vector<std::string>& pieces) const {
  std::vector<int32_t> ids;
  for (const std::string& piece : pieces) {
    const auto id = target_id_.find(piece);
    if (id == target_id_.end()) fail("token {} is not in the target vocabulary", excerpt(piece));
    ids.push_back(id->second);
  }
  return ids;
}

SearchOptions TranslationText::search_options(const TranslateOptions& o) const {
  SearchOptions s{o};
  if (o.sampling) s.beam = 1;
  s.min_length = std::max(o.min_length, tokens_.min_length);
  s.attention = {o.attention_layer - 1, o.attention_head - 1};  // layer 0, the last, is −1
  s.start = tokens_.start;
  s.end = tokens_.end;
  s.never = tokens_.never;
  if (o.on_token)  // which protects nothing, and takes nothing back
    for (const StandIn& stand_in : tokens_.stand_ins) s.never.push_back(stand_in.target);
  return s;
}

TermRules TranslationText::term_rules(const TranslateOptions& options) const {
  TermRules rules;
  const Tokenizer& source = tokenizers_.source;
  const bool reads_tokens = source.own_pieces() && source.serialized().empty() && !source.hugging_face();
  const bool finds_kinds = options.protected_parts == ProtectedParts::automatic && !reads_tokens;
  if (finds_kinds || !options.protect.empty())
    rules.protected_parts = std::make_shared<ProtectedPartFinder>(finds_kinds, options.protect);
  if (options.on_token) rules.protected_parts = nullptr;  // the expression is checked all the same
  if (!options.glossary.empty()) rules.glossary = glossary_of(options.glossary);
  return rules;
}

// Returns the glossary of a text. The last few stay in memory, so that texts of one request share theirs.
std::shared_ptr<const Glossary> TranslationText::glossary_of(const std::string& text) const {
  constexpr size_t kMostKept = 8;
  const auto find = [&] { return std::ranges::find(glossaries_, text, &KeptGlossary::text); };
  {
    const std::lock_guard lock(glossary_mutex_);
    if (const auto known = find(); known != glossaries_.end()) {
      std::rotate(glossaries_.begin(), known, known + 1);
      return glossaries_.front().glossary;
    }
  }
  const bool in_lower_case = tokens_.lowercase && find_invalid_utf8(text) == text.npos;
  const auto glossary = std::make_shared<Glossary>(Glossary::parse(in_lower_case ? lowercase(text) : text, "glossary"));
  const std::lock_guard lock(glossary_mutex_);
  if (find() == glossaries_.end()) glossaries_.push_front({text, glossary});
  if (glossaries_.size() > kMostKept) glossaries_.pop_back();
  return glossary;
}

void TranslationText::read(Line& line, const TranslateOptions& options, const TermRules& rules) const {
  try {
    split(line, options, rules);
    if (!line.parts.empty() && !line.source.prefix.empty()) set_prefix(line, options);
  } catch (const Error& error) {
    line.parts.clear();
    fail("{}{}", named(line), error.what());
  }
}

void TranslationText::split(Line& line, const TranslateOptions& options, const TermRules& rules) const {
  const std::string &from = line.source.source_language, &to = line.source.target_language, &text = line.source.text;
  const SentenceEdges edges = edges_between(from.empty() ? options.source_language : from,
                                            to.empty() ? options.target_language : to, options.source_prefix);
  check_text(text);
  std::vector<ProtectedPart> parts;
  if (rules.protected_parts && line.source.prefix.empty()) parts = rules.protected_parts->find(text);
  if (line.source.prefix.empty() && !options.on_token) {
    protect_again(text, line.source.keep, parts);
    protect_reserved(text, tokens_.reserved, parts);
  }
  if (options.sentences == Sentences::line || options.alternatives || !line.source.prefix.empty())
    return add_sentence(line, {text, parts, edges, options, rules, true});
  TextSentences split = split_text_sentences(text, splitter_);
  if (!parts.empty()) join_across(split, text, parts);
  std::span<const ProtectedPart> left = parts;
  for (const SpacedSentence& sentence : split.sentences) {
    if (options.on_progress) options.on_progress(0);  // which may stop the call within a long text
    line.space_after += sentence.space;
    const size_t begin = to_size(sentence.text.data() - text.data());
    const size_t end = begin + sentence.text.size();
    add_sentence(line, {sentence.text, take_within(left, begin, end), edges, options, rules});
  }
  line.space_after += split.space_after;
}

// Adds a sentence, in several parts if it is too long. One without letters and digits outside of protected parts stays
// as it is.
void TranslationText::add_sentence(Line& line, const SentenceToTranslate& sentence) const {
  ReducedText rest = reduced(sentence);
  line.sentences.push_back({std::string(sentence.text), ""});
  if (!rest.kept.empty() && !sentence::has_letter_or_digit(rest.text)) {
    line.space_after += sentence.text;
    line.sentences.back().text = sentence.text;
    return;
  }
  LinePart whole{line.number, std::move(rest.text), sentence.edges, {}, {}, {}, {}};
  whole.kept = std::move(rest.kept);
  whole.glossary = sentence.rules.glossary;
  whole.sentence = line.sentences.size() - 1;
  const int64_t longest = longest_source(sentence);
  std::vector<LinePart> pieces = cut(whole, longest);
  if (pieces.size() > 1)
    line.notes.push_back(fmt::format("{}{}longer than the {}, split into {} parts", named(line),
                                     sentence.text == line.source.text ? "" : "a sentence is ",
                                     longest < max_length_
                                         ? fmt::format("{} tokens that the model was trained for", lengths_->longest)
                                         : fmt::format("model's {} tokens", max_length_),
                                     pieces.size()));
  for (LinePart& piece : pieces) {
    if (piece.source.empty()) {
      for (const KeptPart& kept : piece.kept) line.space_after += kept.text;
      continue;
    }
    if (!line.parts.empty()) line.parts.back().is_last = false;
    (line.parts.empty() ? line.space_before : piece.space) = std::exchange(line.space_after, "");
    line.parts.push_back(std::move(piece));
  }
}

// Replaces the protected parts of a sentence by characters that stand for them if the model was trained with these and
// there are enough; otherwise takes them out.
ReducedText TranslationText::reduced(const SentenceToTranslate& sentence) const {
  const std::vector<ProtectedPart>& parts = sentence.protected_parts;
  if (parts.size() <= tokens_.stand_ins.size())
    return stand_in(sentence.text, parts, tokens_.stand_ins, tokens_.lowercase);
  return take_out(sentence.text, parts, tokens_.lowercase);
}

// Returns the largest number of tokens, with those around it, that a sentence may have in one part. Lines that stay
// whole may have more than the model was trained for.
int64_t TranslationText::longest_source(const SentenceToTranslate& sentence) const {
  if (!lengths_ || sentence.stays_whole) return max_length_;
  const SentenceEdges& edges = sentence.edges;
  const int64_t around = std::ssize(edges.before) + std::ssize(edges.after) + edges.prefix_tokens;
  return std::min(max_length_, lengths_->longest + around);
}

// Cuts a part at the ends of sentences and clauses, so that each piece has at most this many tokens. A character that
// has more is a piece by itself.
std::vector<LinePart> TranslationText::cut(const LinePart& whole, int64_t most_tokens) const {
  std::string_view last;  // text whose tokens are known: mostly the only piece, or the last one
  std::vector<int32_t> last_ids;
  const auto fits = [&](std::string_view text) {
    last = text, last_ids = source_ids(text, whole.edges);
    const int64_t tokens = std::ssize(last_ids);
    return tokens <= most_tokens || (tokens <= max_length_ && count_characters(text) == 1);
  };
  const std::vector<std::string> texts = split_long(whole.text, fits);
  std::vector<KeptPart> kept = whole.kept;
  std::span<KeptPart> left = kept;
  std::vector<LinePart> pieces;
  size_t begin = 0;
  for (const std::string& text : texts) {
    const bool is_last = pieces.size() + 1 == texts.size();
    std::vector<int32_t> ids = is_last && text == last ? std::move(last_ids) : source_ids(text, whole.edges);
    LinePart& piece =
        pieces.emplace_back(LinePart{whole.line, text, whole.edges, std::move(ids), {}, {}, {}, whole.sentence});
    piece.kept = take_kept(left, begin, is_last ? std::string::npos : begin + text.size());
    piece.is_last = whole.is_last && is_last;
    piece.glossary = whole.glossary;
    if (piece.glossary && !piece.source.empty()) {
      if (tokens_.term_marks) add_inline_terms(piece);
      require_terms(piece);
    }
    begin += text.size();
  }
  return pieces;
}

// Adds the translations of the part's terms to its source, if there is room.
void TranslationText::add_inline_terms(LinePart& part) const {
  std::vector<int32_t> source =
      source_ids(with_inline_terms(part.text, *part.glossary, *tokens_.term_marks, tokens_.reserved), part.edges);
  if (std::ssize(source) > max_length_) return;
  part.inline_tokens = static_cast<int64_t>(OwnTokens(source, *tokens_.term_marks).others());
  part.source = std::move(source);
}

std::vector<int32_t> TranslationText::own_source(const LinePart& part) const {
  return part.inline_tokens == 0 ? part.source : OwnTokens(part.source, *tokens_.term_marks).of(part.source);
}

// Sets the terms of the glossary that the part has. Those that the model's vocabulary cannot spell are not required,
// and spellings have at most 16 tokens for each token of the source, which bounds time and memory.
void TranslationText::require_terms(LinePart& part) const {
  const Glossary& glossary = *part.glossary;
  size_t room = 16 * (part.source.size() + 1);
  std::vector<TermSpellings> terms;
  for (const GlossaryMatch& match : glossary.find(part.text)) {
    const std::string source = part.text.substr(match.begin, match.end - match.begin);
    TermSpellings spellings;
    if (terms.size() < RequiredTerms::kMost) spellings = spellings_of(source, glossary.entries()[match.entry], room);
    if (spellings.empty()) {
      part.not_required.push_back(source);
      continue;
    }
    terms.push_back(std::move(spellings));
    part.term_names.push_back(source);
  }
  if (terms.empty()) return;
  part.terms = std::make_shared<RequiredTerms>(std::move(terms),
                                               [this](int32_t token) { return continues_word_[to_size(token)]; });
}

// Returns the tokens of the first targets that have room and that the vocabulary can spell. Between characters of
// Chinese and Japanese a piece has no mark of a word's beginning. Takes the tokens from the room.
TermSpellings TranslationText::spellings_of(std::string_view source, const GlossaryEntry& entry, size_t& room) const {
  const auto cannot_be_found = [&](int32_t id) {
    return id == tokens_.unknown || std::ranges::find(tokens_.never, id) != tokens_.never.end();
  };
  TermSpellings spellings;
  const auto add = [&](std::vector<int32_t> ids) {
    if (ids.empty() || ids.size() > room || std::ranges::any_of(ids, cannot_be_found) ||
        std::ranges::find(spellings, ids) != spellings.end())
      return;
    room -= ids.size();
    spellings.push_back(std::move(ids));
  };
  for (const std::string& target : target_spellings(source, entry)) {
    if (has_reserved(target)) continue;
    std::vector<int32_t> ids = target_ids(target);
    if (ids.size() > room) break;
    add(ids);
    if (ids.empty() || !sentence::is_unspaced(sentence::character_at(target, 0).code)) continue;
    const std::string_view first = without_word_start(tokenizers_.target.piece(ids.front()));
    if (const auto id = target_id_.find(std::string(first)); id != target_id_.end())
      ids.front() = id->second;
    else if (first.empty())
      ids.erase(ids.begin());
    add(std::move(ids));
  }
  return spellings;
}

void TranslationText::set_prefix(Line& line, const TranslateOptions& options) const {
  refuse_reserved(line.source.prefix, "prefix");
  LinePart& first = line.parts.front();
  first.prefix = target_ids(prepare(line.source.prefix));
  const SearchOptions search = search_options(options);
  const int64_t longest = max_tokens(search, std::ssize(first.source), max_length_ - tokens_forced(first.edges.start));
  if (std::ssize(first.prefix) >= longest)
    fail("prefix must have fewer than {} tokens, the maximum length of a translation (has {})", longest,
         first.prefix.size());
  if (std::ranges::find(first.prefix, search.end) != first.prefix.end()) fail("prefix must not contain the end token");
}

bool TranslationText::is_too_short(const PartLengths& lengths) const {
  return lengths_ && lengths.have_ended && lengths_->is_too_short(lengths.source, lengths.target);
}

void TranslationText::find_clauses(LinePart& part, const TranslateOptions& options) const {
  if (options.sentences == Sentences::line || options.alternatives || options.sampling || !part.prefix.empty() ||
      part.found.empty())
    return;
  if (PartLengths whole; whole.add(part, part.found.front()), !is_too_short(whole)) return;
  const int64_t tokens = part.source_tokens(), around = std::ssize(part.source) - part.inline_tokens - tokens;
  std::vector<LinePart> clauses = cut(part, around + (tokens + 1) / 2);
  const bool are_texts = std::ranges::none_of(clauses, [](const LinePart& clause) { return clause.source.empty(); });
  if (clauses.size() > 1 && are_texts) part.clauses = std::move(clauses);
}

// Whether the clauses of a part have translations that are long enough.
bool TranslationText::has_whole_clauses(const LinePart& part) const {
  PartLengths lengths;
  for (const LinePart& clause : part.clauses) {
    if (clause.found.empty()) return false;
    lengths.add(clause, clause.found.front());
  }
  return !part.clauses.empty() && lengths.have_ended && !is_too_short(lengths);
}

void TranslationText::use_clauses(Line& line) const {
  std::vector<LinePart> parts;
  for (LinePart& part : line.parts) {
    if (!has_whole_clauses(part)) {
      parts.push_back(std::move(part));
      continue;
    }
    line.notes.push_back(fmt::format("{}{} was too short, so it is translated in {} parts", named(line),
                                     line.sentences.size() > 1 ? "the translation of a sentence" : "the translation",
                                     part.clauses.size()));
    part.clauses.front().space = part.space;
    std::ranges::move(part.clauses, std::back_inserter(parts));
  }
  line.parts = std::move(parts);
}

Translation TranslationText::result(Line& line, const TranslateOptions& options) const {
  use_clauses(line);
  Translation result;
  result.source = line.source.text;
  if (!line.parts.empty()) result.source_prefix = line.parts.front().edges.prefix;
  size_t count = 1;
  std::vector<size_t> sources_before;  // number of source tokens before each part, and of all
  for (const LinePart& part : line.parts) {
    if (part.found.empty()) fail("{}the model gives no finite score", named(line));
    count = std::max(count, part.found.size());
    sources_before.push_back(result.source_tokens.size());
    for (std::string& piece : source_tokens(part)) result.source_tokens.push_back(std::move(piece));
  }
  sources_before.push_back(result.source_tokens.size());
  for (size_t k = 0; k < count; k++) result.hypotheses.push_back(joined(line, k, sources_before, options));
  std::ranges::stable_sort(result.hypotheses, is_better<Hypothesis>);
  result.notes = line.notes;
  if (const std::vector<std::string>& missing = result.hypotheses.front().missing_terms; !missing.empty())
    result.notes.push_back(fmt::format("{}the translation lacks the glossary's term for {}", named(line),
                                       excerpt(fmt::format("{}", fmt::join(missing, ", ")))));
  for (const SentencePair& sentence : result.hypotheses.front().untranslated)
    result.notes.push_back(fmt::format("{}the translation of {} looks incomplete: {}", named(line),
                                       excerpt(sentence.source), excerpt(sentence.text)));
  return result;
}

std::vector<std::string> TranslationText::source_tokens(const LinePart& part) const {
  std::vector<std::string> pieces = tokenizers_.source.pieces(own_source(part));
  if (part.kept.empty()) return pieces;
  const ReducedText source = text_of(part);
  return tokens_with(source.kept, source.text, std::move(pieces));
}

Hypothesis TranslationText::joined(const Line& line, size_t k, const std::vector<size_t>& sources_before,
                                   const TranslateOptions& options) const {
  Hypothesis all;
  std::vector<SentencePair> sentences;
  if (line.sentences.size() > 1) sentences = line.sentences;
  std::vector<PartLengths> lengths(line.sentences.size());
  JoinedScore score(options.length_penalty);
  for (size_t p = 0; p < line.parts.size(); p++) {
    const LinePart& part = line.parts[p];
    const size_t i = hypothesis_of(part, k, options.sampling && line.parts.size() > 1);
    Hypothesis next =
        without_surplus(part, part.found[i], i < part.attentions.size() ? &part.attentions[i] : nullptr, options);
    for (std::vector<float>& row : next.attention) {  // over the tokens of all parts
      row.insert(row.begin(), sources_before[p], 0);
      row.resize(sources_before.back());
    }
    if (!sentences.empty()) append_sentence(sentences[part.sentence].text, "", next.text);
    lengths[part.sentence].add(part, part.found[i]);
    score.add(next.score, std::ssize(part.found[i].token_log_probabilities) + tokens_forced(part.edges.start));
    if (p == 0)
      all = std::move(next);
    else
      append(all, next, part.space, sources_before[p]);
  }
  if (line.parts.size() > 1) all.score = score.score();
  for (size_t i = 0; i < lengths.size(); i++)
    if (is_too_short(lengths[i]))
      all.untranslated.push_back({line.sentences[i].source, sentences.empty() ? all.text : sentences[i].text});
  all.text.insert(0, line.space_before);
  if (line.parts.empty() || !line.parts.back().is_stopped) all.text += line.space_after;
  all.sentences = std::move(sentences);
  return all;
}

Hypothesis TranslationText::hypothesis(const LinePart& part, const Decoded& decoded, const Forced* forced,
                                       const TranslateOptions& options) const {
  const Tokenizer& target = tokenizers_.target;
  Hypothesis h;
  const std::vector<std::string> pieces = target.pieces(decoded.ids);
  h.tokens = pieces;
  if (!part.is_last && decoded.ended) h.tokens.push_back(target.piece(tokens_.end));
  h.score = decoded.score;
  h.log_probability = decoded.log_probability;
  h.token_scores.assign(decoded.token_log_probabilities.begin(), decoded.token_log_probabilities.end());
  h.words = word_scores(target, decoded.ids, pieces, h.token_scores);
  std::vector<Alignment> alignment;
  if (forced && !forced->attention.empty()) {
    const size_t T = h.tokens.size(), S = part.source.size();
    alignment = align(forced->attention, T, S, source_range(part, S));
    for (size_t i = 0; options.attention && i < T; i++) {
      const auto row = forced->attention.begin() + static_cast<int64_t>(i * S);
      h.attention.emplace_back(row, row + static_cast<int64_t>(S));
    }
    if (part.inline_tokens > 0) OwnTokens(part.source, *tokens_.term_marks).apply(alignment, h.attention);
  }
  const std::vector<int32_t> ids = own_source(part);
  if (options.replace_unknown && has_unknown(decoded))
    h.text = replace_unknown(target, decoded.ids, tokens_.unknown, alignment,
                             {text_of(part).text, tokenizers_.source.pieces(ids), source_range(part, ids.size())});
  else
    h.text = target.decode(decoded.ids);
  for (const int32_t term : decoded.missing_terms) h.missing_terms.push_back(part.term_names[to_size(term)]);
  h.missing_terms.insert(h.missing_terms.end(), part.not_required.begin(), part.not_required.end());
  if (options.alignment || !part.kept.empty()) h.alignment = std::move(alignment);
  if (!part.kept.empty()) {
    const ReducedText source = text_of(part);
    const auto insert = part.kept.front().stand_in.empty() ? put_back : replace_stand_ins;
    insert(source.kept, source.text, tokenizers_.source.pieces(ids), options.attention, h);
  }
  if (!options.alignment) h.alignment.clear();
  return h;
}

// Returns a hypothesis without the stand-ins that the source does not have, or has less often.
Hypothesis TranslationText::without_surplus(const LinePart& part, const Decoded& decoded, const Forced* forced,
                                            const TranslateOptions& options) const {
  const auto surplus = surplus_stand_ins(part.source, decoded.ids, tokens_, tokenizers_.target);
  if (surplus.empty()) return hypothesis(part, decoded, forced, options);
  Decoded rest = without_tokens(decoded, surplus);
  rest.score = score_without_tokens(decoded, rest, options.length_penalty, tokens_forced(part.edges.start));
  if (!forced) return hypothesis(part, rest, nullptr, options);
  const Forced rest_of_forced = without_tokens(*forced, surplus, part.source.size());
  return hypothesis(part, rest, &rest_of_forced, options);
}

bool TranslationText::needs_places(const LinePart& part, const Decoded& decoded) const {
  return !has_stand_ins(part.kept, decoded.ids, tokens_.stand_ins);
}

bool TranslationText::has_unknown(const Decoded& decoded) const {
  return std::ranges::find(decoded.ids, tokens_.unknown) != decoded.ids.end();
}

}  // namespace qkv
