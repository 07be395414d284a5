#include "analysis/heads/collect_scores.h"

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kParts = 3;

// Returns the token keys of each text and part of the model, [text][part].
std::vector<std::vector<TokenKeys>> keys_of(const HeadTexts& texts, std::span<const size_t> chosen) {
  std::vector<std::vector<TokenKeys>> keys;
  for (const size_t t : chosen) {
    keys.emplace_back();
    for (size_t part = 0; part < kParts; part++)
      keys.back().emplace_back(AttentionAxes{static_cast<AttentionPart>(part), texts.texts[t]}, texts.kind);
  }
  return keys;
}

bool has_part(const ModelConfig& config, AttentionPart part) {
  if (part == AttentionPart::encoder) return config.has_encoder();
  return config.has_decoder() && (part == AttentionPart::decoder || config.has_encoder());
}

}  // namespace

CollectedScores collect_scores(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
                               const WordAgreements& agreements, bool of_texts) {
  const size_t tokens = token_scores().size(), shapes = shape_scores().size();
  CollectedScores all;
  all.places = all_heads(texts.config());
  HeadSums empty{std::vector<RowSum>(tokens), std::vector<RowSum>(shapes),
                 std::vector<std::vector<float>>(of_texts ? tokens : 0, std::vector<float>(texts.texts.size(), -1)),
                 std::vector<int64_t>(agreements.size())};
  all.heads.assign(all.places.size(), empty);
  all.token_uniform.assign(kParts, std::vector<RowSum>(tokens));
  all.shape_uniform.assign(kParts, std::vector<RowSum>(shapes));
  std::vector<size_t> place_in_batch(texts.texts.size());
  for (const std::vector<size_t>& chosen : batches) {
    const std::vector<std::vector<TokenKeys>> keys = keys_of(texts, chosen);
    for (size_t k = 0; k < chosen.size(); k++) {
      place_in_batch[chosen[k]] = k;
      for (size_t part = 0; part < kParts; part++) {
        const AttentionAxes axes{static_cast<AttentionPart>(part), texts.texts[chosen[k]]};
        if (!has_part(texts.config(), axes.part)) continue;
        for (size_t s = 0; s < tokens; s++) all.token_uniform[part][s] += keys[k][part].uniform(s);
        for (size_t s = 0; s < shapes; s++) all.shape_uniform[part][s] += uniform_shape_sum(shape_scores()[s], axes);
      }
    }
    visit_weights(texts, chosen, arena, [&](size_t p, size_t t, Matrix<const float> A) {
      const AttentionPart part = all.places[p].part;
      const AttentionAxes axes{part, texts.texts[t]};
      HeadSums& head = all.heads[p];
      for (size_t s = 0; s < tokens; s++) {
        const RowSum sum = keys[place_in_batch[t]][to_size(part)].of(s, A);
        head.token_scores[s] += sum;
        if (of_texts && sum.rows > 0) head.of_texts[s][t] = static_cast<float>(sum.mean());
      }
      for (size_t s = 0; s < shapes; s++) head.shape_scores[s] += shape_sum(shape_scores()[s], axes, A);
      agreements.count(part, t, A, head.hits);
    });
  }
  return all;
}

}  // namespace qkv
