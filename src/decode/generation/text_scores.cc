// Log-probabilities of the tokens of texts, in windows that overlap: each token after as many others as the context
// has.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
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

}  // namespace qkv
