// The routes of classifiers: /predict and /rerank of text-embeddings-inference (TEI), /rerank of Jina and llama.cpp,
// and /classify of vLLM. The members of a request decide which form its answer has.

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/json.h"
#include "core/to_size.h"
#include "serve/api/families.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

std::string join_json(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

// Scores are probabilities as TEI has them, or with raw_scores the model's logits.
ClassifyOptions options_of(RequestObject& object, const Classifier& classifier) {
  ClassifyOptions options{.top = 0};
  if (object.flag("raw_scores"))
    options.scores = ScoreFunction::none;
  else if (classifier.scores() == ScoreFunction::none)
    options.scores = classifier.labels().size() == 1 ? ScoreFunction::sigmoid : ScoreFunction::softmax;
  const std::string direction = object.text("truncation_direction", "right");
  if (direction != "right" && direction != "Right")
    refuse_field("truncation_direction", "must be Right (is {})", excerpt(direction));
  return options;
}

// The status of an error in a member: TEI's, or that of Jina and llama.cpp.
int status_of(std::string_view name) { return name == "documents" ? 400 : 422; }

// Throws HttpError for inputs that are longer than the model reads, if the request forbids to truncate them.
void check_cut(const std::vector<ClassifierTokens>& inputs, bool truncates, std::string_view name, int64_t longest) {
  const auto cut = std::ranges::count_if(inputs, [](const ClassifierTokens& input) { return input.is_cut; });
  if (truncates || cut == 0) return;
  HttpError error(
      status_of(name),
      fmt::format("`{}` must have at most {} tokens ({} {} longer)", name, longest, cut, cut == 1 ? "is" : "are"),
      "Validation");
  error.param = name;
  throw error;
}

void check_count(const ServerOptions& limits, std::string_view name, int64_t count) {
  if (count == 0) throw HttpError(400, fmt::format("`{}` cannot be empty", name), "Empty");
  if (count <= limits.max_inputs) return;
  HttpError error(status_of(name),
                  fmt::format("batch size {} > maximum allowed batch size {}", count, limits.max_inputs), "Validation");
  error.param = name;
  throw error;
}

// ---- Labels

// Inputs of TEI: a text, a pair [text, text], or a list of lists of one or two texts, in which a text may stand alone.
// A list of strings is therefore one input.
struct PredictInputs {
  std::vector<ClassifierInput> inputs;
  bool is_list = false;
};

ClassifierInput predict_input(const nlohmann::json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  const bool is_list =
      value.is_array() && std::ranges::all_of(value, [](const nlohmann::json& text) { return text.is_string(); });
  if (!is_list) refuse_field("inputs", "must be a text, a pair of texts, or a list of lists of one or two texts");
  if (value.empty() || value.size() > 2)
    refuse_field("inputs", "must have one or two texts in each list (has {})", value.size());
  ClassifierInput input{value[0].get<std::string>()};
  if (value.size() == 2) input.pair = value[1].get<std::string>();
  return input;
}

PredictInputs predict_inputs(const nlohmann::json& value) {
  const bool nests =
      value.is_array() && std::ranges::any_of(value, [](const nlohmann::json& part) { return part.is_array(); });
  if (value.is_null() || (value.is_array() && value.empty())) return {};
  if (!nests) return {{predict_input(value)}};
  PredictInputs all{{}, true};
  for (const nlohmann::json& part : value) all.inputs.push_back(predict_input(part));
  return all;
}

std::string predictions_json(const std::vector<LabelScore>& best, const std::vector<std::string>& labels) {
  std::vector<std::string> predictions;
  for (const auto& [label, score] : best)
    predictions.push_back(fmt::format("{{\"score\":{},\"label\":{}}}", score, json_string(labels[to_size(label)])));
  return join_json(predictions);
}

void answer_predict_inputs(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const PredictInputs request = predict_inputs(object.get("inputs"));
  check_count(call->service().options(), "inputs", std::ssize(request.inputs));
  const ClassifyOptions options = options_of(object, *model->classifier);
  std::vector<ClassifierTokens> inputs = encode(call, model, request.inputs, options);
  check_cut(inputs, object.flag("truncate", true), "inputs", model->classifier->max_length());
  const bool is_list = request.is_list;
  classify(call, model, std::move(inputs), options, [=](Classifications&& found) {
    std::vector<std::string> all;
    for (const auto& best : found.texts) all.push_back(predictions_json(best, model->classifier->labels()));
    call->reply_json(is_list ? join_json(all) : all.front());
  });
}

// vLLM's: the best label, and the scores of all in the order of the model.
void answer_classify_input(const CallPtr& call, const ModelPtr& model, RequestObject& object) {
  const std::vector<std::string> texts = object.texts("input").texts;
  check_count(call->service().options(), "input", std::ssize(texts));
  std::vector<ClassifierInput> inputs;
  for (const std::string& text : texts) inputs.push_back({text});
  const ClassifyOptions options = options_of(object, *model->classifier);
  classify(call, model, encode(call, model, inputs, options), options, [=](Classifications&& found) {
    const std::vector<std::string>& labels = model->classifier->labels();
    std::vector<std::string> data;
    for (const auto& best : found.texts) {
      std::vector<float> scores(labels.size());
      for (const auto& [label, score] : best) scores[to_size(label)] = score;
      data.push_back(fmt::format("{{\"index\":{},\"label\":{},\"probs\":[{}],\"num_classes\":{}}}", data.size(),
                                 json_string(labels[to_size(best.front().label)]), fmt::join(scores, ","),
                                 labels.size()));
    }
    call->reply_json(fmt::format(
        "{{\"id\":{},\"object\":\"list\",\"created\":{},\"model\":{},\"data\":{},\"usage\":{{\"prompt_tokens\":{},"
        "\"total_tokens\":{},\"completion_tokens\":0}}}}",
        json_string("classify-" + call->id()), std::time(nullptr), json_string(model->name), join_json(data),
        found.tokens, found.tokens));
  });
}

// ---- Order of texts

struct RerankRequest {
  std::string query;
  std::vector<std::string> texts;
  std::string name;  // of the texts
  size_t label = 0;
  size_t top = 0;
  bool truncates = true, returns_texts = false;
};

size_t label_of(RequestObject& object, const Classifier& classifier) {
  const std::vector<std::string>& labels = classifier.labels();
  const std::string label = object.text("label");
  if (label.empty() && labels.size() == 1) return 0;
  const auto found = std::ranges::find(labels, label);
  if (found == labels.end())
    refuse_field("label", "must be one of {}, the label whose score orders the texts", fmt::join(labels, ", "));
  return static_cast<size_t>(found - labels.begin());
}

// Documents of Jina: texts, or objects with one.
std::vector<std::string> documents_of(const nlohmann::json& value) {
  if (!value.is_array()) refuse_field("documents", "must be a list of texts");
  std::vector<std::string> texts;
  for (const nlohmann::json& document : value) {
    const nlohmann::json& text = document.is_object() && document.contains("text") ? document["text"] : document;
    if (!text.is_string()) refuse_field("documents", "must be texts, or objects with \"text\"");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

RerankRequest read_rerank(RequestObject& object, const Classifier& classifier, const ServerOptions& limits) {
  const bool is_tei = object.has("texts");
  if (is_tei == object.has("documents")) refuse_field("texts", "or \"documents\" must be given, and not both");
  if (!object.has("query")) refuse_field("query", "must be a text");
  RerankRequest request{object.text("query"), {}, is_tei ? "texts" : "documents"};
  request.texts = is_tei ? object.texts("texts").texts : documents_of(object.get("documents"));
  check_count(limits, request.name, std::ssize(request.texts));
  request.label = label_of(object, classifier);
  request.truncates = object.flag("truncate", true);
  request.returns_texts = object.flag(is_tei ? "return_text" : "return_documents");
  const int64_t all = std::ssize(request.texts);
  request.top = to_size(std::min(all, object.integer("top_n", all, at_least(1))));
  return request;
}

// Returns the entries of an answer, best first; texts with equal scores keep their order.
std::vector<std::string> ranked(const RerankRequest& request, const Classifications& found) {
  std::vector<float> scores;
  for (const auto& labels : found.texts)
    scores.push_back(std::ranges::find(labels, static_cast<int64_t>(request.label), &LabelScore::label)->score);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(request.top);
  const bool is_tei = request.name == "texts";
  std::vector<std::string> entries;
  for (const size_t i : order) {
    std::string text;
    if (request.returns_texts)
      text = fmt::format(fmt::runtime(is_tei ? ",\"text\":{}" : ",\"document\":{{\"text\":{}}}"),
                         json_string(request.texts[i]));
    entries.push_back(
        fmt::format("{{\"index\":{},\"{}\":{}{}}}", i, is_tei ? "score" : "relevance_score", scores[i], text));
  }
  return entries;
}

void rerank(const CallPtr& call, RequestObject& object) {
  const ModelPtr model = call->service().classifier(object.text("model"));
  const auto request =
      std::make_shared<const RerankRequest>(read_rerank(object, *model->classifier, call->service().options()));
  const ClassifyOptions options = options_of(object, *model->classifier);
  std::vector<ClassifierTokens> pairs = encode_pairs(call, model, request->query, request->texts, options);
  check_cut(pairs, request->truncates, request->name, model->classifier->max_length());
  classify(call, model, std::move(pairs), options, [=](Classifications&& found) {
    const std::string entries = join_json(ranked(*request, found));
    if (request->name == "texts") return call->reply_json(entries);
    call->reply_json(fmt::format(
        "{{\"model\":{},\"object\":\"list\",\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{}}},\"results\":{}}}",
        json_string(model->name), found.tokens, found.tokens, entries));
  });
}

// Answers with TEI's status of a member that is wrong.
template <class Answer>
void with_tei_status(Answer&& answer) {
  try {
    answer();
  } catch (HttpError& error) {
    if (error.status == 400 && !error.param.empty()) error.status = 422;
    throw;
  }
}

void answer_rerank(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  rerank(call, object);
}

}  // namespace

void answer_predict(const CallPtr& call) {
  with_tei_status([&] {
    RequestObject object = RequestObject::parse(call->body());
    const ModelPtr model = call->service().classifier(object.text("model"));
    if (object.has("inputs") && object.has("input")) refuse_field("inputs", "and \"input\" must not both be given");
    object.has("input") ? answer_classify_input(call, model, object) : answer_predict_inputs(call, model, object);
  });
}

// Documents are not of TEI: their errors have the status that clients of llama.cpp and Jina expect.
void answer_tei_rerank(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  if (object.contains("documents")) return rerank(call, object);
  with_tei_status([&] { rerank(call, object); });
}

std::span<const Route> classify_routes() {
  static const Route routes[] = {
      {"POST", "/predict", Family::tei, answer_predict, BodyType::json, ModelUse::classify},
      {"POST", "/classify", Family::tei, answer_predict, BodyType::json, ModelUse::classify},
      {"POST", "/rerank", Family::tei, answer_tei_rerank, BodyType::json, ModelUse::classify},
      {"POST", "/v1/rerank", Family::openai, answer_rerank, BodyType::json, ModelUse::classify},
      {"POST", "/reranking", Family::openai, answer_rerank, BodyType::json, ModelUse::classify},
      {"POST", "/v1/reranking", Family::openai, answer_rerank, BodyType::json, ModelUse::classify},
  };
  return routes;
}

}  // namespace qkv
