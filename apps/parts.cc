#include "parts.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "commands.h"
#include "qkv/error.h"
#include "signals.h"

namespace {

// Returns I and N of "I/N"; 0, 0 if the text is not of this form with 1 ≤ I ≤ N.
std::pair<int64_t, int64_t> parse_worker(std::string_view text) {
  int64_t worker = 0, workers = 0;
  const char* const end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, worker);
  if (error != std::errc() || slash == end || *slash != '/') return {};
  const auto [last, second_error] = std::from_chars(slash + 1, end, workers);
  if (second_error != std::errc() || last != end || worker < 1 || worker > workers) return {};
  return {worker, workers};
}

std::string worker_error(const std::string& text) {
  return parse_worker(text).first > 0 ? "" : fmt::format("must be I/N with I from 1 to N, such as 3/8 (is {})", text);
}

// Lets the work report, and stop after Ctrl-C.
void work_on(const qkv::PartWork& work, qkv::LineReader& lines, qkv::LineOutput& output) {
  output.note = [&](const std::string& text) { print_error("qkv: {}: {}\n", lines.name(), text); };
  output.progress = [](int64_t) { stop_if_interrupted(); };
  work(lines, output);
}

}  // namespace

void add_parts_options(CLI::App& command, PartsOptions& options, const std::vector<std::string>& others) {
  CLI::Option* in =
      command.add_option("--in", options.in, "Folder whose files are the input, each with its own output");
  CLI::Option* out = command.add_option(
      "--out", options.out, "Folder of the outputs, which have the names of the inputs; those that exist are kept");
  CLI::Option* worker = command.add_option("--worker", options.worker,
                                           "Do every N-th file only, from the I-th one on, in the order of names");
  options.in_option = in;
  in->type_name("FOLDER")->needs(out);
  out->type_name("FOLDER")->needs(in);
  worker->type_name("I/N")->needs(in)->check(CLI::Validator(worker_error, ""))->default_str("1/1");
  for (CLI::Option* option : {in, out, worker}) option->group("Many files");
  for (const std::string& other : others) in->excludes(command.get_option(other));
}

PartsJob::PartsJob(const PartsOptions& options, const std::string& suffix) : folders_(options.in, options.out, suffix) {
  const auto [worker, workers] = parse_worker(options.worker);
  names_ = folders_.names(worker, workers);
}

void PartsJob::run(const qkv::PartWork& work) {
  listen_for_interrupts();
  folders_.remove_leftovers();
  size_t counts[3] = {}, number = 0;
  for (const std::string& name : names_) {
    stop_if_interrupted();
    const qkv::PartReport report =
        folders_.run(name, [&](qkv::LineReader& lines, qkv::LineOutput& output) { work_on(work, lines, output); });
    number++;
    counts[static_cast<size_t>(report.state)]++;
    if (report.state == qkv::PartState::written)
      print_error("{} of {}: {}, {} lines\n", number, names_.size(), folders_.shown(name), report.lines);
    if (report.state == qkv::PartState::failed) print_error("qkv: {}\n", report.error);
  }
  folders_.remove_leftovers();
  const auto [written, present, failed] = counts;
  print_error("{} parts: {} written, {} present, {} failed\n", names_.size(), written, present, failed);
  if (failed > 0) throw qkv::Error(fmt::format("{} of {} parts failed", failed, names_.size()));
}
