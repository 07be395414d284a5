#include "serve/engine/request_limits.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "core/json.h"
#include "text/unicode.h"

namespace qkv {

void check_texts(const ServerOptions& options, std::string_view name, const std::vector<std::string>& texts,
                 int64_t times) {
  if (std::ssize(texts) * times > options.max_texts)
    refuse_field(name, "must have at most {} texts (has {})", options.max_texts, std::ssize(texts) * times);
  for (const std::string& text : texts) {
    Service::check_wanted();
    const auto characters = count_characters(text);
    if (characters > options.max_text)
      refuse_field(name, "must have at most {} characters (has {})", options.max_text, characters);
  }
}

int64_t most_tokens(const ServerOptions& options, const ServedModel& model) {
  constexpr int64_t kWithoutContext = 4096;  // of a text that slides, or is translated
  return options.max_tokens > 0 ? options.max_tokens : std::max(kWithoutContext, model.max_length());
}

TranslateOptions usual_options(const ServerOptions& options, const ServedModel& model) {
  TranslateOptions usual = model.translate_defaults;
  usual.beam = std::min(usual.beam, options.max_beam);
  usual.max_length = std::min(usual.max_length, most_tokens(options, model));
  return usual;
}

std::vector<std::shared_ptr<const TranslateOptions>> options_before(
    const ServedModel& model, const std::function<TranslateOptions(const ServedModel&)>& options_of) {
  std::vector<std::shared_ptr<const TranslateOptions>> before;
  for (size_t i = 0; i + 1 < model.chain.size(); i++) {
    TranslateOptions options = options_of(*model.chain[i]);
    model.set_languages_of_step(i, options);
    before.push_back(std::make_shared<const TranslateOptions>(std::move(options)));
  }
  return before;
}

int64_t query_number(std::string_view name, const std::string& text, int64_t least, int64_t most) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most)
    refuse_field(name, "must be an integer between {} and {} (is {})", least, most, excerpt(text));
  return number;
}

uint64_t draw_seed() {
  static thread_local std::random_device random;
  return ((uint64_t{random()} << 32) | random()) >> 11;
}

}  // namespace qkv
