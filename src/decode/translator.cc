#include "qkv/translator.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

#include "analysis/hidden_states.h"
#include "analysis/logit_lens.h"
#include "analysis/patching.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/start_thread.h"
#include "core/to_size.h"
#include "decode/attend.h"
#include "decode/batches.h"
#include "decode/pipeline.h"
#include "decode/search/search.h"
#include "decode/search/sentence_decoder.h"
#include "decode/translator_state.h"
#include "model/inference/placed_model.h"
#include "qkv/system.h"

namespace qkv {
namespace {

std::vector<TranslatorRun> load_runs(const std::string& first, const std::vector<std::string>& others) {
  std::vector<TranslatorRun> runs;
  runs.push_back(load_run<TranslatorRun>(first));
  for (const std::string& directory : others) {
    runs.push_back(load_run<TranslatorRun>(directory));
    for (const auto& [side, expected, found] :
         {std::tuple{"source", runs.front().tokenizers.source, runs.back().tokenizers.source},
          {"target", runs.front().tokenizers.target, runs.back().tokenizers.target}}) {
      bool same = expected.size() == found.size();
      for (int32_t id = 0; same && id < expected.size(); id++) same = expected.piece(id) == found.piece(id);
      if (!same)
        fail("{}: {} vocabulary differs from that of {}; the runs of an ensemble must share it", directory, side,
             first);
    }
    const TranslationConfig &expected = runs.front().translation, &found = runs.back().translation;
    for (const auto& [field, same] : {std::pair{"stand_ins", found.stand_ins == expected.stand_ins},
                                      {"term_marks", found.term_marks == expected.term_marks}})
      if (!same)
        fail("{}: {} of translation.json differ from those of {}; the runs of an ensemble must share them", directory,
             field, first);
  }
  return runs;
}

Ensemble ensemble_of(const std::vector<TranslatorRun>& runs, const Placement& placement, const std::string& first,
                     const std::vector<std::string>& others) {
  std::vector<std::shared_ptr<const InferenceEngine>> models;
  for (size_t i = 0; i < runs.size(); i++)
    models.push_back(make_inference(*runs[i].model, placement, i == 0 ? first : others[i - 1]));
  return Ensemble(std::move(models));
}

// Returns rows of zeros for texts of these lengths.
TokenRows token_rows(const std::vector<int64_t>& lengths, int64_t width) {
  TokenRows rows;
  rows.width = width;
  for (const int64_t length : lengths) rows.offsets.push_back(rows.offsets.back() + length);
  rows.values.resize(to_size(rows.offsets.back()) * to_size(width));
  return rows;
}

Matrix<float> rows_of(TokenRows& rows, size_t text) {
  const int64_t begin = rows.offsets[text];
  return {rows.values.data() + begin * rows.width, rows.offsets[text + 1] - begin, rows.width};
}

void check_length(const char* side, size_t i, int64_t length, int64_t longest) {
  if (length > longest) fail("{} {} must have at most {} tokens (has {})", side, i + 1, longest, length);
}

}  // namespace

Translator::State::State(const std::string& first, const std::vector<std::string>& others, const Placement& placement)
    : runs(load_runs(first, others)),
      models(ensemble_of(runs, placement, first, others)),
      text(runs.front(), models.max_length()) {}

void Translator::State::check(const TranslateOptions& options) const {
  check_ranges(options);
  SearchOptions search = text.search_options(options);
  if (options.alternatives) search.n_best = 1;
  if (options.on_token) search.on_token = [](const TokenEvent&) { return false; };
  text.check_source_prefix(options.source_prefix);
  if (options.on_token && options.alternatives) fail("on_token cannot be combined with alternatives");
  for (const auto& [name, given] : {std::pair{"on_token", options.on_token != nullptr},
                                    {"alternatives", options.alternatives},
                                    {"sampling", options.sampling}})
    if (given && !options.glossary.empty()) fail("glossary cannot be combined with {}", name);
  qkv::check(search, models.config().target_vocab);
  checked_layer(search.attention, models.config());
}

void Translator::State::translate(std::span<LinePart* const> parts, const TranslateOptions& options,
                                  std::mutex& on_token_mutex, Arena& arena) const {
  search(parts, options, on_token_mutex, arena);
  std::vector<LinePart*> clauses;
  for (LinePart* part : parts) {
    if (!options.on_token) text.find_clauses(*part, options);
    for (LinePart& clause : part->clauses) clauses.push_back(&clause);
  }
  if (!clauses.empty()) search(clauses, options, on_token_mutex, arena);
}

void Translator::State::search(std::span<LinePart* const> parts, const TranslateOptions& options,
                               std::mutex& on_token_mutex, Arena& arena) const {
  SearchOptions how = text.search_options(options);
  if (options.on_token)
    how.on_token = [&](const TokenEvent& event) {
      const std::lock_guard lock(on_token_mutex);
      return report_token(event, *parts[to_size(event.sequence)], text.tokenizers().target, options.n_best == 1,
                          options.on_token);
    };
  std::vector<SearchInput> inputs;
  for (const LinePart* part : parts) inputs.push_back(input_of(*part));
  std::vector<std::vector<Decoded>> found =
      options.alternatives ? alternatives(models, inputs, how, arena) : n_best(models, inputs, how, arena);
  for (size_t i = 0; i < parts.size(); i++) parts[i]->found = std::move(found[i]);
  find_attention(parts, options, arena);
}

void Translator::State::find_attention(std::span<LinePart* const> parts, const TranslateOptions& options,
                                       Arena& arena) const {
  const bool for_all = options.alignment || options.attention;
  const auto needs_attention = [&](const LinePart& part, const Decoded& found) {
    return for_all || text.needs_places(part, found) || (options.replace_unknown && text.has_unknown(found));
  };
  const SearchOptions search = text.search_options(options);
  std::vector<std::vector<int32_t>> targets;
  std::vector<std::pair<LinePart*, size_t>> whose;
  for (LinePart* part : parts) {
    part->attentions.resize(part->found.size());
    for (size_t i = 0; i < part->found.size(); i++)
      if (needs_attention(*part, part->found[i])) {
        targets.push_back(part->found[i].with_end(search.end));
        whose.emplace_back(part, i);
      }
  }
  if (targets.empty()) return;
  std::vector<ForcedInput> inputs;
  for (size_t k = 0; k < targets.size(); k++)
    inputs.push_back({whose[k].first->source, targets[k], whose[k].first->edges.start});
  std::vector<Forced> forced =
      force_all(models, inputs, search.start, ForcedValues::attention, search.attention, arena);
  for (size_t k = 0; k < forced.size(); k++) whose[k].first->attentions[whose[k].second] = std::move(forced[k]);
}

Translator::Translator(const std::string& run_directory, const std::vector<std::string>& ensemble,
                       const Placement& placement)
    : state_(std::make_unique<State>(run_directory, ensemble, placement)) {}
Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

void Translator::translate(const LineSource& read, const std::function<void(Translation&&)>& write,
                           const TranslateOptions& options) const {
  const State& s = *state_;
  s.check(options);
  const TermRules rules = s.text.term_rules(options);
  std::mutex on_token_mutex;
  PipelineSteps steps;
  steps.read = [&](Line& line, bool wait) {
    const Next next = read(line.source, wait);
    if (next != Next::line) return next;
    try {
      s.text.read(line, options, rules);
    } catch (const Error&) {
      line.error = std::current_exception();
    }
    return next;
  };
  steps.work = [&](std::span<LinePart* const> parts, Arena& arena) {
    s.translate(parts, options, on_token_mutex, arena);
  };
  steps.write = [&](Line&& line) {
    Translation translation = s.text.result(line, options);
    report_translation(translation, line.number, options);
    write(std::move(translation));
  };
  steps.progress = options.on_progress;
  const int64_t workers = options.on_token && options.workers == 0 ? 1 : options.workers;
  const ArenaPool::Lease lease(s.arenas, worker_count(workers));
  const int64_t batch_tokens = std::max<int64_t>(1, options.batch_tokens / hypotheses_at_once(options));
  run_pipeline(steps, {batch_tokens, options.window, options.on_token != nullptr}, lease.arenas());
}

std::vector<std::string> Translator::tokenize(const std::string& text) const {
  const Tokenizer& source = state_->text.tokenizers().source;
  return source.pieces(source.encode(state_->text.prepare(text)));
}

std::string Translator::unknown_token() const {
  const int32_t unknown = state_->text.tokens().unknown;
  return unknown < 0 ? "" : state_->text.tokenizers().source.piece(unknown);
}

std::vector<std::string> Translator::languages() const {
  std::vector<std::string> codes;
  for (const TranslationTokens::Language& language : state_->text.tokens().languages) codes.push_back(language.code);
  return codes;
}

void Translator::set_languages(TranslateOptions& options, const std::string& source, const std::string& target) const {
  const TranslationTokens& tokens = state_->text.tokens();
  if (tokens.source_language != SourceLanguage::none) options.source_language = source;
  if (tokens.target_language != TargetLanguage::none) options.target_language = target;
}

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines, const TranslateOptions& options,
                                               const std::vector<std::string>& prefixes) const {
  return translate_all(lines, prefixes,
                       [&](const LineSource& read, const auto& write) { translate(read, write, options); });
}

std::future<std::vector<Translation>> Translator::translate_async(std::vector<std::string> lines,
                                                                  TranslateOptions options) const {
  return starting_threads("translate_async", [&] {
    return std::async(std::launch::async,
                      [this, count = threads(), lines = std::move(lines), options = std::move(options)] {
                        set_threads(count);  // a new thread starts with the count of the environment
                        return translate(lines, options);
                      });
  });
}

std::vector<Translation> Translator::score(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                                           const TranslateOptions& options) const {
  const State& s = *state_;
  ForcedPairs pairs = s.forced_pairs(sources, targets, options);
  const SearchOptions search = s.text.search_options(options);
  const ArenaPool::Lease lease(s.arenas, 1);
  const ForcedValues values = options.alignment || options.attention ? ForcedValues::both : ForcedValues::scores;
  const std::vector<Forced> forced =
      force_all(s.models, pairs.inputs, search.start, values, search.attention, lease.front(), options.batch_tokens);
  std::vector<Translation> scored;
  for (size_t i = 0; i < sources.size(); i++) {
    const LinePart& part = pairs.parts[i];
    Decoded d{std::move(pairs.targets[i]), forced[i].log_probabilities, 0, 0, true};
    d.ids.pop_back();
    for (const float log_p : d.token_log_probabilities) d.log_probability += static_cast<double>(log_p);
    const int64_t length = std::ssize(d.token_log_probabilities) + tokens_forced(part.edges.start);
    d.score = d.log_probability / std::pow(static_cast<double>(length), search.length_penalty);
    Translation& t = scored.emplace_back();
    t.source = sources[i];
    t.source_prefix = part.edges.prefix;
    t.source_tokens = s.text.tokenizers().source.pieces(part.source);
    t.hypotheses.push_back(s.text.hypothesis(part, d, &forced[i], options));
    if (const auto* given = std::get_if<std::string>(&targets[i])) t.hypotheses.back().text = *given;
  }
  return scored;
}

AttendedPair Translator::State::attended_pair(const Translator& translator, const std::string& source,
                                              const std::string& target, const TranslateOptions& options) const {
  check(options);
  const SentenceEdges edges = text.edges(options);
  AttendedPair pair;
  AttendRequest& request = pair.request;
  request.source_ids = whole_source("source", source, edges);
  TranslateOptions as_line = options;
  as_line.sentences = Sentences::line;
  as_line.protected_parts = ProtectedParts::none;
  as_line.protect.clear();
  pair.translation = target.empty() ? translator.translate({source}, as_line).front().text() : text.prepare(target);
  request.target_ids = text.target_ids(pair.translation);
  request.start = edges.start;
  request.end = text.tokens().end;
  check_whole("target", request.target_ids.size() + edges.start.size());
  return pair;
}

void Translator::State::check_whole(const char* name, size_t length) const {
  const int64_t longest = models.config().max_length;
  if (std::cmp_greater(length, longest)) fail("{} must have at most {} tokens (has {})", name, longest, length);
}

std::vector<int32_t> Translator::State::whole_source(const char* name, const std::string& source,
                                                     const SentenceEdges& edges) const {
  std::vector<int32_t> ids = text.source_ids(text.prepare(source), edges);
  if (ids.empty()) fail("{} is empty", name);
  check_whole(name, ids.size());
  return ids;
}

std::vector<int32_t> Translator::State::target_tokens(const char* name, const std::string& target) const {
  std::vector<int32_t> ids = text.target_ids(text.prepare(target));
  if (ids.empty() && !target.empty()) fail("{} has no tokens", name);
  return ids;
}

AttentionMap Translator::attend(const std::string& source, const std::string& target, const TranslateOptions& options,
                                const AttributionOptions& attribution) const {
  const State& s = *state_;
  qkv::check(attribution);
  AttendedPair pair = s.attended_pair(*this, source, target, options);
  if (!attribution.baseline.empty()) {
    const auto first = [&, baseline = s.text.prepare(attribution.baseline)](const Tokenizer& tokenizer) {
      const std::vector<int32_t> ids = tokenizer.encode(baseline);
      if (ids.empty()) fail("baseline has no tokens");
      return ids.front();
    };
    pair.request.source_baseline = first(s.text.tokenizers().source);
    pair.request.target_baseline = first(s.text.tokenizers().target);
  }
  const ArenaPool::Lease lease(s.arenas, 1);
  AttentionMap map =
      map_by_method(s.models.front().host(), pair.request, attribution, lease.front(),
                    [&](std::span<const int32_t> ids, bool of_source) { return s.pieces(ids, of_source); });
  map.source = source;
  map.target = pair.translation;
  return map;
}

TranslationStates Translator::hidden(const std::string& source, const std::string& target,
                                     const TranslateOptions& options) const {
  const State& s = *state_;
  const AttendedPair pair = s.attended_pair(*this, source, target, options);
  const Transformer<float>& model = s.models.front().host();
  const AttendedTokens tokens = attended_tokens(model, pair.request);
  const ArenaPool::Lease lease(s.arenas, 1);
  const Arena::Scope scope(lease.front());
  Context context{.arena = lease.front(), .inference = true};
  Transformer<float>::Saved saved;
  model.forward(tokens.source, tokens.target, context, saved);
  return {pair.translation, states_of(saved.encoder, saved.memory, s.pieces(tokens.source.ids, true)),
          states_of(saved.decoder, saved.h, s.pieces(tokens.target.ids, false))};
}

LogitLens Translator::lens(const std::string& source, const std::string& target,
                           const TranslateOptions& options) const {
  const State& s = *state_;
  const AttendedPair pair = s.attended_pair(*this, source, target, options);
  const Transformer<float>& model = s.models.front().host();
  const AttendedTokens tokens = attended_tokens(model, pair.request);
  const ArenaPool::Lease lease(s.arenas, 1);
  LogitLens lens = logit_lens(model, tokens.source, tokens.target, lease.front(),
                              [&](std::span<const int32_t> ids) { return s.pieces(ids, false); });
  lens.source = source;
  lens.target = pair.translation;
  return lens;
}

BeamTrace Translator::trace(const std::string& source, const TranslateOptions& options) const {
  const State& s = *state_;
  if (options.sampling) fail("sampling must be false: a trace is of beam search");
  s.check(options);
  const SentenceEdges edges = s.text.edges(options);
  const std::vector<int32_t> ids = s.whole_source("source", source, edges);
  SearchOptions search = s.text.search_options(options);
  search.n_best = 1;
  BeamTrace trace{source, "", search.beam, search.length_penalty, {}};
  const auto traced = [&](const SearchStep::Hypothesis& h) {
    return TracedHypothesis{s.pieces({&h.token, 1}, false).front(), h.parent, h.token_log_probability,
                            h.log_probability, h.score};
  };
  search.on_step = [&](const SearchStep& step) {
    TracedStep& to = trace.steps.emplace_back();
    for (const SearchStep::Hypothesis& h : step.live) to.live.push_back(traced(h));
    for (const SearchStep::Hypothesis& h : step.ended) to.ended.push_back(traced(h));
  };
  const ArenaPool::Lease lease(s.arenas, 1);
  const std::vector<Decoded> found = n_best(s.models, {{ids, {}, edges.start}}, search, lease.front()).front();
  if (found.empty()) fail("the model's output is not a number");
  trace.translation = s.text.tokenizers().target.decode(found.front().ids);
  return trace;
}

Patching Translator::patch(const std::string& clean, const std::string& corrupted, const PatchOptions& patch,
                           const TranslateOptions& options) const {
  const State& s = *state_;
  check_ranges(patch);
  s.check(options);
  const SentenceEdges edges = s.text.edges(options);
  PatchedTexts texts{s.whole_source("clean", clean, edges), s.whole_source("corrupted", corrupted, edges)};
  check_patched_texts(s.pieces(texts.clean, true), s.pieces(texts.corrupted, true));
  texts.target = edges.start;
  for (const int32_t id : s.target_tokens("prefix", patch.prefix)) texts.target.push_back(id);
  s.check_whole("prefix", texts.target.size());
  if (!patch.answer.empty()) texts.answer = s.target_tokens("answer", patch.answer).front();
  if (!patch.wrong.empty()) texts.wrong = s.target_tokens("wrong", patch.wrong).front();
  const auto piece = [&](int32_t id) { return s.pieces({&id, 1}, false).front(); };
  if (texts.answer && texts.answer == texts.wrong)
    fail("answer and wrong begin with the same token, {}", excerpt(piece(*texts.answer)));
  const ArenaPool::Lease lease(s.arenas, 1);
  Patching found = patch_activations(s.models.front().host(), texts, patch.part, patch.stack, lease.front());
  const bool in_encoder = found.stack == PatchedStack::encoder;
  found.clean = s.pieces(in_encoder ? texts.clean : texts.target, in_encoder);
  found.corrupted = s.pieces(in_encoder ? texts.corrupted : texts.target, in_encoder);
  found.answer = piece(*texts.answer);
  if (texts.wrong) found.wrong = piece(*texts.wrong);
  return found;
}

// ---- The encoder's output and the logits of given targets, as rows of numbers

std::vector<int32_t> Translator::State::target_ids(const Target& target) const {
  if (const auto* given = std::get_if<std::string>(&target)) return text.target_ids(text.prepare(*given));
  return text.target_ids(std::get<std::vector<std::string>>(target));
}

ForcedPairs Translator::State::forced_pairs(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                                            const TranslateOptions& options) const {
  if (sources.size() != targets.size())
    fail("targets must be one for each of {} sources (are {})", sources.size(), targets.size());
  check(options);
  const SentenceEdges edges = text.edges(options);
  ForcedPairs pairs;
  for (const Target& target : targets) pairs.targets.push_back(target_ids(target));
  for (size_t i = 0; i < sources.size(); i++) {
    const std::string line = text.prepare(sources[i]);
    pairs.parts.push_back({static_cast<int64_t>(i), line, edges, text.source_ids(line, edges), {}, {}, {}});
    const std::vector<int32_t>& source = pairs.parts.back().source;
    if (source.empty()) fail("source {} is empty", i + 1);
    pairs.targets[i].push_back(text.search_options(options).end);
    check_length("source", i, std::ssize(source), models.max_length());
    check_length("target", i, std::ssize(pairs.targets[i]), models.max_length() - tokens_forced(edges.start));
  }
  for (size_t i = 0; i < sources.size(); i++)
    pairs.inputs.push_back({pairs.parts[i].source, pairs.targets[i], pairs.parts[i].edges.start});
  return pairs;
}

TokenRows Translator::logits(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                             const TranslateOptions& options) const {
  const State& s = *state_;
  const ForcedPairs pairs = s.forced_pairs(sources, targets, options);
  std::vector<int64_t> sizes, lengths;
  for (const ForcedInput& input : pairs.inputs) {
    lengths.push_back(std::ssize(input.target));
    sizes.push_back(std::ssize(input.source) + lengths.back());
  }
  TokenRows rows = token_rows(lengths, s.models.config().target_vocab);
  const Batches batches = cut_by_length(sizes, options.batch_tokens);
  const ArenaPool::Lease lease(s.arenas, 1);
  for (size_t b = 0; b < batches.size(); b++) {
    std::vector<ForcedInput> inputs;
    std::vector<Matrix<float>> places;
    for (const size_t i : batches[b]) {
      inputs.push_back(pairs.inputs[i]);
      places.push_back(rows_of(rows, i));
    }
    force_logits(s.models, inputs, s.text.search_options(options).start, lease.front(), places);
  }
  return rows;
}

TokenRows Translator::encode(const std::vector<std::string>& texts, const TranslateOptions& options) const {
  const State& s = *state_;
  s.check(options);
  const InferenceEngine& model = s.models.front();
  const SentenceEdges edges = s.text.edges(options);
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < texts.size(); i++) {
    ids.push_back(s.text.source_ids(s.text.prepare(texts[i]), edges));
    if (ids.back().empty()) fail("text {} is empty", i + 1);
    lengths.push_back(std::ssize(ids.back()));
    check_length("text", i, lengths.back(), model.config().max_length);
  }
  TokenRows rows = token_rows(lengths, model.config().d_model);
  const Batches batches = cut_by_length(lengths, options.batch_tokens);
  const ArenaPool::Lease lease(s.arenas, 1);
  for (size_t b = 0; b < batches.size(); b++) {
    Packed packed;
    for (const size_t i : batches[b]) packed.append(ids[i]);
    const Arena::Scope scope(lease.front());
    Context context{.arena = lease.front(), .inference = true};
    const Matrix<float> h = model.hidden(packed, context);
    for (size_t k = 0; k < batches[b].size(); k++) {
      const Matrix<float> to = rows_of(rows, batches[b][k]);
      for (int64_t n = 0; n < to.rows; n++) std::copy_n(h.row(packed.offsets[k] + n), to.cols, to.row(n));
    }
  }
  return rows;
}

}  // namespace qkv
