// POST /v1/embeddings.
#include <algorithm>
#include <boost/beast/core/detail/base64.hpp>

#include "core/json.h"
#include "serve/batch_work.h"
#include "serve/openai_routes.h"
#include "serve/request_limits.h"
#include "serve/request_object.h"

namespace qkv {
namespace {

std::string base64_of(std::span<const float> vector) {
  const size_t bytes = vector.size() * sizeof(float);
  std::string text(boost::beast::detail::base64::encoded_size(bytes), '\0');
  text.resize(boost::beast::detail::base64::encode(text.data(), vector.data(), bytes));  // little-endian
  return text;
}

std::string floats_of(std::span<const float> vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

}  // namespace

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
  EmbedOptions options;
  if (object.has("prompt_name")) options.prompt_name = object.text("prompt_name");
  int64_t tokens = 0;
  for (const int64_t count : model->embedder->count_tokens(input.texts, options))
    tokens += std::min(count, model->embedder->max_length());
  embed(call, model, input.texts, options, tokens, [call, model, format, tokens](const Embeddings& found) {
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

}  // namespace qkv
