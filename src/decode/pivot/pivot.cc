#include "qkv/pivot.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "decode/pivot/pivot_steps.h"
#include "decode/translator_state.h"

namespace qkv {
namespace {

// A line on its way through the chain.
struct ChainedLine {
  SourceLine given;
  size_t step = 0;
  std::optional<Translation> so_far = std::nullopt;  // of the steps before
};

// The lines of a stream that are open. Its functions are called by the thread that runs the pipeline.
class ChainedLines {
 public:
  explicit ChainedLines(const PivotSteps& steps) : steps_(steps) {}

  Next read(Line& line, const LineSource& source, bool wait) {
    SourceLine given;
    const Next next = source(given, wait);
    if (next == Next::line) begin_step(line, lines_[line.number] = {std::move(given)});
    return next;
  }

  // Begins the next step of a line whose parts are translated. Returns false if there is none, or for an error.
  bool next(Line& line) {
    ChainedLine& chained = lines_.at(line.number);
    if (chained.step + 1 == steps_.count()) return false;
    try {
      end_step(line, chained);
    } catch (const Error&) {
      line.error = std::current_exception();
      return false;
    }
    Line following;
    following.number = line.number;
    line = std::move(following);
    begin_step(line, chained);
    return !line.error;
  }

  Translation take(Line& line) {
    const auto place = lines_.find(line.number);
    end_step(line, place->second);
    Translation translation = std::move(*place->second.so_far);
    lines_.erase(place);
    return translation;
  }

 private:
  void begin_step(Line& line, const ChainedLine& chained) const {
    try {
      line.source = steps_.line(chained.step, chained.given, chained.so_far ? &*chained.so_far : nullptr, line.number);
      steps_.read(chained.step, line);
    } catch (const Error&) {
      line.error = std::current_exception();
    }
  }

  void end_step(Line& line, ChainedLine& chained) const {
    Translation done = steps_.translator(chained.step).text.result(line, steps_.options(chained.step));
    chained.so_far = chained.so_far ? joined_steps(std::move(*chained.so_far), std::move(done)) : std::move(done);
    chained.step++;
  }

  const PivotSteps& steps_;
  std::map<int64_t, ChainedLine> lines_;  // by number
};

}  // namespace

PivotTranslator::PivotTranslator(std::vector<Translator> translators) : translators_(std::move(translators)) {
  if (translators_.empty()) fail("a chain must have at least one translator");
}
PivotTranslator::~PivotTranslator() = default;
PivotTranslator::PivotTranslator(PivotTranslator&&) noexcept = default;
PivotTranslator& PivotTranslator::operator=(PivotTranslator&&) noexcept = default;

void PivotTranslator::set_languages(std::vector<TranslateOptions>& options,
                                    const std::vector<std::string>& between) const {
  const size_t count = translators_.size();
  check_count(options, count);
  if (!between.empty() && between.size() + 1 != count)
    fail("pivot languages must be {}, one for each text in between (are {})", count - 1, between.size());
  for (size_t i = 0; i < count; i++) {
    const TranslationTokens& tokens = translators_[i].state_->text.tokens();
    const bool reads_source = tokens.source_language != SourceLanguage::none,
               reads_target = tokens.target_language != TargetLanguage::none;
    if (i > 0) options[i].source_language = reads_source && !between.empty() ? between[i - 1] : "";
    if (i + 1 < count) options[i].target_language = reads_target && !between.empty() ? between[i] : "";
  }
}

std::vector<Translation> PivotTranslator::translate(const std::vector<std::string>& lines,
                                                    const std::vector<TranslateOptions>& options,
                                                    const std::vector<std::string>& prefixes) const {
  return translate_all(lines, prefixes,
                       [&](const LineSource& read, const auto& write) { translate(read, write, options); });
}

void PivotTranslator::translate(const LineSource& read, const std::function<void(Translation&&)>& write,
                                const std::vector<TranslateOptions>& given) const {
  if (translators_.size() == 1 && given.size() <= 1)
    return translators_.front().translate(read, write, given.empty() ? TranslateOptions() : given.front());
  std::vector<const Translator*> translators;
  for (const Translator& translator : translators_) translators.push_back(&translator);
  const PivotSteps steps(std::move(translators), given);
  const TranslateOptions& options = steps.options(0);
  ChainedLines lines(steps);
  std::mutex unused;
  PipelineSteps pipeline;
  pipeline.read = [&](Line& line, bool wait) { return lines.read(line, read, wait); };
  pipeline.next = [&](Line& line) { return lines.next(line); };
  pipeline.work = [&](std::span<LinePart* const> parts, Arena& arena) {
    const size_t step = parts.front()->step;
    steps.translator(step).translate(parts, steps.options(step), unused, arena);
  };
  pipeline.write = [&](Line&& line) {
    const int64_t number = line.number;
    Translation translation = lines.take(line);
    report_translation(translation, number, options);
    write(std::move(translation));
  };
  pipeline.progress = options.on_progress;
  int64_t most = 1;
  for (size_t step = 0; step < steps.count(); step++) most = std::max(most, hypotheses_at_once(steps.options(step)));
  const ArenaPool::Lease lease(translators_.front().state_->arenas, worker_count(options.workers));
  run_pipeline(pipeline, {std::max<int64_t>(1, options.batch_tokens / most), options.window, false}, lease.arenas());
}

}  // namespace qkv
