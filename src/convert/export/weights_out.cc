#include "convert/export/weights_out.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/fail.h"
#include "core/fields.h"
#include "core/float16.h"
#include "core/to_size.h"
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

// Returns a tensor of a file. The file was read with the run, but may have been replaced since.
const TensorView& tensor_of(const Safetensors& file, const std::string& name) {
  const TensorView* tensor = file.find(name);
  if (!tensor) fail("export: the run was changed while it was read: {} is missing", name);
  return *tensor;
}

std::vector<float> floats_of(const Safetensors& file, const std::string& name) {
  const TensorView& tensor = tensor_of(file, name);
  std::vector<float> numbers(tensor.data.size() / sizeof(float));
  file.read(name, tensor.shape, numbers);
  return numbers;
}

// The numbers of a class's parameters, including those that the model lacks.
class Numbers {
 public:
  Numbers(const Transformer<float>& model, const ModelConfig& of_class, const std::optional<StartRow>& added,
          const Safetensors* head)
      : model_(model),
        added_(added),
        head_(head),
        shapes_(of_class),
        own_(by_name(model_)),
        expected_(by_name(shapes_)) {}

  const std::vector<int64_t>& shape(const std::string& name) const {
    const auto place = expected_.find(name);
    return head_ && (head_->find(name) || place == expected_.end()) ? tensor_of(*head_, name).shape
                                                                    : place->second->shape;
  }

  std::vector<float> of(const std::string& name) const {
    if (head_ && head_->find(name)) return floats_of(*head_, name);
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
    if (own == &output_table() && model_.config().scale_embeddings && !shapes_.config().scale_embeddings)
      for (float& x : numbers) x *= std::sqrt(static_cast<float>(model_.config().d_model));
    return numbers;
  }

  // The embeddings that the output layer may use.
  const Parameter<float>& output_table() const {
    return model_.config().has_decoder() ? model_.item_table() : *own_.at("source_embedding.weight");
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
    if (name == "output.weight") return {output_table().value, output_table().value + output_table().size()};
    std::vector<float> numbers(to_size(expected.size()));  // a bias
    const Positions kind = model_.config().positions;
    if (name.ends_with(".positions.weight") && kind != Positions::none)
      sinusoidal_positions<float>(kind, {numbers.data(), expected.shape[0], expected.shape[1]});
    return numbers;
  }

  const Transformer<float>& model_;
  const std::optional<StartRow> added_;
  const Safetensors* head_;
  const Transformer<float> shapes_;  // its values take no memory, because nothing writes to them
  Parameters own_, expected_;
};

// The numbers of a tensor: the rows of its parameters, group by group, behind the rows that the parameters lack.
std::vector<float> gather(const Numbers& numbers, const TensorRule& rule) {
  std::vector<std::vector<float>> parts;
  for (const std::string& ours : rule.ours) parts.push_back(numbers.of(ours));
  std::vector<float> all;
  if (rule.first_row > 0) all.resize(to_size(rule.first_row * numbers.shape(rule.ours.front()).at(1)));
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
  shape[0] = rule.first_row;
  for (const std::string& ours : rule.ours) shape[0] += numbers.shape(ours)[0];
  if (rule.layout == Layout::columns) std::swap(shape[0], shape[1]);
  return shape;
}

// where: file and parameter, for errors.
template <class T>
void write_as(std::span<const float> numbers, const std::string& where, ExportType type, WriteBytes write) {
  std::vector<T> rounded(numbers.begin(), numbers.end());
  for (size_t i = 0; i < rounded.size(); i++)
    if (!std::isfinite(static_cast<float>(rounded[i])))
      fail("{} must hold finite numbers of {} (holds {})", where, name_of(type), numbers[i]);
  write(std::as_bytes(std::span(rounded)));
}

void write_as(ExportType type, std::span<const float> numbers, const std::string& where, WriteBytes write) {
  if (type == ExportType::float32) write_as<float>(numbers, where, type, write);
  if (type == ExportType::float16) write_as<float16>(numbers, where, type, write);
  if (type == ExportType::bfloat16) write_as<bfloat16>(numbers, where, type, write);
}

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  return size;
}

// Throws Error for parameters that the class lacks, unless they are zeros.
void expect_zeros(const Numbers& numbers, const ModelClass& model_class, const std::string& where) {
  for (const auto& [name, size] : model_class.tensors.zeros)
    for (const float x : numbers.of(name))
      if (x != 0) fail("{}: {} must be 0 for the nearest class, {} (holds {})", where, name, model_class.type(), x);
}

// A tensor to write: the one of a rule, or its addend.
struct WrittenTensor {
  const TensorRule* rule;
  bool is_addend = false;
};

}  // namespace

int64_t write_tensors(const std::string& path, const RunDirectory& run, const Transformer<float>& model,
                      const ModelClass& model_class, ExportType type, const std::optional<StartRow>& added,
                      const Safetensors* head) {
  const Numbers numbers(model, model_class.config, added, head);
  expect_zeros(numbers, model_class, run.model());
  std::vector<TensorEntry> entries;
  std::vector<WrittenTensor> sources;
  int64_t count = 0;
  const auto add = [&](const std::string& theirs, const WrittenTensor& source, const std::vector<int64_t>& shape) {
    entries.push_back({theirs, kTypes[to_size(type)], shape});
    sources.push_back(source);
    count += count_of(shape);
  };
  for (const TensorRule& rule : model_class.tensors.rules) {
    add(rule.theirs, {&rule}, shape_of(numbers, rule));
    if (!rule.addend.empty()) add(rule.addend, {&rule, true}, {1, numbers.shape(rule.ours.front()).at(1)});
    if (model_class.config.tied_output) continue;
    for (const std::string& alias : rule.aliases)  // transformers shares no tables by itself then
      add(alias, {&rule}, shape_of(numbers, rule));
  }
  const auto data = [&](size_t i, WriteBytes write) {
    const auto& [rule, is_addend] = sources[i];
    const std::vector<float> values =
        is_addend ? std::vector<float>(to_size(count_of(entries[i].shape))) : gather(numbers, *rule);
    const std::string& name = rule->ours.front();
    const bool is_of_head = head && head->find(name);
    write_as(type, values, fmt::format("{}: {}", is_of_head ? run.classifier() : run.model(), name), write);
  };
  write_safetensors(path, entries, data, {{"format", "pt"}});
  return count;
}

int64_t write_renamed(const std::string& path, const Safetensors& from, const std::string& where,
                      const std::vector<std::pair<std::string, std::string>>& names, ExportType type) {
  std::vector<TensorEntry> entries;
  int64_t count = 0;
  for (const auto& [ours, theirs] : names) {
    entries.push_back({theirs, kTypes[to_size(type)], tensor_of(from, ours).shape});
    count += count_of(entries.back().shape);
  }
  const auto data = [&](size_t i, WriteBytes write) {
    const std::string& name = names[i].first;
    write_as(type, floats_of(from, name), fmt::format("{}: {}", where, name), write);
  };
  write_safetensors(path, entries, data, {{"format", "pt"}});
  return count;
}

}  // namespace qkv
