#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/generation/generator_model.h"
#include "decode/search/loop_inbox.h"
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

struct GenerationLoop::State {
  using Text = Prepared::Text;

  // The generation of the texts that run and wait, and the keys and values.
  struct Engine {
    TextCache cache;
    GenerationScheduler generating;

    explicit Engine(const State& s)
        : cache(*s.generator.run.model, s.limits.cache_bytes),
          generating(cache, s.generator.run.ends, {s.limits.rows, cache.room()}) {}
  };

  const Generator::Model& generator;
  const LoopLimits limits;
  Arena scratch;
  std::optional<Engine> engine;
  const int64_t row_bytes, cache_bytes;  // of a token's keys and values, and of all
  LoopInbox<std::unique_ptr<Text>> inbox;
  // The rest belongs to the thread that calls step.
  std::map<uint64_t, std::unique_ptr<Text>> texts;

  State(const Generator::Model& g, const LoopLimits& l)
      : generator(g),
        limits(l),
        engine(std::in_place, *this),
        row_bytes(engine->cache.row_bytes()),
        cache_bytes(engine->cache.room() * row_bytes) {}

  static GenerationRequest request_of(const Text& text) {
    return {text.id, text.prompt, &text.options, text.salt, text.client, text.is_complete};
  }

  // Makes the engine again after a step that failed.
  GenerationScheduler& generating() { return (engine ? *engine : engine.emplace(*this)).generating; }

  void add(std::unique_ptr<Text> text) {
    Text& t = *text;
    try {
      texts.emplace(t.id, std::move(text));
      generating().add(request_of(t));
    } catch (...) {
      fail_with(text ? std::move(text) : take(t.id), std::current_exception());
    }
  }

  void cancel(uint64_t id) {
    texts.erase(id);
    try {
      generating().remove(id);
    } catch (...) {
      fail_all(std::current_exception());
    }
  }

  std::unique_ptr<Text> take(uint64_t id) {
    const auto place = texts.find(id);
    std::unique_ptr<Text> taken = std::move(place->second);
    texts.erase(place);
    return taken;
  }

  static void fail_with(const std::unique_ptr<Text>& taken, std::exception_ptr error) {
    if (taken->events.on_error) taken->events.on_error(std::move(error));
  }

  // Ends all texts after an exception, which leaves the generation in an unknown state.
  void fail_all(const std::exception_ptr& error) {
    engine.reset();
    while (!texts.empty()) fail_with(take(texts.begin()->first), error);
  }

  void finish(uint64_t id, GeneratedIds::End end, std::exception_ptr error) {
    const std::unique_ptr<Text> text = take(id);
    if (text->error) error = text->error;
    if (!error) try {
        text->growing->finish(end);
      } catch (...) {
        error = std::current_exception();
      }
    if (error)
      fail_with(text, std::move(error));
    else if (text->events.on_done)
      text->events.on_done(text->growing->take());
  }

  bool step() {
    bool any = inbox.apply([&](std::unique_ptr<Text> text) { add(std::move(text)); }, [&](uint64_t id) { cancel(id); },
                           [&](uint64_t id, bool paused) { generating().pause(id, paused); });
    std::vector<GenerationScheduler::Result> results;
    const auto done = [&](GenerationScheduler::Result&& result) { results.push_back(std::move(result)); };
    const auto on_start = [&](uint64_t id, int64_t cached) {
      const Text& text = *texts.find(id)->second;
      if (text.events.on_start) text.events.on_start(cached);
    };
    std::exception_ptr error;
    try {
      any |= generating().step(scratch, done, on_start);
    } catch (...) {
      error = std::current_exception();
      any = true;
    }
    for (GenerationScheduler::Result& result : results) finish(result.key, result.text.end, result.error);
    if (error) fail_all(error);
    return any;
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
  check(generator.run.model->config(), generator.run.ends, request);
  prepared.prompt_tokens = std::ssize(generator.run.ends.beginning(t.prompt, t.is_complete));
  prepared.cost = prepared.prompt_tokens + options.max_tokens;
  prepared.rows = 1;
  prepared.bytes = rows_needed(generator.run.model->config(), generator.run.ends, request) * state_->row_bytes;
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
  return state_->inbox.add(std::move(text.text_));
}

void GenerationLoop::cancel(uint64_t text) { state_->inbox.cancel(text); }
void GenerationLoop::pause(uint64_t text, bool paused) { state_->inbox.pause(text, paused); }
bool GenerationLoop::step() { return state_->step(); }
int64_t GenerationLoop::reserved_bytes() const {
  return state_->engine ? state_->engine->generating.rows() * state_->row_bytes : 0;
}
int64_t GenerationLoop::used_bytes() const { return state_->engine ? state_->engine->cache.bytes() : 0; }

}  // namespace qkv
