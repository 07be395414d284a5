// qkv recommend: recommends the next items after a history, or answers JSON requests as they arrive.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "commands.h"
#include "line_reader.h"
#include "qkv/error.h"
#include "qkv/text.h"
#include "recommend_output.h"

namespace {

struct RecommendOptions {
  std::string run, history, history_file, user, titles, allow, deny, input = "-";
  std::vector<std::string> items, title_columns;
  const CLI::Option* history_option = nullptr;
  qkv::RecommendOptions recommend;
  bool include_seen = false, json = false;

  bool asks() const { return history_option->count() > 0 || !history_file.empty() || !user.empty() || !items.empty(); }
};

void note(const std::string& text) { fmt::print(stderr, "qkv: {}\n", text); }

qkv::Titles read_titles(const RecommendOptions& options, const qkv::Recommender& recommender) {
  const auto is_item = [&](std::string_view name) { return recommender.has_item(name); };
  return options.titles.empty() ? qkv::Titles(is_item) : qkv::Titles(options.titles, options.title_columns, is_item);
}

// Reads a file with one item per line, and reports how many are unknown.
std::vector<std::string> read_items(const std::string& path, const qkv::Recommender& recommender,
                                    const qkv::Titles& titles) {
  std::vector<std::string> items = items_of(qkv::read_lines(path), titles);
  std::vector<std::string> unknown;
  for (const std::string& item : items)
    if (!recommender.has_item(item)) unknown.push_back(item);
  if (!unknown.empty())
    note(fmt::format("{}: {} items are unknown to the model, the first is \"{}\"", path, unknown.size(), unknown[0]));
  return items;
}

void answer_one(const RecommendOptions& options, const qkv::Recommender& recommender, const qkv::Titles& titles) {
  RecommendRequest request;
  request.options = std::make_shared<qkv::RecommendOptions>(options.recommend);
  for (const std::string& text : titles.split(options.history)) add_item(request, text, titles);
  if (!options.history_file.empty())
    for (const std::string& text : qkv::read_lines(options.history_file)) add_item(request, text, titles);
  for (const std::string& text : options.items) add_item(request, text, titles);
  if (!options.user.empty()) add_user(request, options.user, recommender);
  const qkv::Recommendations answer = recommender.recommend(request.history, *request.options, request.times);
  for (const std::string& line : notes(request, answer, titles)) note(line);
  print_out(options.json ? json_line(request, answer, titles) : text_lines(answer, titles));
}

// Answers lines in order. Requests that have arrived and have the same options are answered together.
class LineAnswers {
 public:
  LineAnswers(const RecommendOptions& options, const qkv::Recommender& recommender, const qkv::Titles& titles)
      : options_(std::make_shared<qkv::RecommendOptions>(options.recommend)),
        recommender_(recommender),
        titles_(titles),
        lines_(options.input) {}

  void answer_all() {
    std::string line;
    while (true) {
      qkv::Next next = lines_.next(line, waiting_.empty());
      if (next == qkv::Next::line) take(line);
      if (next != qkv::Next::line || waiting_.size() == kTogether || bytes_ > kBytesTogether) answer();
      if (next == qkv::Next::end) return;
      stop_if_interrupted();
    }
  }

 private:
  static constexpr size_t kTogether = 256, kBytesTogether = size_t{1} << 24;

  void take(const std::string& line) {
    std::optional<RecommendRequest> request;
    nlohmann::ordered_json id;
    std::string error;
    try {
      request = request_of_line(line, options_, recommender_, titles_, id);
    } catch (const qkv::Error& refused) {
      error = json_error(id, fmt::format("line {}: {}", lines_.lines(), refused.what()));
    }
    if (!request || !asks_like_those(*request)) answer();
    if (request)
      waiting_.push_back(std::move(*request));
    else
      print_out(error);
    bytes_ += line.size();
  }

  bool asks_like_those(const RecommendRequest& request) const {
    if (waiting_.empty()) return true;
    const auto& options = waiting_.front().options;
    return options == request.options || *options == *request.options;
  }

  void answer() {
    std::vector<std::vector<std::string>> histories;
    std::vector<std::vector<int64_t>> times;
    for (RecommendRequest& request : waiting_) {
      histories.push_back(std::move(request.history));
      times.push_back(std::move(request.times));
    }
    if (!waiting_.empty()) {
      const auto answers = recommender_.recommend_all(histories, *waiting_.front().options, times);
      for (size_t i = 0; i < answers.size(); i++) print_out(json_line(waiting_[i], answers[i], titles_));
    }
    waiting_.clear();
    bytes_ = 0;
    flush_out();
  }

  const std::shared_ptr<const qkv::RecommendOptions> options_;
  const qkv::Recommender& recommender_;
  const qkv::Titles& titles_;
  LineReader lines_;
  std::vector<RecommendRequest> waiting_;
  size_t bytes_ = 0;  // of the waiting lines
};

void recommend(RecommendOptions& options) {
  const qkv::Recommender recommender(options.run);
  const qkv::Titles titles = read_titles(options, recommender);
  options.recommend.exclude_seen = !options.include_seen;
  if (!options.allow.empty()) options.recommend.allow = read_items(options.allow, recommender, titles);
  if (!options.deny.empty()) options.recommend.deny = read_items(options.deny, recommender, titles);
  if (options.asks()) return answer_one(options, recommender, titles);
  listen_for_interrupts();
  LineAnswers(options, recommender, titles).answer_all();
}

}  // namespace

void add_recommend_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("recommend", "The next items after a history; without one, answer JSON lines");
  const auto options = std::make_shared<RecommendOptions>();
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help);
  };
  add("run", options->run, "Run directory")->required();
  options->history_option = add("--history", options->history,
                                "Items in time order, the last one is the newest: ids or titles between commas")
                                ->group("History");
  add("--item", options->items, "One more item, an id or a title; as often as there are")
      ->expected(1)
      ->take_all()
      ->group("History");
  add("--history-file", options->history_file, "Items in time order, one a line")->group("History");
  add("--user", options->user, "The events of this user of the log; those above come after them")->group("History");
  add("--input", options->input, "Without any of these: requests, a JSON object a line; - is standard input")
      ->capture_default_str()
      ->group("History");
  add("--titles", options->titles, "Table of ids and titles: CSV, tabs or \"::\"");
  add("--title-columns", options->title_columns, "Its columns of id and title, names or numbers (default: 1, title)")
      ->delimiter(',')
      ->expected(2);
  add("--top", options->recommend.top, "Items wanted")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  add("--allow", options->allow, "File of the only items that may be suggested, one a line");
  add("--deny", options->deny, "File of items that may not be suggested, one a line");
  command->add_flag("--include-seen", options->include_seen, "Suggest items of the history, too");
  command->add_flag("--explain", options->recommend.explain, "What each past event does to each suggestion's score");
  command->add_flag("--json", options->json, "Print as JSON");
  add_threads_option(*command);
  command->callback([options] { recommend(*options); });
}
