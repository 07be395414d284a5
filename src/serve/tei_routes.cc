// The routes of text-embeddings-inference (TEI).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "qkv/version.h"
#include "serve/batch_work.h"
#include "serve/request_limits.h"
#include "serve/request_object.h"

namespace qkv {
namespace {

[[noreturn]] void refuse_tei(int status, const char* type, const std::string& message) {
  HttpError error(status, message);
  error.code = type;
  throw error;
}

void answer_embed(const CallPtr& call) {
  RequestObject object = RequestObject::parse(call->body());
  const ModelPtr model = call->service().embedder(object.text("model"));
  const ServerOptions& limits = call->service().options();
  const Texts inputs = object.texts("inputs");
  if (inputs.texts.empty()) refuse_tei(400, "Empty", "`inputs` cannot be empty");
  if (std::ssize(inputs.texts) > limits.max_texts)
    refuse_tei(422, "Validation",
               fmt::format("batch size {} > maximum allowed batch size {}", inputs.texts.size(), limits.max_texts));
  check_texts(limits, "inputs", inputs.texts);
  EmbedOptions options;
  options.normalize = object.flag("normalize", true);
  const bool truncates = object.flag("truncate", true);
  int64_t tokens = 0;
  for (const int64_t count : model->embedder->count_tokens(inputs.texts, options)) {
    if (!truncates && count > model->embedder->max_length())
      refuse_tei(
          422, "Validation",
          fmt::format("`inputs` must have less than {} tokens. Given: {}", model->embedder->max_length(), count));
    tokens += std::min(count, model->embedder->max_length());
  }
  embed(call, model, inputs.texts, options, tokens, [call](const Embeddings& found) {
    std::string rows;
    const auto row = static_cast<size_t>(found.width);
    for (size_t i = 0; i < found.values.size(); i += row)
      rows += fmt::format("{}[{}]", i == 0 ? "" : ",",
                          fmt::join(found.values.begin() + static_cast<std::ptrdiff_t>(i),
                                    found.values.begin() + static_cast<std::ptrdiff_t>(i + row), ","));
    call->reply_json("[" + rows + "]");
  });
}

void answer_tei_info(const CallPtr& call) {
  const ModelPtr model = call->service().embedder(call->query("model"));
  const ServerOptions& limits = call->service().options();
  call->reply_json(nlohmann::ordered_json{
      {"model_id", model->name},
      {"model_dtype", model->is_int8() ? "int8" : "float32"},
      {"max_concurrent_requests", limits.queue_items},
      {"max_input_length", model->embedder->max_length()},
      {"max_batch_tokens", BatchQueue::kCost},
      {"max_client_batch_size", limits.max_texts},
      {"auto_truncate", true},
      {"version",
       version()}}.dump());
}

}  // namespace

std::span<const Route> tei_routes() {
  static const Route routes[] = {
      {"POST", "/embed", Family::tei, answer_embed, BodyType::json},
      {"POST", "/", Family::tei, answer_embed, BodyType::json},
      {"GET", "/info", Family::tei, answer_tei_info},
  };
  return routes;
}

}  // namespace qkv
