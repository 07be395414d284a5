// POST /v1/completions, with the log-probabilities of prompts.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "serve/api/openai_generation.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_object.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::vector<int32_t> ids_of(const json& list, std::string_view name) {
  std::vector<int32_t> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) refuse_field(name, "must be text or token ids");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// The tokens of a prompt. The first `hidden` are not in its text: the start token.
struct PromptTokens {
  std::vector<int32_t> ids = {};
  size_t hidden = 0;

  std::string text(const Generator& generator) const {
    return generator.decode({ids.begin() + static_cast<std::ptrdiff_t>(hidden), ids.end()});
  }
};

// Returns the prompts of a value: null, a string, strings, token ids, or lists of token ids. They belong to the value.
std::vector<const json*> prompts_of(const json& value) {
  if (value.is_null() || value.is_string()) return {&value};
  if (!value.is_array() || value.empty()) refuse_field("prompt", "must be a string, strings, or token ids");
  if (value.front().is_number()) return {&value};
  std::vector<const json*> prompts;
  for (const json& entry : value) {
    if (!entry.is_string() && !entry.is_array()) refuse_field("prompt", "must be a string, strings, or token ids");
    prompts.push_back(&entry);
  }
  return prompts;
}

// Returns the tokens of a prompt: those of a text, or ids, before which nothing is put.
PromptTokens tokens_of(const json& prompt, const Generator& generator) {
  if (prompt.is_null()) return {};
  if (!prompt.is_string()) return {ids_of(prompt, "prompt")};
  const std::vector<int32_t> ids = generator.encode(prompt.get<std::string>());
  std::vector<int32_t> read = generator.with_start(ids);
  const size_t hidden = read.size() - ids.size();
  return {std::move(read), hidden};
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

// Leaves out the tokens that are not in the text. The first that is has no log-probability.
void hide_start(std::vector<GeneratedToken>& scores, size_t hidden) {
  scores.erase(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(std::min(hidden, scores.size())));
  if (scores.empty()) return;
  scores.front().log_probability = std::numeric_limits<double>::quiet_NaN();
  scores.front().alternatives.clear();
}

// Computes the log-probabilities of the prompts, each in a step of its own, and continues with `then`.
void score_prompts(const CallPtr& call, const std::shared_ptr<OpenAiRequest>& request,
                   const std::vector<size_t>& hidden, std::function<void()> then) {
  request->scores.resize(request->prompts.size());
  std::vector<Computation> parts;
  for (size_t i = 0; i < request->prompts.size(); i++) {
    const std::vector<int32_t>& prompt = request->prompts[i];
    parts.push_back({std::ssize(prompt), [request, i, &prompt, unseen = hidden[i]] {
                       try {
                         const Generator& generator = *request->model->generator;
                         request->scores[i] = generator.score(prompt, request->options.alternatives);
                         hide_start(request->scores[i], unseen);
                       } catch (const Error&) {
                         throw_model_error(std::current_exception());
                       }
                       return "";
                     }});
  }
  compute(call, request->model, std::move(parts), [then = std::move(then)](std::string&&) { then(); });
}

}  // namespace

void answer_completions(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const auto request = std::make_shared<OpenAiRequest>(read_openai_request(object, *call, "cmpl-"));
  request->options.max_tokens = 16;
  read_max_tokens(object, "max_tokens", *request);
  if (!object.flag("add_special_tokens", true)) refuse_field("add_special_tokens", "must be true");
  if (object.has("top_logprobs")) refuse_field("top_logprobs", "is for chat completions (use logprobs)");
  request->logprobs = object.has("logprobs");
  request->options.alternatives = object.integer("logprobs", 0, between(0, 20));
  const Generator& generator = *request->model->generator;
  for (const char* name : {"tools", "functions"})
    if (const auto& tools = object.get(name); !tools.is_null() && !tools.empty())
      refuse_field(name, "are for chat completions");
  const bool echo = object.flag("echo");
  const std::vector<const json*> prompts = prompts_of(object.get("prompt"));
  check_openai_request(*call, *request, std::ssize(prompts));
  std::vector<size_t> hidden;
  for (const json* value : prompts) {
    Service::check_wanted();
    PromptTokens prompt = tokens_of(*value, generator);
    hidden.push_back(prompt.hidden);
    std::string text = echo ? prompt.text(generator) : "";
    add_prompt(*call, *request, std::move(prompt.ids), std::move(text), std::ssize(prompts));
  }
  const auto answer = [call, request] {
    answer_openai(call, std::move(*request),
                  {"text_completion", "text_completion", completion_choice, completion_choice, completion_logprobs});
  };
  if (!echo || !request->logprobs) return answer();
  for (const std::vector<int32_t>& prompt : request->prompts)
    if (std::ssize(prompt) > request->model->max_length())
      refuse_field("echo", "with logprobs needs a prompt of at most {} tokens (has {})", request->model->max_length(),
                   prompt.size());
  score_prompts(call, request, hidden, answer);
}

}  // namespace qkv
