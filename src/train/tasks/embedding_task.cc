#include "train/tasks/embedding_task.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "data/examples/shuffled_rows.h"
#include "decode/encoder/text_ids.h"
#include "io/runs/text_head_file.h"
#include "model/text_parts.h"
#include "ops/rows.h"
#include "ranks/gather_blocks.h"
#include "train/engine/gradient_engine.h"
#include "train/loop/dry_run.h"
#include "train/tasks/objective.h"
#include "train/tasks/source_locations.h"
#include "train/text_start.h"

namespace qkv {
namespace {

// Returns the configuration for dev rows: with the loss of training if they have the columns and the vectors of a
// teacher that it needs, otherwise with the loss of their columns.
EmbedderConfig for_dev(EmbedderConfig config, const EmbeddingData& data) {
  const RowColumns& columns = data.dev.columns();
  const bool lacks_vectors = data.teacher && data.teacher->is_file() && &data.dev.file() != &data.train.file();
  if (lacks_vectors || !allows(config.loss, columns)) config.loss = usual_loss(columns);
  if (config.loss != VectorLoss::info_nce) config.symmetric = false;
  return config;
}

constexpr int64_t kBlock = 256;  // dev texts whose vectors a rank computes at once

Similarity similarity_of(const EmbedderConfig& config, bool normalizes) {
  return normalizes ? Similarity::cosine : config.similarity;
}

}  // namespace

int64_t EmbeddingTask::batches(const EmbedderRecipe& recipe, const TextRows& train) {
  const int64_t examples = recipe.embedder.examples;
  return (train.size() + examples - 1) / examples;
}

EmbeddingTask::EmbeddingTask(const EmbedderRecipe& recipe, const EmbeddingData& data)
    : recipe_(recipe),
      data_(data),
      normalizes_(recipe.embedder.normalize == NormalizeChoice::on),
      loss_(recipe.embedder, data.width, normalizes_),
      dev_loss_(for_dev(recipe.embedder, data), data.width, normalizes_),
      doubles_texts_(recipe.embedder.loss == VectorLoss::info_nce && data.train.columns().texts == 1) {
  read_dev();
}

void EmbeddingTask::read_dev() {
  std::vector<int64_t> all(to_size(data_.dev.size()));
  std::iota(all.begin(), all.end(), 0);
  const RowTexts rows = data_.dev.read(all);
  dev_.rows = std::ssize(all);
  dev_.columns = data_.dev.columns().texts;
  dev_.scores = rows.scores;
  if (dev_.columns > 1 && dev_.scores.empty()) dev_.find_equal(rows.texts);
  dev_examples_.ids = examples_of(data_.dev, rows).ids;
  if (dev_loss_.needs_teacher()) dev_examples_.targets.teacher = teacher_vectors(rows);
  dev_examples_.targets.scores = dev_loss_.scaled(rows.scores);
}

std::string EmbeddingTask::fingerprint() const {
  return rows_fingerprint(data_.train.fingerprint(), data_.dev.fingerprint()) +
         (data_.teacher ? ", teacher " + data_.teacher_hash : "");
}

bool EmbeddingTask::seek(const StreamPosition& position) {
  if (position.epoch != position_.epoch) previous_ = std::exchange(counts_, {});
  order_ = shuffled_rows(data_.train.size(), static_cast<uint64_t>(recipe_.training.seed), position.epoch);
  position_ = position;
  return position.window == 0 && position.batch < batches(recipe_, data_.train);
}

std::vector<int64_t> EmbeddingTask::rows_of(std::span<const int64_t> order, int64_t batch) const {
  const auto rows = order.subspan(to_size(batch * recipe_.embedder.examples));
  const auto count = std::min(rows.size(), to_size(recipe_.embedder.examples));
  return {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count)};
}

void EmbeddingTask::next() {
  RowTexts rows = data_.train.read(rows_of(order_, position_.batch));
  counts_.read += std::ssize(rows.lines);
  counts_.dropped += std::ssize(rows.lines);
  if (drops_rows()) drop_repeated_rows(rows);
  counts_.dropped -= std::ssize(rows.lines);
  Examples examples = examples_of(data_.train, rows);
  if (doubles_texts_) {
    const std::vector<std::vector<int32_t>> once = examples.ids;
    examples.ids.insert(examples.ids.end(), once.begin(), once.end());
  }
  fill_texts(examples.ids, batch_);
  targets_.scores = loss_.scaled(rows.scores);
  if (loss_.needs_teacher()) targets_.teacher = teacher_vectors(rows);
  skip();
}

void EmbeddingTask::skip() {
  if (++position_.batch == batches(recipe_, data_.train)) seek({position_.epoch + 1, 0, 0});
}

EmbeddingTask::Examples EmbeddingTask::examples_of(const TextRows& of, const RowTexts& rows) const {
  Examples examples;
  examples.ids.resize(rows.texts.size());
  parallel_for_throwing(std::ssize(rows.texts), [&](int64_t i) {
    const std::string where = of.place(rows.lines[to_size(i) % rows.lines.size()]);
    std::vector<int32_t> ids = inner_ids(data_.run, rows.texts[to_size(i)], where);
    examples.ids[to_size(i)] = between_edges(data_.run.edges, std::move(ids), data_.max_length).ids;
    if (examples.ids[to_size(i)].empty()) fail("{}: a text has no tokens", where);
  });
  return examples;
}

// Returns the vectors that the teacher has for the texts of rows. In a file, those of the texts of a row follow each
// other.
std::vector<float> EmbeddingTask::teacher_vectors(const RowTexts& rows) const {
  const Teacher& teacher = *data_.teacher;
  const int64_t N = std::ssize(rows.lines), columns = recipe_.embedder.teacher_first ? 1 : std::ssize(rows.texts) / N;
  if (!teacher.is_file()) return teacher.embed({rows.texts.begin(), rows.texts.begin() + columns * N});
  const int64_t of_row = teacher.vectors() / data_.train.file().rows();
  std::vector<int64_t> numbers;
  for (int64_t j = 0; j < columns; j++)
    for (const int64_t row : rows.numbers) numbers.push_back(row * of_row + j);
  return teacher.read(numbers);
}

void EmbeddingTask::fill_texts(const std::vector<std::vector<int32_t>>& ids, Batch& batch) const {
  batch.clear();
  for (const std::vector<int32_t>& text : ids) append_text(recipe_.model, text, {}, batch);
}

std::string EmbeddingTask::summary() const {
  const RowColumns& columns = data_.train.columns();
  std::string line = fmt::format("training data: {} rows of {} text{}{}, {} batches per epoch, {} dev rows; loss {}",
                                 data_.train.size(), columns.texts, columns.texts == 1 ? "" : "s",
                                 columns.has_score ? " and a score" : "", batches(recipe_, data_.train), dev_.rows,
                                 name_of(recipe_.embedder.loss));
  if (const double share = share_dropped(); share > 0)
    line += fmt::format("; about {:.0f}% of the rows are dropped from a batch in which they repeat a text",
                        std::max(1.0, 100 * share));
  return line;
}

bool EmbeddingTask::drops_rows() const {
  return loss_.kind() == VectorLoss::info_nce && !recipe_.embedder.keep_repeated;
}

// Returns "" if no rows were dropped.
std::string EmbeddingTask::epoch_summary() const {
  if (previous_.dropped == 0) return "";
  return fmt::format("{} of {} rows of the epoch were dropped: they repeat a text of their batch (keep_repeated)",
                     previous_.dropped, previous_.read);
}

// Returns the share of rows that is dropped in the first batches of the first epoch.
double EmbeddingTask::share_dropped() const {
  constexpr int64_t kBatches = 8;
  if (!drops_rows()) return 0;
  const auto order = shuffled_rows(data_.train.size(), static_cast<uint64_t>(recipe_.training.seed), 0);
  RowCounts counts;
  for (int64_t batch = 0; batch < std::min(kBatches, batches(recipe_, data_.train)); batch++) {
    RowTexts rows = data_.train.read(rows_of(order, batch));
    const int64_t all = std::ssize(rows.lines);
    drop_repeated_rows(rows);
    counts.read += all;
    counts.dropped += all - std::ssize(rows.lines);
  }
  return static_cast<double>(counts.dropped) / static_cast<double>(counts.read);
}

Loss EmbeddingTask::loss_and_gradient(BatchGradients& gradients, Context& c) {
  const auto loss_of = [&](Matrix<const float> v, Matrix<float> dv) {
    return loss_.loss_and_gradient(*gradients.host_model(), v, columns(), targets_, dv, c.arena);
  };
  return gradients.loss_and_gradient(batch_, loss_of, recipe_.training.batch_tokens, c);
}

// Names all lines of the batch: the loss of each text depends on all others.
std::string EmbeddingTask::places(const StreamPosition& position, TokenSide, std::span<const int64_t>) {
  seek(position);
  std::vector<int64_t> lines = data_.train.read(rows_of(order_, position.batch)).lines;
  std::ranges::sort(lines);
  LineRanges ranges;
  for (const int64_t line : lines) ranges.emplace_back(line, line);
  return name_lines(ranges, data_.train.path());
}

// Assigns the vectors of the dev texts from `first` on to the rows of v.
void EmbeddingTask::embed(const Transformer<float>& model, int64_t first, Arena& arena, Matrix<float> v) const {
  const auto ids = dev_examples_.ids.begin() + first;
  Batch batch;
  fill_texts({ids, ids + v.rows}, batch);
  Context context{.arena = arena, .inference = true};
  TextParts<float>().outputs(model, batch, recipe_.training.batch_tokens, context, v);
}

// Returns the vectors of the dev texts, [columns N, d], which ranks compute in blocks of rows.
std::vector<float> EmbeddingTask::dev_vectors(const Transformer<float>& model, Arena& arena) const {
  const int64_t d = model.text_head()->width(), texts = std::ssize(dev_examples_.ids);
  std::vector<int64_t> begins;  // of the numbers of a block
  for (int64_t text = 0; text < texts; text += kBlock) begins.push_back(text * d);
  begins.push_back(texts * d);
  std::vector<float> vectors(to_size(texts * d));
  partition_.for_own(std::ssize(begins) - 1, [&](int64_t block) {
    const int64_t first = block * kBlock, rows = std::min(kBlock, texts - first);
    embed(model, first, arena, Matrix<float>(vectors.data() + first * d, rows, d));
  });
  gather_blocks(partition_, begins, vectors);
  return vectors;
}

Loss EmbeddingTask::dev_loss(const Transformer<float>& model, Matrix<const float> vectors, Arena& arena) const {
  const RowTargets& all = dev_examples_.targets;
  const int64_t N = dev_.rows, teacher_columns = std::ssize(all.teacher) / vectors.cols / N;  // vectors of a row
  Loss sum;
  for (int64_t begin = 0; begin < N; begin += recipe_.embedder.examples) {
    const Arena::Scope scope(arena);
    const int64_t end = std::min(N, begin + recipe_.embedder.examples);
    std::vector<int32_t> rows;
    RowTargets targets;
    for (int64_t j = 0; j < dev_.columns; j++)
      for (int64_t i = begin; i < end; i++) rows.push_back(static_cast<int32_t>(j * N + i));
    if (!all.scores.empty()) targets.scores.assign(all.scores.begin() + begin, all.scores.begin() + end);
    for (int64_t j = 0; j < teacher_columns; j++) {
      const auto first = all.teacher.begin() + (j * N + begin) * vectors.cols;
      targets.teacher.insert(targets.teacher.end(), first, first + (end - begin) * vectors.cols);
    }
    const Matrix<float> v = arena.matrix<float>(std::ssize(rows), vectors.cols);
    gather_rows<float>(vectors, rows, v);
    sum += dev_loss_.loss(model, v, dev_.columns, targets, arena);
  }
  return sum;
}

DevScore EmbeddingTask::evaluate(const Transformer<float>& model, Arena& arena) {
  const std::vector<float> values = dev_vectors(model, arena);
  const Matrix<const float> vectors(values.data(), dev_.rows * dev_.columns, model.text_head()->width());
  const Loss sum = dev_loss(model, vectors, arena);
  DevScore score;
  score.breaks_ties = true;
  score.loss = score.metric = sum.loss / static_cast<double>(sum.tokens);
  score.measures = {{"loss", score.loss, 4}};
  const auto found =
      vector_measures(dev_, vectors, similarity_of(recipe_.embedder, normalizes_), recipe_.embedder.matryoshka, arena);
  if (recipe_.embedder.learn_temperature) score.measures.push_back({"temperature", loss_.temperature(model), 4});
  if (!found.empty()) score.metric = found.front().value;
  score.measures.insert(score.measures.end(), found.begin(), found.end());
  score.write_more = [&model](const RunDirectory& run) { write_text_head(run, model); };
  return score;
}

// The vectors of the largest batch are in the arena next to the activations of its largest part.
void EmbeddingTask::dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) {
  const int64_t longest = data_.longest;
  const int64_t N = std::min(recipe_.embedder.examples, data_.train.size()), d = candidate.text_head()->width();
  const int64_t all = columns() * N * longest, part = std::min(std::max(recipe_.training.batch_tokens, longest), all);
  const Arena::Scope scope(arena);
  const Matrix<float> v = zeros<float>(arena, columns() * N, d), dv = zeros<float>(arena, columns() * N, d);
  RowTargets targets;
  if (data_.train.columns().has_score) targets.scores.assign(to_size(N), 0);
  if (loss_.needs_teacher()) targets.teacher.assign(to_size(v.rows * d), 0);
  Context training = training_context(arena, recipe_.training, 0);
  fill_largest_batch(recipe_.model, part, longest, batch_);
  batch_.labels.clear();
  if (all > part) append_text(recipe_.model, std::vector<int32_t>(1, 0), {}, batch_);  // a second part
  gradients.loss_and_gradient(
      batch_,
      [&](Matrix<const float>, Matrix<float> gradient) {
        fill<float>(gradient, 0);
        return loss_.loss_and_gradient(*gradients.host_model(), v, columns(), targets, dv, arena);
      },
      part, training);
  dry_run_evaluation(candidate, arena);
}

void EmbeddingTask::dry_run_evaluation(const Transformer<float>& candidate, Arena& arena) {
  const int64_t texts = dev_.rows * dev_.columns, d = candidate.text_head()->width();
  {
    const Arena::Scope scope(arena);
    const int64_t tokens =
        std::min(std::max(recipe_.training.batch_tokens, data_.longest), std::min(texts, kBlock) * data_.longest);
    fill_largest_batch(recipe_.model, tokens, data_.longest, batch_);
    batch_.labels.clear();
    Context context{.arena = arena, .inference = true};
    candidate.text_outputs(batch_, context);
  }
  const Arena::Scope scope(arena);
  arena.matrix<float>(texts, d);
  arena.matrix<float>(std::min<int64_t>(dev_.rows, kAnchorRows), dev_.rows);
}

size_t EmbeddingTask::data_bytes() const {
  size_t bytes = (order_.size() + data_.train.numbers().size()) * sizeof(int64_t) +
                 dev_examples_.targets.teacher.size() * sizeof(float);
  for (const auto& ids : dev_examples_.ids) bytes += ids.size() * sizeof(int32_t);
  return bytes;
}

}  // namespace qkv
