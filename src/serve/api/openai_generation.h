// The common part of /v1/completions and /v1/chat/completions: options, limits, log-probabilities, and the course of an
// answer.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/engine/request_object.h"
#include "serve/engine/text_work.h"

namespace qkv {

void answer_completions(const CallPtr& call);  // POST /v1/completions
void answer_chat(const CallPtr& call);         // POST /v1/chat/completions

struct OpenAiRequest {
  ModelPtr model;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes;                       // of each prompt, what precedes its text; "" for none
  std::vector<std::vector<GeneratedToken>> scores = {};  // of each prompt, if log-probabilities are echoed, too
  GenerateOptions options;
  bool fills_context = false;  // each text may have as many tokens as room_for returns, instead of options.max_tokens
  int64_t choices = 1;         // of each prompt
  int64_t cost = 0;            // tokens of all choices, with their prompts
  bool logprobs = false;       // report log-probabilities
  bool streams = false, include_usage = false;
  std::string id;
  int64_t created = 0;  // seconds since 1970
};

// Reads the members that both routes have: n, stop, seed, temperature, top_p, stream and others. Throws HttpError 400
// for what is known but not served.
OpenAiRequest read_openai_request(RequestObject& object, Call& call, const char* id_prefix);

// The forms of answers of a route. `text` is new text of a choice; logprobs: of its new tokens, or null; finish: null
// unless the choice ends.
struct OpenAiForms {
  using Json = nlohmann::ordered_json;

  std::string object, chunk_object;  // their names
  std::function<Json(size_t choice, std::string text, Json logprobs, Json finish)> choice;
  std::function<Json(size_t choice, std::string text, Json logprobs, Json finish)> chunk;
  // Log-probabilities of tokens. offset: characters of the choice before them.
  std::function<Json(std::span<const GeneratedToken> tokens, int64_t offset)> logprobs;
  bool begins_with_role = false;  // a stream begins each choice with the role of its author
};

// Returns how many tokens may follow a prompt, at least 1.
int64_t room_for(const ServedModel& model, const std::vector<int32_t>& prompt, const ServerOptions& limits);

// Reads the most tokens of an answer; -1 stands for as many as there is room for.
void read_max_tokens(RequestObject& object, std::string_view name, OpenAiRequest& request);

// Throws HttpError if the options of the server do not allow this number of prompts, or the queue of the model has no
// room for the tokens that may be generated.
void check_openai_request(Call& call, const OpenAiRequest& request, int64_t prompts);

// Adds a prompt, with the text that precedes its answer. prompts: their number, with those to come. Throws HttpError as
// soon as the prompts have more tokens than the model reads, than an answer may have log-probabilities of, or than may
// wait.
void add_prompt(Call& call, OpenAiRequest& request, std::vector<int32_t> prompt, std::string echo, int64_t prompts);

// Generates, and answers the call. The request has been checked.
void answer_openai(const CallPtr& call, OpenAiRequest request, OpenAiForms forms);

// Returns the text of a token; bytes that are not a whole character as "bytes:\xe2\x82".
std::string token_text(const std::string& bytes);

}  // namespace qkv
