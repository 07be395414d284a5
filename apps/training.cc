#include "training.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "help.h"
#include "options.h"
#include "qkv/error.h"
#include "signals.h"
#include "terminal.h"

namespace {

std::string duration(double seconds) {
  const long s = static_cast<long>(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

// Returns ":{adam,adamw}", the accepted words as a part of the type; "" if others are accepted, too.
std::string words_of(const qkv::RecipeOption& option) {
  if (option.type != qkv::RecipeOption::Type::choice) return "";
  std::string words = option.accepted;
  std::erase(words, ' ');
  return ":{" + words + "}";
}

// Shows progress: a bar that is redrawn on a terminal, otherwise a new line every 10 seconds.
class ProgressLine {
 public:
  // unit: of the speed.
  ProgressLine(const qkv::TrainingConfig& limits, const std::string& unit)
      : limits_(limits), unit_(unit), terminal_(rewrites_lines()) {}

  void message(const std::string& line) {
    clear();
    print_error("{}\n", line);
  }

  void step(const qkv::StepReport& r) {
    tokens_ += static_cast<double>(r.target_tokens);
    if (first_seconds_ < 0) first_seconds_ = r.seconds, first_step_ = r.step, epoch_ = r.epoch, tokens_ = 0;
    if (r.epoch != epoch_) epoch_ = r.epoch, epoch_steps_ = (r.step - 1) / std::max<int64_t>(1, r.epoch - 1);
    const double since = r.seconds - shown_;
    if (shown_ >= 0 && since < (terminal_ ? 0.2 : 10.0)) return;
    shown_ = r.seconds;
    const double elapsed = r.seconds - first_seconds_;
    const double speed = elapsed > 0 ? tokens_ / elapsed : r.tokens_per_second;
    std::string line = fmt::format("step {}  epoch {}  loss {:.3f}  lr {:.2e}  {:.0f} {}/s  {}{}", r.step, r.epoch,
                                   r.loss, r.learning_rate, speed, unit_, duration(r.seconds), eta(r, elapsed));
    if (terminal_) {
      if (const double done = fraction(r); done >= 0) line = progress_bar(done) + "  " + line;
      line.resize(std::min(line.size(), terminal_width() - 1));
      print_error("\r{}\033[K", line);
      drawn_ = true;
    } else {
      print_error("{}\n", line);
    }
  }

  void evaluation(const qkv::EvaluationReport& r) {
    std::string line = fmt::format("step {}  dev:", r.step);
    for (const auto& c : r.candidates) {
      line += "  " + c.name;
      for (const auto& m : c.measures) line += fmt::format(" {} {:.{}f}", m.name, m.value, m.digits);
    }
    if (r.improved) line += "  (best so far: " + r.best + ")";
    message(line + baselines(r));
  }

  void clear() {
    if (drawn_) print_error("\r\033[K");
    drawn_ = false;
  }

 private:
  // Returns "  | popularity 0.0123 markov 0.0561": the first measure of the baselines.
  static std::string baselines(const qkv::EvaluationReport& r) {
    std::string text;
    for (const auto& b : r.baselines)
      text += fmt::format(" {} {:.{}f}", b.name, b.measures[0].value, b.measures[0].digits);
    return text.empty() ? text : "  |" + text;
  }

  // The steps until the limit of steps or of epochs; 0 without one, or before the length of an epoch is known.
  int64_t total_steps(const qkv::StepReport& r) const {
    const int64_t of_epochs = epoch_steps_ * r.max_epochs;
    return r.max_steps > 0 && of_epochs > 0 ? std::min(r.max_steps, of_epochs) : std::max(r.max_steps, of_epochs);
  }

  // The part of training that is done, by the limit that comes first; −1 without a limit.
  double fraction(const qkv::StepReport& r) const {
    double done = -1;
    if (const int64_t total = total_steps(r); total > 0)
      done = static_cast<double>(r.step) / static_cast<double>(total);
    return limits_.max_minutes > 0 ? std::max(done, r.seconds / (60 * limits_.max_minutes)) : done;
  }

  // The time until the first limit of steps or minutes.
  std::string eta(const qkv::StepReport& r, double elapsed) const {
    double left = -1;
    const double steps = static_cast<double>(r.step - first_step_);
    if (const int64_t total = total_steps(r); total > 0 && steps > 0)
      left = elapsed / steps * static_cast<double>(std::max<int64_t>(0, total - r.step));
    if (limits_.max_minutes > 0) {
      const double minutes_left = 60 * limits_.max_minutes - r.seconds;
      left = left < 0 ? minutes_left : std::min(left, minutes_left);
    }
    return left < 0 ? "" : ", " + duration(left) + " left";
  }

  const qkv::TrainingConfig limits_;
  const std::string unit_;
  bool terminal_, drawn_ = false;
  double shown_ = -1, first_seconds_ = -1, tokens_ = 0;
  int64_t first_step_ = 0, epoch_ = 0, epoch_steps_ = 0;
};

// Returns "bleu 34.20, loss 2.310": the measures of the best candidate; "" if there is none.
std::string best_measures(const qkv::EvaluationReport& r) {
  std::vector<std::string> texts;
  for (const auto& candidate : r.candidates)
    if (candidate.name == r.best)
      for (const auto& m : candidate.measures) texts.push_back(fmt::format("{} {:.{}f}", m.name, m.value, m.digits));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Reports where the model is, how good it is and how it is used.
void print_summary(const TrainedRun& run, const qkv::EvaluationReport& best) {
  std::string text = fmt::format("model: {}", run.out);
  if (best.step > 0) text += fmt::format(" (best at step {}: {})", best.step, best_measures(best));
  print_error("{}\nnext:  {}\n       qkv plot {}\n", text, run.next, run.out);
}

void print_best(const TrainedRun& run, const qkv::EvaluationReport& best) {
  nlohmann::ordered_json json = {{"run", run.out}, {"best_step", nullptr}, {"dev", nullptr}};
  if (best.step > 0) json["best_step"] = best.step;
  for (const auto& candidate : best.candidates)
    if (candidate.name == best.best)
      for (const auto& m : candidate.measures) json["dev"][m.name] = m.value;
  write_json_line(json);
}

}  // namespace

void RecipeOptions::add_preset(CLI::App& command, const std::string& option, const std::string& preset,
                               const std::string& names) {
  preset_ = preset;
  command.add_option(option, preset_, names)->type_name("NAME")->capture_default_str();
  add_config(command);
}

void RecipeOptions::add_config(CLI::App& command) {
  command.add_option("--config", config_, "JSON file with values of options, by their names in training.json")
      ->type_name("FILE");
}

void RecipeOptions::add_options(CLI::App& command, const std::string& preset, const std::string& names,
                                const std::vector<qkv::RecipeOption>& values) {
  add_preset(command, "--preset", preset, "Preset of all options below: " + names);
  command.footer(fmt::format("Defaults are those of --preset {}.", preset));
  add_values(command, values);
}

void RecipeOptions::add_options(CLI::App& command, const std::vector<qkv::RecipeOption>& values) {
  add_config(command);
  add_values(command, values);
}

void RecipeOptions::add_values(CLI::App& command, const std::vector<qkv::RecipeOption>& values) {
  for (const qkv::RecipeOption& o : values) {
    const bool is_flag = o.type == qkv::RecipeOption::Type::boolean;  // --lowercase alone means true
    const bool is_list = o.type == qkv::RecipeOption::Type::list || o.type == qkv::RecipeOption::Type::integers;
    CLI::Option* option = command.add_option_function<std::string>(flag_of(o.name), [](const std::string&) {});
    describe(*option, {o.help, is_flag ? "true or false" : o.accepted, o.value, o.group, o.common});
    option->type_name(is_flag ? "" : is_list ? "LIST" : "VALUE" + words_of(o))->expected(is_flag ? 0 : 1, 1);
    is_list ? option->take_all() : option->take_last();
    options_.emplace_back(o.name, option);
  }
}

CLI::Option* RecipeOptions::option(const std::string& name) const {
  const auto is_it = [&](const auto& entry) { return entry.first == name; };
  return std::find_if(options_.begin(), options_.end(), is_it)->second;
}

qkv::RecipeValues RecipeOptions::given() const {
  qkv::RecipeValues values;
  for (const auto& [name, option] : options_) {
    if (option->count() == 0) continue;
    const bool is_list = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    const std::string value = option->results().empty() ? ""
                              : is_list                 ? fmt::format("{}", fmt::join(option->results(), ","))
                                                        : option->results().back();
    values.emplace_back(name, value.empty() ? "true" : value);
  }
  return values;
}

void add_rank_options(CLI::App& command, qkv::RankOptions& ranks) {
  ranks.distributed = qkv::Distributed::automatic;
  ranks.on_abort = [](const std::string& line) { print_error("qkv: {}\n", line); };
  command
      .add_option(
          "--distributed", ranks.distributed,
          "Processes that train one run, each started with this command: as the launcher says (auto), by MPI, on "
          "one machine (local), or this one only (off) [default auto]")
      ->transform(choices<qkv::Distributed>())
      ->type_name("auto, mpi, local, off")
      ->group("Processes");
  command
      .add_option("--rank-timeout", ranks.timeout,
                  "Seconds without a sign of life after which a process counts as dead [default 120]")
      ->check(CLI::Range(1.0, 86400.0))
      ->type_name("SECONDS")
      ->group("Processes");
}

void add_json_option(CLI::App& command, TrainedRun& run) {
  command.add_flag("--json", run.json, "Print the best evaluation of this call as JSON at the end")->group("Output");
}

void show_training(const TrainedRun& run, const qkv::TrainingConfig& limits,
                   const std::function<bool(const qkv::TrainingObserver&)>& train) {
  qkv::EvaluationReport best;
  ProgressLine progress(limits, run.unit);
  qkv::TrainingObserver observer;
  bool reports = false;  // other processes of the run are silent
  observer.on_message = [&](const std::string& line) {
    reports = true;
    progress.message(line);
  };
  observer.on_step = [&](const qkv::StepReport& r) {
    end_at_once(nullptr);
    progress.step(r);
  };
  observer.on_evaluation = [&](const qkv::EvaluationReport& r) {
    progress.evaluation(r);
    if (r.improved) best = r;
  };
  observer.should_stop = [] {
    end_at_once(nullptr);  // several ranks ask this when they have joined
    return interrupted();
  };
  end_at_once("qkv: stopped before the first step, with nothing to save; repeat the command\n");
  listen_for_interrupts();
  listen_for_closed_pipes();
  bool ended = false;
  try {
    ended = train(observer);
  } catch (...) {
    progress.clear();
    throw;
  }
  progress.clear();
  if (!ended) throw interruption();
  if (!reports) return;
  print_summary(run, best);
  if (run.json) print_best(run, best);
}
