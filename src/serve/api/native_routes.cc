// The table of the native routes, /v1/attend and /v1/info.
#include "serve/api/native_routes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "core/json.h"
#include "qkv/version.h"
#include "serve/api/families.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

// Throws HttpError 400 for more weights than an answer may have.
void check_weights(double weights) {
  if (weights > static_cast<double>(kMostWeights))
    refuse_field("text", "would need {:.0f} weights, more than {}", weights, kMostWeights);
}

// Refuses a text that is too long for the model, or whose weights are too many, whatever the model generates. Returns
// their number without what it generates.
int64_t check_text_weights(const ServedModel& model, const std::string& text, const std::string& target, int64_t more) {
  const auto count = [&](const std::string& of) {
    return static_cast<double>(model.translator ? std::ssize(model.translator->tokenize(of))
                                                : std::ssize(model.generator->encode(of)));
  };
  const ModelConfig& config = model.info.model;
  const auto longest = static_cast<double>(config.max_length);
  const auto check_length = [&](const char* name, double tokens) {
    if (tokens > longest) refuse_field(name, "must have at most {} tokens (has {:.0f})", longest, tokens);
  };
  const double own = count(text), S = model.translator ? own : 0;
  const double T = model.translator ? count(target) : std::min(own + static_cast<double>(more), longest);
  check_length("text", own);
  check_length("target", T);
  const auto encoders = static_cast<double>(config.encoder_layers),
             decoders = static_cast<double>(config.decoder_layers);
  const double weights = static_cast<double>(config.attention.heads) * (encoders * S * S + decoders * T * (T + S));
  check_weights(weights);
  return static_cast<int64_t>(weights);
}

int64_t weights_of(const AttentionMap& map) {
  int64_t count = 0;
  for (const AttentionKind& kind : map.kinds)
    for (const auto& layer : kind.layers)
      for (const AttentionHead& head : layer) count += std::ssize(head.weights);
  return count;
}

nlohmann::ordered_json described(const ServedModel& model) {
  nlohmann::ordered_json json = {{"id", model.name},
                                 {"kind", name_of(model.info.kind)},
                                 {"int8", model.is_int8()},
                                 {"parameters", model.info.parameter_count},
                                 {"max_length", model.max_length()}};
  if (model.translator) {
    const std::vector<std::string> languages = model.translator->languages();
    json["source_languages"] = languages.empty() ? std::vector{model.source_language} : languages;
    json["target_languages"] = languages.empty() ? std::vector{model.target_language} : languages;
  }
  if (model.embedder) json["width"] = model.embedder->width();
  if (model.classifier) json["labels"] = model.classifier->labels();
  return json;
}

void answer_attend(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = call->service().find_model(
      object.text("model"), "translator or language model",
      [](const ServedModel& m) { return m.translator.has_value() || m.generator.has_value(); });
  const std::string text = object.text("text"), target = object.text("target");
  const std::string from = object.text("source_language"), to = object.text("target_language");
  const auto most = static_cast<double>(most_tokens(call->service().options(), *model));
  const int64_t more = object.integer("generate", 0, between(0, most));
  const bool words = object.flag("words");
  object.refuse_others();
  check_texts(call->service().options(), "text", {text, target});
  if (model->translator && more > 0)
    refuse_field("generate", "is for language models; {} is a translator", model->name);
  if (model->generator && !(target + from + to).empty())
    refuse_field("target", "is for translators; {} is a language model", model->name);
  const int64_t bytes = kWeightBytes * check_text_weights(*model, text, target, more);
  call->service().leave(call, [bytes](const CallPtr& started) {
    started->service().admission().hold_answer(started->track(), bytes, 429);
  });
  const auto map = std::make_shared<AttentionMap>();
  const auto attend = [=] {
    *map = model->translator ? model->translator->attend(text, target, from, to) : model->generator->attend(text, more);
    if (words) *map = merge_words(*map);
    check_weights(static_cast<double>(weights_of(*map)));
    return std::string();
  };
  const int64_t cost = std::ssize(text) / 4 + std::ssize(target) / 4 + more + 1;
  compute(call, model, {{cost, attend}}, [call, map](std::string&&) {
    const auto size = static_cast<size_t>(kWeightBytes * weights_of(*map));
    call->service().run(call, size, [map](const CallPtr& done) { done->reply_json(attention_to_json(*map)); });
  });
  call->track().add_texts(1);
}

void answer_info(const CallPtr& call) {
  using nlohmann::ordered_json;
  const ServerOptions& o = call->service().options();
  ordered_json models = ordered_json::array();
  for (const ModelPtr& model : call->service().models()) models.push_back(described(*model));
  call->reply_json(ordered_json{{"version", version()},
                                {"models", std::move(models)},
                                {"limits",
                                 {{"max_body", o.max_body},
                                  {"max_text", o.max_text},
                                  {"max_texts", o.max_texts},
                                  {"max_inputs", o.max_inputs},
                                  {"max_tokens", o.max_tokens},
                                  {"max_beam", o.max_beam},
                                  {"deadline", o.deadline}}}}
                       .dump());
}

}  // namespace

std::string list_of(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

std::span<const Route> native_routes() {
  static const Route routes[] = {
      {"POST", "/v1/translate", Family::native, answer_translate, BodyType::json, ModelUse::translate},
      {"POST", "/v1/attend", Family::native, answer_attend, BodyType::json},
      {"POST", "/v1/recommend", Family::native, answer_recommend, BodyType::json, ModelUse::recommend},
      {"GET", "/v1/items", Family::native, answer_items},
      {"GET", "/v1/info", Family::native, answer_info},
  };
  return routes;
}

}  // namespace qkv
