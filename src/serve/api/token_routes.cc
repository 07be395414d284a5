// The routes of tokens: /tokenize and /decode of text-embeddings-inference (TEI), /tokenize and /detokenize of
// llama.cpp and vLLM. The members of a request decide which form its answer has.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "serve/api/families.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"
#include "serve/engine/service.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

std::string json_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ModelPtr model_with_tokenizer(const CallPtr& call, RequestObject& object) {
  return call->service().find_model(object.text("model"), "model with a tokenizer",
                                    [](const ServedModel& model) { return model.tokenizer.has_value(); });
}

// Returns the one of these members that the request has.
std::string_view form_of(RequestObject& object, std::initializer_list<std::string_view> names) {
  std::vector<std::string_view> given;
  for (const std::string_view name : names)
    if (object.has(name)) given.push_back(name);
  if (given.size() != 1)
    refuse_field(*names.begin(), "must be given, or one of {} alone",
                 fmt::join(std::vector<std::string_view>(names.begin() + 1, names.end()), ", "));
  return given.front();
}

void check_inputs(const ServerOptions& limits, std::string_view name, size_t count) {
  if (count == 0) refuse_field(name, "cannot be empty");
  if (static_cast<int64_t>(count) > limits.max_inputs)
    refuse_field(name, "must be at most {} (are {})", limits.max_inputs, count);
}

// Answers with JSON, which is written on the thread that calls: the threads that compute have no part in it.
void answer_tokens(const CallPtr& call, const ModelPtr& model, std::string answer) {
  call->service().leave(call, [model](const CallPtr& done) { done->use(model); });
  call->track().add_texts(1);
  call->reply_json(std::move(answer));
}

// ---- Text to tokens

// Returns the tokens of texts. Throws HttpError 400 as soon as they are more than an answer may describe.
std::vector<std::vector<int32_t>> described_tokens(
    std::string_view name, const std::vector<std::string>& texts,
    const std::function<std::vector<int32_t>(const std::string&)>& encode) {
  std::vector<std::vector<int32_t>> all;
  int64_t count = 0;
  for (const std::string& text : texts) {
    Service::check_wanted();
    all.push_back(encode(text));
    count += std::ssize(all.back());
    if (count > kMostDescribed)
      refuse_field(name, "must have at most {} tokens in an answer that describes each of them (has {}{})",
                   kMostDescribed, count, texts.size() > 1 ? " or more" : "");
  }
  return all;
}

// TEI's tokens. Places are in characters, where the tokens spell the text; otherwise null.
std::string tei_tokens(const ServedTokenizer& tokenizer, const std::string& text, const std::vector<int32_t>& ids) {
  std::string spelled;
  std::vector<std::string> pieces;
  bool is_first = true;
  for (const int32_t id : ids) {
    const bool is_special = tokenizer.is_special(id);
    pieces.push_back(is_special ? "" : tokenizer.bytes_of(id, is_first));
    is_first = is_first && is_special;
    spelled += pieces.back();
  }
  const bool has_places = spelled == text;
  std::string tokens;
  int64_t place = 0;
  for (size_t i = 0; i < ids.size(); i++) {
    const bool is_special = tokenizer.is_special(ids[i]), is_placed = has_places && !is_special;
    const int64_t end = place + count_characters(pieces[i]);
    const int64_t space = pieces[i].size() > 1 && pieces[i].front() == ' ' ? 1 : 0;  // before a word, as TEI has it
    const ordered_json token = {
        {"id", ids[i]},
        {"text", is_special ? tokenizer.spelling(ids[i], false) : pieces[i].substr(static_cast<size_t>(space))},
        {"special", is_special},
        {"start", is_placed ? ordered_json(place + space) : ordered_json()},
        {"stop", is_placed ? ordered_json(end) : ordered_json()}};
    tokens += (i == 0 ? "" : ",") + json_of(token);
    place = end;
  }
  return '[' + tokens + ']';
}

// llama.cpp's piece: a text, or the bytes of a part of a character.
ordered_json llama_piece(const std::string& bytes) {
  if (find_invalid_utf8(bytes) == std::string::npos) return bytes;
  ordered_json list = ordered_json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

void tokenize_inputs(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const std::vector<std::string> texts = object.texts("inputs").texts;
  check_inputs(call->service().options(), "inputs", texts.size());
  const bool with_edges = object.flag("add_special_tokens", true);
  if (object.has("prompt_name")) refuse_field("prompt_name", "is not supported");
  const ServedTokenizer& tokenizer = *model->tokenizer;
  const std::vector<std::vector<int32_t>> tokens =
      described_tokens("inputs", texts, [&](const std::string& text) { return tokenizer.encode(text, with_edges); });
  std::string all;
  for (size_t i = 0; i < texts.size(); i++) {
    Service::check_wanted();
    all += (i == 0 ? "" : ",") + tei_tokens(tokenizer, texts[i], tokens[i]);
  }
  answer_tokens(call, model, '[' + all + ']');
}

void tokenize_content(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const std::string text = object.text("content");
  const bool with_edges = object.flag("add_special"), is_plain = !object.flag("parse_special", true);
  const bool with_pieces = object.flag("with_pieces");
  const ServedTokenizer& tokenizer = *model->tokenizer;
  const auto encode = [&](const std::string& content) { return tokenizer.encode(content, with_edges, is_plain); };
  if (!with_pieces) return answer_tokens(call, model, json_of({{"tokens", encode(text)}}));
  std::string tokens;
  const std::vector<std::vector<int32_t>> ids = described_tokens("content", {text}, encode);
  for (const int32_t id : ids.front())
    tokens += (tokens.empty() ? "" : ",") +
              json_of({{"id", id}, {"piece", llama_piece(tokenizer.spelling(id, tokens.empty()))}});
  answer_tokens(call, model, "{\"tokens\":[" + tokens + "]}");
}

void tokenize_prompt(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const std::string text = object.text("prompt");
  const bool with_edges = object.flag("add_special_tokens", true), with_texts = object.flag("return_token_strs");
  const ServedTokenizer& tokenizer = *model->tokenizer;
  const auto encode = [&](const std::string& prompt) { return tokenizer.encode(prompt, with_edges); };
  const std::vector<int32_t> ids = with_texts ? described_tokens("prompt", {text}, encode).front() : encode(text);
  ordered_json answer = {{"count", ids.size()}, {"max_model_len", model->max_length()}, {"tokens", ids}};
  if (with_texts) answer["token_strs"] = ordered_json::array();
  for (size_t i = 0; with_texts && i < ids.size(); i++)
    answer["token_strs"].push_back(tokenizer.spelling(ids[i], i == 0));
  answer_tokens(call, model, json_of(answer));
}

void answer_tokenize(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = model_with_tokenizer(call, object);
  const std::string_view form = form_of(object, {"inputs", "content", "prompt"});
  if (form == "inputs") return tokenize_inputs(call, model, object);
  form == "content" ? tokenize_content(call, model, object) : tokenize_prompt(call, model, object);
}

// ---- Tokens to text

// TEI's: texts of one list of tokens, or of several.
void decode_ids(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const std::vector<std::vector<int32_t>> lists = object.token_lists("ids", model->tokenizer->size());
  check_inputs(call->service().options(), "ids", lists.size());
  const bool skips_special = object.flag("skip_special_tokens", true);
  ordered_json texts = ordered_json::array();
  for (const std::vector<int32_t>& ids : lists) {
    Service::check_wanted();
    texts.push_back(model->tokenizer->decode(ids, skips_special));
  }
  answer_tokens(call, model, json_of(texts));
}

// The content of llama.cpp, which is the prompt of vLLM.
void decode_tokens(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const nlohmann::json& value = object.get("tokens");
  if (!value.is_array()) refuse_field("tokens", "must be a list of token ids");
  const std::vector<int32_t> ids = token_ids(value, "tokens", model->tokenizer->size());
  const std::string text = model->tokenizer->decode(ids, false);
  answer_tokens(call, model, json_of({{"content", text}, {"prompt", text}}));
}

void answer_detokenize(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = model_with_tokenizer(call, object);
  form_of(object, {"tokens", "ids"}) == "tokens" ? decode_tokens(call, model, object) : decode_ids(call, model, object);
}

}  // namespace

std::span<const Route> token_routes() {
  static const Route routes[] = {
      {"POST", "/tokenize", Family::openai, answer_tokenize, BodyType::json},
      {"POST", "/detokenize", Family::openai, answer_detokenize, BodyType::json},
      {"POST", "/decode", Family::openai, answer_detokenize, BodyType::json},
  };
  return routes;
}

}  // namespace qkv
