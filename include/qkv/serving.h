// Translation and generation step by step, for programs that serve many requests: texts come and go between steps, and
// a step extends all of them by a token. The result of a text has the bytes of Translator::translate or
// Generator::generate, whatever else runs. docs/design/serving.md describes how.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/generator.h"
#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

// Limits on what runs at once. They change no result.
struct LoopLimits {
  int64_t rows = 256;                      // hypotheses that a step extends
  int64_t cache_bytes = int64_t{1} << 30;  // keys and values; the most that a text may need is reserved when it starts
};

// Translates texts side by side. prepare, add, cancel and pause may be called from any thread, also by callbacks; what
// they change takes effect at the next step. step must be called by one thread at a time. Clients start texts in turn,
// each up to a cost of 512, and their own in the order of adding. A text that has no room yet is overtaken by at most
// 16 that do.
class TranslationLoop {
 public:
  // A text in tokens, ready to be added to the loop that prepared it.
  class Prepared {
   public:
    Prepared(Prepared&&) noexcept;
    Prepared& operator=(Prepared&&) noexcept;
    ~Prepared();

    int64_t parts = 0;  // sentences, and parts of long ones
    int64_t source_tokens = 0;
    int64_t most_target_tokens = 0;  // of a hypothesis of the whole text
    int64_t cost = 0;                // source tokens and 1.5 times as many, but no more than the translation may have
    int64_t rows = 0;                // hypotheses at once
    int64_t bytes = 0;               // keys and values at once, at most
    std::string client = "";         // whose text it is

   private:
    friend class TranslationLoop;
    struct Text;
    explicit Prepared(std::unique_ptr<Text> text);
    std::unique_ptr<Text> text_;
  };

  // Callbacks of a text, called by step. After on_token come on_done or on_error, once, unless the text is cancelled.
  // An exception of on_token ends the text with it; on_done and on_error must not throw.
  struct Events {
    // Called when the text starts.
    std::function<void()> on_start = {};
    // Called with a further cost, which Prepared::cost does not have: translations are too short, and those of their
    // clauses follow. Clauses take turns with the texts of other clients, like parts.
    std::function<void(int64_t cost)> on_more = {};
    // Called for each token, with the hypothesis so far as text; true ends the hypothesis. Requires greedy search or
    // sampling. The sentences of the text then follow each other.
    std::function<bool(const TokenReport&, const std::string& text)> on_token = {};
    std::function<void(Translation&&)> on_done = {};
    std::function<void(std::exception_ptr)> on_error = {};
  };

  // The translator must outlive the loop, but may be moved. Throws Error for a limit out of range.
  explicit TranslationLoop(const Translator& translator, const LoopLimits& limits = {});
  ~TranslationLoop();  // drops all texts, without calling their events
  TranslationLoop(const TranslationLoop&) = delete;
  TranslationLoop& operator=(const TranslationLoop&) = delete;

  // Converts a text to tokens. on_token is not called, but says that add will have one, so that no part is protected.
  // The options on_note, on_progress, batch_tokens, workers and window are not used. Throws
  // Error for an option out of range, invalid UTF-8, and a text that needs more rows or bytes than the limits.
  Prepared prepare(const SourceLine& line, const TranslateOptions& options = {}) const;

  // Adds a text and returns its number, which is never 0. Throws Error for an on_token that the options do not allow.
  uint64_t add(Prepared text, Events events);
  // Drops a text, which gets no further event. Numbers of texts that are complete are ignored.
  void cancel(uint64_t text);
  // A paused text keeps its place and its rows, and does not continue.
  void pause(uint64_t text, bool paused);

  // Starts waiting texts that have room and extends the others by a token. Encodes at most 192 source tokens per
  // thread, so that texts that run wait no longer for those that start. Returns false if there is nothing to do until
  // the next call of another method. Memory of keys and values that has been unused for 10 seconds is given back, also
  // by a step that does nothing else. An exception within a step, as when memory is exhausted, ends all texts with
  // on_error.
  bool step();

  // Returns the bytes of keys and values that are reserved for texts that run. Called by the thread that calls step.
  int64_t reserved_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Generates texts side by side. Methods may be called from the threads that those of TranslationLoop may, and texts
// start in the same order.
class GenerationLoop {
 public:
  // A prompt in tokens, ready to be added to the loop that prepared it.
  class Prepared {
   public:
    Prepared(Prepared&&) noexcept;
    Prepared& operator=(Prepared&&) noexcept;
    ~Prepared();

    int64_t prompt_tokens = 0;  // the start token included
    int64_t cost = 0;           // tokens of the prompt, and max_tokens
    int64_t rows = 0;           // 1
    int64_t bytes = 0;          // keys and values, at most
    std::string client = "";    // whose text it is
    std::string salt = "";      // the text shares keys and values of prefixes with texts of the same salt only

   private:
    friend class GenerationLoop;
    struct Text;
    explicit Prepared(std::unique_ptr<Text> text);
    std::unique_ptr<Text> text_;
  };

  // Callbacks of a text, called by step. They end with on_done or on_error, once, unless the text is cancelled. An
  // exception of on_token ends the text with it; the others must not throw.
  struct Events {
    // Called when the text starts, with the number of tokens of the prompt whose keys and values are cached.
    std::function<void(int64_t cached_tokens)> on_start = {};
    // Called for each token, with the text that is certain since the last call; true ends the text. Text is held back
    // if it may be part of a stop text or of a character. At the end it is only in on_done.
    std::function<bool(const GeneratedToken& token, std::string_view text)> on_token = {};
    std::function<void(Generation&&)> on_done = {};
    std::function<void(std::exception_ptr)> on_error = {};
  };

  // Keys and values of texts that have ended are kept for texts with the same prefix, as far as limits.cache_bytes
  // allows; they give way to texts that run. The generator must outlive the loop, but may be moved. Throws Error for a
  // limit out of range.
  explicit GenerationLoop(const Generator& generator, const LoopLimits& limits = {});
  ~GenerationLoop();  // drops all texts, without calling their events
  GenerationLoop(const GenerationLoop&) = delete;
  GenerationLoop& operator=(const GenerationLoop&) = delete;

  // Converts a prompt to tokens, behind the start token if the model has one before every prompt, or takes it as
  // tokens, before which nothing is put. The options batch and on_text are not used. Throws Error as
  // Generator::generate does, and for a text that may need more bytes than the limits.
  Prepared prepare(const std::string& prompt, const GenerateOptions& options = {}) const;
  Prepared prepare(std::vector<int32_t> prompt, const GenerateOptions& options = {}) const;

  // As in TranslationLoop.
  uint64_t add(Prepared text, Events events);
  void cancel(uint64_t text);
  void pause(uint64_t text, bool paused);

  // Starts waiting texts that have room, extends those whose prompts have been read by a token, and reads up to 512
  // tokens of prompts. Returns and throws as TranslationLoop::step does.
  bool step();

  // Return the bytes of keys and values that are reserved for texts that run, and those that are allocated, also for
  // prefixes of texts that have ended. Called by the thread that calls step.
  int64_t reserved_bytes() const;
  int64_t used_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
