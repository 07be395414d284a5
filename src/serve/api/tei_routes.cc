// The routes of text-embeddings-inference (TEI).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "qkv/system.h"
#include "serve/api/families.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

struct EmbedRequest {
  ModelPtr model;
  EmbedOptions options;
  std::vector<EmbedderTokens> texts = {};
};

EmbedRequest read_embed_request(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  EmbedRequest request{call->service().embedder(object.text("model")), {}};
  const ServerOptions& limits = call->service().options();
  const std::vector<std::string> texts = object.texts("inputs").texts;
  if (texts.empty()) throw HttpError(400, "`inputs` cannot be empty", "Empty");
  if (std::ssize(texts) > limits.max_inputs)
    throw HttpError(422, fmt::format("batch size {} > maximum allowed batch size {}", texts.size(), limits.max_inputs),
                    "Validation");
  request.options.normalize = object.flag("normalize", true);
  if (object.has("prompt_name")) request.options.prompt_name = object.text("prompt_name");
  const bool truncates = object.flag("truncate", true);
  const int64_t longest = request.model->embedder->max_length();
  request.texts = encode(call, request.model, texts, request.options);
  for (const EmbedderTokens& text : request.texts)
    if (!truncates && text.all > longest)
      throw HttpError(422, fmt::format("`inputs` must have less than {} tokens. Given: {}", longest, text.all),
                      "Validation");
  return request;
}

void answer_embed(const CallPtr& call) {
  EmbedRequest request;
  try {
    request = read_embed_request(call);
  } catch (HttpError& error) {
    if (error.status == 400 && !error.param.empty()) error.status = 422;
    throw;
  }
  embed(call, request.model, std::move(request.texts), request.options, [call](const Embeddings& found) {
    std::string rows;
    const auto row = static_cast<size_t>(found.width);
    for (size_t i = 0; i < found.values.size(); i += row)
      rows += fmt::format("{}[{}]", i == 0 ? "" : ",",
                          fmt::join(found.values.begin() + static_cast<std::ptrdiff_t>(i),
                                    found.values.begin() + static_cast<std::ptrdiff_t>(i + row), ","));
    call->reply_json("[" + rows + "]");
  });
}

// Whether a request to POST / is for a classifier: for the one that it names, or for any where no encoder is served.
bool is_for_classifier(const CallPtr& call, const nlohmann::json& name) {
  bool has_encoder = false, has_classifier = false;
  for (const ModelPtr& model : call->service().models()) {
    if (name.is_string() && name != model->name) continue;
    has_encoder = has_encoder || model->serves(ModelUse::embed);
    has_classifier = has_classifier || model->serves(ModelUse::classify);
  }
  return has_classifier && !has_encoder;
}

// Answers as TEI does, where the model decides what the root is: vectors, labels or an order.
void answer_root(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  if (object.contains("query")) return answer_tei_rerank(call);
  is_for_classifier(call, object.get("model")) ? answer_predict(call) : answer_embed(call);
}

// TEI's description of what a model is for.
nlohmann::ordered_json model_type(const ServedModel& model) {
  using Json = nlohmann::ordered_json;
  if (model.embedder) return {{"embedding", Json::object()}};
  Json names = Json::object(), numbers = Json::object();
  const std::vector<std::string>& labels = model.classifier->labels();
  for (size_t i = 0; i < labels.size(); i++) names[std::to_string(i)] = labels[i], numbers[labels[i]] = i;
  return {{labels.size() == 1 ? "reranker" : "classifier", {{"id2label", names}, {"label2id", numbers}}}};
}

void answer_tei_info(const CallPtr& call) {
  const ModelPtr model = call->service().find_model(
      call->query("model"), "encoder or classifier",
      [](const ServedModel& m) { return m.embedder.has_value() || m.classifier.has_value(); });
  const ServerOptions& limits = call->service().options();
  call->reply_json(nlohmann::ordered_json{
      {"model_id", model->name},
      {"model_dtype", model->is_int8() ? "int8" : "float32"},
      {"model_type", model_type(*model)},
      {"max_concurrent_requests", limits.queue_items},
      {"max_input_length", model->embedder ? model->embedder->max_length() : model->classifier->max_length()},
      {"max_batch_tokens", BatchQueue::kCost},
      {"max_client_batch_size", limits.max_inputs},
      {"auto_truncate", true},
      {"version",
       version()}}.dump());
}

}  // namespace

std::span<const Route> tei_routes() {
  static const Route routes[] = {
      {"POST", "/embed", Family::tei, answer_embed, BodyType::json, ModelUse::embed},
      {"POST", "/", Family::tei, answer_root, BodyType::json, ModelUse::embed},
      {"GET", "/info", Family::tei, answer_tei_info},
  };
  return routes;
}

}  // namespace qkv
