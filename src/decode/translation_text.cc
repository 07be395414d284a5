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
// parts before it. parts: their number. forced: tokens of each part that count in scores and are not in the hypothesis.
void append(Hypothesis& all, const Hypothesis& next, const std::string& space, size_t sources, int64_t parts,
            int64_t forced, double alpha) {
  const auto tokens = [&](const Hypothesis& h, int64_t parts_of_it) {
    return std::pow(static_cast<double>(std::ssize(h.token_scores) + parts_of_it * forced), alpha);
  };
  const double sum = all.score * tokens(all, parts) + next.score * tokens(next, 1);
  const int32_t targets_before = static_cast<int32_t>(all.tokens.size());
  append_sentence(all.text, space, next.text);
  all.log_probability += next.log_probability;
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(all.tokens, next.tokens), add(all.token_scores, next.token_scores), add(all.words, next.words);
  add(all.attention, next.attention);
  for (const Alignment& a : next.alignment)
    all.alignment.push_back({a.source + static_cast<int32_t>(sources), a.target + targets_before});
  all.score = sum / tokens(all, parts + 1);
}

// Returns the beginning of a message about a line.
std::string named(const Line& line) { return line.number < 0 ? "" : fmt::format("line {}: ", line.number + 1); }

void check_text(const std::string& text) {
  const size_t bad = find_invalid_utf8(text);
  if (bad != std::string::npos) fail("byte {} is not valid UTF-8{}", bad + 1, mark_hint(text));
}

// The tokens of a source without those around it.
TokenRange source_range(const LinePart& part) {
  return {part.edges.before.size(), part.source.size() - part.edges.after.size()};
}

}  // namespace

TranslationText::TranslationText(const TranslatorRun& run, int64_t max_length)
    : tokenizers_(run.tokenizers), tokens_(run.tokens), splitter_(run.abbreviations), max_length_(max_length) {
  for (int32_t id = 0; id < tokenizers_.target.size(); id++) target_id_.emplace(tokenizers_.target.piece(id), id);
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

void TranslationText::read(Line& line, const TranslateOptions& options) const {
  try {
    split(line, options);
    if (!line.parts.empty() && !line.source.prefix.empty()) set_prefix(line, options);
  } catch (const Error& error) {
    line.parts.clear();
    fail("{}{}", named(line), error.what());
  }
}

void TranslationText::split(Line& line, const TranslateOptions& options) const {
  const std::string &from = line.source.source_language, &to = line.source.target_language, &text = line.source.text;
  const SentenceEdges edges =
      edges_between(from.empty() ? options.source_language : from, to.empty() ? options.target_language : to);
  check_text(text);
  if (options.sentences == Sentences::line || options.alternatives || !line.source.prefix.empty())
    return add_sentence(line, text, edges, options);
  const TextSentences split = split_text_sentences(text, splitter_);
  for (const SpacedSentence& sentence : split.sentences) {
    line.space_after += sentence.space;
    add_sentence(line, sentence.text, edges, options);
  }
  line.space_after += split.space_after;
}

// Adds a sentence, in several parts if it is too long.
void TranslationText::add_sentence(Line& line, std::string_view sentence, const SentenceEdges& edges,
                                   const TranslateOptions& options) const {
  const auto fits = [&](std::string_view part) { return std::ssize(source_ids(part, edges)) <= max_length_; };
  const std::vector<std::string> cut = split_long(tokens_.lowercase ? lowercase(sentence) : sentence, fits);
  if (cut.size() > 1 && options.on_note)
    options.on_note(fmt::format("{}{}longer than the model's {} tokens, translated in {} parts", named(line),
                                sentence == line.source.text ? "" : "a sentence is ", max_length_, cut.size()));
  for (const std::string& piece : cut) {
    LinePart part{line.number, piece, edges, source_ids(piece, edges), {}, {}, {}};
    if (part.source.empty()) continue;
    if (!line.parts.empty()) line.parts.back().is_last = false;
    part.sentence = line.sentences.size();
    (line.parts.empty() ? line.space_before : part.space) = std::exchange(line.space_after, "");
    line.parts.push_back(std::move(part));
  }
  line.sentences.emplace_back(sentence);
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
    for (std::string& piece : tokenizers_.source.pieces(part.source)) result.source_tokens.push_back(std::move(piece));
  }
  sources_before.push_back(result.source_tokens.size());
  for (size_t k = 0; k < count; k++) result.hypotheses.push_back(joined(line, k, sources_before, options));
  std::ranges::stable_sort(result.hypotheses, std::greater<>(), &Hypothesis::score);
  return result;
}

Hypothesis TranslationText::joined(const Line& line, size_t k, const std::vector<size_t>& sources_before,
                                   const TranslateOptions& options) const {
  Hypothesis all;
  std::vector<SentencePair> sentences;
  if (line.sentences.size() > 1)
    for (const std::string& sentence : line.sentences) sentences.push_back({sentence, ""});
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
    if (p == 0)
      all = std::move(next);
    else
      append(all, next, part.space, sources_before[p], static_cast<int64_t>(p), tokens_forced(part.edges.start),
             options.length_penalty);
  }
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
  if (options.alignment) h.alignment = std::move(alignment);
  return h;
}

bool TranslationText::has_unknown(const Decoded& decoded) const {
  return std::ranges::find(decoded.ids, tokens_.unknown) != decoded.ids.end();
}

}  // namespace qkv
