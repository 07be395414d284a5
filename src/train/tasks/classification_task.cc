#include "train/tasks/classification_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/to_size.h"
#include "core/vector_bytes.h"
#include "data/batcher.h"
#include "data/examples/shuffled_rows.h"
#include "model/text_parts.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"
#include "train/text_start.h"

namespace qkv {

int64_t LabelledPart::rows() const {
  int64_t sum = 0;
  for (const int64_t unit : units) sum += texts->rows_of(unit);
  return sum;
}

std::string LabelledPart::fingerprint() const { return rows_fingerprint(texts->file(), units); }

ClassificationTask::Epoch ClassificationTask::shuffled(const ClassifierRecipe& recipe, const LabelledPart& train,
                                                       int64_t epoch) {
  Epoch shuffled{epoch};
  const auto seed = static_cast<uint64_t>(recipe.training.seed);
  shuffled.units = shuffled_rows(std::ssize(train.units), seed, epoch);
  for (int64_t& unit : shuffled.units) unit = train.units[to_size(unit)];
  const int64_t most = std::max(recipe.labels.examples, train.texts->scan().longest_list);
  shuffled.offsets = batch_offsets(std::ssize(shuffled.units), most,
                                   [&](int64_t i) { return train.texts->rows_of(shuffled.units[to_size(i)]); });
  return shuffled;
}

int64_t ClassificationTask::batches(const ClassifierRecipe& recipe, const LabelledPart& train) {
  return shuffled(recipe, train, 0).batches();
}

ClassificationTask::ClassificationTask(const ClassifierRecipe& recipe, const LabelledPart& train,
                                       const LabelledPart& dev, const LabelObjective& objective)
    : recipe_(recipe),
      train_(train),
      objective_(objective),
      evaluator_(*dev.texts, dev.units, objective, recipe.training.batch_tokens),
      longest_(std::max(train.texts->scan().longest, dev.texts->scan().longest)),
      fingerprint_(rows_fingerprint(train.fingerprint(), dev.fingerprint())) {}

bool ClassificationTask::seek(const StreamPosition& position) {
  if (epoch_.number != position.epoch) epoch_ = shuffled(recipe_, train_, position.epoch);
  position_ = position;
  return position.window == 0 && position.batch < epoch_.batches();
}

void ClassificationTask::next() {
  train_.texts->fill(epoch_.batch(position_.batch), batch_);
  skip();
}

void ClassificationTask::skip() {
  if (++position_.batch == epoch_.batches()) seek({position_.epoch + 1, 0, 0});
}

std::string ClassificationTask::summary() const {
  return fmt::format("training data: {} rows, {} batches per epoch; {} rows for evaluation", train_.rows(),
                     epoch_.batches(), evaluator_.rows());
}

Loss ClassificationTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  const auto loss_of = [&](Matrix<const float> z, Matrix<float> dz) {
    return objective_.loss_of(batch_, recipe_.training.label_smoothing, z, dz);
  };
  return gradients.loss_and_gradient(batch_.texts, loss_of, recipe_.training.batch_tokens, c);
}

// Rows of both sides are tokens of the texts.
std::string ClassificationTask::places(const StreamPosition& position, TokenSide, std::span<const int64_t> rows) {
  seek(position);
  LabelledBatch batch;
  train_.texts->fill(epoch_.batch(position.batch), batch);
  const Packed& texts = batch.texts.labelled();
  std::vector<int64_t> sequences = texts.sequences_of(rows);
  for (int64_t s = 0; rows.empty() && s < texts.sequences(); s++) sequences.push_back(s);
  LineRanges lines;
  for (const int64_t s : sequences) lines.emplace_back(batch.lines[to_size(s)], batch.lines[to_size(s)]);
  std::ranges::sort(lines);
  return name_lines(lines, train_.texts->file().path());
}

DevScore ClassificationTask::evaluate(const Transformer<float>& model, Arena& arena) {
  return evaluator_.evaluate(model, recipe_.training.label_smoothing, partition_, arena);
}

// A part with most tokens, in as many sequences as a batch has, and if batches may have more tokens, a second part.
void ClassificationTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const TrainingConfig& config = recipe_.training;
  const int64_t rows = std::max(recipe_.labels.examples, train_.texts->scan().longest_list), longest = longest_;
  const int64_t tokens = std::min(rows * longest, std::max({config.batch_tokens, longest, rows}));
  batch_.clear();
  const auto add = [&](int64_t length) {
    const std::vector<int32_t> zeros(to_size(length));
    append_text(candidate.config(), zeros, zeros, batch_.texts);
    batch_.lines.push_back(0);
  };
  add(longest);
  for (int64_t left = tokens - longest, i = rows - 1; i > 0; i--) {
    const int64_t length = std::clamp<int64_t>(left / i, 1, longest);
    add(length);
    left -= length;
  }
  if (rows * longest > config.batch_tokens) add(longest);
  batch_.labels.assign(to_size(batch_.rows()), 0);
  batch_.values.assign(to_size(batch_.rows() * candidate.text_head()->width()), 0);
  if (train_.texts->has_lists()) batch_.groups = {0, static_cast<int32_t>(batch_.rows())};
  Context training = training_context(arena, config, 0);
  loss_and_gradient(gradients, training);
  std::vector<float> outputs(batch_.values.size());
  Context evaluation{.arena = arena, .inference = true};
  TextParts<float>().outputs(candidate, batch_.texts, config.batch_tokens, evaluation,
                             {outputs.data(), batch_.rows(), candidate.text_head()->width()});
}

size_t ClassificationTask::data_bytes() const {
  return vector_bytes(train_.units) + vector_bytes(epoch_.units) + vector_bytes(epoch_.offsets) +
         vector_bytes(train_.texts->scan().lists);
}

}  // namespace qkv
