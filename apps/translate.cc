// qkv translate: translates lines of text as they arrive, or scores given targets.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "commands.h"
#include "count_line.h"
#include "default_options.h"
#include "documents.h"
#include "options.h"
#include "parts.h"
#include "program/lines/jobs.h"
#include "qkv/error.h"
#include "qkv/pivot.h"
#include "signals.h"
#include "terminal.h"
#include "untranslated_report.h"

namespace {

struct TranslateOptions {
  std::vector<std::string> runs;  // several: a chain
  std::string input = "-", prefix, prefixes, targets, glossary, report;
  std::vector<std::string> ensemble, pivot_languages;
  qkv::TranslateOptions translate;
  qkv::Placement placement;
  std::vector<qkv::TranslateOptions> steps = {};  // of each run
  qkv::TranslationForm form;
  PartsOptions parts;
  DocumentsOptions documents;
  bool no_alignment = false;
  bool targets_are_tokens = false;
};

// Loads the runs, and sets the languages of each in its options.
qkv::PivotTranslator load(TranslateOptions& options) {
  std::vector<qkv::Translator> translators;
  for (const std::string& run : options.runs) translators.emplace_back(run, options.ensemble, options.placement);
  qkv::PivotTranslator chain(std::move(translators));
  if (options.runs.size() > 1) chain.set_languages(options.steps, options.pivot_languages);
  return chain;
}

// Reads the line of `other` that belongs to the line just read from `lines`.
void next_paired(qkv::LineReader& other, const qkv::LineReader& lines, std::string& line) {
  if (other.next(line, true) != qkv::Next::line)
    throw qkv::Error(fmt::format("{} has {} lines, fewer than {}", other.name(), other.lines(), lines.name()));
}

void check_ended(qkv::LineReader& other, const qkv::LineReader& lines) {
  std::string line;
  if (other.next(line, true) == qkv::Next::line)
    throw qkv::Error(fmt::format("{} has more lines than {} ({})", other.name(), lines.name(), lines.lines()));
}

void translate(TranslateOptions& options) {
  const qkv::PivotTranslator translator = load(options);
  qkv::LineReader lines(options.input, stop_if_interrupted);
  std::optional<qkv::LineReader> prefixes;
  if (!options.prefixes.empty()) prefixes.emplace(options.prefixes, stop_if_interrupted);
  listen_for_interrupts();
  CountLine progress("lines", "", rewrites_lines() && isatty(STDOUT_FILENO) == 0);
  qkv::LineOutput output{print_out};
  output.note = [&](const std::string& note) {
    progress.clear();
    print_error("qkv: {}\n", note);
  };
  output.progress = [&](int64_t done) {
    if (done > 0) flush_out();
    progress.add(done);
    stop_if_interrupted();
  };
  const auto read = [&](qkv::SourceLine& line, bool wait) {
    const qkv::Next next = lines.next(line.text, wait);
    line.prefix = options.prefix;
    if (next == qkv::Next::line && prefixes) next_paired(*prefixes, lines, line.prefix);
    if (next == qkv::Next::end && prefixes) check_ended(*prefixes, lines);
    return next;
  };
  UntranslatedReport report(options.report);
  report.listen(options.steps.front());
  qkv::translate_lines(translator, read, options.steps, options.form, output);
  flush_out();
  report.commit();
}

void translate_parts(TranslateOptions& options) {
  PartsJob job(options.parts);
  const qkv::PivotTranslator translator = load(options);
  translator.translate(std::vector<std::string>(), options.steps);  // checks the options
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    const auto read = [&](qkv::SourceLine& line, bool wait) {
      line.prefix = options.prefix;
      return lines.next(line.text, wait);
    };
    qkv::translate_lines(translator, read, options.steps, options.form, output);
  });
}

void translate_documents(TranslateOptions& options) {
  const qkv::PivotTranslator translator = load(options);
  UntranslatedReport report(options.report);
  translate_documents(translator, options.documents, options.parts.out, options.steps, report);
}

std::vector<std::string> split_at_spaces(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

// Scores given targets, a few thousand lines at a time.
void score(const TranslateOptions& options) {
  constexpr size_t kLines = 4096;
  const qkv::Translator translator(options.runs.front(), options.ensemble);
  qkv::LineReader lines(options.input, stop_if_interrupted), targets(options.targets, stop_if_interrupted);
  listen_for_interrupts();
  int64_t number = 0;
  for (bool ended = false; !ended; stop_if_interrupted()) {
    std::vector<std::string> source_lines;
    std::vector<qkv::Target> target_lines;
    std::string source, target;
    while (source_lines.size() < kLines) {
      ended = lines.next(source, true) == qkv::Next::end;
      if (ended) break;
      next_paired(targets, lines, target);
      source_lines.push_back(source);
      if (options.targets_are_tokens)
        target_lines.emplace_back(split_at_spaces(target));
      else
        target_lines.emplace_back(target);
    }
    try {
      for (const qkv::Translation& t : translator.score(source_lines, target_lines, options.steps.front()))
        print_out(qkv::translation_lines(t, number++, options.form));
    } catch (const qkv::Error& error) {
      if (number == 0) throw;
      throw qkv::Error(fmt::format("after line {}: {}", number, error.what()));
    }
  }
  check_ended(targets, lines);
  flush_out();
}

// Throws CLI::ValidationError for an option that a chain of runs cannot have, and for one that it needs.
void check_chain(const CLI::App& command, const TranslateOptions& options) {
  const bool is_chain = options.runs.size() > 1;
  for (const char* name : {"--ensemble", "--score", "--glossary", "--attention"})
    if (is_chain && command.get_option(name)->count() > 0)
      throw CLI::ValidationError(name, "cannot be combined with several runs");
  if (!is_chain && !options.pivot_languages.empty())
    throw CLI::ValidationError("--pivot-language", "requires several runs");
}

// Returns the options of each run: those that are given, and its own values of the others.
std::vector<qkv::TranslateOptions> options_of_runs(const CLI::App& command, const TranslateOptions& options) {
  std::vector<qkv::TranslateOptions> all;
  for (const std::string& run : options.runs) {
    all.push_back(options.translate);
    take_defaults(command, all.back(), qkv::default_translate_options(run));
    all.back().alignment = options.translate.alignment;
  }
  return all;
}

// Adds the runs, the text, and what a chain or an ensemble of runs needs.
void add_run_options(CLI::App& command, TranslateOptions& o) {
  command.add_option("run", o.runs, "Run directory; further ones translate what the one before has translated")
      ->required();
  command.add_option("--input", o.input, "Text to translate, line by line; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command
      .add_option("--ensemble", o.ensemble,
                  "Further run directory whose probabilities are averaged with the first; may be repeated")
      ->type_name("RUN")
      ->expected(1)
      ->take_all();
  command
      .add_option("--pivot-language", o.pivot_languages,
                  "Language of the text between two runs, for models with several; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
}

// Adds the options of prefixes, and of targets, which exclude them.
void add_given_text_options(CLI::App& command, TranslateOptions& o) {
  CLI::Option* prefix = command.add_option("--prefix", o.prefix, "Begin every translation with this text");
  CLI::Option* prefixes =
      command.add_option("--prefix-file", o.prefixes, "Begin each translation with the text on its line of this file")
          ->type_name("FILE");
  prefix->excludes(prefixes);
  CLI::Option* report =
      command
          .add_option("--report", o.report,
                      "Write sentences whose translations look incomplete to this file, a JSON object for each")
          ->type_name("FILE");
  CLI::Option* targets =
      command.add_option("--score", o.targets, "Score the targets in this file, one per line, do not search")
          ->type_name("FILE")
          ->excludes(prefix)
          ->excludes(prefixes)
          ->excludes(report);
  command.add_flag("--tokens", o.targets_are_tokens, "The targets of --score are tokens separated by spaces")
      ->needs(targets);
}

// Adds the options of translation. Those of sampling require --sampling.
void add_translate_options(CLI::App& command, TranslateOptions& o) {
  add_options(command, o.translate, {"alignment", "glossary"});  // --json turns the first on, and the second has a file
  add_options(command, o.placement);
  command.get_option("--device")->excludes(command.get_option("--score"));  // the CPU scores given texts
  require_sampling(command);
  command
      .add_option("--glossary", o.glossary,
                  "Terms that translations must have: lines of a source term, a tab and its translation, or several, "
                  "separated by |")
      ->type_name("FILE")
      ->excludes(command.get_option("--score"));
}

void add_output_options(CLI::App& command, TranslateOptions& o) {
  const auto flag = [&](const char* name, auto& value, const char* help) {
    return command.add_flag(name, value, help)->group("Output");
  };
  flag("--json", o.form.json, "Print one JSON object per line: source, hypotheses, tokens, scores, alignment")
      ->group("Options");
  flag("--scores", o.form.scores, "Print the score of each hypothesis")->group("Options");
  flag("--word-scores", o.form.word_scores, "Print the log-probability of each word");
  flag("--alignment", o.form.alignment, "Print pairs SOURCE-TARGET of aligned tokens (default with --json)");
  flag("--no-alignment", o.no_alignment, "Do not print the alignment with --json");
}

// Completes the options with those of each run, and with what the output contains.
void complete(const CLI::App& command, TranslateOptions& o) {
  check_chain(command, o);
  if (o.glossary == "-") throw qkv::Error("glossary: must be a file (is -)");
  if (!o.glossary.empty()) o.translate.glossary = qkv::read_glossary(o.glossary);
  o.translate.alignment = (o.form.alignment || o.form.json) && !o.no_alignment;
  o.steps = options_of_runs(command, o);
  const qkv::TranslationForm given = o.form;
  o.form = qkv::form_of(o.steps.back(), given.json);
  o.form.word_scores = given.word_scores;
  o.form.scores = given.scores || !o.targets.empty();
}

void run(TranslateOptions& o) {
  const bool has_out = !o.parts.out.empty();
  if (has_out && !o.parts.given() && !o.documents.given()) throw CLI::RequiresError("--out", "--in or --document");
  if (o.documents.given() && !has_out) throw CLI::RequiresError("--document", "--out");
  if (o.documents.given()) return translate_documents(o);
  if (o.parts.given()) return translate_parts(o);
  o.targets.empty() ? translate(o) : score(o);
}

}  // namespace

void add_translate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("translate", "Translate lines of text");
  const auto options = std::make_shared<TranslateOptions>();
  add_run_options(*command, *options);
  add_given_text_options(*command, *options);
  add_translate_options(*command, *options);
  add_output_options(*command, *options);
  add_parts_options(*command, options->parts, {"--input", "--prefix-file", "--score", "--report"});
  add_documents_options(*command, options->documents,
                        {"--in", "--input", "--prefix", "--prefix-file", "--score", "--json", "--scores",
                         "--word-scores", "--alignment", "--n-best", "--alternatives", "--attention"});
  add_threads_option(*command);
  command->callback([options, command] {
    complete(*command, *options);
    run(*options);
  });
}
