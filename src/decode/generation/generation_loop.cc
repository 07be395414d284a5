#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/engine/engine.h"
#include "decode/engine/serving_loop.h"
#include "decode/generation/generator_model.h"
#include "qkv/serving.h"

namespace qkv {

// A text and what is known of it.
struct GenerationLoop::Prepared::Text {
  std::vector<int32_t> prompt;
  bool is_complete = false;
  GenerationOptions options;
  std::string salt = {}, client = {};
  std::optional<GrowingText> growing = {};
  Events events = {};
  uint64_t id = 0;
  std::exception_ptr error = {};
};

GenerationLoop::Prepared::Prepared(std::unique_ptr<Text> text) : text_(std::move(text)) {}
GenerationLoop::Prepared::Prepared(Prepared&&) noexcept = default;
GenerationLoop::Prepared& GenerationLoop::Prepared::operator=(Prepared&&) noexcept = default;
GenerationLoop::Prepared::~Prepared() = default;

struct GenerationLoop::State : ServingLoop<Prepared::Text> {
  using Text = Prepared::Text;

  // The generation of the texts that run and wait, and the keys and values.
  struct Generating {
    KeyValueCache cache;
    Engine engine;

    explicit Generating(State& s)
        : cache(s.generator.model, s.limits.cache_bytes),
          engine(cache, {s.limits.rows, cache.room() * cache.row_bytes()}, s.scratch) {}
  };

  const Generator::Model& generator;
  const LoopLimits limits;
  Arena scratch;
  std::optional<Generating> generating;
  const int64_t row_bytes, cache_bytes;  // of a token's keys and values, and of all

  State(const Generator::Model& g, const LoopLimits& l)
      : generator(g),
        limits(l),
        generating(std::in_place, *this),
        row_bytes(generating->cache.row_bytes()),
        cache_bytes(generating->cache.room() * row_bytes) {}

  static GenerationRequest request_of(const Text& text) {
    return {text.id, text.prompt, &text.options, text.salt, text.is_complete};
  }

  Engine& engine() { return (generating ? *generating : generating.emplace(*this)).engine; }

  void begin(Text& text) override {
    const int64_t cost = std::ssize(text.prompt) + text.options.max_tokens;
    engine().add(std::make_unique<TextGeneration>(generator.model.config(), generator.run.ends, request_of(text)),
                 text.client, cost);
  }
  void hold(Text& text, bool paused) override { engine().pause(text.id, paused); }
  void drop(Text& text) override { engine().remove(text.id); }
  void reset() override { generating.reset(); }

  bool advance(Clock::time_point now) override {
    Engine::Done done;
    const bool any = engine().step(done, [&](const Sequence& sequence) {
      const Text& text = *find(sequence.key());
      if (text.events.on_start) text.events.on_start(static_cast<const TextGeneration&>(sequence).shared());
    });
    for (const auto& sequence : done) finish(static_cast<TextGeneration&>(*sequence));
    engine().trim(now);
    return any;
  }

  void finish(TextGeneration& generation) {
    const std::unique_ptr<Text> text = take(*find(generation.key()));
    std::exception_ptr error = text->error;
    if (!error) try {
        text->growing->finish(generation.take().end);
      } catch (...) {
        error = std::current_exception();
      }
    if (error)
      fail_with(text, std::move(error));
    else if (text->events.on_done)
      text->events.on_done(text->growing->take());
  }
};

GenerationLoop::GenerationLoop(const Generator& generator, const LoopLimits& limits) {
  check_limits(limits);
  state_ = std::make_unique<State>(*generator.model_, limits);
}
GenerationLoop::~GenerationLoop() = default;

GenerationLoop::Prepared GenerationLoop::prepare(const std::string& prompt, const GenerateOptions& options) const {
  return prepare(state_->generator.run.ends.beginning(state_->generator.run.codec.encode(prompt, "prompt")), options);
}

GenerationLoop::Prepared GenerationLoop::prepare(std::vector<int32_t> prompt, const GenerateOptions& options) const {
  const Generator::Model& generator = state_->generator;
  auto text = std::make_unique<Prepared::Text>();
  CompletePrompt complete(generator.run.ends, std::move(prompt));
  const bool is_empty = complete.ids.empty();
  text->prompt = std::move(complete.ids);
  text->is_complete = complete.is_complete;
  text->options = {{options}};
  text->growing.emplace(generator, text->options, is_empty);
  Prepared prepared(std::move(text));
  const Prepared::Text& t = *prepared.text_;
  const GenerationRequest request = State::request_of(t);
  check(generator.model.config(), generator.run.ends, request);
  prepared.prompt_tokens = std::ssize(generator.run.ends.beginning(t.prompt, t.is_complete));
  prepared.cost = prepared.prompt_tokens + options.max_tokens;
  prepared.rows = 1;
  prepared.bytes = rows_needed(generator.model.config(), generator.run.ends, request) * state_->row_bytes;
  check_need(1, prepared.bytes, {.cache_bytes = state_->cache_bytes});
  return prepared;
}

uint64_t GenerationLoop::add(Prepared text, Events events) {
  Prepared::Text& t = *text.text_;
  t.salt = std::move(text.salt);
  t.client = std::move(text.client);
  t.events = std::move(events);
  t.options.on_token = [&t](size_t, const GeneratedIds& found) {
    const bool stops = t.growing->add(found);
    try {
      return (t.events.on_token && t.events.on_token(t.growing->result().tokens.back(), t.growing->next_piece())) ||
             stops;
    } catch (...) {
      t.error = std::current_exception();
      return true;
    }
  };
  return state_->add(std::move(text.text_));
}

void GenerationLoop::cancel(uint64_t text) { state_->cancel(text); }
void GenerationLoop::pause(uint64_t text, bool paused) { state_->pause(text, paused); }
bool GenerationLoop::step() { return state_->step(); }
int64_t GenerationLoop::reserved_bytes() const { return state_->generating ? state_->generating->engine.bytes() : 0; }
int64_t GenerationLoop::used_bytes() const { return state_->generating ? state_->generating->cache.bytes() : 0; }

}  // namespace qkv
