#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"
#include "decode/engine/serving_loop.h"
#include "decode/search/search.h"
#include "decode/search/sentence_decoder.h"
#include "decode/translator_state.h"
#include "qkv/serving.h"
#include "text/text_sentences.h"

namespace qkv {

// A text and what is known of it.
struct TranslationLoop::Prepared::Text {
  Line line;
  TranslateOptions options;
  SearchOptions search;
  Events events = {};
  uint64_t id = 0;
  size_t added = 0;    // parts
  size_t running = 0;  // parts and clauses
  bool looked_for_clauses = false;
  bool started = false, paused = false;
  std::string client = {};
  std::exception_ptr error = {};
  // A hypothesis as far as on_token has reported it: the text of the parts before, and the tokens of this one.
  struct Written {
    std::string before = {};
    std::vector<int32_t> ids = {};
  };
  std::map<int64_t, Written> written = {};

  bool report(const TokenEvent& event, const Tokenizer& tokens) {
    LinePart& part = line.parts[added - 1];
    Written& hypothesis = written.try_emplace(event.hypothesis, Written{line.space_before}).first->second;
    if (event.token != search.end) hypothesis.ids.push_back(event.token);
    std::string text = hypothesis.before;
    append_sentence(text, part.space, tokens.decode(hypothesis.ids));
    const std::string so_far = event.last && part.is_last ? text + line.space_after : text;
    const bool ends = report_token(event, part, tokens, options.n_best == 1, [&](TokenReport report) {
      report.line = 0;
      return events.on_token(report, so_far);
    });
    if (event.last || ends) hypothesis = {std::move(text), {}};
    return ends;
  }
};

TranslationLoop::Prepared::Prepared(std::unique_ptr<Text> text) : text_(std::move(text)) {}
TranslationLoop::Prepared::Prepared(Prepared&&) noexcept = default;
TranslationLoop::Prepared& TranslationLoop::Prepared::operator=(Prepared&&) noexcept = default;
TranslationLoop::Prepared::~Prepared() = default;

namespace {

// Returns the tokens of a part and those that its translation may have.
int64_t part_cost(const Ensemble& models, const LinePart& part, const SearchOptions& search) {
  const int64_t S = std::ssize(part.source);
  return S + std::min((3 * S + 1) / 2, max_tokens(models, input_of(part), search));
}

// Whether the attention of translations is found in the same way.
bool same_attention(const TranslateOptions& a, const TranslateOptions& b) {
  const auto of = [](const TranslateOptions& o) {
    return std::tie(o.alignment, o.attention, o.replace_unknown, o.attention_layer, o.attention_head, o.source_language,
                    o.target_language);
  };
  return of(a) == of(b);
}

}  // namespace

struct TranslationLoop::State : ServingLoop<Prepared::Text> {
  using Text = Prepared::Text;

  // The decoding of the texts that run and wait, and its part of the memory.
  struct Decoding {
    Arena::Scope scope;
    SentenceDecoder decoder;

    explicit Decoding(State& s)
        : scope(s.memory),
          decoder(s.translator.models, s.rows, {s.limits.rows, s.limits.cache_bytes, true}, s.memory, s.scratch) {}
  };

  const Translator::State& translator;
  const LoopLimits limits;
  const CacheRows rows;
  Arena memory, scratch;
  std::optional<Decoding> decoding;
  std::map<uint64_t, std::pair<Text*, LinePart*>> parts;  // of the decoder, by key
  uint64_t keys = 0;

  State(const Translator::State& t, const LoopLimits& l)
      : translator(t),
        limits(l),
        rows(cache_rows(t.models, l.cache_bytes)),
        memory(reserved_for(t.models, rows)),
        decoding(std::in_place, *this) {}

  SentenceDecoder& decoder() { return (decoding ? *decoding : decoding.emplace(*this)).decoder; }

  void begin(Text& text) override {
    const size_t at_once = text.events.on_token ? 1 : text.line.parts.size();
    while (text.added < at_once && text.added < text.line.parts.size()) add_part(text, text.line.parts[text.added++]);
    if (text.line.parts.empty()) finish(text);
  }

  // Returns the cost.
  int64_t add_part(Text& text, LinePart& part) {
    const uint64_t key = keys++;
    text.running++;
    parts.emplace(key, std::pair(&text, &part));
    const int64_t cost = part_cost(translator.models, part, text.search);
    decoder().add({key, input_of(part), &text.search, text.options.alternatives, text.client, cost});
    if (text.paused) decoder().pause(key, true);
    return cost;
  }

  static void start(Text& text) {
    if (!std::exchange(text.started, true) && text.events.on_start) text.events.on_start();
  }

  void hold(Text& text, bool paused) override {
    text.paused = paused;
    for (const auto& [key, part] : parts)
      if (part.first == &text) decoder().pause(key, paused);
  }

  void drop(Text& text) override {
    std::erase_if(parts, [&](const auto& part) {
      if (part.second.first != &text) return false;
      decoder().remove(part.first);
      return true;
    });
  }

  void reset() override {
    parts.clear();
    decoding.reset();
  }

  void finish(Text& text) {
    const std::unique_ptr<Text> taken = take(text);
    std::exception_ptr error = taken->error;
    std::optional<Translation> result;
    if (!error) try {
        result = translator.text.result(taken->line, taken->options);
      } catch (...) {
        error = std::current_exception();
      }
    if (error) fail_with(taken, std::move(error));
    if (result && taken->events.on_done) taken->events.on_done(std::move(*result));
  }

  // A part whose search has ended.
  struct Ended {
    uint64_t text = 0;
    LinePart* part = nullptr;
    std::exception_ptr error = nullptr;
  };

  // Takes the parts of these results out of those of the decoder.
  std::vector<Ended> take_ended(std::vector<SentenceDecoder::Result>& results) {
    std::vector<Ended> ended;
    for (SentenceDecoder::Result& result : results) {
      const auto place = parts.find(result.key);
      const auto [text, part] = place->second;
      parts.erase(place);
      if (!result.error) part->found = std::move(result.found);
      ended.push_back({text->id, part, std::move(result.error)});
    }
    return ended;
  }

  // Finds the attention of the parts of texts with the same options, together. An error of parts that were computed
  // together goes only to those that have it alone.
  void find_attention(std::span<Ended* const> ended) {
    std::vector<LinePart*> together;
    for (const Ended* e : ended) together.push_back(e->part);
    try {
      translator.find_attention(together, find(ended.front()->text)->options, scratch);
    } catch (...) {
      if (ended.size() == 1) ended.front()->error = std::current_exception();
      for (size_t i = 0; i < ended.size() && ended.size() > 1; i++) find_attention(ended.subspan(i, 1));
    }
  }
  void find_attention(std::vector<Ended>& all) {
    std::vector<std::vector<Ended*>> groups;
    for (Ended& ended : all) {
      if (ended.error) continue;
      const TranslateOptions& options = find(ended.text)->options;
      const auto group = std::ranges::find_if(
          groups, [&](const auto& g) { return same_attention(find(g.front()->text)->options, options); });
      (group == groups.end() ? groups.emplace_back() : *group).push_back(&ended);
    }
    for (const auto& group : groups) find_attention(std::span(group));
  }

  void settle(const Ended& ended) {
    Text* found = find(ended.text);
    if (!found) return;  // another part of its text failed in this step
    Text& text = *found;
    if (ended.error) return fail_with(take(text), ended.error);
    text.running--;
    if (ended.part->is_stopped) text.line.stop_after(text.added);
    if (text.error) return finish(text);
    if (text.running > 0) return;
    if (text.added < text.line.parts.size()) {
      add_part(text, text.line.parts[text.added++]);
      return;
    }
    if (!text.events.on_token && !std::exchange(text.looked_for_clauses, true)) add_clauses(text);
    if (text.running == 0) finish(text);
  }

  // Adds the clauses of the parts whose translations are too short. Each has a turn of the client for its own cost, so
  // that they delay others no more than a text that the client adds now.
  void add_clauses(Text& text) {
    int64_t cost = 0;
    for (LinePart& part : text.line.parts) {
      translator.text.find_clauses(part, text.options);
      for (LinePart& clause : part.clauses) cost += add_part(text, clause);
    }
    if (cost > 0 && text.events.on_more) text.events.on_more(cost);
  }

  bool advance(Clock::time_point now) override {
    std::vector<SentenceDecoder::Result> results;
    const bool any = decoder().step(results, [&](uint64_t key) { start(*parts.at(key).first); });
    std::vector<Ended> ended = take_ended(results);
    find_attention(ended);
    for (const Ended& e : ended) settle(e);
    decoder().trim(now);
    return any;
  }
};

TranslationLoop::TranslationLoop(const Translator& translator, const LoopLimits& limits) {
  check_limits(limits);
  state_ = std::make_unique<State>(*translator.state_, limits);
}
TranslationLoop::~TranslationLoop() = default;

TranslationLoop::Prepared TranslationLoop::prepare(const SourceLine& line, const TranslateOptions& options) const {
  const Translator::State& translator = state_->translator;
  auto text = std::make_unique<Prepared::Text>();
  text->options = options;
  text->options.on_progress = nullptr;
  translator.check(text->options);
  text->line.number = -1;
  text->line.source = line;
  translator.text.read(text->line, text->options, translator.text.term_rules(text->options));
  text->options.on_token = nullptr;
  text->options.glossary.clear();
  text->search = translator.text.search_options(options);
  Prepared prepared(std::move(text));
  const Prepared::Text& t = *prepared.text_;
  for (const LinePart& part : t.line.parts) {
    const DecodingNeed need = decoding_need(translator.models, {0, input_of(part), &t.search, options.alternatives});
    prepared.source_tokens += std::ssize(part.source) + std::ssize(part.kept);
    prepared.most_target_tokens += max_tokens(translator.models, input_of(part), t.search) + std::ssize(part.kept);
    prepared.parts++;
    prepared.cost += part_cost(translator.models, part, t.search);
    prepared.rows = std::max(prepared.rows, need.rows);
    prepared.bytes = std::max(prepared.bytes, need.bytes);
  }
  check_need(prepared.rows, prepared.bytes, state_->limits);
  return prepared;
}

uint64_t TranslationLoop::add(Prepared text, Events events) {
  Prepared::Text& t = *text.text_;
  if (events.on_token) {
    TranslateOptions options = t.options;
    options.on_token = [](const TokenReport&) { return false; };
    state_->translator.check(options);
    t.search.on_token = [&t, this](const TokenEvent& event) {
      try {
        return t.report(event, state_->translator.text.tokenizers().target);
      } catch (...) {
        t.error = std::current_exception();
        return true;
      }
    };
  }
  t.client = std::move(text.client);
  t.events = std::move(events);
  return state_->add(std::move(text.text_));
}

void TranslationLoop::cancel(uint64_t text) { state_->cancel(text); }
void TranslationLoop::pause(uint64_t text, bool paused) { state_->pause(text, paused); }
bool TranslationLoop::step() { return state_->step(); }
int64_t TranslationLoop::reserved_bytes() const { return state_->decoding ? state_->decoding->decoder.bytes() : 0; }

}  // namespace qkv
