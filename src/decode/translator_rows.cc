// The encoder's output and the logits of given targets, as rows of numbers, and the pairs that are scored.
#include <algorithm>
#include <tuple>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/search/batched.h"
#include "decode/translator_state.h"

namespace qkv {
namespace {

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

void check_count(size_t sources, size_t targets) {
  if (sources != targets) fail("targets must be one for each of {} sources (are {})", sources, targets);
}

void check_length(const char* side, size_t i, int64_t length, int64_t longest) {
  if (length > longest) fail("{} {} must have at most {} tokens (has {})", side, i + 1, longest, length);
}

}  // namespace

std::vector<std::vector<int32_t>> Translator::State::target_ids(size_t sources,
                                                                const std::vector<std::string>& targets) const {
  check_count(sources, targets.size());
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& target : targets) ids.push_back(text.target_ids(text.prepare(target)));
  return ids;
}

std::vector<std::vector<int32_t>> Translator::State::target_ids(
    size_t sources, const std::vector<std::vector<std::string>>& targets) const {
  check_count(sources, targets.size());
  std::vector<std::vector<int32_t>> ids;
  for (const auto& target : targets) ids.push_back(text.target_ids(target));
  return ids;
}

ForcedPairs Translator::State::forced_pairs(const std::vector<std::string>& sources,
                                            std::vector<std::vector<int32_t>> targets,
                                            const TranslateOptions& options) const {
  check(options);
  const SentenceEdges edges = text.edges(options);
  ForcedPairs pairs;
  pairs.targets = std::move(targets);
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

TokenRows Translator::State::logits(const ForcedPairs& pairs, const TranslateOptions& options) const {
  std::vector<int64_t> sizes, lengths;
  for (const ForcedInput& input : pairs.inputs) {
    lengths.push_back(std::ssize(input.target));
    sizes.push_back(std::ssize(input.source) + lengths.back());
  }
  TokenRows rows = token_rows(lengths, models.front().config().target_vocab);
  const Batches batches = cut_by_length(sizes, options.batch_tokens);
  const ArenaPool::Lease lease(arenas, 1);
  for (size_t b = 0; b < batches.size(); b++) {
    std::vector<ForcedInput> inputs;
    std::vector<Matrix<float>> places;
    for (const size_t i : batches[b]) {
      inputs.push_back(pairs.inputs[i]);
      places.push_back(rows_of(rows, i));
    }
    force_logits(models, inputs, text.search_options(options).start, lease.front(), places);
  }
  return rows;
}

TokenRows Translator::logits(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                             const TranslateOptions& options) const {
  const State& s = *state_;
  return s.logits(s.forced_pairs(sources, s.target_ids(sources.size(), targets), options), options);
}

TokenRows Translator::logits_tokens(const std::vector<std::string>& sources,
                                    const std::vector<std::vector<std::string>>& targets,
                                    const TranslateOptions& options) const {
  const State& s = *state_;
  return s.logits(s.forced_pairs(sources, s.target_ids(sources.size(), targets), options), options);
}

TokenRows Translator::encode(const std::vector<std::string>& texts, const TranslateOptions& options) const {
  const State& s = *state_;
  s.check(options);
  const Transformer<float>& model = s.models.front();
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
    const Matrix<float> h = model.encode(packed, context);
    for (size_t k = 0; k < batches[b].size(); k++) {
      const Matrix<float> to = rows_of(rows, batches[b][k]);
      for (int64_t n = 0; n < to.rows; n++) std::copy_n(h.row(packed.offsets[k] + n), to.cols, to.row(n));
    }
  }
  return rows;
}

}  // namespace qkv
