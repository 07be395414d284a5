#include "train/tasks/label_evaluator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/to_size.h"
#include "data/batcher.h"
#include "io/runs/text_head_file.h"
#include "model/text_parts.h"
#include "ops/label_loss.h"
#include "ranks/gather_blocks.h"
#include "train/evaluation/label_measures.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

constexpr int64_t kBlockRows = 256;

// Returns the index of the largest value, of equal ones the first.
float place_of_largest(std::span<const float> z) { return static_cast<float>(std::ranges::max_element(z) - z.begin()); }

}  // namespace

Loss LabelObjective::loss_of(const LabelledBatch& batch, double smoothing, Matrix<const float> z,
                             Matrix<float> dz) const {
  Loss sum;
  sum.tokens = batch.rows();
  sum.loss = label_loss<float>(loss, batch.targets(weights, smoothing), z, dz);
  sum.nll = smoothing > 0 ? label_loss<float>(loss, batch.targets(weights, 0), z, {}) : sum.loss;
  return sum;
}

LabelEvaluator::LabelEvaluator(const LabelledTexts& texts, std::vector<int64_t> units, const LabelObjective& objective,
                               int64_t batch_tokens)
    : texts_(texts), units_(std::move(units)), objective_(objective), batch_tokens_(batch_tokens) {
  const auto rows_of = [&](int64_t i) { return texts_.rows_of(units_[to_size(i)]); };
  blocks_ = batch_offsets(std::ssize(units_), std::max(kBlockRows, texts_.scan().longest_list), rows_of);
  rows_before_ = {0};
  for (size_t b = 1; b < blocks_.size(); b++) {
    rows_before_.push_back(rows_before_.back());
    for (int64_t i = blocks_[b - 1]; i < blocks_[b]; i++) rows_before_.back() += rows_of(i);
  }
}

Metric LabelEvaluator::metric() const {
  switch (objective_.kind) {
    case LabelKind::one:
      return {"accuracy"};
    case LabelKind::several:
      return {"f1_micro"};
    case LabelKind::number:
      break;
  }
  return {texts_.has_lists() ? "NDCG@10" : "spearman"};
}

DevScore LabelEvaluator::evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                                  Arena& arena) const {
  const int64_t labels = model.text_head()->width(), width = record_width(labels);
  std::vector<int64_t> begins;
  for (const int64_t row : rows_before_) begins.push_back(row * width);
  std::vector<float> records(to_size(begins.back()));
  const auto block_of = [&](int64_t b) {
    return std::span(records).subspan(to_size(begins[to_size(b)]),
                                      to_size(begins[to_size(b + 1)] - begins[to_size(b)]));
  };
  const Loss loss = loss_of_batches(partition, std::ssize(blocks_) - 1,
                                    [&](int64_t b) { return score_block(model, b, smoothing, arena, block_of(b)); });
  gather_blocks(partition, begins, records);
  DevScore score;
  score.breaks_ties = true;
  const auto rows_scored = static_cast<double>(rows());
  score.loss = loss.loss / rows_scored;
  score.measures.push_back({"loss", loss.nll / rows_scored, 4});
  const auto found = measures(records, labels);
  score.metric = found.front().value;
  score.measures.insert(score.measures.end(), found.begin(), found.end());
  score.write_more = [&model](const RunDirectory& run) { write_text_head(run, model); };
  return score;
}

Loss LabelEvaluator::score_block(const Transformer<float>& model, int64_t block, double smoothing, Arena& arena,
                                 std::span<float> records) const {
  LabelledBatch batch;
  const int64_t first = blocks_[to_size(block)], end = blocks_[to_size(block + 1)];
  texts_.fill(std::span(units_).subspan(to_size(first), to_size(end - first)), batch);
  const int64_t labels = model.text_head()->width();
  std::vector<float> outputs(to_size(batch.rows() * labels));
  const Matrix<float> z(outputs.data(), batch.rows(), labels);
  Context context{.arena = arena, .inference = true};
  TextParts<float>().outputs(model, batch.texts, batch_tokens_, context, z);
  const size_t width = to_size(record_width(labels)), K = to_size(labels);
  for (size_t i = 0; i < to_size(batch.rows()); i++) {
    const std::span<const float> own = std::span<const float>(outputs).subspan(i * K, K);
    const std::span<float> record = records.subspan(i * width, width);
    if (objective_.kind == LabelKind::one) {
      record[0] = static_cast<float>(batch.labels[i]);
      record[1] = place_of_largest(own);
    } else {
      const size_t half = width / 2;
      std::copy_n(batch.values.begin() + static_cast<std::ptrdiff_t>(i * half), half, record.begin());
      std::copy_n(own.begin(), half, record.begin() + static_cast<std::ptrdiff_t>(half));
    }
  }
  return objective_.loss_of(batch, smoothing, z, {});
}

std::vector<EvaluationReport::Measure> LabelEvaluator::measures(std::span<const float> records, int64_t labels) const {
  const LabelRecords of_rows{objective_.kind, labels, records};
  if (objective_.kind != LabelKind::number) return label_measures(label_scores(of_rows), objective_.kind);
  if (!texts_.has_lists()) return number_measures(of_rows, objective_.loss == LabelLoss::sigmoid);
  std::vector<int64_t> lists = {0};
  for (const int64_t unit : units_) lists.push_back(lists.back() + texts_.rows_of(unit));
  return order_measures(of_rows, lists);
}

}  // namespace qkv
