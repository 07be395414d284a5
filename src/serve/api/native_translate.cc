// POST /v1/translate: translations as `qkv translate --json` prints them, whole or as a stream.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "qkv/result_json.h"
#include "serve/api/native_routes.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"
#include "serve/engine/text_work.h"

namespace qkv {
namespace {

// Adds a member, given as JSON, to an object in text.
void add_member(std::string& object, std::string_view name, std::string_view json) {
  object += fmt::format("{}\"{}\":{}", object.empty() ? "{" : ",", name, json);
}

struct TranslateRequest {
  ModelPtr model;
  std::vector<TextToTranslate> texts;
  TranslationJsonForm form;
  std::shared_ptr<std::vector<std::string>> notes = std::make_shared<std::vector<std::string>>();
  bool streams = false;
};

void check_translate_options(const ServerOptions& limits, const ServedModel& model, const TranslateOptions& o) {
  if (o.beam > limits.max_beam) refuse_field("beam", "must be at most {} (is {})", limits.max_beam, o.beam);
  if (o.n_best > limits.max_beam) refuse_field("n_best", "must be at most {} (is {})", limits.max_beam, o.n_best);
  if (const int64_t most = most_tokens(limits, model); o.max_length > most)
    refuse_field("max_length", "must be at most {} (is {})", most, o.max_length);
}

TranslateRequest read_translate_request(Call& call) {
  RequestObject object = RequestObject::parse(call.body());
  TranslateRequest request;
  request.model = call.service().translator(object.text("model"));
  const Texts texts = object.texts("text"), prefixes = object.texts("prefix");
  if (texts.texts.empty() && !texts.is_list) refuse_field("text", "must be a string or a list of strings");
  TranslateOptions options = usual_options(call.service().options(), *request.model);
  options.alignment = true;
  options.seed = draw_seed();
  visit_fields(options, [&](std::string_view name, auto& member, const Field& field) {
    if (field.group != "execution") object(name, member, field);
  });
  request.form.word_scores = object.flag("word_scores");
  request.form.alignment = options.alignment;
  request.form.attention = options.attention;
  request.streams = object.flag("stream");
  if (request.streams) call.will_stream();
  object.refuse_others();
  check_translate_options(call.service().options(), *request.model, options);
  check_texts(call.service().options(), "text", texts.texts, options.sampling ? options.n_best : 1);
  if (prefixes.is_list && prefixes.texts.size() != texts.texts.size())
    refuse_field("prefix", "must have one entry for each text ({}) (has {})", texts.texts.size(),
                 prefixes.texts.size());
  for (size_t i = 0; i < texts.texts.size(); i++) {
    SourceLine line{texts.texts[i]};
    if (!prefixes.texts.empty()) line.prefix = prefixes.texts[prefixes.is_list ? i : 0];
    options.on_note = [notes = request.notes, i, is_list = texts.is_list](const std::string& note) {
      notes->push_back(is_list ? fmt::format("text {}: {}", i, note) : note);
    };
    request.texts.push_back({std::move(line), options});
  }
  return request;
}

std::string translate_answer(const TranslateRequest& request, const std::vector<std::string>& translations,
                             int64_t source_tokens, int64_t target_tokens) {
  std::string answer;
  add_member(answer, "model", json_string(request.model->name));
  add_member(answer, "translations", list_of(translations));
  add_member(answer, "notes", nlohmann::json(*request.notes).dump());
  const TranslateOptions& options = request.texts.empty() ? TranslateOptions() : request.texts.front().options;
  if (options.sampling) add_member(answer, "seed", std::to_string(options.seed));
  add_member(answer, "usage",
             fmt::format(R"({{"source_tokens":{},"target_tokens":{}}})", source_tokens, target_tokens));
  return answer + "}";
}

std::string token_event(size_t line, const TokenReport& token, const std::string& so_far) {
  return fmt::format(R"({{"line":{},"hypothesis":{},"token":{},"text":{},"log_probability":{},"last":{}}})", line,
                     token.hypothesis, json_string(token.token), json_string(so_far),
                     nlohmann::json(token.log_probability).dump(), token.last);
}

}  // namespace

void answer_translate(const CallPtr& call) {
  const auto request = std::make_shared<TranslateRequest>(read_translate_request(*call));
  const auto source_tokens = std::make_shared<int64_t>(0);
  TranslationHandlers handlers;
  const TranslateOptions options = request->texts.empty() ? TranslateOptions() : request->texts.front().options;
  const bool by_token = options.beam == 1 || options.sampling;
  if (request->streams && by_token)
    handlers.on_token = [call](size_t line, const TokenReport& token, const std::string& so_far) {
      call->send_event(token_event(line, token, so_far));
    };
  else if (request->streams)
    handlers.on_text = [call, request](size_t line, const Translation& translation) {
      call->send_event(
          fmt::format(R"({{"line":{},"translation":{}}})", line, translation_to_json(translation, request->form)));
    };
  handlers.on_done = [call, request, source_tokens](std::vector<Translation>&& translations) {
    int64_t target_tokens = 0;
    std::vector<std::string> texts;
    for (const Translation& t : translations) {
      for (const Hypothesis& h : t.hypotheses) target_tokens += std::ssize(h.tokens);
      texts.push_back(translation_to_json(t, request->form));
    }
    std::string answer = translate_answer(*request, texts, *source_tokens, target_tokens);
    if (!request->streams) return call->reply_json(std::move(answer));
    call->send_event(answer);
    call->end_events();
  };
  if (request->texts.empty()) return handlers.on_done({});
  for (const int64_t tokens : translate(call, request->model, request->texts, handlers)) *source_tokens += tokens;
}

}  // namespace qkv
