#include "qkv/generator.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/arena_pool.h"
#include "core/fail.h"
#include "decode/attend.h"
#include "decode/caches.h"
#include "decode/generation.h"
#include "io/run.h"
#include "text/unicode.h"
#include "text/visible.h"

namespace qkv {
namespace {

// A generated text. Holds back what may become a stop text, and incomplete characters.
class GrowingText {
 public:
  explicit GrowingText(const GenerateOptions& options) : options_(options) {
    for (const std::string& stop : options.stop) {
      if (stop.empty()) fail("stop: a text is empty");
      longest_ = std::max(longest_, stop.size());
    }
  }

  // Appends a piece. Returns whether the text now holds a stop text, which is removed with everything after it.
  bool add(const std::string& piece) {
    const size_t from = text_.size() - std::min(text_.size(), longest_);
    text_ += piece;
    size_t end = std::string::npos;
    for (const std::string& stop : options_.stop) end = std::min(end, text_.find(stop, from));
    if (end == std::string::npos) return false;
    text_.resize(end);
    return true;
  }
  void finish() { finished_ = true; }
  const std::string& text() const { return text_; }

  void emit() {
    const std::string_view safe = std::string_view(text_).substr(0, text_.size() - std::min(text_.size(), longest_));
    const size_t end = finished_ ? text_.size() : whole_characters(safe);
    if (options_.on_text && end > emitted_) options_.on_text(std::string_view(text_).substr(emitted_, end - emitted_));
    emitted_ = std::max(emitted_, end);
  }

 private:
  const GenerateOptions& options_;
  std::string text_;
  size_t longest_ = 0, emitted_ = 0;
  bool finished_ = false;
};

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

bool holds_language_model(const std::string& run_directory) {
  return std::filesystem::exists(RunDirectory(run_directory).language());
}

struct Generator::Model {
  LanguageRun run;
  mutable Caches caches;
  mutable ArenaPool arenas;

  Model(LanguageRun loaded, int64_t cache_bytes) : run(std::move(loaded)), caches(*run.model, cache_bytes) {}

  void generate(const Prompts& prompts, const GenerationOptions& options,
                const std::function<void(size_t, GeneratedIds&&)>& done) const {
    Prompts texts;
    for (const auto& prompt : prompts) texts.push_back(run.ends.beginning(prompt));
    std::unique_ptr<TextCache> cache = caches.take(texts);
    const ArenaPool::Lease lease(arenas, 1);
    generate_ids(*cache, prompts, run.ends, options, lease.front(), done);
    caches.give_back(std::move(cache));
  }

  // Returns the last generated token. first: it is the first token of the text.
  GeneratedToken token_of(const GeneratedIds& ids, bool first) const {
    const auto text_of = [&](int32_t token) { return run.codec.decode({&token, 1}, first); };
    GeneratedToken token{text_of(ids.ids.back()), static_cast<double>(ids.log_probabilities.back())};
    if (ids.alternatives.empty()) return token;
    for (const auto& [id, log_p] : ids.alternatives.back()) {
      const bool end = std::ranges::find(run.ends.ends, id) != run.ends.ends.end();
      token.alternatives.push_back({text_of(id), static_cast<double>(log_p), end});
    }
    return token;
  }

  // Returns the tokens as axis labels of attention weights.
  std::vector<std::string> pieces(std::span<const int32_t> ids) const {
    std::vector<std::string> pieces;
    for (const int32_t id : ids) {
      pieces.push_back(visible(run.codec.decode({&id, 1}, false)));
      if (pieces.back().empty()) pieces.back() = id == run.ends.start ? "<s>" : "</s>";
    }
    return pieces;
  }
};

Generator::Generator(const std::string& run_directory, int64_t cache_bytes)
    : model_(std::make_unique<const Model>(load_run<LanguageRun>(run_directory), cache_bytes)) {
  if (cache_bytes < 0) fail("cache_bytes must be at least 0 (is {})", cache_bytes);
}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Generation Generator::generate(const std::string& prompt, const GenerateOptions& options) const {
  return std::move(generate_all({prompt}, options).front());
}

std::vector<Generation> Generator::generate_all(const std::vector<std::string>& prompts, const GenerateOptions& options,
                                                const Done& done) const {
  Prompts ids;
  for (size_t i = 0; i < prompts.size(); i++)
    ids.push_back(
        model_->run.codec.encode(prompts[i], prompts.size() == 1 ? "prompt" : fmt::format("prompt {}", i + 1)));
  std::vector<Generation> results(prompts.size());
  std::vector<GrowingText> texts(prompts.size(), GrowingText(options));
  std::vector<char> complete(prompts.size());
  size_t front = 0;  // the first text that is not done
  const auto on_token = [&](size_t i, const GeneratedIds& found) {
    std::vector<GeneratedToken>& tokens = results[i].tokens;
    tokens.push_back(model_->token_of(found, prompts[i].empty() && tokens.empty()));
    const bool stops = texts[i].add(tokens.back().text);
    if (stops) texts[i].finish();
    if (i == front) texts[i].emit();
    return stops;
  };
  model_->generate(ids, {{options}, {}, on_token}, [&](size_t i, GeneratedIds&& found) {
    results[i].end = end_of(found.end);
    texts[i].finish();
    complete[i] = true;
    for (; front < results.size() && complete[front]; front++) {
      texts[front].emit();
      results[front].text = texts[front].text();
      if (done) done(front, results[front]);
    }
    if (front < results.size()) texts[front].emit();
  });
  return results;
}

AttentionMap Generator::attend(const std::string& text, int64_t more) const {
  const Transformer<float>& model = *model_->run.model;
  AttendRequest request;
  request.target_ids = model_->run.codec.encode(text, "text");
  const std::vector<int32_t> beginning = model_->run.ends.beginning(request.target_ids);
  request.start.clear();
  if (beginning.size() > request.target_ids.size()) request.start = {beginning.front()};
  const int64_t room = model.config().max_length - std::ssize(beginning);
  if (room < 0)
    fail("text must have at most {} tokens, the start token included (has {})", model.config().max_length,
         beginning.size());
  std::vector<int32_t> generated;
  GenerationOptions greedy;
  greedy.max_tokens = std::min(more, room);
  greedy.temperature = 0;
  model_->generate({request.target_ids}, greedy,
                   [&](size_t, GeneratedIds&& found) { generated = std::move(found.ids); });
  request.target_ids.insert(request.target_ids.end(), generated.begin(), generated.end());
  const ArenaPool::Lease lease(model_->arenas, 1);
  AttentionMap map = attention_map(model, request, lease.front(),
                                   [&](std::span<const int32_t> ids, bool) { return model_->pieces(ids); });
  map.source = text;
  map.target = model_->run.codec.decode(generated, text.empty());
  return map;
}

}  // namespace qkv
