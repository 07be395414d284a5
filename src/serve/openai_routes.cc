// The routes of OpenAI's API: models, completions, chat completions and embeddings.
#include <algorithm>
#include <boost/beast/core/detail/base64.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "serve/batch_work.h"
#include "serve/openai_generation.h"
#include "serve/request_limits.h"
#include "serve/request_object.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// ---- /v1/models

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

// ---- /v1/completions

std::vector<int32_t> ids_of(const json& list, std::string_view name) {
  std::vector<int32_t> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) refuse_field(name, "must be text or token ids");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// Prompts: a string, strings, token ids, or lists of token ids.
std::vector<std::vector<int32_t>> prompts_of(const json& value, const Generator& generator,
                                             const ServerOptions& limits) {
  const auto ids_of_text = [&](const json& text) {
    check_texts(limits, "prompt", {text.get<std::string>()});
    return generator.encode(text.get<std::string>());
  };
  if (value.is_null()) return {{}};
  if (value.is_string()) return {ids_of_text(value)};
  if (!value.is_array() || value.empty()) refuse_field("prompt", "must be a string, strings, or token ids");
  if (value.front().is_number()) return {ids_of(value, "prompt")};
  std::vector<std::vector<int32_t>> prompts;
  for (const json& entry : value) {
    if (!entry.is_string() && !entry.is_array()) refuse_field("prompt", "must be a string, strings, or token ids");
    prompts.push_back(entry.is_string() ? ids_of_text(entry) : ids_of(entry, "prompt"));
  }
  return prompts;
}

ordered_json completion_choice(size_t i, std::string text, ordered_json logprobs, ordered_json finish) {
  return {
      {"index", i}, {"text", std::move(text)}, {"logprobs", std::move(logprobs)}, {"finish_reason", std::move(finish)}};
}

ordered_json top_logprobs(const GeneratedToken& token) {
  ordered_json top = ordered_json::object();
  for (const TokenAlternative& other : token.alternatives)
    top[other.end ? "<end>" : token_text(other.text)] = other.log_probability;
  top[token_text(token.text)] = token.log_probability;
  return top;
}

// The first token of a prompt has no log-probability, which is written null.
ordered_json completion_logprobs(std::span<const GeneratedToken> tokens, int64_t offset) {
  ordered_json all = {{"tokens", json::array()},
                      {"token_logprobs", json::array()},
                      {"top_logprobs", json::array()},
                      {"text_offset", json::array()}};
  for (const GeneratedToken& token : tokens) {
    const bool is_scored = !std::isnan(token.log_probability);
    all["tokens"].push_back(token_text(token.text));
    all["token_logprobs"].push_back(is_scored ? ordered_json(token.log_probability) : ordered_json());
    all["top_logprobs"].push_back(is_scored ? top_logprobs(token) : ordered_json());
    all["text_offset"].push_back(offset);
    offset += count_characters(token.text);
  }
  return all;
}

// Computes the log-probabilities of the prompts, and continues with `then`.
void score_prompts(const CallPtr& call, const std::shared_ptr<OpenAiRequest>& request, std::function<void()> then) {
  int64_t cost = 0;
  for (const std::vector<int32_t>& prompt : request->prompts) cost += std::ssize(prompt);
  const auto score = [request] {
    try {
      for (const std::vector<int32_t>& prompt : request->prompts)
        request->scores.push_back(request->model->generator->score(prompt, request->options.alternatives));
    } catch (const Error&) {
      throw_model_error(std::current_exception());
    }
    return "";
  };
  compute(call, request->model, cost, score, [then = std::move(then)](std::string&&) { then(); });
}

void answer_completions(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const auto request = std::make_shared<OpenAiRequest>(read_openai_request(object, *call, "cmpl-"));
  request->options.max_tokens = object.integer("max_tokens", 16, at_least(0));
  request->logprobs = object.has("logprobs");
  request->options.alternatives = object.integer("logprobs", 0, between(0, 20));
  const Generator& generator = *request->model->generator;
  request->prompts = prompts_of(object.get("prompt"), generator, call->service().options());
  const bool echo = object.flag("echo");
  for (const std::vector<int32_t>& prompt : request->prompts)
    request->echoes.push_back(echo ? generator.decode(prompt) : "");
  check_openai_request(*request, call->service().options());
  const auto answer = [call, request] {
    answer_openai(call, std::move(*request),
                  {"text_completion", "text_completion", completion_choice, completion_choice, completion_logprobs});
  };
  if (!echo || !request->logprobs) return answer();
  for (const std::vector<int32_t>& prompt : request->prompts)
    if (std::ssize(prompt) > request->model->max_length())
      refuse_field("echo", "with logprobs needs a prompt of at most {} tokens (has {})", request->model->max_length(),
                   prompt.size());
  score_prompts(call, request, answer);
}

// ---- /v1/chat/completions

std::string content_of(const json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return "";
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) refuse_field("messages", "must have a string or text parts as content");
  std::string text;
  for (const json& part : *content) {
    if (!part.is_object() || part.value("type", json()) != "text" || !part.value("text", json()).is_string())
      refuse_field("messages", "must have text parts only");
    text += part["text"].get<std::string>();
  }
  return text;
}

std::vector<ChatMessage> messages_of(const json& list, const ServerOptions& limits) {
  if (!list.is_array() || list.empty()) refuse_field("messages", "must be a list of messages");
  std::vector<ChatMessage> messages;
  for (const json& message : list) {
    if (!message.is_object() || !message.value("role", json()).is_string())
      refuse_field("messages", "must be objects with role and content");
    std::string role = message["role"].get<std::string>();
    messages.push_back({role == "developer" ? "system" : std::move(role), content_of(message)});
    check_texts(limits, "messages", {messages.back().content});
  }
  return messages;
}

ordered_json chat_token(const std::string& token, double log_probability) {
  ordered_json bytes = ordered_json::array();
  for (const char c : token) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token_text(token)}, {"logprob", log_probability}, {"bytes", std::move(bytes)}};
}

ordered_json chat_logprobs(std::span<const GeneratedToken> tokens, int64_t) {
  ordered_json content = ordered_json::array();
  for (const GeneratedToken& token : tokens) {
    ordered_json entry = chat_token(token.text, token.log_probability);
    entry["top_logprobs"] = ordered_json::array();
    for (const TokenAlternative& other : token.alternatives)
      entry["top_logprobs"].push_back(chat_token(other.end ? "<end>" : other.text, other.log_probability));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

ordered_json chat_choice(size_t i, std::string text, ordered_json logprobs, ordered_json finish) {
  return {{"index", i},
          {"message", {{"role", "assistant"}, {"content", std::move(text)}, {"refusal", nullptr}}},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish)}};
}

// The first chunk of a choice has its role.
std::function<ordered_json(size_t, std::string, ordered_json, ordered_json)> chat_chunks() {
  return [begun = std::make_shared<std::vector<bool>>()](size_t i, std::string text, ordered_json logprobs,
                                                         ordered_json finish) -> ordered_json {
    begun->resize(std::max(begun->size(), i + 1));
    ordered_json delta = ordered_json::object();
    if (!(*begun)[i]) delta["role"] = "assistant";
    (*begun)[i] = true;
    if (!text.empty() || delta.contains("role")) delta["content"] = std::move(text);
    return {{"index", i},
            {"delta", std::move(delta)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish)}};
  };
}

void answer_chat(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  OpenAiRequest request = read_openai_request(object, *call, "chatcmpl-");
  if (!request.model->chat) refuse_field("messages", "need a chat template: serve {} with one", request.model->name);
  request.prompts = {request.model->chat->prompt(messages_of(object.get("messages"), call->service().options()))};
  request.echoes = {""};
  if (const std::string stop = request.model->chat->stop(); !stop.empty()) request.options.stop.push_back(stop);
  const int64_t room = request.model->max_length() - std::ssize(request.prompts.front());
  const int64_t most = std::min(call->service().options().max_tokens, std::max<int64_t>(room, 1));
  request.options.max_tokens = object.integer("max_tokens", most, at_least(0));
  request.options.max_tokens = object.integer("max_completion_tokens", request.options.max_tokens, at_least(0));
  request.logprobs = object.flag("logprobs");
  request.options.alternatives = object.integer("top_logprobs", 0, between(0, 20));
  check_openai_request(request, call->service().options());
  answer_openai(call, std::move(request),
                {"chat.completion", "chat.completion.chunk", chat_choice, chat_chunks(), chat_logprobs, true});
}

// ---- /v1/embeddings

std::string base64_of(std::span<const float> vector) {
  const size_t bytes = vector.size() * sizeof(float);
  std::string text(boost::beast::detail::base64::encoded_size(bytes), '\0');
  text.resize(boost::beast::detail::base64::encode(text.data(), vector.data(), bytes));  // little-endian
  return text;
}

std::string floats_of(std::span<const float> vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

void answer_embeddings(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = call->service().embedder(object.text("model"));
  const Texts input = object.texts("input");
  if (input.texts.empty()) refuse_field("input", "must be a string or a list of strings");
  check_texts(call->service().options(), "input", input.texts);
  const std::string format = object.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    refuse_field("encoding_format", "must be float or base64 (is {})", excerpt(format));
  const int64_t width = model->embedder->width();
  if (const int64_t wanted = object.integer("dimensions", width, at_least(1)); wanted != width)
    refuse_field("dimensions", "must be {} (is {})", width, wanted);
  int64_t tokens = 0;
  for (const int64_t count : model->embedder->count_tokens(input.texts))
    tokens += std::min(count, model->embedder->max_length());
  embed(call, model, input.texts, {}, tokens, [call, model, format, tokens](const Embeddings& found) {
    std::string data;
    const auto row = static_cast<size_t>(found.width);
    for (size_t i = 0; i < found.values.size() / row; i++) {
      const std::span<const float> vector(found.values.data() + i * row, row);
      data += fmt::format("{}{{\"object\":\"embedding\",\"index\":{},\"embedding\":{}}}", i == 0 ? "" : ",", i,
                          format == "float" ? floats_of(vector) : '"' + base64_of(vector) + '"');
    }
    call->reply_json(
        fmt::format("{{\"object\":\"list\",\"data\":[{}],\"model\":{},\"usage\":{{\"prompt_tokens\":{},"
                    "\"total_tokens\":{}}}}}",
                    data, json_string(model->name), tokens, tokens));
  });
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
