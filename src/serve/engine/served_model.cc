#include "serve/engine/served_model.h"

#include <algorithm>
#include <ctime>
#include <future>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "documents/languages.h"
#include "qkv/generator.h"
#include "qkv/translator.h"

namespace qkv {
namespace {

// ---- The first request of a model, before clients can reach it

// The end of a request, which its event sets.
class WarmUpEnd {
 public:
  std::function<void()> event() {
    return [end = end_] { end->set_value(); };
  }
  void wait() { end_->get_future().wait(); }

 private:
  const std::shared_ptr<std::promise<void>> end_ = std::make_shared<std::promise<void>>();
};

class WarmUpJob : public BatchJob {
 public:
  explicit WarmUpJob(const ServedModel& model) : model_(model) {}

  void compute(std::span<BatchJob* const>) override {
    if (model_.recommender) model_.recommender->recommend({model_.recommender->items().front()});
    if (model_.embedder) model_.embedder->embed({"a"});
    if (model_.classifier) model_.classifier->classify({{"a"}});
  }

 private:
  const ServedModel& model_;
};

void translate_once(ServedModel& model) {
  TranslateOptions options;
  options.beam = 1;
  options.max_length = 4;
  if (const std::vector<std::string> codes = model.translator->languages(); !codes.empty()) {
    options.source_language = codes.front();
    options.target_language = codes.back();
  }
  ModelLane& lane = *model.take_lane(0);
  WarmUpEnd end;
  TranslationLoop::Events events;
  events.on_done = [event = end.event()](Translation&&) { event(); };
  events.on_error = [event = end.event()](const std::exception_ptr&) { event(); };
  lane.translations->add(lane.translations->prepare({"a"}, options), std::move(events));
  model.wake(lane);
  end.wait();
}

void generate_once(ServedModel& model) {
  GenerateOptions options;
  options.max_tokens = 2;
  ModelLane& lane = *model.take_lane(0);
  WarmUpEnd end;
  GenerationLoop::Events events;
  events.on_done = [event = end.event()](Generation&&) { event(); };
  events.on_error = [event = end.event()](const std::exception_ptr&) { event(); };
  GenerationLoop::Prepared prompt = lane.generations->prepare(std::vector<int32_t>{0}, options);
  prompt.salt = "\n";  // no client has this one, so none is reported a cached prefix
  lane.generations->add(std::move(prompt), std::move(events));
  model.wake(lane);
  end.wait();
}

// Returns what is known of a chain: it is a translator that reads texts as its first one does, as far as all have room
// for them.
RunInfo chain_info(const std::vector<std::shared_ptr<ServedModel>>& members) {
  RunInfo info;
  info.model = members.front()->info.model;
  info.has_weights = true;
  for (const auto& member : members) {
    info.parameter_count += member->info.parameter_count;
    info.model.max_length = std::min(info.model.max_length, member->max_length());
  }
  return info;
}

void compute_once(ServedModel& model) {
  WarmUpEnd end;
  const auto job = std::make_shared<WarmUpJob>(model);
  job->on_start = [] {};
  job->on_done = [event = end.event()](const std::exception_ptr&) { event(); };
  model.push(job);
  end.wait();
}

}  // namespace

ModelLane::ModelLane(ServedModel& model, const LoopLimits& limits) : model_(model) {
  if (model.translator) translations.emplace(*model.translator, limits);
  if (model.generator) generations.emplace(*model.generator, limits);
}

bool ModelLane::step() {
  const auto begin = ComputeThread::Clock::now();
  const int64_t texts = model_.queue.running();
  bool any = model_.batches.step();
  if (translations) any |= translations->step();
  if (generations) any |= generations->step();
  reserved_bytes = translations ? translations->reserved_bytes() : generations ? generations->reserved_bytes() : 0;
  used_bytes = generations ? generations->used_bytes() : reserved_bytes.load();
  const std::chrono::duration<double> time = ComputeThread::Clock::now() - begin;
  if (any) model_.metrics().observe_step(time.count(), texts);
  if (any && hooks.on_busy) hooks.on_busy(time.count());
  if (hooks.send) hooks.send(events_);
  return any;
}

ServedModel::ServedModel(const ServedRun& run, bool embeds, const QueueLimits& limits, ClientCounts& clients,
                         ModelMetrics& counters)
    : name(run.name), info(inspect(run.run)), queue(name, limits, clients, counters), metrics_(counters) {
  if (!info.has_weights) fail("{}: has no weights yet", run.run);
  load(run, embeds);
  loaded = std::time(nullptr);
}

ServedModel::ServedModel(const ServedRun& run, std::vector<std::shared_ptr<ServedModel>> members,
                         const QueueLimits& limits, ClientCounts& clients, ModelMetrics& counters)
    : name(run.name),
      info(chain_info(members)),
      chain(std::move(members)),
      queue(name, limits, clients, counters),
      metrics_(counters) {
  for (size_t i = 0; i < chain.size(); i++)
    chain_languages.push_back(languages_in_chain(name, run.chain[i], *chain[i]));
  translate_defaults = chain.back()->translate_defaults;
  set_languages_of_step(chain.size() - 1, translate_defaults);
  const LanguagePair named = languages_of(run);
  set_languages(named == LanguagePair() ? LanguagePair{chain_languages.front().source, chain_languages.back().target}
                                        : named);
  loaded = std::time(nullptr);
}

ServedModel::~ServedModel() { stop(); }

// Returns the languages that are given, or that the name or the directory ends with.
LanguagePair ServedModel::languages_of(const ServedRun& run) const {
  if (!run.languages.empty()) {
    const auto given = parse_language_pair(run.languages);
    if (!given) fail("languages: {} must be two languages, such as en-de (is {})", run.name, excerpt(run.languages));
    return *given;
  }
  const LanguagePair pair = languages_of_path(run.name);
  return pair == LanguagePair() ? languages_of_path(run.run) : pair;
}

void ServedModel::set_languages(const LanguagePair& pair) {
  source_language = pair.source;
  target_language = pair.target;
}

// Sets the template that is given, by name or as a file, or the model's own. A model whose own template cannot be used
// still answers other requests.
void ServedModel::set_chat(const ServedRun& run) {
  constexpr size_t kMaxTemplate = 1 << 20;
  const std::string& given = run.chat_template;
  if (given.ends_with(".jinja") || given.find('/') != std::string::npos)
    return void(chat.emplace(*generator, read_file(given, kMaxTemplate)));
  if (!given.empty()) return void(chat.emplace(*generator, given));
  if (!has_chat_template(run.run)) return;
  try {
    chat.emplace(*generator);
  } catch (const Error& error) {
    chat_problem = fmt::format(" ({})", error.what());
  }
}

void ServedModel::load(const ServedRun& run, bool embeds) {
  if (info.kind != RunKind::recommender) tokenizer.emplace(run.run, info.kind);
  switch (info.kind) {
    case RunKind::translator:
      translator.emplace(run.run);
      translate_defaults = default_translate_options(run.run);
      if (!run.glossary.empty()) translate_defaults.glossary = read_glossary(run.glossary);
      set_languages(languages_of(run));
      if (embeds) embedder.emplace(run.run);
      break;
    case RunKind::language_model:
      generator.emplace(run.run, int64_t{0});  // its loops have caches of their own
      generate_defaults = default_generate_options(run.run);
      set_chat(run);
      if (embeds) embedder.emplace(run.run);
      break;
    case RunKind::recommender: {
      recommender.emplace(run.run);
      const auto is_item = [this](std::string_view item) { return recommender->has_item(item); };
      run.titles.empty() ? titles.emplace(is_item) : titles.emplace(run.titles, std::vector<std::string>(), is_item);
      if (const std::string doubt = titles->doubt(recommender->items()); !doubt.empty())
        titles_doubt = fmt::format("{}: {}", run.titles, doubt);
      break;
    }
    case RunKind::encoder:
      embedder.emplace(run.run);
      break;
    case RunKind::classifier:
      classifier.emplace(run.run);
      break;
  }
}

bool ServedModel::serves(ModelUse use) const {
  switch (use) {
    case ModelUse::translate:
      return translator.has_value() || !chain.empty();
    case ModelUse::generate:
      return generator.has_value();
    case ModelUse::recommend:
      return recommender.has_value();
    case ModelUse::embed:
      return embedder.has_value();
    case ModelUse::classify:
      return classifier.has_value();
    case ModelUse::none:
      return false;
  }
  return false;
}

std::vector<std::string> ServedModel::languages() const {
  return translator ? translator->languages() : std::vector<std::string>();
}

void ServedModel::set_languages_of_step(size_t step, TranslateOptions& options) const {
  chain[step]->translator->set_languages(options, chain_languages[step].source, chain_languages[step].target);
}

bool ServedModel::is_int8() const {
  if (!chain.empty()) return std::ranges::all_of(chain, [](const auto& member) { return member->is_int8(); });
  return std::ranges::any_of(info.parameters, [](const ParameterInfo& parameter) { return parameter.bits < 32; });
}

void ServedModel::start(std::span<ComputeThread* const> threads, const LoopLimits& limits,
                        const ModelLane::Hooks& hooks) {
  for (ComputeThread* thread : threads) {
    lanes_.push_back({std::make_shared<ModelLane>(*this, limits), thread});
    lanes_.back().lane->hooks = hooks;
    thread->add(lanes_.back().lane);
  }
}

void ServedModel::stop() {
  for (LaneThread& place : lanes_)
    if (ComputeThread* thread = std::exchange(place.thread, nullptr)) thread->remove(*place.lane);
}

ModelSources ServedModel::cache_sources() const {
  const auto sum = [this](std::atomic<int64_t> ModelLane::*bytes) {
    int64_t all = 0;
    for (const LaneThread& place : lanes_) all += ((*place.lane).*bytes).load();
    return static_cast<double>(all);
  };
  return {[sum] { return sum(&ModelLane::used_bytes); }, [sum] { return sum(&ModelLane::reserved_bytes); }};
}

ModelLane* ServedModel::take_lane(int64_t cost) {
  const auto least =
      std::ranges::min_element(lanes_, std::less<>(), [](const LaneThread& place) { return place.lane->load.load(); });
  least->lane->load += cost;
  return least->lane.get();
}

void ServedModel::wake(const ModelLane& lane) {
  for (const LaneThread& place : lanes_)
    if (place.lane.get() == &lane && place.thread) place.thread->wake(lane);
}

void ServedModel::push(std::shared_ptr<BatchJob> job) {
  batches.push(std::move(job));
  for (const LaneThread& place : lanes_)
    if (place.thread) place.thread->wake(*place.lane);
}

LanguagePair languages_in_chain(const std::string& chain, const ChainMember& member, const ServedModel& model) {
  const auto& [name, languages] = member;
  if (!model.translator) fail("pivot: {}: {} is no translator (is a {})", chain, name, name_of(model.info.kind));
  const std::vector<std::string> codes = model.languages();
  if (codes.empty()) {
    if (!languages.empty())
      fail("pivot: {}: {} has a single language pair, and must be given without {}", chain, name, excerpt(languages));
    return {model.source_language, model.target_language};
  }
  const auto is_code = [&](const std::string& code) { return std::ranges::find(codes, code) != codes.end(); };
  for (size_t hyphen = languages.find('-'); hyphen != languages.npos; hyphen = languages.find('-', hyphen + 1))
    if (LanguagePair pair{languages.substr(0, hyphen), languages.substr(hyphen + 1)};
        is_code(pair.source) && is_code(pair.target))
      return pair;
  fail("pivot: {}: {} has several languages; two of them must be given as {}:{}-{} (are {})", chain, name, name,
       codes.front(), codes.back(), languages.empty() ? "missing" : excerpt(languages));
}

void warm_up(ServedModel& model) {
  try {
    if (model.translator) translate_once(model);
    if (model.generator) generate_once(model);
    if (model.recommender || model.embedder || model.classifier) compute_once(model);
  } catch (const Error&) {
  }
}

}  // namespace qkv
