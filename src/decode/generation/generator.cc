#include "qkv/generator.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/fail.h"
#include "decode/attend.h"
#include "decode/generation/generator_model.h"

namespace qkv {
bool holds_language_model(const std::string& run_directory) {
  return std::filesystem::exists(RunDirectory(run_directory).language());
}

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
  std::vector<GrowingText> texts;
  for (const std::string& prompt : prompts) texts.emplace_back(*model_, options, prompt.empty());
  std::vector<Generation> results(prompts.size());
  std::vector<char> complete(prompts.size());
  size_t front = 0;  // the first text that is not done
  const auto emit = [&](size_t i) {
    const std::string_view piece = texts[i].next_piece();
    if (options.on_text && !piece.empty()) options.on_text(piece);
  };
  const auto on_token = [&](size_t i, const GeneratedIds& found) {
    const bool stops = texts[i].add(found);
    if (i == front) emit(i);
    return stops;
  };
  model_->generate(ids, {{options}, {}, on_token}, [&](size_t i, GeneratedIds&& found) {
    texts[i].finish(found.end);
    complete[i] = true;
    for (; front < results.size() && complete[front]; front++) {
      emit(front);
      results[front] = texts[front].take();
      if (done) done(front, results[front]);
    }
    if (front < results.size()) emit(front);
  });
  return results;
}

std::vector<int32_t> Generator::encode(const std::string& text, bool plain) const {
  const TextCodec& codec = model_->run.codec;
  return plain ? codec.encode_plain(text, "prompt") : codec.encode(text, "prompt");
}

std::vector<int32_t> Generator::with_start(std::vector<int32_t> tokens) const {
  return model_->run.ends.beginning(tokens);
}

std::string Generator::decode(const std::vector<int32_t>& tokens) const { return model_->run.codec.decode(tokens); }

std::optional<int32_t> Generator::token(const std::string& spelling) const {
  const TextUnit unit = model_->run.codec.unit();
  if (unit == TextUnit::characters || unit == TextUnit::bytes) return std::nullopt;
  return model_->run.codec.id(spelling);
}

int64_t Generator::max_length() const { return model_->run.model->config().max_length; }

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
