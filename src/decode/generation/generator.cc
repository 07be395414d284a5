#include "qkv/generator.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "analysis/hidden_states.h"
#include "analysis/logit_lens.h"
#include "analysis/patching.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "decode/attend.h"
#include "decode/generation/generator_model.h"
#include "ops/cross_entropy.h"

namespace qkv {
namespace {

constexpr int64_t kBatchTokens = 2048;  // tokens of the windows that are read at once, unless one window has more
constexpr int64_t kLogitRows = 256;     // tokens whose log p are held at once

// A part of a text that is read at once: tokens [begin, end) of the text with its start token, of which those from
// `scored` on get their log-probability here.
struct ScoreWindow {
  size_t text = 0;
  int64_t begin = 0, scored = 0, end = 0;

  int64_t length() const { return end - begin - 1; }  // nothing follows the last token
};

std::vector<ScoreWindow> windows_of(size_t text, int64_t tokens, int64_t context, int64_t stride) {
  std::vector<ScoreWindow> windows;
  for (int64_t begin = 0, before = 0; before < tokens; begin += stride) {
    const int64_t end = std::min(begin + context, tokens), scored = std::max(before, begin + 1);
    if (scored < end) windows.push_back({text, begin, scored, end});
    before = end;
  }
  return windows;
}

// Returns the options with their defaults. Throws Error for values out of range.
ScoreOptions filled(ScoreOptions options, int64_t max_length) {
  check_ranges(options);
  if (options.context == 0) options.context = max_length;
  if (options.context < 2 || options.context > max_length)
    fail("context must be between 2 and {}, the model's max_length (is {})", max_length, options.context);
  if (options.stride == 0) options.stride = options.context / 2;
  if (options.stride > options.context)
    fail("stride must be at most context, {} (is {})", options.context, options.stride);
  return options;
}

// Texts that are scored. ids: with the start token, if the model has one.
class TextScorer {
 public:
  using TokenOf = std::function<GeneratedToken(const GeneratedIds&, bool first)>;

  TextScorer(const LanguageRun& run, TokenOf token_of, int64_t alternatives)
      : run_(run), token_of_(std::move(token_of)), alternatives_(alternatives) {}

  std::vector<std::vector<int32_t>> ids = {};
  std::vector<TextScore> scores = {};

  void add(std::vector<int32_t> tokens) {
    std::vector<int32_t> all;
    if (!tokens.empty()) all = run_.ends.beginning(tokens);
    starts_.push_back(all.size() - tokens.size());
    TextScore& score = scores.emplace_back();
    for (size_t i = 0; i < tokens.size(); i++)
      score.tokens.push_back(token_of(tokens[i], std::numeric_limits<float>::quiet_NaN(), {}, i == 0));
    ids.push_back(std::move(all));
  }

  void read(std::span<const ScoreWindow> windows, Arena& arena) {
    const Arena::Scope scope(arena);
    Context c{.arena = arena, .inference = true};
    Packed packed;
    for (const ScoreWindow& w : windows)
      packed.append(std::span(ids[w.text]).subspan(to_size(w.begin), to_size(w.length())));
    const Matrix<float> h = run_.model->hidden(packed, c);
    int64_t row = 0;
    for (const ScoreWindow& w : windows) {
      for (int64_t place = w.scored; place < w.end; place += kLogitRows) {
        const int64_t begin = row + place - w.begin - 1, count = std::min(kLogitRows, w.end - place);
        take(w.text, place, h.row_range(begin, begin + count), c);
      }
      row += w.length();
    }
  }

 private:
  GeneratedToken token_of(int32_t id, float log_p, GeneratedIds::Alternatives others, bool first) const {
    GeneratedIds scored{{id}, {log_p}, {}};
    if (!others.empty()) scored.alternatives.push_back(std::move(others));
    return token_of_(scored, first);
  }

  // Scores the tokens from `place` on, each of which follows a row of h.
  void take(size_t text, int64_t place, Matrix<float> h, Context& c) {
    const Arena::Scope block(c.arena);
    const Matrix<float> log_p = run_.model->output().logits(h, c);
    log_softmax<float>(log_p);
    TextScore& score = scores[text];
    for (int64_t n = 0; n < log_p.rows; n++) {
      const std::span<const float> row(log_p.row(n), to_size(log_p.cols));
      if (std::isnan(row.front())) fail("the model's output is not finite");
      const size_t i = to_size(place + n) - starts_[text];
      const int32_t id = ids[text][to_size(place + n)];
      const float found = row[to_size(id)];
      score.tokens[i] = token_of(
          id, found, alternatives_ > 0 ? most_probable(row, alternatives_) : GeneratedIds::Alternatives(), i == 0);
      score.log_probability += static_cast<double>(found);
      score.scored++;
    }
  }

  const LanguageRun& run_;
  const TokenOf token_of_;
  const int64_t alternatives_;
  std::vector<size_t> starts_;  // number of start tokens of each text
};

}  // namespace

bool holds_language_model(const std::string& run_directory) {
  return std::filesystem::exists(RunDirectory(run_directory).language());
}

Generator::Generator(const std::string& run_directory, int64_t cache_bytes, const Placement& placement)
    : model_(std::make_unique<const Model>(run_directory, cache_bytes, placement)) {
  if (cache_bytes < 0) fail("cache_bytes must be at least 0 (is {})", cache_bytes);
}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Generation Generator::generate(const std::string& prompt, const GenerateOptions& options) const {
  return std::move(generate_all({prompt}, options).front());
}

std::vector<Generation> Generator::generate_all(const std::vector<std::string>& prompts, const GenerateOptions& options,
                                                const Done& done) const {
  Prompts ids;
  for (size_t i = 0; i < prompts.size(); i++)
    ids.push_back(
        model_->run.codec.encode(prompts[i], prompts.size() == 1 ? "prompt" : fmt::format("prompt {}", i + 1)));
  std::vector<GrowingText> texts;
  for (const std::string& prompt : prompts) texts.emplace_back(*model_, options, prompt.empty());
  std::vector<Generation> results(prompts.size());
  std::vector<char> complete(prompts.size());
  size_t front = 0;  // the first text that is not done
  const auto emit = [&](size_t i) {
    const std::string_view piece = texts[i].next_piece();
    if (options.on_text && !piece.empty()) options.on_text(piece);
  };
  const auto on_token = [&](size_t i, const GeneratedIds& found) {
    const bool stops = texts[i].add(found);
    if (i == front) emit(i);
    return stops;
  };
  model_->generate(ids, {{options}, {}, on_token}, [&](size_t i, GeneratedIds&& found) {
    texts[i].finish(found.end);
    complete[i] = true;
    for (; front < results.size() && complete[front]; front++) {
      emit(front);
      results[front] = texts[front].take();
      if (done) done(front, results[front]);
    }
    if (front < results.size()) emit(front);
  });
  return results;
}

std::vector<int32_t> Generator::encode(const std::string& text, bool plain) const {
  const TextCodec& codec = model_->run.codec;
  return plain ? codec.encode_plain(text, "prompt") : codec.encode(text, "prompt");
}

std::vector<int32_t> Generator::with_start(std::vector<int32_t> tokens) const {
  return model_->run.ends.beginning(tokens);
}

std::string Generator::decode(const std::vector<int32_t>& tokens) const { return model_->run.codec.decode(tokens); }

std::optional<int32_t> Generator::token(const std::string& spelling) const {
  const TextUnit unit = model_->run.codec.unit();
  if (unit == TextUnit::characters || unit == TextUnit::bytes) return std::nullopt;
  return model_->run.codec.id(spelling);
}

int64_t Generator::max_length() const { return model_->run.model->config().max_length; }

AttentionMap Generator::attend(const std::string& text, int64_t more, const AttributionOptions& attribution) const {
  qkv::check(attribution);
  const Transformer<float>& model = *model_->run.model;
  AttendRequest request;
  const std::vector<int32_t> beginning = model_->whole_text(text, "text");
  request.target_ids = model_->run.codec.encode(text, "text");
  request.start.clear();
  if (beginning.size() > request.target_ids.size()) request.start = {beginning.front()};
  const int64_t room = model.config().max_length - std::ssize(beginning);
  std::vector<int32_t> generated;
  GenerationOptions greedy;
  greedy.max_tokens = std::min(more, room);
  greedy.temperature = 0;
  model_->generate({request.target_ids}, greedy,
                   [&](size_t, GeneratedIds&& found) { generated = std::move(found.ids); });
  request.target_ids.insert(request.target_ids.end(), generated.begin(), generated.end());
  request.target_baseline = model_->first_token(attribution.baseline, "baseline");
  const ArenaPool::Lease lease(model_->arenas, 1);
  AttentionMap map = map_by_method(model, request, attribution, lease.front(),
                                   [&](std::span<const int32_t> ids, bool) { return model_->pieces(ids); });
  map.source = text;
  map.target = model_->run.codec.decode(generated, text.empty());
  return map;
}

HiddenStates Generator::hidden(const std::string& text) const {
  Packed packed;
  packed.append(model_->whole_text(text, "text"));
  const ArenaPool::Lease lease(model_->arenas, 1);
  return hidden_states(*model_->run.model, packed, lease.front(), model_->pieces(packed.ids));
}

LogitLens Generator::lens(const std::string& text) const {
  Packed packed;
  packed.append(model_->whole_text(text, "text"));
  const ArenaPool::Lease lease(model_->arenas, 1);
  LogitLens lens = logit_lens(*model_->run.model, {}, packed, lease.front(),
                              [&](std::span<const int32_t> ids) { return model_->pieces(ids); });
  lens.source = text;
  return lens;
}

Patching Generator::patch(const std::string& clean, const std::string& corrupted, const PatchOptions& options) const {
  check_ranges(options);
  if (!options.prefix.empty())
    fail("prefix must not be set for a language model, whose texts it belongs to (is {})", excerpt(options.prefix));
  PatchedTexts texts{model_->whole_text(clean, "clean"), model_->whole_text(corrupted, "corrupted")};
  std::vector<std::string> clean_pieces = model_->pieces(texts.clean),
                           corrupted_pieces = model_->pieces(texts.corrupted);
  check_patched_texts(clean_pieces, corrupted_pieces);
  texts.answer = model_->first_token(options.answer, "answer");
  texts.wrong = model_->first_token(options.wrong, "wrong");
  const auto piece = [&](const int32_t& id) { return model_->pieces({&id, 1}).front(); };
  if (texts.answer && texts.answer == texts.wrong)
    fail("answer and wrong begin with the same token, {}", excerpt(piece(*texts.answer)));
  const ArenaPool::Lease lease(model_->arenas, 1);
  Patching found = patch_activations(*model_->run.model, texts, options.part, options.stack, lease.front());
  found.clean = std::move(clean_pieces);
  found.corrupted = std::move(corrupted_pieces);
  found.answer = piece(*texts.answer);
  if (texts.wrong) found.wrong = piece(*texts.wrong);
  return found;
}

// ---- Scores of texts

double TextScore::perplexity() const {
  if (scored == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::exp(-log_probability / static_cast<double>(scored));
}

std::vector<TextScore> Generator::score_all(const std::vector<std::string>& texts, const ScoreOptions& given) const {
  const ScoreOptions options = filled(given, max_length());
  const auto token_of = [this](const GeneratedIds& ids, bool first) { return model_->token_of(ids, first); };
  TextScorer scorer(model_->run, token_of, options.alternatives);
  std::vector<ScoreWindow> windows;
  for (size_t i = 0; i < texts.size(); i++) {
    scorer.add(model_->run.codec.encode(texts[i], texts.size() == 1 ? "text" : fmt::format("text {}", i + 1)));
    const auto own = windows_of(i, std::ssize(scorer.ids[i]), options.context, options.stride);
    windows.insert(windows.end(), own.begin(), own.end());
  }
  const ArenaPool::Lease lease(model_->arenas, 1);
  for (auto begin = windows.begin(); begin != windows.end();) {
    int64_t tokens = 0;
    auto end = begin;
    while (end != windows.end() && (end == begin || tokens + end->length() <= kBatchTokens)) tokens += end++->length();
    scorer.read({begin, end}, lease.front());
    begin = end;
  }
  return std::move(scorer.scores);
}

std::vector<GeneratedToken> Generator::score(const std::vector<int32_t>& tokens, int64_t alternatives) const {
  if (tokens.empty()) return {};
  const Transformer<float>& model = *model_->run.model;
  const int64_t vocab = model.config().target_vocab;
  for (const int32_t token : tokens)
    if (token < 0 || token >= vocab) fail("tokens must be from 0 to {} (one is {})", vocab - 1, token);
  const std::span<const int32_t> read = std::span(tokens).first(tokens.size() - 1);
  if (std::ssize(read) > max_length()) fail("tokens must be at most {} (are {})", max_length() + 1, tokens.size());
  GeneratedIds scored;
  std::vector<GeneratedToken> result;
  const auto add = [&](float log_p, GeneratedIds::Alternatives others) {
    scored.ids.push_back(tokens[result.size()]);
    scored.log_probabilities.push_back(log_p);
    scored.alternatives.push_back(std::move(others));
    result.push_back(model_->token_of(scored, result.empty()));
  };
  add(std::numeric_limits<float>::quiet_NaN(), {});
  if (tokens.size() == 1) return result;

  const ArenaPool::Lease lease(model_->arenas, 1);
  Arena& arena = lease.front();
  const Arena::Scope scope(arena);
  Context c{.arena = arena, .inference = true};
  Packed text;
  text.append(read);
  const Matrix<float> h = model.hidden(text, c);
  for (int64_t begin = 0; begin < h.rows; begin += kLogitRows) {
    const Arena::Scope block(arena);
    const Matrix<float> log_p = model.output().logits(h.row_range(begin, std::min(h.rows, begin + kLogitRows)), c);
    log_softmax<float>(log_p);
    for (int64_t n = 0; n < log_p.rows; n++) {
      const std::span<const float> row(log_p.row(n), to_size(log_p.cols));
      if (std::isnan(row.front())) fail("the model's output is not finite");
      add(row[to_size(tokens[result.size()])],
          alternatives > 0 ? most_probable(row, alternatives) : GeneratedIds::Alternatives());
    }
  }
  return result;
}

}  // namespace qkv
