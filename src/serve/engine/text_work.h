// The texts of a call in the loop of a model: they wait, run and end, each by itself.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/engine/service.h"

namespace qkv {

// The answer of a family: what it does with the results. Called on the prepare thread, but on_text on text threads, of
// which several may call it at the same time. An exception ends the call.
struct TranslationHandlers {
  // For each token, with the number of the text. Requires greedy search or sampling. null: not streamed.
  std::function<void(size_t text, const TokenReport&, const std::string& so_far)> on_token = nullptr;
  // As texts end; null: not needed.
  std::function<void(size_t text, const Translation&)> on_text = nullptr;
  std::function<void(std::vector<Translation>&&)> on_done;
};

struct GenerationHandlers {
  std::function<void(size_t text, const GeneratedToken&, std::string_view piece)> on_token = nullptr;
  std::function<void(size_t text, const Generation&)> on_text = nullptr;
  // cached: tokens of each prompt that were not read again.
  std::function<void(std::vector<Generation>&&, const std::vector<int64_t>& cached)> on_done;
};

struct TextToTranslate {
  SourceLine line;
  std::shared_ptr<const TranslateOptions> options;  // which texts share, as a glossary may be large
  // Options of the models of a chain before the last one.
  std::vector<std::shared_ptr<const TranslateOptions>> options_before = {};
};

// The step of a chain that a model computes. Its call counts for the chain.
struct ChainStep {
  ModelPtr chain;
  size_t step = 0;
};

struct TextToGenerate {
  std::vector<int32_t> prompt;
  GenerateOptions options;
};

// Start texts for a call, all or none: at once, or when the part of the call that runs on a text thread has ended.
// Return the tokens of each source or prompt. Throw Error for texts and options that the model refuses, HttpError 429
// if they may not wait, and 400 for translations that may have more attention weights than an answer of /v1/attend, or
// whose events may repeat too many tokens.
std::vector<int64_t> translate(const CallPtr& call, const ModelPtr& model, std::vector<TextToTranslate> texts,
                               TranslationHandlers handlers);
// As above, by one translator.
std::vector<int64_t> translate_by(const CallPtr& call, const ModelPtr& model, std::vector<TextToTranslate> texts,
                                  TranslationHandlers handlers, const ChainStep& in_chain = {});
std::vector<int64_t> generate(const CallPtr& call, const ModelPtr& model, std::vector<TextToGenerate> texts,
                              GenerationHandlers handlers);

}  // namespace qkv
