// qkv::heads_to_json. Names are those of the structs in qkv/heads.h.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "qkv/heads.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const HeadReport& head);
Json json_of(const AblationReport& ablation);

Json json_of(const Change& change) { return {{"value", change.value}, {"low", change.low}, {"high", change.high}}; }

Json json_of(const HeadScore& score) {
  Json json = {{"value", score.value}};
  if (score.uniform) json["uniform"] = *score.uniform;
  json["rows"] = score.rows;
  return json;
}

Json json_of(const WordAgreement& agreement) {
  return {{"relation", agreement.relation}, {"direction", agreement.direction}, {"pairs", agreement.pairs},
          {"share", agreement.share},       {"baseline", agreement.baseline},   {"offset", agreement.offset}};
}

Json json_of(const BestHead& head) {
  Json json = {{"relation", head.relation}};
  if (!head.direction.empty()) json["direction"] = head.direction;
  json.update({{"kind", head.kind}, {"layer", head.layer}, {"head", head.head}, {"count", head.count}});
  json["value"] = head.value, json["baseline"] = head.baseline;
  if (head.offset) json["offset"] = *head.offset;
  if (head.loss) json["loss"] = json_of(*head.loss);
  return json;
}

// Weights have four decimals.
Json json_of(const HeadExample& example) {
  Json rows = Json::array();
  for (size_t i = 0; i < example.rows.size(); i++) {
    Json row = Json::array();
    for (size_t j = 0; j < example.columns.size(); j++)
      row.push_back(std::round(1e4 * static_cast<double>(example.weights[i * example.columns.size() + j])) / 1e4);
    rows.push_back(std::move(row));
  }
  return {{"line", example.line}, {"rows", example.rows}, {"columns", example.columns}, {"weights", std::move(rows)}};
}

template <class Entry>
Json list_of(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(json_of(entry));
  return list;
}

Json json_of(const HeadReport& head) {
  Json json = {{"kind", head.kind}, {"layer", head.layer}, {"head", head.head}, {"role", head.role}};
  json["strength"] = head.strength;
  for (const HeadScore& score : head.scores) json["scores"][score.name] = json_of(score);
  if (!head.agreements.empty()) json["agreements"] = list_of(head.agreements);
  if (head.importance) json["importance"] = *head.importance;
  if (!head.examples.empty()) json["examples"] = list_of(head.examples);
  return json;
}

Json json_of(const AblationReport& ablation) {
  Json json = {{"part", ablation.part}, {"layer", ablation.layer}};
  json["head"] = ablation.head > 0 ? Json(ablation.head) : Json();
  json["loss"] = json_of(ablation.loss);
  if (ablation.ndcg10) json["ndcg10"] = json_of(*ablation.ndcg10);
  if (ablation.bleu) json["bleu"] = json_of(*ablation.bleu);
  return json;
}

}  // namespace

std::string heads_to_json(const HeadsReport& report) {
  Json json = {{"run", report.run},
               {"kind", name_of(report.kind)},
               {"texts", report.texts},
               {"source_tokens", report.source_tokens},
               {"target_tokens", report.target_tokens},
               {"own_translations", report.own_translations}};
  if (report.loss) json["loss"] = *report.loss;
  if (report.ndcg10) json["ndcg10"] = *report.ndcg10;
  if (report.bleu) json["bleu"] = *report.bleu;
  json["ablate"] = name_of(report.ablate);
  json["replace_by"] = name_of(report.replace_by);
  json["heads"] = list_of(report.heads);
  json["best"] = list_of(best_heads(report));
  json["ablations"] = list_of(report.ablations);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv
