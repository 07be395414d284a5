#include "io/runs/adapter.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"
#include "qkv/runs.h"

namespace qkv {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMaxAdapterBytes = size_t{1} << 26;
constexpr int64_t kMaxRank = 1 << 16;
constexpr size_t kMaxText = 1024;  // bytes of a name, or of the path of the base

const json& field(const json& object, const char* name, const std::string& where) {
  const auto place = object.find(name);
  if (place == object.end()) fail("{}: {} is missing", where, name);
  return *place;
}

std::string text_field(const json& object, const char* name, const std::string& where) {
  const json& value = field(object, name, where);
  if (!value.is_string()) fail("{}: {} must be a string", where, name);
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() > kMaxText || std::ranges::any_of(text, [](unsigned char c) { return c < 0x20; }))
    fail("{}: {} must have at most {} bytes, without control characters (is {})", where, name, kMaxText, excerpt(text));
  return text;
}

int64_t count_field(const json& object, const char* name, const std::string& where) {
  const json& value = field(object, name, where);
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > uint64_t{kMaxRank})
    fail("{}: {} must be between 1 and {}", where, name, kMaxRank);
  return value.get<int64_t>();
}

const json& list_field(const json& object, const char* name, const std::string& where) {
  const json& value = field(object, name, where);
  if (!value.is_array() || value.empty()) fail("{}: {} must be a list that is not empty", where, name);
  return value;
}

AdapterModule module_of(const json& object, const std::string& where) {
  if (!object.is_object()) fail("{}: modules must be objects", where);
  AdapterModule module{text_field(object, "name", where), {}, count_field(object, "groups", where)};
  for (const json& name : list_field(object, "parameters", where)) {
    if (!name.is_string()) fail("{}: parameters must be strings", where);
    module.parameters.push_back(name.get<std::string>());
  }
  return module;
}

// The row of a module's B that belongs to a row of one of its parameters, which have these numbers of rows.
int64_t row_of_module(const std::vector<int64_t>& rows, size_t parameter, int64_t row, int64_t groups) {
  int64_t group_rows = 0, before = 0;  // rows of a group, and those of the parameters before this one
  for (size_t i = 0; i < rows.size(); i++) {
    if (i < parameter) before += rows[i] / groups;
    group_rows += rows[i] / groups;
  }
  const int64_t share = rows[parameter] / groups;
  return row / share * group_rows + before + row % share;
}

// The rows of the parameters of a module. Throws Error, beginning with `where`, if there is no such parameter or if the
// rows do not fit the groups.
std::vector<int64_t> rows_of(const AdapterModule& module, const ParameterList<float>& list, const std::string& where) {
  std::vector<int64_t> rows;
  for (const std::string& name : module.parameters) {
    const auto p = std::ranges::find(list.all(), name, &Parameter<float>::name);
    if (p == list.all().end() || p->shape.size() != 2) fail("{}: the base has no weight {}", where, excerpt(name));
    if (p->shape[0] % module.groups != 0)
      fail("{}: groups must divide the {} rows of {} (is {})", where, p->shape[0], name, module.groups);
    rows.push_back(p->shape[0]);
  }
  return rows;
}

std::vector<float> read_matrix(const Safetensors& file, const std::string& path, const std::string& name, int64_t rows,
                               int64_t cols) {
  const TensorView* tensor = file.find(name);
  std::vector<float> numbers;
  if (tensor && tensor->shape == std::vector{rows, cols}) numbers.resize(to_size(rows * cols));
  file.read(name, {rows, cols}, numbers);  // throws for another shape
  if (!all_finite(numbers)) fail("{}: tensor \"{}\" contains a number that is not finite", path, name);
  return numbers;
}

// Adds scale · B A to the weights of a module.
void merge_module(const AdapterModule& module, const Safetensors& file, const std::string& path, double scale,
                  int64_t rank, ParameterList<float>& list) {
  const std::vector<int64_t> rows = rows_of(module, list, path);
  int64_t outputs = 0;
  for (const int64_t n : rows) outputs += n;
  const auto find = [&](const std::string& name) -> const Parameter<float>& {
    return *std::ranges::find(list.all(), name, &Parameter<float>::name);
  };
  const int64_t in = find(module.parameters.front()).shape[1];
  const std::string tensor = "base_model.model." + module.name;
  const std::vector<float> A = read_matrix(file, path, tensor + ".lora_A.weight", rank, in),
                           B = read_matrix(file, path, tensor + ".lora_B.weight", outputs, rank);
  for (size_t i = 0; i < rows.size(); i++) {
    const Parameter<float>& p = find(module.parameters[i]);
    if (p.shape[1] != in) fail("{}: the parameters of {} must have the same width", path, excerpt(module.name));
    parallel_for(rows[i], [&](int64_t row) {
      const float* b = B.data() + row_of_module(rows, i, row, module.groups) * rank;
      float* w = p.value + row * in;
      for (int64_t j = 0; j < in; j++) {
        double sum = 0;
        for (int64_t k = 0; k < rank; k++)
          sum += static_cast<double>(b[k]) * static_cast<double>(A[to_size(k * in + j)]);
        w[j] = static_cast<float>(static_cast<double>(w[j]) + scale * sum);
      }
    });
    if (!all_finite({p.value, to_size(p.size())}))
      fail("{}: the adapter of {} makes weights that are not finite", path, excerpt(module.name));
  }
}

bool have_same_parameters(const ParameterList<float>& a, const ParameterList<float>& b) {
  return std::ranges::equal(a.all(), b.all(), [](const Parameter<float>& p, const Parameter<float>& q) {
    return p.name == q.name && p.shape == q.shape;
  });
}

// Copies the parameters of `part` from the model in a file.
void copy_parameters(const Transformer<float>& model, const std::string& path, Transformer<float>& part) {
  for (const Parameter<float>& p : part.parameters().all()) {
    const auto from = std::ranges::find(model.parameters().all(), p.name, &Parameter<float>::name);
    if (from == model.parameters().all().end() || from->shape != p.shape)
      fail("{}: has no parameter {} of shape [{}], which its adapter changes", path, p.name, fmt::join(p.shape, ", "));
    std::copy_n(from->value, p.size(), p.value);
  }
}

void check_base(const RunDirectory& run, const Adapter& adapter) {
  const RunDirectory base(adapter.base);
  if (!std::filesystem::exists(base.model()))
    fail("{}: the base run {} is missing; if it was moved, change \"base\"", run.base(), base.root());
  if (const std::string found = sha256_of_file(base.model()); found != adapter.sha256)
    fail("{}: was changed since the adapter {} was trained (SHA-256 is {}, was {})", base.model(), run.root(), found,
         adapter.sha256);
}

}  // namespace

std::vector<Transformer<float>::Adapter> Adapter::of_model() const {
  std::vector<Transformer<float>::Adapter> all;
  for (const AdapterModule& module : modules) all.push_back({"base_model.model." + module.name, module.parameters});
  return all;
}

std::string sha256_of_file(const std::string& path) {
  const MappedFile file(path);
  Sha256 sha;
  sha.add({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  return sha.hex();
}

bool has_adapter(const RunDirectory& run) { return std::filesystem::exists(run.base()); }

std::string weights_of(const RunDirectory& run) { return has_adapter(run) ? run.adapter_weights() : run.model(); }

bool has_weights(const RunDirectory& run) { return std::filesystem::exists(weights_of(run)); }

Adapter read_adapter(const RunDirectory& run) {
  const std::string where = run.base();
  const json object = parse_json(read_file(where, kMaxAdapterBytes), where);
  if (!object.is_object()) fail("{}: must be a JSON object", where);
  Adapter adapter;
  adapter.base = text_field(object, "base", where);
  adapter.sha256 = text_field(object, "sha256", where);
  adapter.rank = count_field(object, "rank", where);
  const json& alpha = field(object, "alpha", where);
  if (!alpha.is_number()) fail("{}: alpha must be a number", where);
  adapter.alpha = alpha.get<double>();
  for (const json& module : list_field(object, "modules", where)) adapter.modules.push_back(module_of(module, where));
  return adapter;
}

void write_adapter(const RunDirectory& run, const Adapter& adapter) {
  ordered_json base = {
      {"base", adapter.base}, {"sha256", adapter.sha256}, {"rank", adapter.rank}, {"alpha", adapter.alpha}};
  ordered_json names = ordered_json::array();
  for (const AdapterModule& m : adapter.modules) {
    base["modules"].push_back({{"name", m.name}, {"parameters", m.parameters}, {"groups", m.groups}});
    names.push_back(m.name);
  }
  write_file_atomic(run.base(), base.dump(1) + "\n");
  const ordered_json peft = {{"peft_type", "LORA"},
                             {"task_type", adapter.task},
                             {"base_model_name_or_path", adapter.base},
                             {"r", adapter.rank},
                             {"lora_alpha", adapter.alpha},
                             {"lora_dropout", 0.0},
                             {"bias", "none"},
                             {"fan_in_fan_out", adapter.transposed},
                             {"inference_mode", true},
                             {"target_modules", names}};
  write_file_atomic(run.adapter_config(), peft.dump(1) + "\n");
}

void write_adapter_weights(const RunDirectory& run, const Adapter& adapter, const ParameterList<float>& list,
                           std::span<const float> values, const std::map<std::string, std::string>& metadata) {
  const size_t first = list.all().size() - 2 * adapter.modules.size();  // those before it are of a text head
  std::vector<TensorEntry> entries;
  for (size_t i = first; i < list.all().size(); i++)
    entries.push_back({list.all()[i].name, DType::f32, list.all()[i].shape});
  const auto data = [&](size_t i, WriteBytes write) {
    const Parameter<float>& p = list.all()[first + i];
    const std::span<const float> part = values.subspan(to_size(p.value - list.values().data()), to_size(p.size()));
    const AdapterModule& module = adapter.modules[i / 2];
    if (i % 2 == 0 || module.groups == 1) return write(std::as_bytes(part));
    const int64_t rank = p.shape[1], each = p.shape[0] / std::ssize(module.parameters);
    const std::vector<int64_t> rows(module.parameters.size(), each);  // a module with groups has equal parameters
    std::vector<float> ordered(part.size());
    for (int64_t row = 0; row < p.shape[0]; row++)
      std::copy_n(part.data() + row * rank, rank,
                  ordered.data() + row_of_module(rows, to_size(row / each), row % each, module.groups) * rank);
    write(std::as_bytes(std::span(ordered)));
  };
  Metadata all = metadata;
  all["format"] = "pt";
  write_safetensors(run.adapter_weights(), entries, data, all);
}

std::unique_ptr<Transformer<float>> load_base(const RunDirectory& run, const Adapter& adapter,
                                              const ModelConfig& config) {
  check_base(run, adapter);
  const RunDirectory base(adapter.base);
  auto model = load_model(base.model(), read_config(base).model);
  if (is_quantized(model->parameters()))
    fail("{}: has quantized weights; an adapter requires a base of float32", base.model());
  auto part = std::make_unique<Transformer<float>>(config);
  if (have_same_parameters(model->parameters(), part->parameters())) return model;
  copy_parameters(*model, base.model(), *part);
  return part;
}

std::unique_ptr<Transformer<float>> load_run_model(const RunDirectory& run, const ModelConfig& config,
                                                   const ItemInputs& items) {
  if (!has_adapter(run)) return load_model(run.model(), config, items);
  const Adapter adapter = read_adapter(run);
  const auto base = load_base(run, adapter, config);
  auto model = std::make_unique<Transformer<float>>(config);
  std::ranges::copy(base->parameters().values(), model->parameters().values().begin());
  const Safetensors file = Safetensors::open(run.adapter_weights());
  for (const AdapterModule& module : adapter.modules)
    merge_module(module, file, run.adapter_weights(), adapter.scale(), adapter.rank, model->parameters());
  if (file.names().size() != 2 * adapter.modules.size())
    fail("{}: must have {} tensors, two for each module of base.json (has {})", run.adapter_weights(),
         2 * adapter.modules.size(), file.names().size());
  return model;
}

MergeReport merge_run(const std::string& run, const std::string& out) {
  const RunDirectory from(run), to(out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  read_config(from);
  if (!has_adapter(from)) fail("{}: is not an adapter of another run (it has no base.json)", from.root());
  const Adapter adapter = read_adapter(from);
  const auto loaded = load_one_of<TranslatorRun, LanguageRun, EncoderRun, ClassifierRun>(run);
  return std::visit(
      [&](const auto& parts) -> MergeReport {
        const ParameterList<float>& weights = parts.model->parameters();
        create_run(to, parts, [&](const RunDirectory& partial) {
          save_weights(partial.model(), weights, weights.values());
          copy_decoding_defaults(from, partial);
        });
        return {adapter.base, std::ssize(adapter.modules), weights.size()};
      },
      loaded);
}

}  // namespace qkv
