#include "convert/export/weights_out.h"

#include <cmath>
#include <map>

#include "core/fail.h"
#include "core/float16.h"
#include "core/to_size.h"
#include "io/weights/safetensors.h"
#include "ops/embedding.h"
#include "qkv/bfloat16.h"

namespace qkv {
namespace {

constexpr float kNever = -1e4F;                                    // a logit without probability, which float16 holds
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};  // in the order of ExportType

using Parameters = std::map<std::string, const Parameter<float>*>;

Parameters by_name(const Transformer<float>& model) {
  Parameters result;
  for (const Parameter<float>& p : model.parameters().all()) result.emplace(p.name, &p);
  return result;
}

// The numbers of a class's parameters, including those that the model lacks.
class Numbers {
 public:
  Numbers(const Transformer<float>& model, const ModelConfig& of_class, const std::optional<StartRow>& added)
      : model_(model), added_(added), shapes_(of_class), own_(by_name(model_)), expected_(by_name(shapes_)) {}

  const std::vector<int64_t>& shape(const std::string& name) const { return expected_.at(name)->shape; }

  std::vector<float> of(const std::string& name) const {
    const auto place = own_.find(name);
    std::vector<float> numbers = place == own_.end() ? missing(name) : own(place->second);
    if (!added_) return numbers;
    numbers.resize(to_size(expected_.at(name)->size()));  // a row of zeros
    if (name == "output.bias") numbers.back() = kNever;
    if (name == "decoder.positions.weight" && added_->start) add_start(numbers);
    return numbers;
  }

 private:
  std::vector<float> own(const Parameter<float>* own) const {
    std::vector<float> numbers(own->value, own->value + own->size());
    if (own == &model_.item_table() && model_.config().scale_embeddings && !shapes_.config().scale_embeddings)
      for (float& x : numbers) x *= std::sqrt(static_cast<float>(model_.config().d_model));
    return numbers;
  }

  // Adds the vector of the start token to the first position.
  void add_start(std::vector<float>& positions) const {
    const int64_t d = model_.config().d_model;
    const float scale = model_.config().scale_embeddings ? std::sqrt(static_cast<float>(d)) : 1.0F;
    const float* row = model_.item_table().value + *added_->start * d;
    for (int64_t i = 0; i < d; i++) positions[to_size(i)] += scale * row[i];
  }

  std::vector<float> missing(const std::string& name) const {
    const Parameter<float>& expected = *expected_.at(name);
    if (name == "output.weight")
      return {model_.item_table().value, model_.item_table().value + model_.item_table().size()};
    std::vector<float> numbers(to_size(expected.size()));  // a bias
    const Positions kind = model_.config().positions;
    if (name.ends_with(".positions.weight") && kind != Positions::none)
      sinusoidal_positions<float>(kind, {numbers.data(), expected.shape[0], expected.shape[1]});
    return numbers;
  }

  const Transformer<float>& model_;
  const std::optional<StartRow> added_;
  const Transformer<float> shapes_;  // its values take no memory, because nothing writes to them
  Parameters own_, expected_;
};

// The numbers of a tensor: the rows of its parameters, group by group.
std::vector<float> gather(const Numbers& numbers, const TensorRule& rule) {
  std::vector<std::vector<float>> parts;
  for (const std::string& ours : rule.ours) parts.push_back(numbers.of(ours));
  std::vector<float> all;
  for (size_t g = 0; g < to_size(rule.groups); g++)
    for (const std::vector<float>& part : parts) {
      const size_t share = part.size() / to_size(rule.groups);
      all.insert(all.end(), part.data() + g * share, part.data() + (g + 1) * share);
    }
  if (rule.offset != 0)
    for (float& x : all) x -= static_cast<float>(rule.offset);
  if (rule.layout != Layout::columns) return all;
  const size_t cols = to_size(numbers.shape(rule.ours.front())[1]), rows = all.size() / cols;
  std::vector<float> transposed(all.size());
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) transposed[c * rows + r] = all[r * cols + c];
  return transposed;
}

std::vector<int64_t> shape_of(const Numbers& numbers, const TensorRule& rule) {
  if (rule.reshape) return rule.reshape->theirs;
  std::vector<int64_t> shape = numbers.shape(rule.ours.front());
  shape[0] = 0;
  for (const std::string& ours : rule.ours) shape[0] += numbers.shape(ours)[0];
  if (rule.layout == Layout::columns) std::swap(shape[0], shape[1]);
  return shape;
}

template <class T>
void write_as(std::span<const float> numbers, const std::string& name, WriteBytes write) {
  std::vector<T> rounded(numbers.begin(), numbers.end());
  for (const T x : rounded)
    if (!std::isfinite(static_cast<float>(x)))
      fail("{} holds a number that is too large for the type of the export", name);
  write(std::as_bytes(std::span(rounded)));
}

}  // namespace

int64_t write_tensors(const std::string& path, const Transformer<float>& model, const ModelClass& model_class,
                      ExportType type, const std::optional<StartRow>& added) {
  const Numbers numbers(model, model_class.config, added);
  std::vector<TensorEntry> entries;
  std::vector<const TensorRule*> sources;
  int64_t count = 0;
  const auto add = [&](const std::string& theirs, const TensorRule& rule) {
    entries.push_back({theirs, kTypes[to_size(type)], shape_of(numbers, rule)});
    sources.push_back(&rule);
    int64_t size = 1;
    for (const int64_t n : entries.back().shape) size *= n;
    count += size;
  };
  for (const TensorRule& rule : model_class.tensors.rules) {
    add(rule.theirs, rule);
    if (model_class.config.tied_output) continue;
    for (const std::string& alias : rule.aliases) add(alias, rule);  // transformers shares no tables by itself then
  }
  const auto data = [&](size_t i, WriteBytes write) {
    const std::vector<float> values = gather(numbers, *sources[i]);
    const std::string& name = sources[i]->ours.front();
    if (type == ExportType::float32) write_as<float>(values, name, write);
    if (type == ExportType::float16) write_as<float16>(values, name, write);
    if (type == ExportType::bfloat16) write_as<bfloat16>(values, name, write);
  };
  write_safetensors(path, entries, data, {{"format", "pt"}});
  return count;
}

}  // namespace qkv
