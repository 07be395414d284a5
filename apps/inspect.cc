// qkv inspect: kind, configuration, parameters and memory of a run directory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "commands.h"
#include "qkv/runs.h"

namespace {

std::string_view kind_of(const qkv::RunInfo& info) { return names_of(info.kind)[static_cast<size_t>(info.kind)]; }

const char* type_of(const qkv::ParameterInfo& p) { return p.bits == 4 ? "int4" : p.bits == 8 ? "int8" : "float32"; }

// Returns the number of parameters of each type, "1234 float32, 567 int8".
std::string types_of(const qkv::RunInfo& info) {
  std::map<std::string, int64_t> counts;
  for (const qkv::ParameterInfo& p : info.parameters) counts[type_of(p)] += p.count;
  std::string text;
  for (const auto& [type, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
  return text;
}

std::string layers_of(const qkv::ModelConfig& model) {
  std::string text;
  for (const auto& [count, side] : {std::pair{model.encoder_layers, "encoder"}, {model.decoder_layers, "decoder"}})
    if (count > 0) text += fmt::format("{}{} {} layer{}", text.empty() ? "" : ", ", count, side, count == 1 ? "" : "s");
  return text;
}

std::string vocabulary_of(const qkv::ModelConfig& model) {
  if (model.source_vocab > 0 && model.target_vocab > 0)
    return fmt::format("{} source, {} target", model.source_vocab, model.target_vocab);
  return fmt::format("{}", std::max(model.source_vocab, model.target_vocab));
}

void print_summary(const qkv::RunInfo& info) {
  const qkv::ModelConfig& model = info.model;
  fmt::print("kind: {}, format {}", kind_of(info), info.format);
  if (!info.version.empty()) fmt::print(", written by qkv {}", info.version);
  fmt::print("\nmodel: {} of width {}, {} heads, feed-forward width {}, {} tokens at most\n", layers_of(model),
             model.d_model, model.attention.heads, model.ffn, model.max_length);
  fmt::print("vocabulary: {}\n", vocabulary_of(model));
  fmt::print("parameters: {} ({})\n", info.parameter_count, types_of(info));
  fmt::print("memory: {:.1f} MiB of weights to serve", mebibytes(info.serving_bytes));
  if (info.training_bytes > 0) fmt::print(", {:.1f} MiB to train", mebibytes(info.training_bytes));
  fmt::print(", without activations\n");
  if (!info.has_weights) fmt::print("no model.safetensors yet: it is written by the first evaluation\n");
}

void print_text(const qkv::RunInfo& info) {
  print_summary(info);
  fmt::print("\nconfiguration\n{}\n\n", qkv::to_json(info.model, info.items));
  for (const qkv::ParameterInfo& p : info.parameters)
    fmt::print("{:<48} {:>14} {:>12} {}\n", p.name, fmt::format("[{}]", fmt::join(p.shape, ", ")), p.count, type_of(p));
}

void print_json(const qkv::RunInfo& info) {
  nlohmann::ordered_json json;
  json["kind"] = kind_of(info);
  json["format"] = info.format;
  json["version"] = info.version;
  json["config"] = nlohmann::ordered_json::parse(qkv::to_json(info.model, info.items));
  json["parameters"] = nlohmann::ordered_json::array();
  for (const qkv::ParameterInfo& p : info.parameters)
    json["parameters"].push_back({{"name", p.name}, {"shape", p.shape}, {"count", p.count}, {"type", type_of(p)}});
  json["parameter_count"] = info.parameter_count;
  json["serving_bytes"] = info.serving_bytes;
  json["training_bytes"] = info.training_bytes;
  json["has_weights"] = info.has_weights;
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("inspect", "Show the kind, configuration, parameters and memory of a run");
  const auto run = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("run", *run, "Run directory")->required();
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([run, json] {
    const qkv::RunInfo info = qkv::inspect(*run);
    if (*json)
      print_json(info);
    else
      print_text(info);
  });
}
