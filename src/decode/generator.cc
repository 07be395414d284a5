#include "qkv/generator.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "decode/generation.h"
#include "io/language_run.h"

namespace qkv {
namespace {

// The generated text, of which nothing is told that may yet become a stop text.
class GrowingText {
 public:
  explicit GrowingText(const GenerateOptions& options) : options_(options) {
    for (const std::string& stop : options.stop) {
      if (stop.empty()) fail("generate: a stop text is empty");
      longest_ = std::max(longest_, stop.size());
    }
  }

  // Whether a stop text is there now; it and what follows it are left out.
  bool add(const std::string& piece) {
    const size_t from = text_.size() - std::min(text_.size(), longest_);
    text_ += piece;
    size_t end = std::string::npos;
    for (const std::string& stop : options_.stop) end = std::min(end, text_.find(stop, from));
    if (end == std::string::npos) {
      tell(text_.size() - std::min(text_.size(), longest_));
      return false;
    }
    text_.resize(end);
    return true;
  }
  std::string finish() {
    tell(text_.size());
    return std::move(text_);
  }

 private:
  void tell(size_t end) {
    if (options_.on_text && end > told_) options_.on_text(std::string_view(text_).substr(told_, end - told_));
    told_ = std::max(told_, end);
  }

  const GenerateOptions& options_;
  std::string text_;
  size_t longest_ = 0, told_ = 0;
};

SearchOptions search_of(const GenerateOptions& options) {
  if (!(options.temperature >= 0)) fail("generate: temperature is {}, wanted at least 0", options.temperature);
  SearchOptions search;
  search.repetition_penalty = options.repetition_penalty;
  search.sampling = {options.temperature > 0, options.temperature > 0 ? options.temperature : 1,
                     options.top_k,           options.top_p,
                     options.min_p,           options.seed};
  return search;
}

GenerationEnd end_of(GeneratedIds::End end) {
  switch (end) {
    case GeneratedIds::End::document:
      return GenerationEnd::document;
    case GeneratedIds::End::caller:
      return GenerationEnd::stop;
    case GeneratedIds::End::context:
      return GenerationEnd::context;
    case GeneratedIds::End::length:
      break;
  }
  return GenerationEnd::length;
}

}  // namespace

struct Generator::Model {
  LanguageRun run;
};

Generator::Generator(const std::string& run_directory)
    : model_(std::make_unique<const Model>(Model{load_language_model(run_directory)})) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Generation Generator::generate(const std::string& prompt, const GenerateOptions& options) const {
  const TextCodec& codec = model_->run.codec;
  Generation result;
  GrowingText text(options);
  GenerationOptions how;
  how.max_tokens = options.max_tokens;
  how.context_end = options.slide ? ContextEnd::slide : ContextEnd::stop;
  how.search = search_of(options);
  how.on_token = [&](size_t, const GeneratedIds& ids) {
    const bool first = prompt.empty() && result.tokens.empty();
    result.tokens.push_back(
        {codec.decode({&ids.ids.back(), 1}, first), static_cast<double>(ids.log_probabilities.back())});
    return text.add(result.tokens.back().text);
  };
  Arena arena;
  result.end =
      end_of(generate_ids(*model_->run.model, codec.encode(prompt, "prompt"), model_->run.ends, how, arena).end);
  result.text = text.finish();
  return result;
}

}  // namespace qkv
