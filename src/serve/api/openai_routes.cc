// The routes of OpenAI's API: the list of models, embeddings, and the table with completions.
#include <algorithm>
#include <boost/beast/core/detail/base64.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "serve/api/families.h"
#include "serve/api/openai_generation.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_object.h"
#include "serve/engine/service.h"

namespace qkv {
namespace {

// ---- /v1/models

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

// ---- POST /v1/embeddings

std::string base64_of(std::span<const float> vector) {
  const size_t bytes = vector.size() * sizeof(float);
  std::string text(boost::beast::detail::base64::encoded_size(bytes), '\0');
  text.resize(boost::beast::detail::base64::encode(text.data(), vector.data(), bytes));  // little-endian
  return text;
}

std::string floats_of(std::span<const float> vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

// The texts of a request, or their tokens.
struct EmbeddingInput {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> tokens;

  int64_t size() const { return std::ssize(texts) + std::ssize(tokens); }
};

bool holds_tokens(const nlohmann::json& input) {
  return input.is_array() && !input.empty() && (input.front().is_number() || input.front().is_array());
}

EmbeddingInput input_of(RequestObject& object, const ServedModel& model, const ServerOptions& limits) {
  EmbeddingInput input;
  if (holds_tokens(object.get("input"))) {
    input.tokens = object.token_lists("input", model.tokenizer->size());
    for (const std::vector<int32_t>& ids : input.tokens)
      if (ids.empty()) refuse_field("input", "has a list without tokens");
  } else {
    input.texts = object.texts("input").texts;
  }
  if (input.size() == 0) refuse_field("input", "must be texts or lists of token ids, at least one");
  if (input.size() > limits.max_inputs)
    refuse_field("input", "must have at most {} texts (has {})", limits.max_inputs, input.size());
  return input;
}

// Keeps the first numbers of a vector, and gives it the length 1 again.
std::vector<float> shortened(std::span<const float> vector, size_t width) {
  std::vector<float> cut(vector.begin(), vector.begin() + static_cast<std::ptrdiff_t>(width));
  if (width == vector.size()) return cut;
  double squares = 0;
  for (const float x : cut) squares += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (float& x : cut) x = static_cast<float>(static_cast<double>(x) / length);
  return cut;
}

void answer_embeddings(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = call->service().embedder(object.text("model"));
  EmbeddingInput input = input_of(object, *model, call->service().options());
  const std::string format = object.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    refuse_field("encoding_format", "must be float or base64 (is {})", excerpt(format));
  const int64_t full = model->embedder->width();
  const auto width = to_size(object.integer("dimensions", full, between(1, static_cast<double>(full))));
  EmbedOptions options;
  if (object.has("prompt_name")) options.prompt_name = object.text("prompt_name");
  std::vector<EmbedderTokens> encoded = encode(call, model, input.texts, options);
  int64_t tokens = 0;
  for (const EmbedderTokens& text : encoded) tokens += std::ssize(text.ids);
  for (const std::vector<int32_t>& ids : input.tokens)
    tokens += std::min(std::ssize(ids), model->embedder->max_length());
  const auto answer = [call, model, format, tokens, width](const Embeddings& found) {
    std::string data;
    const auto row = static_cast<size_t>(found.width);
    for (size_t i = 0; i < found.values.size() / row; i++) {
      const std::vector<float> vector = shortened({found.values.data() + i * row, row}, width);
      data += fmt::format("{}{{\"object\":\"embedding\",\"index\":{},\"embedding\":{}}}", i == 0 ? "" : ",", i,
                          format == "float" ? floats_of(vector) : '"' + base64_of(vector) + '"');
    }
    call->reply_json(
        fmt::format("{{\"object\":\"list\",\"data\":[{}],\"model\":{},\"usage\":{{\"prompt_tokens\":{},"
                    "\"total_tokens\":{}}}}}",
                    data, json_string(model->name), tokens, tokens));
  };
  if (input.tokens.empty())
    embed(call, model, std::move(encoded), options, answer);
  else
    embed(call, model, std::move(input.tokens), options, answer);
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
