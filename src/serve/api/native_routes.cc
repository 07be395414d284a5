// The routes of qkv itself.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/fields.h"
#include "core/json.h"
#include "program/lines/recommend_lines.h"
#include "program/lines/result_json.h"
#include "qkv/system.h"
#include "serve/api/families.h"
#include "serve/api/glossary_field.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"
#include "serve/engine/text_work.h"

namespace qkv {
namespace {

// Returns a JSON list of values in JSON.
std::string list_of(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

// ---- POST /v1/translate: translations as `qkv translate --json` prints them, whole or as a stream.

// Adds a member, given as JSON, to an object in text.
void add_member(std::string& object, std::string_view name, std::string_view json) {
  object += fmt::format("{}\"{}\":{}", object.empty() ? "{" : ",", name, json);
}

struct TranslateRequest {
  ModelPtr model;
  std::vector<TextToTranslate> texts;
  std::shared_ptr<const TranslateOptions> options;
  TranslationJsonForm form;
  bool is_list = false;
  bool streams = false;

  // Whether a stream has an event for each token, not for each translation.
  bool streams_tokens() const { return options->on_token != nullptr; }
};

constexpr size_t kMostGlossary = 262'144;  // bytes of a request's own

// Checks the glossary of a request. That of the server is left out where the search cannot have one.
void choose_glossary(TranslateOptions& options, const std::string& of_server) {
  if (options.glossary == of_server) {
    if (options.sampling || options.alternatives) options.glossary.clear();
  } else if (options.glossary.size() > kMostGlossary) {
    refuse_field("glossary", "must have at most {} bytes (has {})", kMostGlossary, options.glossary.size());
  }
}

void check_translate_options(const ServerOptions& limits, const ServedModel& model, const TranslateOptions& o) {
  if (o.beam > limits.max_beam) refuse_field("beam", "must be at most {} (is {})", limits.max_beam, o.beam);
  if (o.n_best > limits.max_beam) refuse_field("n_best", "must be at most {} (is {})", limits.max_beam, o.n_best);
  if (const int64_t most = most_tokens(limits, model); o.max_length > most)
    refuse_field("max_length", "must be at most {} (is {})", most, o.max_length);
}

// Returns the options that the request has for a model, with the values that the model has for the others. is_last: it
// is no model of a chain before the last one, which have no alternatives.
TranslateOptions options_for(RequestObject& object, const ServerOptions& limits, const ServedModel& model,
                             uint64_t seed, bool is_last) {
  TranslateOptions options = usual_options(limits, model);
  options.alignment = true;
  options.seed = seed;
  visit_fields(options, [&](std::string_view name, auto& member, const Field& field) {
    if (field.group != "execution" && name != "glossary") object(name, member, field);
  });
  options.glossary = glossary_of(object, std::move(options.glossary));
  options.alternatives &= is_last;
  choose_glossary(options, model.translate_defaults.glossary);
  return options;
}

TranslateRequest read_translate_request(Call& call) {
  RequestObject object = RequestObject::parse(call.body());
  TranslateRequest request;
  request.model = call.service().translator(object.text("model"));
  const Texts texts = object.texts("text"), prefixes = object.texts("prefix");
  if (texts.texts.empty() && !texts.is_list) refuse_field("text", "must be a string or a list of strings");
  const bool is_chain = !request.model->chain.empty();
  for (const char* name : {"glossary", "source_language", "target_language"})
    if (is_chain && object.has(name))
      refuse_field(name, "is not supported by {}, which translates through a language in between", request.model->name);
  const uint64_t seed = draw_seed();
  const ServerOptions& limits = call.service().options();
  TranslateOptions options = options_for(object, limits, *request.model, seed, true);
  const auto before = options_before(
      *request.model, [&](const ServedModel& model) { return options_for(object, limits, model, seed, false); });
  request.form.word_scores = object.flag("word_scores");
  request.form.alignment = options.alignment;
  request.form.attention = options.attention;
  request.streams = object.flag("stream");
  if (request.streams && !is_chain && (options.beam == 1 || options.sampling) && options.glossary.empty())
    options.on_token = [](const TokenReport&) { return false; };
  if (request.streams) call.will_stream();
  object.refuse_others();
  check_translate_options(limits, *request.model, options);
  check_texts(limits, "text", texts.texts, options.sampling ? options.n_best : 1);
  if (prefixes.is_list && prefixes.texts.size() != texts.texts.size())
    refuse_field("prefix", "must have one entry for each text ({}) (has {})", texts.texts.size(),
                 prefixes.texts.size());
  request.options = std::make_shared<const TranslateOptions>(std::move(options));
  request.is_list = texts.is_list;
  for (size_t i = 0; i < texts.texts.size(); i++) {
    SourceLine line{texts.texts[i]};
    if (!prefixes.texts.empty()) line.prefix = prefixes.texts[prefixes.is_list ? i : 0];
    request.texts.push_back({std::move(line), request.options, before});
  }
  return request;
}

std::string translate_answer(const TranslateRequest& request, const std::vector<Translation>& translations,
                             int64_t source_tokens) {
  int64_t target_tokens = 0;
  std::vector<std::string> texts, notes;
  for (size_t i = 0; i < translations.size(); i++) {
    for (const Hypothesis& h : translations[i].hypotheses) target_tokens += std::ssize(h.tokens);
    texts.push_back(translation_to_json(translations[i], request.form));
    for (const std::string& note : translations[i].notes)
      notes.push_back(request.is_list ? fmt::format("text {}: {}", i, note) : note);
  }
  std::string answer;
  add_member(answer, "model", json_string(request.model->name));
  add_member(answer, "translations", list_of(texts));
  add_member(answer, "notes", nlohmann::json(notes).dump());
  if (request.options->sampling && !request.texts.empty())
    add_member(answer, "seed", std::to_string(request.options->seed));
  add_member(answer, "usage",
             fmt::format(R"({{"source_tokens":{},"target_tokens":{}}})", source_tokens, target_tokens));
  return answer + "}";
}

std::string token_event(size_t line, const TokenReport& token, const std::string& so_far) {
  return fmt::format(R"({{"line":{},"hypothesis":{},"token":{},"text":{},"log_probability":{},"last":{}}})", line,
                     token.hypothesis, json_string(token.token), json_string(so_far),
                     nlohmann::json(token.log_probability).dump(), token.last);
}

void answer_translate(const CallPtr& call) {
  const auto request = std::make_shared<TranslateRequest>(read_translate_request(*call));
  const auto source_tokens = std::make_shared<int64_t>(0);
  TranslationHandlers handlers;
  if (request->streams_tokens())
    handlers.on_token = [call](size_t line, const TokenReport& token, const std::string& so_far) {
      call->send_event(token_event(line, token, so_far));
    };
  else if (request->streams)
    handlers.on_text = [call, request](size_t line, const Translation& translation) {
      call->send_event(
          fmt::format(R"({{"line":{},"translation":{}}})", line, translation_to_json(translation, request->form)));
    };
  handlers.on_done = [call, request, source_tokens](std::vector<Translation>&& translations) {
    std::string answer = translate_answer(*request, translations, *source_tokens);
    if (!request->streams) return call->reply_json(std::move(answer));
    call->send_event(answer);
    call->end_events();
  };
  if (request->texts.empty()) return handlers.on_done({});
  for (const int64_t tokens : translate(call, request->model, request->texts, handlers)) *source_tokens += tokens;
}

// ---- POST /v1/recommend: the JSON lines of `qkv recommend`.

// The lines of a request: one, or several of which each may be refused by itself.
struct RecommendCall {
  ModelPtr model;
  bool is_list = false;
  std::vector<RecommendLine> lines;
  std::vector<std::string> errors;  // of each line; "" for one that is answered
};

// Returns the items that a request may have as an answer, and the events that explain each.
int64_t most_items(const RecommendLine& line, int64_t longest) {
  const RecommendOptions options = line.options ? *line.options : RecommendOptions();
  return options.top * (options.explain ? 1 + std::min(longest, std::ssize(line.history)) : 1);
}

RecommendLine read_line(const ServedModel& model, const nlohmann::json& object, const ServerOptions& limits,
                        std::string& id) {
  RecommendLine line = read_recommend_request(object, nullptr, *model.recommender, *model.titles, id);
  if (line.options && line.options->top > limits.max_texts * 64)
    refuse_field("top", "must be at most {} (is {})", limits.max_texts * 64, line.options->top);
  return line;
}

std::shared_ptr<RecommendCall> read_recommend_request(Call& call) {
  nlohmann::json body = parse_json(call.body(), "body");
  const auto request = std::make_shared<RecommendCall>();
  request->is_list = body.is_array();
  if (!request->is_list) body = nlohmann::json::array({std::move(body)});
  const ServerOptions& limits = call.service().options();
  int64_t items = 0;
  if (std::ssize(body) > limits.max_texts)
    refuse(400, "body: must have at most {} requests (has {})", limits.max_texts, body.size());
  for (nlohmann::json& object : body) {
    std::string model, id;
    if (object.is_object() && object.contains("model")) {
      model = RequestObject(object).text("model");
      object.erase("model");
    }
    const ModelPtr chosen = call.service().recommender(model);
    if (request->model && chosen != request->model) refuse_field("model", "must be the same in all requests");
    request->model = chosen;
    request->lines.emplace_back();
    request->errors.emplace_back();
    try {
      request->lines.back() = read_line(*chosen, object, limits, id);
      items += most_items(request->lines.back(), chosen->max_length());
    } catch (const Error& error) {
      if (!request->is_list) throw;
      request->errors.back() = error_to_json(error.what(), id);
    }
    Service::check_wanted();
    if (items > kMostItems)
      refuse_field("top", "must be at most {} items in all requests, with the events that explain them (are {})",
                   kMostItems, items);
  }
  return request;
}

void answer_lines(const CallPtr& call, const RecommendCall& request, const std::vector<Recommendations>& answers) {
  std::vector<std::string> objects;
  auto next = answers.begin();
  for (size_t i = 0; i < request.lines.size(); i++)
    objects.push_back(request.errors[i].empty()
                          ? recommendations_to_json(request.lines[i], *next++, *request.model->titles)
                          : request.errors[i]);
  call->reply_json(request.is_list ? list_of(objects) : objects.front());
}

void answer_recommend(const CallPtr& call) {
  const auto request = read_recommend_request(*call);
  std::vector<RecommendLine> lines;
  for (size_t i = 0; i < request->lines.size(); i++)
    if (request->errors[i].empty()) lines.push_back(request->lines[i]);
  if (lines.empty()) return answer_lines(call, *request, {});
  recommend(call, request->model, std::move(lines),
            [call, request](std::vector<Recommendations>&& answers) { answer_lines(call, *request, answers); });
}

// ---- GET /v1/items: finds items by their titles.

void answer_items(const CallPtr& call) {
  const ModelPtr model = call->service().recommender(call->query("model"));
  const std::string text = call->query("q"), count = call->query("n");
  const int64_t most = count.empty() ? 10 : query_number("n", count, 1, 1000);
  check_texts(call->service().options(), "q", {text});
  const auto found = [model, text, most] {
    std::vector<std::string> objects;
    for (const std::string& item : model->titles->suggest(text, most, model->recommender->items()))
      objects.push_back(
          fmt::format(R"({{"item":{},"title":{}}})", json_string(item), json_string(model->titles->title(item))));
    return fmt::format(R"({{"items":{}}})", list_of(objects));
  };
  compute(call, model, {{1, found}}, [call](std::string&& json) { call->reply_json(std::move(json)); });
  call->track().add_texts(1);
}

// ---- /v1/attend and /v1/info.

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

nlohmann::ordered_json names_of_models(const std::vector<ModelPtr>& models) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const ModelPtr& model : models) names.push_back(model->name);
  return names;
}

nlohmann::ordered_json described(const ServedModel& model) {
  nlohmann::ordered_json json = {{"id", model.name},
                                 {"kind", name_of(model.info.kind)},
                                 {"int8", model.is_int8()},
                                 {"parameters", model.info.parameter_count},
                                 {"max_length", model.max_length()}};
  if (model.serves(ModelUse::translate)) {
    const std::vector<std::string> languages = model.languages();
    json["source_languages"] = languages.empty() ? std::vector{model.source_language} : languages;
    json["target_languages"] = languages.empty() ? std::vector{model.target_language} : languages;
  }
  if (!model.chain.empty()) json["pivot"] = names_of_models(model.chain);
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
  TranslateOptions options;
  options.source_language = object.text("source_language"), options.target_language = object.text("target_language");
  const auto most = static_cast<double>(most_tokens(call->service().options(), *model));
  const int64_t more = object.integer("generate", 0, between(0, most));
  const bool words = object.flag("words");
  object.refuse_others();
  check_texts(call->service().options(), "text", {text, target});
  if (model->translator && more > 0)
    refuse_field("generate", "is for language models; {} is a translator", model->name);
  if (model->generator && !(target + options.source_language + options.target_language).empty())
    refuse_field("target", "is for translators; {} is a language model", model->name);
  const int64_t bytes = kWeightBytes * check_text_weights(*model, text, target, more);
  call->service().leave(call, [bytes](const CallPtr& started) {
    started->service().admission().hold_answer(started->track(), bytes, 429);
  });
  const auto map = std::make_shared<AttentionMap>();
  const auto attend = [=] {
    *map = model->translator ? model->translator->attend(text, target, options) : model->generator->attend(text, more);
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
