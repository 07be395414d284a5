// Log-probabilities of the tokens of a text, in one pass over all of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/generation/generator_model.h"
#include "ops/cross_entropy.h"

namespace qkv {
namespace {

constexpr int64_t kScoredRows = 256;  // tokens whose log p are held at once

}  // namespace

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
  for (int64_t begin = 0; begin < h.rows; begin += kScoredRows) {
    const Arena::Scope block(arena);
    const Matrix<float> log_p = model.output().logits(h.row_range(begin, std::min(h.rows, begin + kScoredRows)), c);
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
