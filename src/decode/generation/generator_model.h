// The implementation of qkv::Generator: its model and text codec, and the text of generated tokens.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/arena_pool.h"
#include "decode/engine/ensemble.h"
#include "decode/engine/key_value_cache.h"
#include "decode/generation/generation.h"
#include "decode/generation/spelled_tokens.h"
#include "io/runs/run.h"
#include "model/inference/placed_model.h"
#include "qkv/generator.h"

namespace qkv {

struct Generator::Model {
  LanguageRun run;
  Ensemble model;
  mutable CachePool caches;
  mutable ArenaPool arenas;

  Model(const std::string& directory, int64_t cache_bytes, const Placement& placement)
      : run(load_run<LanguageRun>(directory)),
        model({make_inference(*run.model, placement, directory)}),
        caches(model, cache_bytes) {}

  void generate(const Prompts& prompts, const GenerationOptions& options,
                const std::function<void(size_t, GeneratedIds&&)>& done, bool is_complete = false) const;

  // Generates the continuation of tokens, before which no start token is put.
  Generation continue_tokens(const std::vector<int32_t>& prompt, const GenerateOptions& options) const;

  // Returns the last generated token. first: it is the first token of the text.
  GeneratedToken token_of(const GeneratedIds& ids, bool first) const;

  // Returns the tokens that the model reads of a text, with the start token if it has one; of an empty text the start
  // token. Throws Error, naming the text, if there are more than max_length.
  std::vector<int32_t> whole_text(const std::string& text, const char* name) const;

  // Returns the first token of a text, or none of an empty one. Throws Error, naming the text, if it has no tokens.
  std::optional<int32_t> first_token(const std::string& text, const char* name) const;

  // Returns the tokens as they are displayed.
  std::vector<std::string> pieces(std::span<const int32_t> ids) const { return spelled_tokens(run, ids); }
};

// The text of a generation that grows. Holds back the beginning of a possible stop text, and incomplete characters.
class GrowingText {
 public:
  // Throws Error for an empty stop text. prompt_is_empty: the first token begins the text. The options and the model
  // must outlive the object.
  GrowingText(const Generator::Model& model, const GenerateOptions& options, bool prompt_is_empty);

  // Appends the last generated token. Returns whether the text now holds a stop text, which is removed with everything
  // after it.
  bool add(const GeneratedIds& ids);
  void finish(GeneratedIds::End end);

  // Returns the part of the text that is certain and was not returned before.
  std::string_view next_piece();

  const Generation& result() const { return result_; }
  Generation take() { return std::move(result_); }

 private:
  const Generator::Model& model_;
  const GenerateOptions& options_;
  const bool prompt_is_empty_;
  Generation result_;
  size_t longest_ = 0;  // stop text, in bytes
  size_t emitted_ = 0;
  bool finished_ = false;
};

}  // namespace qkv
