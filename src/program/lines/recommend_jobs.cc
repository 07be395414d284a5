// Requests for recommendations in, answers out.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qkv/error.h"
#include "qkv/line_jobs.h"
#include "qkv/recommend_lines.h"
#include "qkv/result_json.h"
#include "text/lines.h"

namespace qkv {
namespace {

constexpr size_t kTogether = 256, kBytesTogether = size_t{1} << 24;

// Answers requests in order. Requests that are available at once are computed together.
class RecommendJob {
 public:
  RecommendJob(const Recommender& recommender, const Titles& titles,
               const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output)
      : recommender_(recommender), titles_(titles), options_(options), output_(output) {}

  void run(LineReader& lines) {
    std::string line;
    while (true) {
      const Next next = lines.next(line, waiting_.empty());
      if (next == Next::line) take(line, lines.lines());
      if (next != Next::line || waiting_.size() == kTogether || bytes_ > kBytesTogether) answer();
      if (next == Next::end) return;
    }
  }

 private:
  void take(const std::string& line, int64_t number) {
    std::optional<RecommendLine> request;
    std::string id, error;
    try {
      request = parse_recommend_line(line, options_, recommender_, titles_, id);
    } catch (const Error& refused) {
      error = error_to_json(fmt::format("line {}: {}", number, refused.what()), id) + "\n";
    }
    bytes_ += line.size();
    if (request) {
      waiting_.push_back(std::move(*request));
    } else {
      answer();
      output_.write(error);
      output_.progress(1);
    }
  }

  void answer() {
    std::vector<RecommendRequest> histories;
    for (RecommendLine& request : waiting_)
      if (!request.similar)
        histories.push_back({std::move(request.history), std::move(request.times), request.options});
    auto answers = recommender_.recommend_all(histories);
    auto next = answers.begin();
    for (const RecommendLine& request : waiting_) {
      const Recommendations answer =
          request.similar ? recommender_.similar(*request.similar, *request.options) : std::move(*next++);
      output_.write(recommendations_to_json(request, answer, titles_) + "\n");
    }
    const auto answered = std::ssize(waiting_);
    waiting_.clear();
    bytes_ = 0;
    output_.progress(answered);
  }

  const Recommender& recommender_;
  const Titles& titles_;
  const std::shared_ptr<const RecommendOptions> options_;
  const LineOutput& output_;
  std::vector<RecommendLine> waiting_;
  size_t bytes_ = 0;  // of the waiting lines
};

std::string csv_rows(const std::string& user, const Recommendations& answer) {
  std::string rows;
  for (size_t i = 0; i < answer.items.size(); i++)
    rows +=
        fmt::format("{},{},{},{}\n", csv_field(user), csv_field(answer.items[i].item), i + 1, answer.items[i].score);
  return rows;
}

}  // namespace

void recommend_lines(const Recommender& recommender, const Titles& titles, LineReader& lines,
                     const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output) {
  RecommendJob(recommender, titles, options, output).run(lines);
}

void recommend_users(const Recommender& recommender, const Titles& titles, int64_t begin, int64_t end,
                     const std::shared_ptr<const RecommendOptions>& options, UserForm form, const LineOutput& output) {
  if (form == UserForm::csv && begin == 0) output.write("user,item,rank,score\n");
  const std::vector<std::string>& users = recommender.users();
  while (begin < end) {
    std::vector<RecommendLine> lines;
    std::vector<RecommendRequest> requests;
    for (size_t bytes = 0; begin < end && lines.size() < kTogether && bytes <= kBytesTogether; begin++) {
      RecommendLine& line = lines.emplace_back();
      line.options = options;
      add_user(line, users[static_cast<size_t>(begin)], recommender);
      for (const std::string& item : line.history) bytes += item.size() + sizeof item;
      requests.push_back({std::move(line.history), std::move(line.times), options});
    }
    const std::vector<Recommendations> answers = recommender.recommend_all(requests);
    for (size_t i = 0; i < lines.size(); i++)
      output.write(form == UserForm::csv ? csv_rows(*lines[i].user, answers[i])
                                         : recommendations_to_json(lines[i], answers[i], titles) + "\n");
    output.progress(std::ssize(lines));
  }
}

}  // namespace qkv
