#include "analysis/heads/head_texts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/fail.h"
#include "core/random.h"
#include "core/sorted_unique.h"
#include "core/to_size.h"
#include "data/log/history.h"
#include "data/masking.h"
#include "decode/batches.h"
#include "decode/encoder/spelled_piece.h"
#include "decode/encoder/text_ids.h"
#include "decode/generation/spelled_tokens.h"
#include "decode/translation_text.h"
#include "io/runs/run.h"
#include "text/alignment/aligned_units.h"
#include "text/lines.h"
#include "text/sentence_characters.h"

namespace qkv {
namespace {

// Numbers pieces in the order in which they are first seen.
class Keys {
 public:
  int32_t of(const std::string& piece) {
    return keys_.try_emplace(piece, static_cast<int32_t>(keys_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int32_t> keys_;
};

// Returns whether a piece has a character, but neither letters nor digits. The marks of a word's beginning and of white
// space are no characters.
bool is_punctuation(const std::string& piece) {
  std::string_view text = without_word_start(piece);
  if (sentence::has_letter_or_digit(text)) return false;
  while (!text.empty()) {
    const std::string_view marks[] = {" ", "\t", "\n", "▁", "⇥", "⏎"};
    const auto mark = std::ranges::find_if(marks, [&](std::string_view m) { return text.starts_with(m); });
    if (mark == std::end(marks)) return true;
    text.remove_prefix(mark->size());
  }
  return false;
}

TextToken token_of(std::string piece, bool is_special, Keys& keys) {
  const int32_t key = keys.of(piece);
  const bool punctuation = !is_special && is_punctuation(piece);
  return {std::move(piece), key, is_special, punctuation};
}

std::vector<std::string> lines_of(const std::string& path, int64_t most) {
  std::vector<std::string> lines = read_first_lines(path, most);
  if (lines.empty()) fail("{}: has no lines", path);
  return lines;
}

// Returns the most tokens of a text that are read.
int64_t most_tokens(const ModelConfig& config) { return std::min(config.max_length, kMostHeadTokens); }

// Marks the tokens of the prefix of a side as special: those before the first one with a place in the text.
void mark_prefix(TextSide& side) {
  if (side.prefix.empty()) return;
  const std::vector<TokenPlace> places = places_in_source(side.prefix, side.text, pieces_of(side.tokens));
  for (size_t t = 0; t < places.size() && places[t].is_empty(); t++)
    side.tokens[t].is_special = true, side.tokens[t].is_punctuation = false;
}

[[noreturn]] void fail_length(const std::string& path, int64_t line, int64_t tokens, int64_t most) {
  fail("{}:{}: must have at most {} tokens (has {})", path, line, most, tokens);
}

// ---- Translators

std::vector<std::string> targets_of(const std::string& run, const HeadsOptions& options,
                                    const std::vector<std::string>& sources) {
  if (!options.target.empty()) {
    std::vector<std::string> targets = lines_of(options.target, options.lines);
    if (targets.size() != sources.size())
      fail("{}: must have as many lines as {} (has {}, and {} of the data are read)", options.target, options.data,
           targets.size(), sources.size());
    return targets;
  }
  TranslateOptions translate = line_options(run, options);
  translate.sentences = Sentences::line;
  translate.protected_parts = ProtectedParts::none;
  std::vector<std::string> targets;
  for (const Translation& translation : Translator(run).translate(sources, translate))
    targets.push_back(translation.text());
  return targets;
}

HeadText pair_of(const TranslationText& text, const SentenceEdges& edges, const std::string& source,
                 const std::string& target, Keys& keys) {
  HeadText pair;
  pair.source.prefix = edges.prefix, pair.source.text = source, pair.target.text = target;
  pair.source.ids = text.source_ids(text.prepare(source), edges);
  const std::vector<int32_t> inner = text.target_ids(text.prepare(target));
  pair.target.ids = edges.start;
  pair.target.ids.insert(pair.target.ids.end(), inner.begin(), inner.end());
  pair.labels.assign(pair.target.ids.begin() + 1, pair.target.ids.end());
  pair.labels.push_back(text.tokens().end);
  const auto &sources = text.tokenizers().source, &targets = text.tokenizers().target;
  const size_t before = edges.before.size(), after = edges.after.size(), starts = edges.start.size();
  for (size_t i = 0; i < pair.source.ids.size(); i++)
    pair.source.tokens.push_back(
        token_of(sources.piece(pair.source.ids[i]), i < before || i + after >= pair.source.ids.size(), keys));
  mark_prefix(pair.source);
  for (size_t i = 0; i < pair.target.ids.size(); i++)
    pair.target.tokens.push_back(token_of(targets.piece(pair.target.ids[i]), i < starts, keys));
  for (size_t i = 0; i < pair.labels.size(); i++)
    pair.label_tokens.push_back(
        token_of(targets.piece(pair.labels[i]), i + 1 < starts || i + 1 == pair.labels.size(), keys));
  return pair;
}

// Leaves out the last tokens of a target: those of a translation may be more than its search wrote.
void cut_target(HeadText& pair, int64_t most) {
  const size_t length = std::min(pair.target.ids.size(), to_size(most));
  pair.target.ids.resize(length), pair.target.tokens.resize(length);
  pair.labels.resize(length), pair.label_tokens.resize(length);
}

HeadTexts texts_of(TranslatorRun run, const std::string& directory, const HeadsOptions& options) {
  const std::vector<std::string> sources = lines_of(options.data, options.lines);
  const std::vector<std::string> targets = targets_of(directory, options, sources);
  const TranslationText text(run, run.config.max_length);
  const TranslateOptions translate = line_options(directory, options);
  text.check_source_prefix(translate.source_prefix);
  const SentenceEdges edges = text.edges(translate);
  HeadTexts result{RunKind::translator, std::move(run.model)};
  result.own_translations = options.target.empty();
  Keys keys;
  for (size_t i = 0; i < sources.size(); i++) {
    HeadText pair = pair_of(text, edges, sources[i], targets[i], keys);
    pair.line = static_cast<int64_t>(i) + 1;
    const int64_t most = most_tokens(result.config());
    if (result.own_translations) cut_target(pair, most);
    if (pair.source.ids.empty()) fail("{}:{}: is empty", options.data, i + 1);
    if (std::ssize(pair.source.ids) > most) fail_length(options.data, pair.line, std::ssize(pair.source.ids), most);
    if (std::ssize(pair.target.ids) > most) fail_length(options.target, pair.line, std::ssize(pair.target.ids), most);
    result.texts.push_back(std::move(pair));
  }
  return result;
}

// ---- Language models and encoders

HeadTexts texts_of(LanguageRun run, const std::string&, const HeadsOptions& options) {
  HeadTexts result{RunKind::language_model, std::move(run.model)};
  const auto most = to_size(most_tokens(result.config()));
  Keys keys;
  int64_t number = 0;
  for (const std::string& line : lines_of(options.data, options.lines)) {
    number++;
    HeadText text;
    text.line = number, text.target.text = line;
    const std::vector<int32_t> inner = run.codec.encode(line, fmt::format("{}:{}", options.data, number));
    std::vector<int32_t> ids = run.ends.beginning(inner);
    const size_t starts = ids.size() - inner.size();
    ids.push_back(run.ends.ends.front());
    if (ids.size() > most + 1) ids.resize(most + 1);
    if (ids.size() < 2) continue;
    text.target.ids.assign(ids.begin(), ids.end() - 1);
    text.labels.assign(ids.begin() + 1, ids.end());
    const std::vector<std::string> pieces = spelled_tokens(run, ids);
    const auto is_end = [&](int32_t id) { return std::ranges::find(run.ends.ends, id) != run.ends.ends.end(); };
    for (size_t i = 0; i < text.labels.size(); i++) {
      text.target.tokens.push_back(token_of(pieces[i], i < starts, keys));
      text.label_tokens.push_back(token_of(pieces[i + 1], i + 1 == text.labels.size() && is_end(text.labels[i]), keys));
    }
    result.texts.push_back(std::move(text));
  }
  return result;
}

// Masks tokens of a text for the loss, all by the mask token.
void mask_text(HeadText& text, int32_t mask, int64_t seed) {
  const int32_t largest = std::max(mask, std::ranges::max(text.source.ids));
  MaskingVocabulary vocabulary{mask, std::vector<bool>(to_size(largest) + 1), {}, {mask}};
  vocabulary.fixed[to_size(mask)] = true;
  for (size_t i = 0; i < text.source.ids.size(); i++)
    if (text.source.tokens[i].is_special) vocabulary.fixed[to_size(text.source.ids[i])] = true;
  const MaskingOptions options{.masked = 1, .random = 0};
  Random random(static_cast<uint64_t>(seed), Stream::dev_masks, static_cast<uint64_t>(text.line));
  text.masked = choose_masked(text.source.ids, options, vocabulary, random);
  text.masked_ids = text.source.ids;
  mask_tokens(text.masked_ids, text.masked, options, vocabulary, random);
  for (const int32_t place : text.masked) text.labels.push_back(text.source.ids[to_size(place)]);
}

// Returns the mask token by the names that training gives it, or −1.
int32_t mask_token(const TextCodec& codec) {
  if (codec.unit() == TextUnit::characters || codec.unit() == TextUnit::bytes) return -1;
  for (const char* name : {"<mask>", "[MASK]"})
    if (const auto id = codec.id(name)) return *id;
  return -1;
}

HeadTexts texts_of_encoder(EncoderRun& run, RunKind kind, const HeadsOptions& options) {
  HeadTexts result{kind, std::move(run.model)};
  const bool causal = result.config().is_decoder_only();
  const int32_t mask = mask_token(run.codec);
  result.has_loss = !causal && result.config().token_head != TokenHead::none && mask >= 0;
  const size_t before = run.edges.before.size(), after = run.edges.after.size();
  Keys keys;
  int64_t number = 0;
  for (const std::string& line : lines_of(options.data, options.lines)) {
    number++;
    HeadText text;
    text.line = number;
    TextSide& side = causal ? text.target : text.source;
    side.prefix = run.embedding.prefix, side.text = line;
    side.ids = between_edges(run.edges, inner_ids(run, line, fmt::format("{}:{}", options.data, number)),
                             most_tokens(result.config()))
                   .ids;
    if (side.ids.empty()) continue;
    for (size_t i = 0; i < side.ids.size(); i++)
      side.tokens.push_back(
          token_of(spelled_piece(run.codec, side.ids[i]), i < before || i + after >= side.ids.size(), keys));
    mark_prefix(side);
    if (result.has_loss) mask_text(text, mask, options.seed);
    result.texts.push_back(std::move(text));
  }
  return result;
}

HeadTexts texts_of(EncoderRun run, const std::string&, const HeadsOptions& options) {
  return texts_of_encoder(run, RunKind::encoder, options);
}

HeadTexts texts_of(ClassifierRun run, const std::string&, const HeadsOptions& options) {
  return texts_of_encoder(run, RunKind::classifier, options);
}

// ---- Recommenders

// The last event of each user is predicted from those before it.
HeadTexts texts_of(RecommenderRun run, const std::string& directory, const HeadsOptions& options) {
  if (!options.data.empty())
    fail("data must not be set: {} is a recommender, whose log is a part of the run (is {})", directory, options.data);
  HeadTexts result{RunKind::recommender, std::move(run.model)};
  const Interactions& log = run.log.data;
  const HistoryOptions reading{result.config().max_length, run.recommendation.positions_from_end,
                               run.items.gap_buckets > 0};
  Keys keys;
  for (int64_t user = 0; user < log.user_count(); user++) {
    if (options.lines > 0 && std::ssize(result.texts) == options.lines) break;
    const History all = log.history(user);
    if (all.items.size() < 2) continue;
    Packed packed;
    append_history(all.first(all.items.size() - 1), reading, packed);
    if (packed.tokens() > kMostHeadTokens)
      fail("user {}: must have at most {} events that the model reads (has {})", log.users[to_size(user)],
           kMostHeadTokens, packed.tokens());
    HeadText text;
    text.line = user + 1;
    if (!run.recommendation.repeats)
      text.hidden = sorted_unique(std::vector<int32_t>(all.items.begin(), all.items.end() - 1));
    text.target.text = log.users[to_size(user)];
    text.target.ids = packed.ids, text.gaps = packed.gaps;
    text.first_position = packed.positions.front();
    text.labels.assign(all.items.end() - std::ssize(packed.ids), all.items.end());
    for (const int32_t id : text.target.ids)
      text.target.tokens.push_back({log.items[to_size(id)], keys.of(log.items[to_size(id)])});
    for (const int32_t id : text.labels)
      text.label_tokens.push_back({log.items[to_size(id)], keys.of(log.items[to_size(id)])});
    result.texts.push_back(std::move(text));
  }
  return result;
}

// Throws Error for options that are for other kinds of runs.
void check_kind(const std::string& directory, RunKind kind, const HeadsOptions& options) {
  if (kind != RunKind::translator)
    for (const auto& [name, value] : {std::pair{"target", &options.target},
                                      {"alignment", &options.alignment},
                                      {"target_conllu", &options.target_conllu},
                                      {"source_language", &options.source_language},
                                      {"target_language", &options.target_language}})
      if (!value->empty()) fail("{}: {} is no translator (is {})", name, directory, *value);
  if (kind == RunKind::recommender && !options.conllu.empty())
    fail("conllu: {} is a recommender (is {})", directory, options.conllu);
  if (kind != RunKind::recommender && options.data.empty()) fail("data: {} needs a file of texts", directory);
  if (!options.alignment.empty() && options.target.empty())
    fail("alignment: target must be set to the translations that {} aligns", options.alignment);
  if (!options.target_conllu.empty() && options.target.empty())
    fail("target_conllu: target must be set to the translations whose trees {} has", options.target_conllu);
}

}  // namespace

std::vector<std::string> pieces_of(const std::vector<TextToken>& tokens) {
  std::vector<std::string> pieces;
  for (const TextToken& token : tokens) pieces.push_back(token.piece);
  return pieces;
}

int64_t HeadTexts::predictions() const {
  if (kind == RunKind::recommender) return std::ssize(texts);
  int64_t count = 0;
  for (const HeadText& text : texts) count += std::ssize(text.labels);
  return count;
}

TranslateOptions line_options(const std::string& run, const HeadsOptions& options) {
  TranslateOptions translate = default_translate_options(run);
  translate.source_language = options.source_language, translate.target_language = options.target_language;
  return translate;
}

HeadTexts read_head_texts(const std::string& run, const HeadsOptions& options) {
  check_kind(run, inspect(run).kind, options);
  HeadTexts texts = std::visit([&](auto&& loaded) { return texts_of(std::move(loaded), run, options); },
                               load_one_of<TranslatorRun, LanguageRun, EncoderRun, ClassifierRun, RecommenderRun>(run));
  if (texts.texts.empty()) fail("{}: has no text with tokens", options.data.empty() ? run : options.data);
  return texts;
}

std::vector<std::vector<size_t>> batches_of(const HeadTexts& texts, int64_t batch_tokens) {
  std::vector<int64_t> lengths;
  for (const HeadText& text : texts.texts) lengths.push_back(text.tokens());
  const Batches cut = cut_by_length(lengths, batch_tokens);
  std::vector<std::vector<size_t>> batches;
  for (size_t b = 0; b < cut.size(); b++) batches.emplace_back(cut[b].begin(), cut[b].end());
  return batches;
}

Batch batch_of(const HeadTexts& texts, std::span<const size_t> chosen, bool masked) {
  Batch batch;
  for (const size_t i : chosen) {
    const HeadText& text = texts.texts[i];
    const auto first = static_cast<int32_t>(batch.source.tokens());
    if (texts.config().has_encoder()) batch.source.append(masked ? text.masked_ids : text.source.ids);
    if (texts.config().has_decoder()) {
      batch.target.append(text.target.ids, text.first_position);
      batch.target.gaps.insert(batch.target.gaps.end(), text.gaps.begin(), text.gaps.end());
    }
    if (masked)
      for (const int32_t place : text.masked) batch.masked.push_back(first + place);
    if (masked || texts.config().has_decoder())
      batch.labels.insert(batch.labels.end(), text.labels.begin(), text.labels.end());
  }
  return batch;
}

}  // namespace qkv
