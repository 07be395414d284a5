#include "serve/api/openai_generation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "serve/engine/request_limits.h"
#include "serve/http/http_reply.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// ---- Members of requests to OpenAI's routes that would change the answer, but are not served. Other programs know
// them: OpenAI, vLLM, llama.cpp, SGLang.

using nlohmann::json;

// The name of a member, and the number without effect.
struct Unserved {
  std::string_view name;
  double neutral = 0;
};

// null, false and what is empty have no effect either.
constexpr std::array kUnserved = {
    // constraints on the form of the text
    Unserved{"grammar"}, Unserved{"json_schema"}, Unserved{"ebnf"}, Unserved{"regex"}, Unserved{"structural_tag"},
    Unserved{"structured_outputs"}, Unserved{"guided_json"}, Unserved{"guided_regex"}, Unserved{"guided_choice"},
    Unserved{"guided_grammar"}, Unserved{"guided_json_object"}, Unserved{"guided_decoding"},
    // tokens
    Unserved{"min_tokens"}, Unserved{"ignore_eos"}, Unserved{"stop_token_ids"}, Unserved{"bad_words"},
    Unserved{"bad_words_ids"}, Unserved{"allowed_token_ids"}, Unserved{"include_stop_str_in_output"},
    Unserved{"logits_processors"}, Unserved{"truncate_prompt_tokens"},
    // other ways to search and to sample
    Unserved{"use_beam_search"}, Unserved{"beam_width", 1}, Unserved{"mirostat"}, Unserved{"dynatemp_range"},
    Unserved{"xtc_probability"}, Unserved{"dry_multiplier"}, Unserved{"tfs_z", 1}, Unserved{"top_a"},
    Unserved{"top_n_sigma", -1}, Unserved{"epsilon_cutoff"}, Unserved{"eta_cutoff"}, Unserved{"repeat_penalty", 1},
    Unserved{"n_indent"},
    // input and output
    Unserved{"prompt_logprobs"}, Unserved{"n_probs"}, Unserved{"prompt_embeds"}, Unserved{"lora"}, Unserved{"audio"},
    Unserved{"web_search_options"}, Unserved{"input_prefix"}, Unserved{"input_suffix"}, Unserved{"input_extra"}};

bool has_effect(const json& value, double neutral) {
  if (value.is_null() || value == false) return false;
  if (value.is_number()) return value.get<double>() != neutral;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_boolean() || !value.empty();
}

// Throws HttpError 400 that names the member, unless its value has no effect, such as 0, false or null.
void refuse_unserved_members(RequestObject& object) {
  for (const auto& [name, neutral] : kUnserved)
    if (has_effect(object.get(name), neutral)) refuse_field(name, "is not supported");
  if (!object.flag("skip_special_tokens", true)) refuse_field("skip_special_tokens", "must be true");
}

// ---- Options, limits and answers

using nlohmann::ordered_json;

constexpr int64_t kMostChoices = 16, kMostStops = 16;

// Refuses members that would change the answer but are not served. Neutral values are accepted.
void refuse_unserved(RequestObject& object, int64_t choices) {
  refuse_unserved_members(object);
  if (object.integer("best_of", choices, at_least(0)) != choices) refuse_field("best_of", "must be the same as n");
  if (object.has("suffix")) refuse_field("suffix", "is not supported");
  const auto& format = object.get("response_format");
  if (!format.is_null() && !(format.is_object() && format.value("type", nlohmann::json()) == "text"))
    refuse_field("response_format", "must be {{\"type\": \"text\"}}");
}

// Whether a request has a value by which clients say that they have none, such as a seed of -1.
bool is_minus_one(RequestObject& object, std::string_view name) {
  const nlohmann::json& value = object.get(name);
  return value.is_number_integer() && value == -1;
}

// Reads options of sampling. -1 stands for a random seed, and for all tokens as top_k; a top_p of 0 keeps only the most
// probable token.
void read_sampling(RequestObject& object, SamplingOptions& sampling) {
  const nlohmann::json& top_p = object.get("top_p");
  const bool is_greedy = top_p.is_number() && top_p == 0;
  visit_fields(sampling, [&](std::string_view name, auto& member, const Field& field) {
    const bool is_unset = (name == "seed" || name == "top_k") && is_minus_one(object, name);
    if (!is_unset && !(name == "top_p" && is_greedy)) object(name, member, field);
  });
  if (is_greedy) sampling.top_k = 1;
  sampling.seed &= (uint64_t{1} << 53) - 1;
}

// Reads what is added to logits: numbers from −100 to 100, by token ids that are written as names.
std::vector<std::pair<int32_t, double>> logit_bias(RequestObject& object, int64_t vocab) {
  std::vector<std::pair<int32_t, double>> biases;
  const nlohmann::json& map = object.get("logit_bias");
  if (map.is_null()) return biases;
  if (!map.is_object()) refuse_field("logit_bias", "must be an object of token ids and numbers");
  for (const auto& [name, value] : map.items()) {
    int64_t token = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (error != std::errc() || end != name.data() + name.size() || token < 0 || token >= vocab)
      refuse_field("logit_bias", "must name token ids from 0 to {} (has {})", vocab - 1, excerpt(name));
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100))
      refuse_field("logit_bias", "must have numbers from -100 to 100 (for {})", token);
    biases.emplace_back(static_cast<int32_t>(token), value.get<double>());
  }
  return biases;
}

ordered_json finish_of(const Generation& text) {
  return text.end == GenerationEnd::document || text.end == GenerationEnd::stop ? "stop" : "length";
}

// The course of one answer.
class Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(CallPtr call, OpenAiRequest request, OpenAiForms forms)
      : call_(std::move(call)),
        request_(std::move(request)),
        forms_(std::move(forms)),
        sent_(request_.prompts.size() * static_cast<size_t>(request_.choices)) {}

  void start() {
    std::vector<TextToGenerate> texts;
    for (const std::vector<int32_t>& prompt : request_.prompts)
      for (int64_t i = 0; i < request_.choices; i++) {
        texts.push_back({prompt, request_.options});
        texts.back().options.seed += static_cast<uint64_t>(i);
        if (request_.fills_context)
          texts.back().options.max_tokens = room_for(*request_.model, prompt, call_->service().options());
      }
    GenerationHandlers handlers;
    const auto self = shared_from_this();
    if (request_.streams) {
      handlers.on_token = [self](size_t i, const GeneratedToken& token, std::string_view piece) {
        self->send_token(i, token, piece);
      };
      handlers.on_text = [self](size_t i, const Generation& text) { self->send_end(i, text); };
    }
    handlers.on_done = [self](std::vector<Generation>&& found, const std::vector<int64_t>& cached) {
      self->finish(found, cached);
    };
    const std::vector<int64_t> tokens = generate(call_, request_.model, std::move(texts), std::move(handlers));
    for (size_t i = 0; i < tokens.size(); i += static_cast<size_t>(request_.choices)) prompt_tokens_ += tokens[i];
  }

 private:
  struct Sent {
    bool begun = false;
    std::string text = {};   // without the echo
    int64_t characters = 0;  // of it and of the tokens so far, of which some may be held back
  };

  size_t prompt_of(size_t i) const { return i / static_cast<size_t>(request_.choices); }
  const std::string& echo_of(size_t i) const { return request_.echoes[prompt_of(i)]; }

  // Returns the log-probabilities of the tokens of an echo, followed by those of others.
  ordered_json logprobs_with_echo(size_t i, std::span<const GeneratedToken> others) const {
    if (request_.scores.empty()) return logprobs_of(others, count_characters(echo_of(i)));
    std::vector<GeneratedToken> tokens = request_.scores[prompt_of(i)];
    tokens.insert(tokens.end(), others.begin(), others.end());
    return logprobs_of(tokens, 0);
  }

  ordered_json logprobs_of(std::span<const GeneratedToken> tokens, size_t offset) const {
    return request_.logprobs ? forms_.logprobs(tokens, offset) : ordered_json();
  }

  ordered_json object_of(const std::string& name, ordered_json choices) const {
    return {{"id", request_.id},
            {"object", name},
            {"created", request_.created},
            {"model", request_.model->name},
            {"choices", std::move(choices)}};
  }

  void send_chunk(ordered_json choices, ordered_json usage) {
    ordered_json chunk = object_of(forms_.chunk_object, std::move(choices));
    if (request_.include_usage || !usage.is_null()) chunk["usage"] = std::move(usage);
    call_->send_event(chunk.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }

  void begin(size_t i) {
    if (std::exchange(sent_[i].begun, true)) return;
    sent_[i].characters = count_characters(echo_of(i));
    if (!forms_.begins_with_role && echo_of(i).empty()) return;
    send_chunk({forms_.chunk(i, echo_of(i), request_.scores.empty() ? ordered_json() : logprobs_with_echo(i, {}), {})},
               {});
  }

  void send_token(size_t i, const GeneratedToken& token, std::string_view piece) {
    begin(i);
    Sent& sent = sent_[i];
    if (!piece.empty() || request_.logprobs)
      send_chunk({forms_.chunk(i, std::string(piece), logprobs_of({&token, 1}, sent.characters), {})}, {});
    sent.text += piece;
    sent.characters += count_characters(token.text);
  }

  void send_end(size_t i, const Generation& text) {
    begin(i);
    send_chunk(
        {forms_.chunk(i, text.text.substr(std::min(sent_[i].text.size(), text.text.size())), {}, finish_of(text))}, {});
  }

  void finish(const std::vector<Generation>& texts, const std::vector<int64_t>& cached) {
    int64_t tokens = 0, read_before = 0;
    for (const Generation& text : texts) tokens += std::ssize(text.tokens);
    for (size_t i = 0; i < cached.size(); i += static_cast<size_t>(request_.choices)) read_before += cached[i];
    const ordered_json usage = {{"prompt_tokens", prompt_tokens_},
                                {"completion_tokens", tokens},
                                {"total_tokens", prompt_tokens_ + tokens},
                                {"prompt_tokens_details", {{"cached_tokens", read_before}}}};
    if (request_.streams) {
      if (request_.include_usage) send_chunk(ordered_json::array(), usage);
      return call_->end_events();
    }
    ordered_json choices = ordered_json::array();
    for (size_t i = 0; i < texts.size(); i++)
      choices.push_back(
          forms_.choice(i, echo_of(i) + texts[i].text, logprobs_with_echo(i, texts[i].tokens), finish_of(texts[i])));
    ordered_json answer = object_of(forms_.object, std::move(choices));
    answer["usage"] = usage;
    answer["seed"] = request_.options.seed;
    call_->reply_json(answer.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }

  const CallPtr call_;
  const OpenAiRequest request_;
  const OpenAiForms forms_;
  std::vector<Sent> sent_;
  int64_t prompt_tokens_ = 0;
};

}  // namespace

std::string token_text(const std::string& bytes) {
  if (find_invalid_utf8(bytes) == std::string::npos) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

OpenAiRequest read_openai_request(RequestObject& object, Call& call, const char* id_prefix) {
  OpenAiRequest request;
  request.model = call.service().generator(object.text("model"));
  request.id = id_prefix + call.id();
  request.created = std::time(nullptr);
  request.choices = object.integer("n", 1, between(1, kMostChoices));
  refuse_unserved(object, request.choices);
  GenerateOptions& options = request.options;
  options = request.model->generate_defaults;
  options.seed = draw_seed();
  read_sampling(object, options);
  options.presence_penalty = object.number("presence_penalty", 0, between(-2, 2));
  options.frequency_penalty = object.number("frequency_penalty", 0, between(-2, 2));
  options.logit_bias = logit_bias(object, request.model->info.model.target_vocab);
  options.stop = object.texts("stop").texts;
  if (std::ssize(options.stop) > kMostStops) refuse_field("stop", "must have at most {} texts", kMostStops);
  options.stop.erase(std::remove(options.stop.begin(), options.stop.end(), ""), options.stop.end());
  request.streams = object.flag("stream");
  if (request.streams) call.will_stream();
  if (object.has("stream_options")) {
    RequestObject stream(object.get("stream_options"));
    request.include_usage = stream.flag("include_usage");
  }
  options.slide = object.flag("slide");
  return request;
}

int64_t room_for(const ServedModel& model, const std::vector<int32_t>& prompt, const ServerOptions& limits) {
  return std::clamp<int64_t>(model.max_length() - std::ssize(prompt), 1, most_tokens(limits, model));
}

void read_max_tokens(RequestObject& object, std::string_view name, OpenAiRequest& request) {
  if (!object.has(name)) return;
  request.fills_context = is_minus_one(object, name);
  request.options.max_tokens = request.fills_context ? 1 : object.integer(name, 0, at_least(0));
}

void check_openai_request(Call& call, const OpenAiRequest& request, int64_t prompts) {
  const ServerOptions& limits = call.service().options();
  const GenerateOptions& options = request.options;
  const int64_t most = most_tokens(limits, *request.model), texts = prompts * request.choices;
  if (options.max_tokens > most) refuse_field("max_tokens", "must be at most {} (is {})", most, options.max_tokens);
  if (texts > limits.max_texts)
    refuse_field("n", "and the prompts must be at most {} texts (are {})", limits.max_texts, texts);
  request.model->queue.check_room(call.client(), texts, texts * options.max_tokens, call.deadline());
}

void add_prompt(Call& call, OpenAiRequest& request, std::vector<int32_t> prompt, std::string echo, int64_t prompts) {
  const GenerateOptions& options = request.options;
  const int64_t longest = request.model->max_length(), tokens = std::ssize(prompt);
  const int64_t more =
      request.fills_context ? room_for(*request.model, prompt, call.service().options()) : options.max_tokens;
  request.cost += request.choices * (tokens + more);
  const int64_t logprobs = request.cost * (1 + options.alternatives);
  if (request.logprobs && logprobs > kMostLogprobs)
    refuse_field("logprobs", "with the tokens of all choices must be at most {} log-probabilities (are {})",
                 kMostLogprobs, logprobs);
  if (!options.slide && tokens + options.max_tokens > longest) {
    HttpError error(400,
                    fmt::format("the prompt has {} tokens and max_tokens is {}: together more than {}, the model's "
                                "max_length",
                                tokens, options.max_tokens, longest),
                    "context_length_exceeded");
    error.param = "max_tokens";
    throw error;
  }
  request.model->queue.check_room(call.client(), prompts * request.choices, request.cost, call.deadline());
  request.prompts.push_back(std::move(prompt));
  request.echoes.push_back(std::move(echo));
}

void answer_openai(const CallPtr& call, OpenAiRequest request, OpenAiForms forms) {
  std::make_shared<Answer>(call, std::move(request), std::move(forms))->start();
}

}  // namespace qkv
