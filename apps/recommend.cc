// qkv recommend: recommends the next items after a history or those similar to one, or answers requests in JSON lines
// as they arrive.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "commands.h"
#include "options.h"
#include "parts.h"
#include "program/lines/jobs.h"
#include "program/lines/recommend_lines.h"
#include "program/lines/result_json.h"
#include "qkv/text.h"
#include "signals.h"

namespace {

constexpr int64_t kUsersOfPart = 10'000;

struct RecommendOptions {
  std::string run, history, history_file, user, similar, titles, allow, deny, input = "-";
  std::vector<std::string> items, baskets, title_columns;
  const CLI::Option* history_option = nullptr;
  qkv::RecommenderTables tables;
  qkv::RecommendOptions recommend;
  qkv::Placement placement;
  PartsOptions parts;
  bool include_seen = false, exclude_seen = false, json = false, all_users = false, csv = false;

  bool asks() const {
    return history_option->count() > 0 || !history_file.empty() || !user.empty() || !items.empty() ||
           !similar.empty() || !baskets.empty();
  }
};

void note(const std::string& text) { print_error("qkv: {}\n", text); }

qkv::Titles read_titles(const RecommendOptions& options, const qkv::Recommender& recommender) {
  const auto is_item = [&](std::string_view name) { return recommender.has_item(name); };
  if (options.titles.empty()) return qkv::Titles(is_item);
  qkv::Titles titles(options.titles, options.title_columns, is_item);
  if (const std::string doubt = titles.doubt(recommender.items()); !doubt.empty())
    note(fmt::format("{}: {}", options.titles, doubt));
  return titles;
}

// Reads the items in a file, one per line. Prints a note on lines that are not items.
std::vector<std::string> read_items(const std::string& path, const qkv::Recommender& recommender,
                                    const qkv::Titles& titles) {
  std::vector<std::string> items = qkv::items_named(qkv::read_lines(path), titles);
  std::vector<std::string> unknown;
  for (const std::string& item : items)
    if (!recommender.has_item(item)) unknown.push_back(item);
  if (!unknown.empty())
    note(fmt::format("{}: {} items are not in the model (first: \"{}\")", path, unknown.size(), unknown[0]));
  return items;
}

void answer_one(const RecommendOptions& options, const qkv::Recommender& recommender, const qkv::Titles& titles) {
  qkv::RecommendLine request;
  request.options = std::make_shared<qkv::RecommendOptions>(options.recommend);
  for (const std::string& text : titles.split(options.history)) qkv::add_item(request, text, titles);
  if (!options.history_file.empty())
    for (const std::string& text : qkv::read_lines(options.history_file)) qkv::add_item(request, text, titles);
  for (const std::string& text : options.items) qkv::add_item(request, text, titles);
  for (const std::string& texts : options.baskets) qkv::add_basket(request, titles.split(texts), recommender, titles);
  if (!options.user.empty()) qkv::add_user(request, options.user, recommender);
  if (!options.similar.empty()) request.similar = qkv::item_named(options.similar, recommender, titles);
  const qkv::Recommendations answer = request.similar
                                          ? recommender.similar(*request.similar, *request.options)
                                          : recommender.recommend(request.history, *request.options, request.times);
  for (const std::string& line : qkv::recommendation_notes(request, answer, titles)) note(line);
  print_out(options.json ? qkv::recommendations_to_json(request, answer, titles) + "\n"
                         : qkv::recommendations_to_text(answer, titles));
}

void answer_lines(const RecommendOptions& options, const qkv::Recommender& recommender, const qkv::Titles& titles) {
  listen_for_interrupts();
  qkv::LineReader lines(options.input, stop_if_interrupted);
  qkv::LineOutput output{print_out};
  output.progress = [](int64_t) {
    flush_out();
    stop_if_interrupted();
  };
  qkv::recommend_lines(recommender, titles, lines, std::make_shared<qkv::RecommendOptions>(options.recommend), output);
}

void answer_parts(PartsJob& job, const RecommendOptions& options, const qkv::Recommender& recommender,
                  const qkv::Titles& titles) {
  const auto defaults = std::make_shared<qkv::RecommendOptions>(options.recommend);
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    qkv::recommend_lines(recommender, titles, lines, defaults, output);
  });
}

// Recommends for all users, to standard output, or to files of kUsersOfPart users each in the folder of the outputs.
void answer_users(const RecommendOptions& options, const qkv::Recommender& recommender, const qkv::Titles& titles) {
  listen_for_interrupts();
  const auto defaults = std::make_shared<qkv::RecommendOptions>(options.recommend);
  const auto users = static_cast<int64_t>(recommender.users().size());
  const qkv::UserForm form = options.csv ? qkv::UserForm::csv : qkv::UserForm::json;
  qkv::LineOutput output{print_out};
  output.progress = [](int64_t) { stop_if_interrupted(); };
  if (options.parts.out.empty()) return qkv::recommend_users(recommender, titles, 0, users, defaults, form, output);
  qkv::prepare_folder(options.parts.out);
  int64_t written = 0, present = 0;
  for (int64_t begin = 0; begin < users; begin += kUsersOfPart) {
    const std::string name = fmt::format("users-{:09}.{}", begin, options.csv ? "csv" : "jsonl");
    const bool is_new = qkv::write_part(options.parts.out, name, [&](qkv::LineOutput& part) {
      part.progress = output.progress;
      const int64_t end = std::min(users, begin + kUsersOfPart);
      qkv::recommend_users(recommender, titles, begin, end, defaults, form, part);
    });
    (is_new ? written : present)++;
  }
  print_error("{} users in {} files: {} written, {} present\n", users, written + present, written, present);
}

void recommend(RecommendOptions& options) {
  if (!options.parts.out.empty() && !options.parts.given() && !options.all_users)
    throw CLI::RequiresError("--out", "--in or --all-users");
  std::optional<PartsJob> job;
  if (options.parts.given()) job.emplace(options.parts);
  const qkv::Recommender recommender(options.run, options.tables, options.placement);
  for (const std::string& line : recommender.messages()) note(line);
  const qkv::Titles titles = read_titles(options, recommender);
  if (options.include_seen || options.exclude_seen) options.recommend.exclude_seen = options.exclude_seen;
  if (!options.allow.empty()) options.recommend.allow = read_items(options.allow, recommender, titles);
  if (!options.deny.empty()) options.recommend.deny = read_items(options.deny, recommender, titles);
  if (options.asks()) return answer_one(options, recommender, titles);
  recommender.check(options.recommend);
  if (options.all_users) return answer_users(options, recommender, titles);
  job ? answer_parts(*job, options, recommender, titles) : answer_lines(options, recommender, titles);
}

}  // namespace

void add_recommend_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("recommend", "Recommend the next items after a history; without one, answer JSON lines");
  const auto options = std::make_shared<RecommendOptions>();
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help);
  };
  add("run", options->run, "Run directory")->required();
  options->history_option =
      add("--history", options->history, "Items in time order, newest last: ids or titles separated by commas")
          ->type_name("ITEMS");
  add("--item", options->items, "Further item, an id or a title; may be repeated")
      ->type_name("ITEM")
      ->expected(1)
      ->take_all();
  add("--basket", options->baskets,
      "Further items of events at the same time, in any order: ids or titles separated by commas; may be repeated")
      ->type_name("ITEMS")
      ->expected(1)
      ->take_all();
  add("--history-file", options->history_file, "File of items in time order, one per line")->type_name("FILE");
  add("--user", options->user, "Start with the events of this user of the log")->type_name("USER");
  add("--similar", options->similar, "Instead of a history: the items most similar to this one, an id or a title")
      ->type_name("ITEM")
      ->excludes("--history", "--item", "--basket", "--history-file", "--user");
  add("--input", options->input,
      "Requests without a history on the command line, one JSON object per line; - is "
      "standard input")
      ->capture_default_str();
  add("--titles", options->titles, "Table of ids and titles: CSV, or separated by tabs or \"::\"")->type_name("FILE");
  add("--title-columns", options->title_columns,
      "Columns of id and title in the table, as names or numbers (default: 1, title)")
      ->delimiter(',')
      ->expected(2);
  add("--catalogue", options->tables.catalogue,
      "Table of attributes of items for --where, with the names of its columns in the first row")
      ->type_name("FILE");
  add("--item-column", options->tables.item_column,
      "Column of the items in the catalogue, as a name or number (default: 1)")
      ->needs("--catalogue");
  add("--new-items", options->tables.new_items,
      "Table of items that joined after training, with the feature columns that the run was trained with")
      ->type_name("FILE");
  add("--before", options->tables.before,
      "Use the events of the log before this held-out part only, test or validation, as qkv evaluate does. Without "
      "it, all events are counted, and lists must not be compared with held-out events")
      ->check(CLI::IsMember({"test", "validation"}))
      ->type_name("PART");
  add_options(*command, options->recommend, {"exclude_seen", "allow", "deny"});
  add_options(*command, options->placement);
  command->add_flag("--include-seen", options->include_seen,
                    "Also recommend items of the history (default of a run trained with --repeats)");
  command->add_flag("--exclude-seen", options->exclude_seen, "Do not recommend items of the history")
      ->excludes("--include-seen");
  add("--allow", options->allow, "File of the only items that may be recommended, one per line")->type_name("FILE");
  add("--deny", options->deny, "File of items that are never recommended, one per line")->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  add_parts_options(*command, options->parts,
                    {"--history", "--item", "--basket", "--history-file", "--user", "--similar", "--input"});
  CLI::Option* all_users = command->add_flag(
      "--all-users", options->all_users,
      "Recommend for every user of the log, as JSON lines in its order; with --out FOLDER to files of 10,000 users, of "
      "which those that exist are kept");
  for (const char* other :
       {"--history", "--item", "--basket", "--history-file", "--user", "--similar", "--input", "--in"})
    all_users->excludes(command->get_option(other));
  command->add_flag("--csv", options->csv, "With --all-users: print user,item,rank,score as CSV")
      ->needs(all_users)
      ->excludes("--json");
  command->get_option("--out")->remove_needs(command->get_option("--in"));
  add_threads_option(*command);
  command->callback([options] { recommend(*options); });
}
