// qkv::prune_heads: a run with fewer heads in each attention. The rows of W_Q, W_K and W_V and the columns of W_O that
// belong to the removed heads are left out. All attentions of a model have the same number of heads.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "analysis/heads/attention_pass.h"
#include "analysis/heads/head_ablation.h"
#include "core/fail.h"
#include "core/to_size.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "io/weights/quantized_weights.h"
#include "qkv/heads.h"

namespace qkv {
namespace {

using HeadNumbers = std::vector<int64_t>;              // from 0, in increasing order
using KeptHeads = std::map<std::string, HeadNumbers>;  // by the name of an attention: "encoder.layers.0.self_attention"

// Throws Error for a model whose heads cannot be removed one by one.
void check_model(const std::string& run, const ModelConfig& config, int64_t count) {
  const AttentionConfig& attention = config.attention;
  const auto refuse = [&](const char* field, const std::string& value, const char* reason) {
    fail("{}: {} is {}: {}", run, field, value, reason);
  };
  if (config.positions == Positions::alibi) refuse("positions", "alibi", "its slopes depend on the number of heads");
  if (attention.relative_buckets > 0)
    refuse("relative_buckets", fmt::format("{}", attention.relative_buckets),
           "all layers share the biases of a head, so that layers cannot lose different heads");
  if (attention.query_key_norm_over_heads)
    refuse("query_key_norm_over_heads", "true", "the norm of queries and keys needs all heads");
  if (config.key_value_heads() != attention.heads)
    refuse("key_value_heads", fmt::format("{}", config.key_value_heads()), "several heads share keys and values");
  if (config.shared_layers) refuse("shared_layers", "true", "layers cannot lose different heads");
  if (count < 1 || count >= attention.heads)
    fail("count must be between 1 and {}, one less than the heads of {} (is {})", attention.heads - 1, run, count);
}

// Returns the heads that stay: of each attention all but the `count` least important.
KeptHeads kept_heads(const HeadsReport& report, const ModelConfig& config, int64_t count) {
  const std::vector<HeadPlace> places = all_heads(config);
  if (report.heads.size() != places.size())
    fail("report must have {} heads (has {})", places.size(), report.heads.size());
  KeptHeads kept;
  for (size_t p = 0; p < places.size(); p += to_size(config.attention.heads)) {
    HeadNumbers order;
    for (int64_t h = 0; h < config.attention.heads; h++) {
      if (!report.heads[p + to_size(h)].importance) fail("report must have the importance of all heads");
      order.push_back(h);
    }
    std::ranges::stable_sort(order, {}, [&](int64_t h) { return *report.heads[p + to_size(h)].importance; });
    HeadNumbers& stay = kept[parameters_of(sublayer_of(places[p]))];
    stay.assign(order.begin() + count, order.end());
    std::ranges::sort(stay);
  }
  return kept;
}

// Copies the columns of heads, each `width` wide, of each row. to: [rows, heads that stay · width].
void copy_columns(const float* from, int64_t rows, int64_t columns, int64_t width, const HeadNumbers& stay, float* to) {
  for (int64_t n = 0; n < rows; n++)
    for (const int64_t h : stay) to = std::copy_n(from + n * columns + h * width, width, to);
}

// Copies a parameter, in an attention without the removed heads.
void copy_parameter(const Parameter<float>& from, const ModelConfig& config, const KeptHeads& kept, float* to) {
  const auto copy_all = [&] { std::copy_n(from.value, from.size(), to); };
  const size_t end = from.name.find("attention.");
  const auto found = end == std::string::npos ? kept.end() : kept.find(from.name.substr(0, end + 9));
  if (found == kept.end()) return copy_all();
  const std::string rest = from.name.substr(end + 10);  // "q.weight"
  const int64_t width =
      rest.starts_with("q.") || rest.starts_with("k.") ? config.attention.key_width : config.attention.value_width;
  if (rest == "output.weight") return copy_columns(from.value, from.shape[0], from.shape[1], width, found->second, to);
  for (const char* rows : {"q.", "k.", "v."})
    if (rest.starts_with(rows)) {
      const int64_t columns = from.shape.size() == 2 ? from.shape[1] : 1;
      return copy_columns(from.value, 1, from.size(), width * columns, found->second, to);
    }
  copy_all();
}

// Returns the heads that do not stay, counted from 1.
HeadNumbers removed_of(const HeadNumbers& stay, int64_t heads) {
  HeadNumbers removed;
  for (int64_t h = 0; h < heads; h++)
    if (!std::ranges::binary_search(stay, h)) removed.push_back(h + 1);
  return removed;
}

std::vector<std::string> removed_heads(const ModelConfig& config, const KeptHeads& kept) {
  std::vector<std::string> removed;
  for (const HeadPlace& place : all_heads(config)) {
    if (place.head > 0) continue;
    const SublayerPlace sublayer = sublayer_of(place);
    const HeadNumbers heads = removed_of(kept.at(parameters_of(sublayer)), config.attention.heads);
    removed.push_back(
        fmt::format("{}, layer {}: heads {}", name_of(sublayer), place.layer + 1, fmt::join(heads, ", ")));
  }
  return removed;
}

// Returns pruned_heads.json: how many heads there were, and those that were removed, counted from 1.
std::string record_of(const std::string& run, const ModelConfig& config, const KeptHeads& kept) {
  nlohmann::ordered_json json = {{"run", run}, {"heads", config.attention.heads}};
  for (const auto& [name, stay] : kept) json["removed"][name] = removed_of(stay, config.attention.heads);
  return json.dump(2) + "\n";
}

using AnyRun = std::variant<TranslatorRun, LanguageRun, RecommenderRun, EncoderRun, ClassifierRun>;

// Loads a run. Throws Error unless it can lose `count` heads of each attention and be written to `out`.
AnyRun load_checked(const std::string& run, int64_t count, const RunDirectory& to) {
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  AnyRun loaded = load_one_of<TranslatorRun, LanguageRun, RecommenderRun, EncoderRun, ClassifierRun>(run);
  std::visit(
      [&](const auto& parts) {
        if (is_quantized(parts.model->parameters()))
          fail("{}: is quantized; prune the run before it is quantized", RunDirectory(run).model());
        check_model(run, parts.config, count);
      },
      loaded);
  return loaded;
}

}  // namespace

void check_prune(const std::string& run, int64_t count, const std::string& out) {
  load_checked(run, count, RunDirectory(out));
}

PruneReport prune_heads(const std::string& run, const HeadsReport& report, int64_t count, const std::string& out) {
  const RunDirectory from(run), to(out);
  AnyRun loaded = load_checked(run, count, to);
  return std::visit(
      [&](auto& parts) -> PruneReport {
        const ParameterList<float>& weights = parts.model->parameters();
        const ModelConfig config = parts.config;
        const KeptHeads kept = kept_heads(report, config, count);
        parts.config.attention.heads -= count;
        if (parts.config.attention.key_value_heads > 0) parts.config.attention.key_value_heads -= count;
        Transformer<float> pruned(parts.config, items_of(parts));
        for (size_t i = 0; i < weights.all().size(); i++)
          copy_parameter(weights.all()[i], config, kept, pruned.parameters().all()[i].value);
        create_run(to, parts, [&](const RunDirectory& partial) {
          save_weights(partial.model(), pruned.parameters(), pruned.parameters().values());
          copy_decoding_defaults(from, partial);
          write_file_atomic(partial.root() + "/pruned_heads.json", record_of(run, config, kept));
        });
        return {to.root(), removed_heads(config, kept), weights.size(), pruned.parameters().size()};
      },
      loaded);
}

}  // namespace qkv
