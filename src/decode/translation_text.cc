#include "decode/translation_text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "decode/search/search.h"
#include "io/runs/translation_config.h"
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

// Returns the beginning of a message about a line.
std::string named(const Line& line) { return line.number < 0 ? "" : fmt::format("line {}: ", line.number + 1); }

void check_text(const std::string& text) {
  const size_t bad = find_invalid_utf8(text);
  if (bad != std::string::npos) fail("byte {} is not valid UTF-8{}", bad + 1, mark_hint(text));
}

// Returns the parts within a range of the text, which does not cut one, as bytes of the range.
std::vector<ProtectedPart> within(const std::vector<ProtectedPart>& parts, size_t begin, size_t end) {
  std::vector<ProtectedPart> inside;
  for (const ProtectedPart& part : parts)
    if (part.begin >= begin && part.end <= end) inside.push_back({part.begin - begin, part.end - begin});
  return inside;
}

// Joins sentences that a part reaches across.
void join_across(TextSentences& split, std::string_view text, const std::vector<ProtectedPart>& parts) {
  std::vector<SpacedSentence> joined;
  const auto offset = [&](std::string_view view) { return to_size(view.data() - text.data()); };
  for (const SpacedSentence& next : split.sentences) {
    const size_t begin = offset(next.text), end = begin + next.text.size();
    const auto cuts = [&](const ProtectedPart& part) { return part.begin < begin && part.end > offset(next.space); };
    if (joined.empty() || std::ranges::none_of(parts, cuts)) {
      joined.push_back(next);
    } else {
      const size_t first = offset(joined.back().text);
      joined.back().text = text.substr(first, end - first);
    }
  }
  split.sentences = std::move(joined);
}

bool has_letter_or_digit(std::string_view text) {
  for (auto c = sentence::character_at(text, 0); c.begin < text.size(); c = sentence::character_at(text, c.end))
    if (sentence::is_alphanumeric(c.code)) return true;
  return false;
}

// Takes those parts that stood within the next `size` bytes of the text, and before the rest.
std::vector<KeptPart> take_kept(std::vector<KeptPart>& kept, size_t begin, size_t size, bool is_last) {
  std::vector<KeptPart> taken;
  size_t count = 0;
  for (; count < kept.size() && (is_last || kept[count].at < begin + size); count++) {
    taken.push_back(std::move(kept[count]));
    taken.back().at -= begin;
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
  return taken;
}

// Whether a piece continues the word before it, in a vocabulary that marks where words begin.
bool continues_word(std::string_view piece) {
  if (piece.starts_with("##")) return piece.size() > 2;
  const int32_t first = sentence::character_at(piece, 0).code;
  return sentence::is_alphanumeric(first) && !sentence::is_unspaced(first) && !sentence::is_thai_or_lao(first);
}

// The tokens of a source without those around it.
TokenRange source_range(const LinePart& part) {
  return {part.edges.before.size(), part.source.size() - part.edges.after.size()};
}

}  // namespace

TranslationText::TranslationText(const TranslatorRun& run, int64_t max_length)
    : tokenizers_(run.tokenizers), tokens_(run.tokens), splitter_(run.abbreviations), max_length_(max_length) {
  const Tokenizer& target = tokenizers_.target;
  for (int32_t id = 0; id < target.size(); id++) target_id_.emplace(target.piece(id), id);
  const auto marks_word = [](const auto& entry) { return begins_word(entry.first) || entry.first.starts_with("##"); };
  const bool marks_words = std::ranges::any_of(target_id_, marks_word);
  for (int32_t id = 0; id < target.size(); id++)
    continues_word_.push_back(marks_words && !begins_word(target.piece(id)) && continues_word(target.piece(id)));
}

SentenceEdges TranslationText::edges_between(const std::string& from, const std::string& to) const {
  if (tokens_.target_language == TargetLanguage::none) refuse_tagged_language(tokenizers_.source, to);
  return edges_of(tokens_, from, to);
}

std::string TranslationText::prepare(const std::string& text) const {
  check_text(text);
  return tokens_.lowercase ? lowercase(text) : text;
}

std::vector<int32_t> TranslationText::source_ids(std::string_view text, const SentenceEdges& edges) const {
  std::vector<int32_t> ids = tokenizers_.source.encode(text);
  if (ids.empty()) return ids;
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
  return s;
}

TermRules TranslationText::term_rules(const TranslateOptions& options) const {
  TermRules rules;
  const bool finds_kinds = options.protected_parts == ProtectedParts::automatic;
  if ((finds_kinds || !options.protect.empty()) && !options.on_token)
    rules.protected_parts = std::make_shared<ProtectedPartFinder>(finds_kinds, options.protect);
  if (options.glossary.empty()) return rules;
  const std::lock_guard lock(glossary_mutex_);
  if (glossary_text_ != options.glossary) {
    check_text(options.glossary);
    const std::string text = tokens_.lowercase ? lowercase(options.glossary) : options.glossary;
    glossary_ = std::make_shared<Glossary>(Glossary::parse(text, "glossary"));
    glossary_text_ = options.glossary;
  }
  rules.glossary = glossary_;
  return rules;
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
  const SentenceEdges edges =
      edges_between(from.empty() ? options.source_language : from, to.empty() ? options.target_language : to);
  check_text(text);
  std::vector<ProtectedPart> parts;
  if (rules.protected_parts && line.source.prefix.empty()) parts = rules.protected_parts->find(text);
  if (options.sentences == Sentences::line || options.alternatives || !line.source.prefix.empty())
    return add_sentence(line, {text, parts, edges, options, rules});
  TextSentences split = split_text_sentences(text, splitter_);
  if (!parts.empty()) join_across(split, text, parts);
  for (const SpacedSentence& sentence : split.sentences) {
    line.space_after += sentence.space;
    const size_t begin = to_size(sentence.text.data() - text.data());
    add_sentence(line, {sentence.text, within(parts, begin, begin + sentence.text.size()), edges, options, rules});
  }
  line.space_after += split.space_after;
}

// Adds a sentence, in several parts if it is too long. One without letters and digits outside of protected parts stays
// as it is.
void TranslationText::add_sentence(Line& line, const Sentence& sentence) const {
  ReducedText rest = take_out(sentence.text, sentence.protected_parts, tokens_.lowercase);
  line.sentences.push_back({std::string(sentence.text), ""});
  if (!rest.kept.empty() && !has_letter_or_digit(rest.text)) {
    line.space_after += sentence.text;
    line.sentences.back().text = sentence.text;
    return;
  }
  const auto fits = [&](std::string_view part) { return std::ssize(source_ids(part, sentence.edges)) <= max_length_; };
  const std::vector<std::string> cut = split_long(rest.text, fits);
  if (cut.size() > 1 && sentence.options.on_note)
    sentence.options.on_note(fmt::format("{}{}longer than the model's {} tokens, translated in {} parts", named(line),
                                         sentence.text == line.source.text ? "" : "a sentence is ", max_length_,
                                         cut.size()));
  size_t begin = 0;
  for (size_t i = 0; i < cut.size(); i++) {
    const std::string& piece = cut[i];
    LinePart part{line.number, piece, sentence.edges, source_ids(piece, sentence.edges), {}, {}, {}};
    part.kept = take_kept(rest.kept, begin, piece.size(), i + 1 == cut.size());
    begin += piece.size();
    if (part.source.empty()) continue;
    if (sentence.rules.glossary) require_terms(part, *sentence.rules.glossary);
    if (!line.parts.empty()) line.parts.back().is_last = false;
    part.sentence = line.sentences.size() - 1;
    (line.parts.empty() ? line.space_before : part.space) = std::exchange(line.space_after, "");
    line.parts.push_back(std::move(part));
  }
}

// Sets the terms of the glossary that the part has. Those that the model's vocabulary cannot spell are not required.
void TranslationText::require_terms(LinePart& part, const Glossary& glossary) const {
  std::vector<TermSpellings> terms;
  for (const GlossaryMatch& match : glossary.find(part.text)) {
    const std::string source = part.text.substr(match.begin, match.end - match.begin);
    TermSpellings spellings = spellings_of(source, glossary.entries()[match.entry]);
    if (spellings.empty() || terms.size() == RequiredTerms::kMost) {
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

// Returns the tokens of the targets that the vocabulary can spell. Between characters of Chinese and Japanese a piece
// has no mark of a word's beginning.
TermSpellings TranslationText::spellings_of(std::string_view source, const GlossaryEntry& entry) const {
  const auto cannot_be_found = [&](int32_t id) {
    return id == tokens_.unknown || std::ranges::find(tokens_.never, id) != tokens_.never.end();
  };
  TermSpellings spellings;
  const auto add = [&](std::vector<int32_t> ids) {
    if (!ids.empty() && std::ranges::none_of(ids, cannot_be_found) &&
        std::ranges::find(spellings, ids) == spellings.end())
      spellings.push_back(std::move(ids));
  };
  for (const std::string& target : target_spellings(source, entry)) {
    std::vector<int32_t> ids = target_ids(target);
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
  LinePart& first = line.parts.front();
  first.prefix = target_ids(prepare(line.source.prefix));
  const SearchOptions search = search_options(options);
  const int64_t longest = max_tokens(search, std::ssize(first.source), max_length_ - tokens_forced(first.edges.start));
  if (std::ssize(first.prefix) >= longest)
    fail("prefix must have fewer than {} tokens, the maximum length of a translation (has {})", longest,
         first.prefix.size());
  if (std::ranges::find(first.prefix, search.end) != first.prefix.end()) fail("prefix must not contain the end token");
}

Translation TranslationText::result(const Line& line, const TranslateOptions& options) const {
  Translation result;
  result.source = line.source.text;
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
  std::ranges::stable_sort(result.hypotheses, [](const Hypothesis& a, const Hypothesis& b) {
    const size_t missing = a.missing_terms.size(), missing_of_b = b.missing_terms.size();
    return missing != missing_of_b ? missing < missing_of_b : a.score > b.score;
  });
  const std::vector<std::string>& missing = result.hypotheses.front().missing_terms;
  if (!missing.empty() && options.on_note)
    options.on_note(fmt::format("{}the translation lacks the glossary's term for {}", named(line),
                                excerpt(fmt::format("{}", fmt::join(missing, ", ")))));
  return result;
}

std::vector<std::string> TranslationText::source_tokens(const LinePart& part) const {
  std::vector<std::string> pieces = tokenizers_.source.pieces(part.source);
  return part.kept.empty() ? pieces : tokens_with(part.kept, part.text, std::move(pieces));
}

Hypothesis TranslationText::joined(const Line& line, size_t k, const std::vector<size_t>& sources_before,
                                   const TranslateOptions& options) const {
  Hypothesis all;
  std::vector<SentencePair> sentences;
  if (line.sentences.size() > 1) sentences = line.sentences;
  JoinedScore score(options.length_penalty);
  for (size_t p = 0; p < line.parts.size(); p++) {
    const LinePart& part = line.parts[p];
    const size_t i = hypothesis_of(part, k, options.sampling && line.parts.size() > 1);
    Hypothesis next =
        hypothesis(part, part.found[i], i < part.attentions.size() ? &part.attentions[i] : nullptr, options);
    for (std::vector<float>& row : next.attention) {  // over the tokens of all parts
      row.insert(row.begin(), sources_before[p], 0);
      row.resize(sources_before.back());
    }
    if (!sentences.empty()) append_sentence(sentences[part.sentence].text, "", next.text);
    score.add(next.score, std::ssize(part.found[i].token_log_probabilities) + tokens_forced(part.edges.start));
    if (p == 0)
      all = std::move(next);
    else
      append(all, next, part.space, sources_before[p]);
  }
  if (line.parts.size() > 1) all.score = score.score();
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
    alignment = align(forced->attention, T, S, source_range(part));
    for (size_t i = 0; options.attention && i < T; i++) {
      const auto row = forced->attention.begin() + static_cast<int64_t>(i * S);
      h.attention.emplace_back(row, row + static_cast<int64_t>(S));
    }
  }
  if (options.replace_unknown && has_unknown(decoded))
    h.text = replace_unknown(target, decoded.ids, tokens_.unknown, alignment,
                             {part.text, tokenizers_.source.pieces(part.source), source_range(part)});
  else
    h.text = target.decode(decoded.ids);
  for (const int32_t term : decoded.missing_terms) h.missing_terms.push_back(part.term_names[to_size(term)]);
  h.missing_terms.insert(h.missing_terms.end(), part.not_required.begin(), part.not_required.end());
  if (options.alignment || !part.kept.empty()) h.alignment = std::move(alignment);
  if (!part.kept.empty()) put_back(part.kept, part.text, tokenizers_.source.pieces(part.source), h);
  if (!options.alignment) h.alignment.clear();
  return h;
}

bool TranslationText::has_unknown(const Decoded& decoded) const {
  return std::ranges::find(decoded.ids, tokens_.unknown) != decoded.ids.end();
}

}  // namespace qkv
