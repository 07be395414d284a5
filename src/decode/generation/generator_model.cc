#include "decode/generation/generator_model.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "text/unicode.h"

namespace qkv {
namespace {

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

void Generator::Model::generate(const Prompts& prompts, const GenerationOptions& options,
                                const std::function<void(size_t, GeneratedIds&&)>& done, bool is_complete) const {
  Prompts texts;
  for (const auto& prompt : prompts) texts.push_back(run.ends.beginning(prompt, is_complete));
  std::unique_ptr<KeyValueCache> cache = caches.take(texts);
  const ArenaPool::Lease lease(arenas, 1);
  generate_ids(*cache, prompts, run.ends, options, lease.front(), done, is_complete);
  caches.give_back(std::move(cache));
}

Generation Generator::Model::continue_tokens(const std::vector<int32_t>& prompt, const GenerateOptions& options) const {
  const CompletePrompt complete(run.ends, prompt);
  GrowingText text(*this, options, complete.ids.empty());
  const auto emit = [&] {
    const std::string_view piece = text.next_piece();
    if (options.on_text && !piece.empty()) options.on_text(piece);
  };
  const auto on_token = [&](size_t, const GeneratedIds& found) {
    const bool stops = text.add(found);
    emit();
    return stops;
  };
  const auto done = [&](size_t, GeneratedIds&& found) {
    text.finish(found.end);
    emit();
  };
  generate({complete.ids}, {{options}, {}, on_token}, done, complete.is_complete);
  return text.take();
}

std::vector<int32_t> Generator::Model::whole_text(const std::string& text, const char* name) const {
  std::vector<int32_t> ids = run.ends.beginning(run.codec.encode(text, name));
  const int64_t longest = run.model->config().max_length;
  if (std::ssize(ids) > longest)
    fail("{} must have at most {} tokens, the start token included (has {})", name, longest, ids.size());
  return ids;
}

std::optional<int32_t> Generator::Model::first_token(const std::string& text, const char* name) const {
  if (text.empty()) return std::nullopt;
  const std::vector<int32_t> ids = run.codec.encode(text, name);
  if (ids.empty()) fail("{} has no tokens", name);
  return ids.front();
}

GeneratedToken Generator::Model::token_of(const GeneratedIds& ids, bool first) const {
  const auto text_of = [&](int32_t token) { return run.codec.decode({&token, 1}, first); };
  GeneratedToken token{text_of(ids.ids.back()), static_cast<double>(ids.log_probabilities.back())};
  if (ids.alternatives.empty()) return token;
  for (const auto& [id, log_p] : ids.alternatives.back()) {
    const bool end = std::ranges::find(run.ends.ends, id) != run.ends.ends.end();
    token.alternatives.push_back({text_of(id), static_cast<double>(log_p), end});
  }
  return token;
}

GrowingText::GrowingText(const Generator::Model& model, const GenerateOptions& options, bool prompt_is_empty)
    : model_(model), options_(options), prompt_is_empty_(prompt_is_empty) {
  for (const std::string& stop : options.stop) {
    if (stop.empty()) fail("stop: a text is empty");
    longest_ = std::max(longest_, stop.size());
  }
}

bool GrowingText::add(const GeneratedIds& ids) {
  result_.tokens.push_back(model_.token_of(ids, prompt_is_empty_ && result_.tokens.empty()));
  std::string& text = result_.text;
  const size_t from = text.size() - std::min(text.size(), longest_);
  text += result_.tokens.back().text;
  size_t end = std::string::npos;
  for (const std::string& stop : options_.stop) end = std::min(end, text.find(stop, from));
  if (end == std::string::npos) return false;
  text.resize(end);
  finished_ = true;
  return true;
}

void GrowingText::finish(GeneratedIds::End end) {
  result_.end = end_of(end);
  finished_ = true;
}

std::string_view GrowingText::next_piece() {
  const std::string_view text = result_.text;
  const size_t end =
      finished_ ? text.size() : whole_characters(text.substr(0, text.size() - std::min(text.size(), longest_)));
  const size_t begin = std::exchange(emitted_, std::max(emitted_, end));
  return end > begin ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace qkv
