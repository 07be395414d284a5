#include "serve/engine/text_work.h"

#include <algorithm>

#include "core/to_size.h"
#include "serve/engine/request_limits.h"

namespace qkv {
namespace {

constexpr int64_t kTokenBytes = 60;  // of JSON, about

// Return about how many bytes of JSON a result takes.
size_t bytes_of(const Translation& translation) {
  int64_t bytes = std::ssize(translation.source) + kTokenBytes * std::ssize(translation.source_tokens);
  for (const Hypothesis& h : translation.hypotheses) {
    bytes += std::ssize(h.text) + kTokenBytes * std::ssize(h.tokens);
    for (const std::vector<float>& row : h.attention) bytes += kWeightBytes * std::ssize(row);
  }
  return to_size(bytes);
}
size_t bytes_of(const Generation& generation) {
  int64_t bytes = std::ssize(generation.text);
  for (const GeneratedToken& token : generation.tokens) bytes += kTokenBytes * (1 + std::ssize(token.alternatives));
  return to_size(bytes);
}

// Texts of one call, which owns the work. Result: Translation or Generation. The events of texts in a loop do nothing
// once the call has ended.
template <class Result>
class TextWork : public CallWork, public std::enable_shared_from_this<TextWork<Result>> {
 public:
  struct Text {
    ModelQueue::QueueTicket place;
    ModelLane* lane = nullptr;
    int64_t cost = 0;
    uint64_t id = 0;  // in the loop
    Call::Clock::time_point last_token = {};
    std::optional<Result> result;
    std::optional<Result> ended = {};  // from the loop; the prepare thread makes it the result
    bool left = false;                 // the loop has ended it, or it was cancelled
  };

  TextWork(const CallPtr& call, ModelPtr model) : call_(call), model_(std::move(model)) {}

  std::function<void(size_t, const Result&)> on_text;
  std::function<void(std::vector<Result>&&)> on_done;
  std::vector<Text> texts;

  // An event of a text, on its compute thread: runs a function on the prepare thread, unless the call has ended.
  // Without memory the call is given up.
  template <class Function>
  void post(size_t i, Function function) {
    const bool is_posted = run_unless_out_of_memory([&] {
      texts[i].lane->post(Service::continuation(
          call_, [self = this->shared_from_this(), function = std::move(function)](const CallPtr&) { function(); }));
    });
    if (is_posted) return;
    if (const CallPtr call = call_.lock()) call->abandon();
  }

  void started(size_t i) {
    post(i, [this, i] { texts[i].place.start(); });
  }
  void more(size_t i, int64_t cost) {
    post(i, [this, i, cost] {
      Text& text = texts[i];
      if (text.left) return;
      text.cost += cost;
      text.lane->load += cost;
      text.place.add_cost(cost);
    });
  }
  void done(size_t i, Result&& result) {
    texts[i].ended = std::move(result);
    post(i, [this, i] { end(i); });
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
      if (!text.left) leave(text, true);
    forget();
  }
  void pause(bool paused) override {
    for (Text& text : texts)
      if (!text.left) with_loop(*text.lane, [&](auto& loop) { loop.pause(text.id, paused); });
    for (const Text& text : texts) model_->wake(*text.lane);
  }
  bool has_started() const override {
    return std::ranges::any_of(texts, [](const Text& text) { return text.place.started(); });
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
    text.left = true;
    text.lane->load -= text.cost;
    cancelled ? text.place.leave() : text.place.finish();
    // Without memory to cancel it, a text runs to its end unheard.
    if (cancelled) run_unless_out_of_memory([&] { with_loop(*text.lane, [&](auto& loop) { loop.cancel(text.id); }); });
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

  // Long results are written on a text thread: first that of a text, at the end all.
  void end(size_t i) {
    Text& text = texts[i];
    count_output(*text.ended);
    leave(text, false);
    const CallPtr call = call_.lock();
    if (!on_text || !call) return settle(i);
    Service& service = call->service();
    service.run(call, bytes_of(*text.ended),
                [self = this->shared_from_this(), i, write = on_text, &service](const CallPtr& writing) {
                  write(i, *self->texts[i].ended);
                  service.leave(writing, [self, i](const CallPtr&) { self->settle(i); });
                });
  }

  void settle(size_t i) {
    texts[i].result = std::exchange(texts[i].ended, std::nullopt);
    const CallPtr call = call_.lock();
    if (!call || !std::ranges::all_of(texts, [](const Text& t) { return t.result.has_value(); })) return;
    const auto results = std::make_shared<std::vector<Result>>();
    size_t bytes = 0;
    for (Text& t : texts) {
      bytes += bytes_of(*t.result);
      results->push_back(std::move(*t.result));
    }
    const auto answer = std::make_shared<std::function<void(std::vector<Result> &&)>>(std::move(on_done));
    forget();
    call->service().run(call, bytes, [results, answer](const CallPtr&) { (*answer)(std::move(*results)); });
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
  void more(int64_t cost) const {
    if (const auto alive = work.lock()) alive->more(i, cost);
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

// is_counted: the texts were counted before, as those of an earlier step of a chain.
void count_input(Call& call, ServedModel& model, const std::vector<int64_t>& tokens, bool is_counted = false) {
  int64_t all = 0;
  for (const int64_t count : tokens) all += count;
  model.metrics().add_input_tokens(all);
  if (!is_counted) call.track().add_texts(std::ssize(tokens), all);
}

// Takes places for the texts, and adds them to the loops of the model. On the prepare thread. asked: the model that the
// client has asked for.
template <class Result, class Prepared, class Events>
void add_texts(const CallPtr& call, const ModelPtr& asked, const ModelPtr& model, std::vector<Prepared> prepared,
               const std::shared_ptr<TextWork<Result>>& work, Events&& events_of) {
  int64_t cost = 0;
  for (const Prepared& text : prepared) cost += text.cost;
  call->use(asked);
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

// Prepares texts, of which any number may be too many: refuses them as soon as they are.
template <class Text, class Prepare>
auto prepare_all(const CallPtr& call, const ServedModel& model, const std::vector<Text>& texts, Prepare&& prepare) {
  std::vector<decltype(prepare(texts.front()))> prepared;
  int64_t cost = 0;
  model.queue.check_room(call->client(), std::ssize(texts), cost, call->deadline());
  for (const Text& text : texts) {
    Service::check_wanted();
    prepared.push_back(prepare(text));
    cost += prepared.back().cost;
    model.queue.check_room(call->client(), std::ssize(texts), cost, call->deadline());
  }
  return prepared;
}

// Throws HttpError 400 for texts whose translations may have more attention weights than an answer may.
class AttentionLimit {
 public:
  void add(const TranslateOptions& options, const TranslationLoop::Prepared& text) {
    if (!options.attention) return;
    weights_ += static_cast<double>(options.n_best) * static_cast<double>(text.source_tokens) *
                static_cast<double>(text.most_target_tokens);
    if (weights_ > static_cast<double>(kMostWeights))
      refuse_field("attention",
                   "would need up to {:.0f} weights, more than {}: {} source tokens and up to {} target "
                   "tokens for this text",
                   weights_, kMostWeights, text.source_tokens, text.most_target_tokens);
  }

  int64_t bytes() const { return kWeightBytes * static_cast<int64_t>(weights_); }  // of JSON, at most about

 private:
  double weights_ = 0;
};

// Throws HttpError 400 for a stream whose events, each with the translation so far, may repeat too much of it:
// T (T + 1) / 2 tokens for each hypothesis of T. Few sentences of a text are as long as they may be.
class RepeatLimit {
 public:
  void add(const TranslateOptions& options, const TranslationLoop::Prepared& text) {
    const int64_t most = text.parts > 1 ? text.cost - text.source_tokens : text.most_target_tokens;
    const auto T = static_cast<double>(most);
    tokens_ += static_cast<double>(options.n_best) * T * (T + 1) / 2;
    if (tokens_ > static_cast<double>(kMostRepeated))
      refuse_field("stream",
                   "would repeat up to {:.0f} tokens in its events, more than {}: up to {} target tokens for this text "
                   "(set max_length, or stream fewer or shorter texts)",
                   tokens_, kMostRepeated, most);
  }

 private:
  double tokens_ = 0;
};

}  // namespace

std::vector<int64_t> translate_by(const CallPtr& call, const ModelPtr& model, std::vector<TextToTranslate> texts,
                                  TranslationHandlers handlers, const ChainStep& in_chain) {
  const auto work = std::make_shared<TextWork<Translation>>(call, model);
  work->on_text = std::move(handlers.on_text);
  work->on_done = std::move(handlers.on_done);
  const ModelLane* lane = model->take_lane(0);  // any loop of the model prepares for all of them
  AttentionLimit limit;
  RepeatLimit repeats;
  std::vector<int64_t> tokens;
  const auto prepared = std::make_shared<std::vector<TranslationLoop::Prepared>>(
      prepare_all(call, *model, texts, [&](const TextToTranslate& text) {
        TranslationLoop::Prepared one = lane->translations->prepare(text.line, *text.options);
        limit.add(*text.options, one);
        if (handlers.on_token) repeats.add(*text.options, one);
        tokens.push_back(one.source_tokens);
        return one;
      }));
  const auto events_of = [work, on_token = handlers.on_token](size_t i) {
    TranslationLoop::Events events;
    const WorkEvents<Translation> to{work, i};
    events.on_start = [to] { to.started(); };
    events.on_more = [to](int64_t cost) { to.more(cost); };
    if (on_token)
      events.on_token = [to, on_token](const TokenReport& token, const std::string& so_far) {
        to.token([on_token, i = to.i, token, so_far] { on_token(i, token, so_far); });
        return false;
      };
    events.on_done = [to](Translation&& translation) { to.done(std::move(translation)); };
    events.on_error = [to](const std::exception_ptr& error) { to.failed(error); };
    return events;
  };
  const int64_t bytes = limit.bytes();
  call->service().leave(call, [model, prepared, work, events_of, tokens, bytes, in_chain](const CallPtr& started) {
    started->service().admission().hold_answer(started->track(), bytes, 429);
    const ModelPtr& asked = in_chain.chain ? in_chain.chain : model;
    add_texts<Translation>(started, asked, model, std::move(*prepared), work, events_of);
    count_input(*started, *model, tokens, in_chain.step > 0);
  });
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
  const ModelLane* lane = model->take_lane(0);
  std::vector<int64_t> tokens;
  const auto prepared = std::make_shared<std::vector<GenerationLoop::Prepared>>(
      prepare_all(call, *model, texts, [&](const TextToGenerate& text) {
        GenerationLoop::Prepared one = lane->generations->prepare(text.prompt, text.options);
        one.salt = call->salt();
        tokens.push_back(one.prompt_tokens);
        return one;
      }));
  const auto events_of = [work, cached, model, on_token = handlers.on_token](size_t i) {
    GenerationLoop::Events events;
    const WorkEvents<Generation> to{work, i};
    events.on_start = [to, cached, model](int64_t count) {
      to.post([cached, i = to.i, count, model] {
        (*cached)[i] = count;
        model->metrics().add_cached_tokens(count);
      });
      to.started();
    };
    if (on_token)
      events.on_token = [to, on_token](const GeneratedToken& token, std::string_view piece) {
        to.token([on_token, i = to.i, token, piece = std::string(piece)] { on_token(i, token, piece); });
        return false;
      };
    events.on_done = [to](Generation&& generation) { to.done(std::move(generation)); };
    events.on_error = [to](const std::exception_ptr& error) { to.failed(error); };
    return events;
  };
  int64_t bytes = 0;
  for (const TextToGenerate& text : texts)
    if (text.options.alternatives > 0) bytes += kTokenBytes * text.options.max_tokens * (1 + text.options.alternatives);
  call->service().leave(call, [model, prepared, work, events_of, tokens, bytes](const CallPtr& started) {
    started->service().admission().hold_answer(started->track(), bytes, 429);
    add_texts<Generation>(started, model, model, std::move(*prepared), work, events_of);
    count_input(*started, *model, tokens);
  });
  return tokens;
}

}  // namespace qkv
