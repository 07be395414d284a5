// qkv inspect: kind, configuration, parameters and memory of a run directory.
#include "qkv/inspect.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "commands.h"

namespace {

std::string_view kind_of(const qkv::RunInfo& info) { return names_of(info.kind)[static_cast<size_t>(info.kind)]; }

const char* type_of(const qkv::ParameterInfo& p) { return p.bits == 4 ? "int4" : p.bits == 8 ? "int8" : "float32"; }

void print_text(const qkv::RunInfo& info) {
  fmt::print("kind: {}, format {}", kind_of(info), info.format);
  if (!info.version.empty()) fmt::print(", written by qkv {}", info.version);
  fmt::print("\nmodel\n{}\n", qkv::to_json(info.model, info.items));
  for (const qkv::ParameterInfo& p : info.parameters)
    fmt::print("{:<48} {:>14} {:>12} {}\n", p.name, fmt::format("[{}]", fmt::join(p.shape, ", ")), p.count, type_of(p));
  fmt::print("{:<48} {:>14} {:>12}\n", "all parameters", "", info.parameter_count);
  fmt::print("memory: {:.1f} MiB of weights to serve", mebibytes(info.serving_bytes));
  if (info.training_bytes > 0) fmt::print(", {:.1f} MiB to train", mebibytes(info.training_bytes));
  fmt::print(", without activations\n");
  if (!info.has_weights) fmt::print("no model.safetensors yet: it is written by the first evaluation\n");
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
