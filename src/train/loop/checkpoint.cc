#include "train/loop/checkpoint.h"

#include <charconv>
#include <filesystem>
#include <set>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

constexpr const char* kFormat = "qkv training state 2";

using Array = OptimizerState::Array;

Array weights_of(const ParameterList<float>& parameters) {
  const std::span<float> w = parameters.values();
  return {"weights", DType::f32, std::ssize(w), std::as_writable_bytes(w)};
}

// Reads an array of which this rank has a part.
void read_shared(const Safetensors& file, const std::string& path, const Array& array, StateExchange& exchange) {
  const TensorView* const found = file.find(array.name);
  const std::vector<int64_t> shape = {exchange.size_of(array)};
  if (!found || found->dtype != array.dtype || found->shape != shape)
    fail("{}: tensor {} must be {} (is {})", path, array.name, describe(array.dtype, shape),
         found ? describe(found->dtype, found->shape) : "missing");
  exchange.read(array, found->data);
}

template <class Number>
Number parse(const Safetensors& file, const std::string& path, const std::string& name) {
  const auto& metadata = file.metadata();
  const auto found = metadata.find(name);
  Number value{};
  if (found != metadata.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  fail("{}: \"{}\" is missing or not a number", path, name);
}

// Keeps sums and products of counts from overflowing.
constexpr int64_t kMaxCount = int64_t{1} << 31;

int64_t parse_count(const Safetensors& file, const std::string& path, const std::string& name,
                    int64_t most = kMaxCount) {
  const int64_t count = parse<int64_t>(file, path, name);
  if (count < 0 || count > most) fail("{}: \"{}\" must be between 0 and {} (is {})", path, name, most, count);
  return count;
}

}  // namespace

void save_state(const std::string& path, const Progress& p, const std::string& data,
                const ParameterList<float>& parameters, const OptimizerState& optimizer, StateExchange* exchange) {
  Metadata metadata = {
      {"format", kFormat},
      {"data", data},
      {"step", fmt::format("{}", p.step)},
      {"skipped_steps", fmt::format("{}", p.skipped_steps)},
      {"skipped_in_row", fmt::format("{}", p.skipped_in_row)},
      {"epoch", fmt::format("{}", p.data.epoch)},
      {"window", fmt::format("{}", p.data.window)},
      {"batch", fmt::format("{}", p.data.batch)},
      {"skipped_empty", fmt::format("{}", p.data.skipped.empty)},
      {"skipped_long", fmt::format("{}", p.data.skipped.too_long)},
      {"best", fmt::format("{}", p.best)},
      {"best_step", fmt::format("{}", p.best_step)},
      {"evaluations_since_best", fmt::format("{}", p.evaluations_since_best)},
      {"rollbacks", fmt::format("{}", p.rollbacks)},
      {"rollbacks_in_row", fmt::format("{}", p.rollbacks_in_row)},
      {"losses", fmt::format("{}", p.losses.size())},
      {"evaluations", fmt::format("{}", p.evaluated_steps.size())},
  };
  if (p.best_loss) metadata["best_loss"] = fmt::format("{}", *p.best_loss);
  if (p.best_learned) metadata["best_learned"] = fmt::format("{}", *p.best_learned);
  for (size_t i = 0; i < p.evaluated_steps.size(); i++)
    metadata[fmt::format("evaluation.{}", i)] = fmt::format("{}", p.evaluated_steps[i]);
  for (size_t i = 0; i < p.losses.size(); i++) metadata[fmt::format("loss.{}", i)] = fmt::format("{}", p.losses[i]);
  std::vector<Array> arrays = optimizer.arrays();
  arrays.insert(arrays.begin(), weights_of(parameters));
  std::vector<TensorEntry> tensors;
  for (size_t i = 0; i < arrays.size(); i++) {
    const bool is_shared = exchange && i > 0;
    tensors.push_back({arrays[i].name, arrays[i].dtype, {is_shared ? exchange->size_of(arrays[i]) : arrays[i].size}});
  }
  const auto write_array = [&](size_t i, WriteBytes write) {
    if (exchange && i > 0) return exchange->write(arrays[i], write);
    write(arrays[i].bytes);
  };
  write_safetensors(path, tensors, write_array, metadata);
}

Progress load_state(const std::string& path, const std::string& data, ParameterList<float>& parameters,
                    OptimizerState& optimizer, StateExchange* exchange) {
  const Safetensors file = Safetensors::open(path);
  const auto& metadata = file.metadata();
  if (!metadata.contains("format") || metadata.at("format") != kFormat) fail("{}: not a {}", path, kFormat);
  if (!metadata.contains("data") || metadata.at("data") != data)
    fail("{}: was saved with different training data; use the same data or another directory", path);

  const Array weights = weights_of(parameters);
  file.read(weights.name, weights.dtype, {weights.size}, weights.bytes);
  for (const Array& a : optimizer.arrays())
    if (exchange)
      read_shared(file, path, a, *exchange);
    else
      file.read(a.name, a.dtype, {a.size}, a.bytes);

  Progress p;
  p.step = p.saved_step = parse_count(file, path, "step");
  optimizer.check_rows(path, p.step);
  p.skipped_steps = parse_count(file, path, "skipped_steps");
  p.skipped_in_row = parse_count(file, path, "skipped_in_row");
  p.rollbacks = parse_count(file, path, "rollbacks");
  p.rollbacks_in_row = parse_count(file, path, "rollbacks_in_row");
  const int64_t losses = parse_count(file, path, "losses", Progress::kLosses);
  for (int64_t i = 0; i < losses; i++) p.losses.push_back(parse<double>(file, path, fmt::format("loss.{}", i)));
  p.data.epoch = parse_count(file, path, "epoch");
  p.data.window = parse_count(file, path, "window");
  p.data.batch = parse_count(file, path, "batch");
  p.data.skipped.empty = parse_count(file, path, "skipped_empty", int64_t{1} << 53);
  p.data.skipped.too_long = parse_count(file, path, "skipped_long", int64_t{1} << 53);
  p.best = parse<double>(file, path, "best");
  p.best_step = parse_count(file, path, "best_step");
  if (metadata.contains("best_loss")) p.best_loss = parse<double>(file, path, "best_loss");
  if (metadata.contains("best_learned")) p.best_learned = parse<double>(file, path, "best_learned");
  p.evaluations_since_best = parse_count(file, path, "evaluations_since_best");
  const int64_t evaluations = parse_count(file, path, "evaluations");
  for (int64_t i = 0; i < evaluations; i++)
    p.evaluated_steps.push_back(parse_count(file, path, fmt::format("evaluation.{}", i)));
  return p;
}

void remove_other_checkpoints(const RunDirectory& run, const Progress& progress, bool rollback) {
  std::set<std::string> kept = {run.state(), run.lock()};
  if (rollback) kept.insert(run.rollback());
  for (const int64_t step : progress.evaluated_steps) kept.insert(run.weights(step));
  for (const auto& entry : std::filesystem::directory_iterator(run.checkpoints()))
    if (const std::string path = entry.path().string(); !kept.contains(path)) remove_file(path);
}

}  // namespace qkv
