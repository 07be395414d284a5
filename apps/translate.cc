// qkv translate: translates lines as they arrive.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "commands.h"
#include "line_reader.h"
#include "qkv/error.h"
#include "qkv/translator.h"
#include "translation_output.h"

namespace {

struct TranslateOptions {
  std::string run, input = "-", prefix, prefixes, targets;
  std::vector<std::string> ensemble;
  qkv::TranslateOptions translate;
  OutputForm form;
  bool no_alignment = false;
  bool targets_are_tokens = false;
};

// Shows progress on a terminal, unless the output goes there too.
class Progress {
 public:
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void report(const std::string& text) const { fmt::print(stderr, "{}qkv: {}\n", shown_ ? "\r\033[K" : "", text); }
  void add(int64_t lines) {
    done_ += lines;
    const Clock::time_point now = Clock::now();
    if (!terminal_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    fmt::print(stderr, "\r{} lines, {:.1f} per second\033[K", done_, static_cast<double>(done_) / seconds);
    shown_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_ = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  int64_t done_ = 0;
  bool shown_ = false;
};

// Reads the line of `other` that belongs to the last line of `lines`.
void read_matching(LineReader& other, const LineReader& lines, std::string& line) {
  if (other.next(line, true) != qkv::Next::line)
    throw qkv::Error(fmt::format("{}: has {} lines, {} has more", other.name(), other.lines(), lines.name()));
}

void check_ended(LineReader& other, const LineReader& lines) {
  std::string line;
  if (other.next(line, true) == qkv::Next::line)
    throw qkv::Error(
        fmt::format("{}: has more lines than {}, which has {}", other.name(), lines.name(), lines.lines()));
}

void translate(TranslateOptions options) {
  const qkv::Translator translator(options.run, options.ensemble);
  LineReader lines(options.input);
  std::optional<LineReader> prefixes;
  if (!options.prefixes.empty()) prefixes.emplace(options.prefixes);
  listen_for_interrupts();
  Progress progress;
  options.translate.on_note = [&](const std::string& note) { progress.report(note); };
  options.translate.on_progress = [&](int64_t done) {
    if (done > 0) flush_out();
    progress.add(done);
    stop_if_interrupted();
  };
  const auto read = [&](qkv::SourceLine& line, bool wait) {
    const qkv::Next next = lines.next(line.text, wait);
    line.prefix = options.prefix;
    if (next == qkv::Next::line && prefixes) read_matching(*prefixes, lines, line.prefix);
    if (next == qkv::Next::end && prefixes) check_ended(*prefixes, lines);
    return next;
  };
  int64_t number = 0;
  translator.translate(
      read, [&](qkv::Translation&& t) { print_out(output_lines(t, number++, options.form)); }, options.translate);
  flush_out();
}

std::vector<std::string> split_at_spaces(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

// Scores given targets, kLines at a time.
void score(const TranslateOptions& options) {
  constexpr size_t kLines = 4096;
  const qkv::Translator translator(options.run, options.ensemble);
  LineReader lines(options.input), targets(options.targets);
  listen_for_interrupts();
  int64_t number = 0;
  for (bool ended = false; !ended; stop_if_interrupted()) {
    std::vector<std::string> source_lines, target_lines;
    std::vector<std::vector<std::string>> target_tokens;
    std::string source, target;
    while (source_lines.size() < kLines) {
      ended = lines.next(source, true) == qkv::Next::end;
      if (ended) break;
      read_matching(targets, lines, target);
      source_lines.push_back(source);
      target_lines.push_back(target);
      if (options.targets_are_tokens) target_tokens.push_back(split_at_spaces(target));
    }
    try {
      for (const qkv::Translation& t : options.targets_are_tokens
                                           ? translator.score_tokens(source_lines, target_tokens, options.translate)
                                           : translator.score(source_lines, target_lines, options.translate))
        print_out(output_lines(t, number++, options.form));
    } catch (const qkv::Error& error) {
      if (number == 0) throw;
      throw qkv::Error(fmt::format("after line {}: {}", number, error.what()));
    }
  }
  check_ended(targets, lines);
  flush_out();
}

void add_search_options(CLI::App& command, qkv::TranslateOptions& o) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->capture_default_str()->group("Search");
  };
  add("--beam", o.beam, "Hypotheses kept a step; 1 is greedy search")->check(CLI::Range(1, 1024));
  add("--n-best", o.n_best, "Hypotheses printed: at most the beam, or any number of samples")
      ->check(CLI::Range(1, 1024));
  add("--length-penalty", o.length_penalty, "Exponent of the length in a score; 0 is the sum of log p");
  add("--coverage-penalty", o.coverage_penalty, "Weight of source tokens that were not looked at");
  add("--min-length", o.min_length, "Tokens of a translation, at least")->check(CLI::Range(0, 1 << 24));
  add("--max-length", o.max_length, "Tokens of a translation, its end included; 0 is twice the source's and 16")
      ->check(CLI::Range(0, 1 << 24));
  add("--repetition-penalty", o.repetition_penalty, "Multiplies log p of tokens that were said before");
  add("--no-repeat-ngram", o.no_repeat_ngram, "No run of so many tokens comes twice")->check(CLI::Range(0, 1 << 24));
  CLI::Option* sampling =
      command.add_flag("--sampling", o.sampling, "Draw tokens at random, --n-best times")->group("Search");
  add("--temperature", o.temperature, "Draw from p^(1/temperature)")->needs(sampling);
  add("--top-k", o.top_k, "Draw from so many of the most probable tokens; 0 is all")
      ->needs(sampling)
      ->check(CLI::Range(0, 1 << 24));
  add("--top-p", o.top_p, "Draw from the fewest tokens that have this probability together")->needs(sampling);
  add("--seed", o.seed, "Of the draws, which depend on it and the sentence alone")->needs(sampling);
}

void add_output_options(CLI::App& command, TranslateOptions& o) {
  const auto flag = [&](const char* name, auto& value, const char* help) {
    return command.add_flag(name, value, help)->group("Output");
  };
  flag("--json", o.form.json, "An object a line: source, hypotheses with text, tokens, scores, alignment");
  flag("--scores", o.form.scores, "Print scores");
  flag("--word-scores", o.form.word_scores, "Print log p of every word");
  flag("--alignment", o.form.alignment, "Print SOURCE-TARGET tokens (default with --json)");
  flag("--no-alignment", o.no_alignment, "With --json: none");
  flag("--attention", o.translate.attention, "With --json: the weights of every target token");
  flag("--replace-unknown", o.translate.replace_unknown, "Put the aligned source word in the place of an unknown one");
  command.add_option("--attention-layer", o.translate.attention_layer, "Decoder layer, from 1 (default: the last)")
      ->check(CLI::Range(1, 1000))
      ->group("Output");
  command.add_option("--attention-head", o.translate.attention_head, "Head, from 1")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group("Output");
}

}  // namespace

void add_translate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("translate", "Translate standard input, line by line");
  const auto options = std::make_shared<TranslateOptions>();
  command->add_option("run", options->run, "Run directory")->required();
  command->add_option("--input", options->input, "File of sentences, one a line; - is standard input")
      ->capture_default_str();
  command->add_option("--ensemble", options->ensemble, "Run whose probabilities are averaged with the first's")
      ->expected(1)
      ->take_all();
  CLI::Option* prefix = command->add_option("--prefix", options->prefix, "What every translation begins with");
  CLI::Option* prefixes =
      command->add_option("--prefix-file", options->prefixes, "What each translation begins with, one a line");
  prefix->excludes(prefixes);
  command->add_flag("--alternatives", options->translate.alternatives,
                    "Print --n-best ways to go on from the prefix with different tokens");
  CLI::Option* targets =
      command
          ->add_option("--score", options->targets, "Score the targets in this file, one a line, and search for none")
          ->excludes(prefix)
          ->excludes(prefixes);
  command->add_flag("--tokens", options->targets_are_tokens, "Those targets are tokens with spaces between them")
      ->needs(targets);
  add_search_options(*command, options->translate);
  add_output_options(*command, *options);
  command->add_option("--batch-tokens", options->translate.batch_tokens, "Source tokens times beam at one time")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command->add_option("--window", options->translate.window, "Lines that are sorted by length at one time")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("--workers", options->translate.workers, "Batches translated side by side; they share the threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([options] {
    options->form.alignment = (options->form.alignment || options->form.json) && !options->no_alignment;
    options->translate.alignment = options->form.alignment;
    options->form.attention = options->translate.attention;
    options->form.n_best = options->translate.n_best > 1;
    options->form.scores |= !options->targets.empty();
    options->targets.empty() ? translate(*options) : score(*options);
  });
}
