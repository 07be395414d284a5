// The routes of OpenAI's API, and the list of models.
#include "serve/api/openai_routes.h"

#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "serve/api/families.h"
#include "serve/engine/service.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

ordered_json openai_model(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.loaded},
          {"owned_by", "qkv"},
          {"kind", name_of(model.info.kind)},
          {"parameters", model.info.parameter_count},
          {"max_length", model.max_length()}};
}

void answer_models(const CallPtr& call) {
  ordered_json list = ordered_json::array();
  for (const ModelPtr& model : call->service().models()) list.push_back(openai_model(*model));
  call->reply_json(ordered_json{{"object", "list"}, {"data", std::move(list)}}.dump());
}

void answer_model(const CallPtr& call) {
  const ModelPtr model =
      call->service().find_model(call->path_parts().front(), "model", [](const ServedModel&) { return true; });
  call->reply_json(openai_model(*model).dump());
}

}  // namespace

std::span<const Route> openai_routes() {
  static const Route routes[] = {
      {"GET", "/v1/models", Family::openai, answer_models},
      {"GET", "/v1/models/{}", Family::openai, answer_model},
      {"POST", "/v1/completions", Family::openai, answer_completions, BodyType::json, ModelUse::generate},
      {"POST", "/v1/chat/completions", Family::openai, answer_chat, BodyType::json, ModelUse::generate},
      {"POST", "/v1/embeddings", Family::openai, answer_embeddings, BodyType::json, ModelUse::embed},
  };
  return routes;
}

}  // namespace qkv
