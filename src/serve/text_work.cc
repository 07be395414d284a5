#include "serve/text_work.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {
namespace {

// Texts of one call, which owns the work. Result: Translation or Generation. The events of texts in a loop do nothing
// once the call has ended.
template <class Result>
class TextWork : public CallWork, public std::enable_shared_from_this<TextWork<Result>> {
 public:
  struct Text {
    ModelQueue::Place place;
    ModelLane* lane = nullptr;
    int64_t cost = 0;
    uint64_t id = 0;  // in the loop
    Call::Clock::time_point last_token = {};
    std::optional<Result> result;
    std::optional<Result> ended = {};  // from the loop; the prepare thread makes it the result
  };

  TextWork(const CallPtr& call, ModelPtr model) : call_(call), model_(std::move(model)) {}

  std::function<void(size_t, const Result&)> on_text;
  std::function<void(std::vector<Result>&&)> on_done;
  std::vector<Text> texts;

  // An event of a text, on its compute thread: runs a function on the prepare thread, unless the call has ended.
  // Without memory the call is given up.
  template <class Function>
  void post(size_t i, Function function) {
    const bool is_posted = has_memory_for([&] {
      texts[i].lane->post(Service::continuation(
          call_, [self = this->shared_from_this(), function = std::move(function)](const CallPtr&) { function(); }));
    });
    if (is_posted) return;
    if (const CallPtr call = call_.lock()) call->abandon();
  }

  void started(size_t i) {
    post(i, [this, i] { texts[i].place.start(); });
  }
  void done(size_t i, Result&& result) {
    texts[i].ended = std::move(result);
    post(i, [this, i] { end(i, std::move(*texts[i].ended)); });
  }
  void failed(size_t i, const std::exception_ptr& error) {
    post(i, [error] { throw_model_error(error); });
  }

  // Counts the time to the first token of a stream, and between its tokens.
  void count_token(size_t i) {
    const auto now = Call::Clock::now();
    Call::Clock::time_point& last = texts[i].last_token;
    const std::chrono::duration<double> time = now - (last == Call::Clock::time_point() ? begun_ : last);
    last == Call::Clock::time_point() ? model_->metrics().observe_first_token(time.count())
                                      : model_->metrics().observe_token(time.count());
    last = now;
  }

  void cancel() override {
    for (Text& text : texts)
      if (!text.result) leave(text, true);
    forget();
  }
  void pause(bool paused) override {
    for (Text& text : texts)
      if (!text.result) with_loop(*text.lane, [&](auto& loop) { loop.pause(text.id, paused); });
    for (const Text& text : texts) model_->wake(*text.lane);
  }
  bool has_started() const override {
    return std::ranges::any_of(texts, [](const Text& text) { return text.place.started() || text.result; });
  }

 private:
  template <class Function>
  static void with_loop(ModelLane& lane, Function&& function) {
    if constexpr (std::is_same_v<Result, Translation>)
      function(*lane.translations);
    else
      function(*lane.generations);
  }

  void leave(Text& text, bool cancelled) {
    text.lane->load -= text.cost;
    cancelled ? text.place.leave() : text.place.finish();
    // Without memory to cancel it, a text runs to its end unheard.
    if (cancelled) has_memory_for([&] { with_loop(*text.lane, [&](auto& loop) { loop.cancel(text.id); }); });
    if (cancelled) model_->wake(*text.lane);
  }

  void count_output(const Translation& translation) {
    int64_t tokens = 0;
    for (const Hypothesis& hypothesis : translation.hypotheses) tokens += std::ssize(hypothesis.tokens);
    add_output(tokens);
  }
  void count_output(const Generation& generation) { add_output(std::ssize(generation.tokens)); }

  void add_output(int64_t tokens) {
    model_->metrics().add_output_tokens(tokens);
    if (const auto call = call_.lock())
      call->track().change([&](RequestRecord& record) { record.output_tokens += tokens; });
  }

  void end(size_t i, Result&& result) {
    Text& text = texts[i];
    count_output(result);
    text.result = std::move(result);
    leave(text, false);
    if (on_text) on_text(i, *text.result);
    if (!std::ranges::all_of(texts, [](const Text& t) { return t.result.has_value(); })) return;
    std::vector<Result> results;
    for (Text& t : texts) results.push_back(std::move(*t.result));
    const auto answer = std::move(on_done);
    forget();
    answer(std::move(results));
  }

  void forget() { on_text = nullptr, on_done = nullptr; }

  const std::weak_ptr<Call> call_;
  const ModelPtr model_;
  const Call::Clock::time_point begun_ = Call::Clock::now();
};

// The events of a text, which may come when its call has ended.
template <class Result>
struct WorkEvents {
  std::weak_ptr<TextWork<Result>> work;
  size_t i = 0;

  void started() const {
    if (const auto alive = work.lock()) alive->started(i);
  }
  void done(Result&& result) const {
    if (const auto alive = work.lock()) alive->done(i, std::move(result));
  }
  void failed(const std::exception_ptr& error) const {
    if (const auto alive = work.lock()) alive->failed(i, error);
  }
  template <class Function>
  void post(Function function) const {
    if (const auto alive = work.lock()) alive->post(i, std::move(function));
  }
  template <class Function>
  void token(Function function) const {
    post([work = work, i = i, function = std::move(function)] {
      if (const auto alive = work.lock()) alive->count_token(i);
      function();
    });
  }
};

void count_input(Call& call, ServedModel& model, const std::vector<int64_t>& tokens) {
  int64_t all = 0;
  for (const int64_t count : tokens) all += count;
  model.metrics().add_input_tokens(all);
  call.track().add_texts(std::ssize(tokens), all);
}

// Prepares the texts, takes places for all of them, and adds them to the loops of the model.
template <class Result, class Prepared, class Events>
void add_texts(const CallPtr& call, const ModelPtr& model, std::vector<Prepared> prepared,
               const std::shared_ptr<TextWork<Result>>& work, Events&& events_of) {
  int64_t cost = 0;
  for (const Prepared& text : prepared) cost += text.cost;
  call->use(model);
  auto place = model->queue.enter(call->client(), std::ssize(prepared), cost, call->deadline());
  work->texts.reserve(prepared.size());
  call->set_work(work);
  for (Prepared& text : prepared) {
    text.client = call->client();
    work->texts.push_back({place.split(text.cost), model->take_lane(text.cost), text.cost, 0, {}, {}});
  }
  for (size_t i = 0; i < prepared.size(); i++) {
    ModelLane& lane = *work->texts[i].lane;
    if constexpr (std::is_same_v<Result, Translation>)
      work->texts[i].id = lane.translations->add(std::move(prepared[i]), events_of(i));
    else
      work->texts[i].id = lane.generations->add(std::move(prepared[i]), events_of(i));
  }
  for (const auto& text : work->texts) model->wake(*text.lane);
}

}  // namespace

std::vector<int64_t> translate(const CallPtr& call, const ModelPtr& model, std::vector<TextToTranslate> texts,
                               TranslationHandlers handlers) {
  const auto work = std::make_shared<TextWork<Translation>>(call, model);
  work->on_text = std::move(handlers.on_text);
  work->on_done = std::move(handlers.on_done);
  ModelLane* lane = model->take_lane(0);  // any loop of the model prepares for all of them
  std::vector<TranslationLoop::Prepared> prepared;
  std::vector<int64_t> tokens;
  for (const TextToTranslate& text : texts) {
    prepared.push_back(lane->translations->prepare(text.line, text.options));
    tokens.push_back(prepared.back().source_tokens);
  }
  add_texts<Translation>(call, model, std::move(prepared), work, [&](size_t i) {
    TranslationLoop::Events events;
    const WorkEvents<Translation> to{work, i};
    events.on_start = [to] { to.started(); };
    if (handlers.on_token)
      events.on_token = [to, on_token = handlers.on_token](const TokenReport& token, const std::string& so_far) {
        to.token([on_token, i = to.i, token, so_far] { on_token(i, token, so_far); });
        return false;
      };
    events.on_done = [to](Translation&& translation) { to.done(std::move(translation)); };
    events.on_error = [to](const std::exception_ptr& error) { to.failed(error); };
    return events;
  });
  count_input(*call, *model, tokens);
  return tokens;
}

std::vector<int64_t> generate(const CallPtr& call, const ModelPtr& model, std::vector<TextToGenerate> texts,
                              GenerationHandlers handlers) {
  const auto work = std::make_shared<TextWork<Generation>>(call, model);
  const auto cached = std::make_shared<std::vector<int64_t>>(texts.size());
  work->on_text = std::move(handlers.on_text);
  work->on_done = [cached, on_done = std::move(handlers.on_done)](std::vector<Generation>&& results) {
    on_done(std::move(results), *cached);
  };
  ModelLane* lane = model->take_lane(0);
  std::vector<GenerationLoop::Prepared> prepared;
  std::vector<int64_t> tokens;
  for (const TextToGenerate& text : texts) {
    prepared.push_back(lane->generations->prepare(text.prompt, text.options));
    prepared.back().salt = call->salt();
    tokens.push_back(prepared.back().prompt_tokens);
  }
  add_texts<Generation>(call, model, std::move(prepared), work, [&](size_t i) {
    GenerationLoop::Events events;
    const WorkEvents<Generation> to{work, i};
    events.on_start = [to, cached, model](int64_t count) {
      to.post([cached, i = to.i, count, model] {
        (*cached)[i] = count;
        model->metrics().add_cached_tokens(count);
      });
      to.started();
    };
    if (handlers.on_token)
      events.on_token = [to, on_token = handlers.on_token](const GeneratedToken& token, std::string_view piece) {
        to.token([on_token, i = to.i, token, piece = std::string(piece)] { on_token(i, token, piece); });
        return false;
      };
    events.on_done = [to](Generation&& generation) { to.done(std::move(generation)); };
    events.on_error = [to](const std::exception_ptr& error) { to.failed(error); };
    return events;
  });
  count_input(*call, *model, tokens);
  return tokens;
}

}  // namespace qkv
