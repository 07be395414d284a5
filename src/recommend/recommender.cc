#include "qkv/recommender.h"

#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "io/recommender_run.h"
#include "recommend/serving.h"

namespace qkv {
namespace {

Serving load(const std::string& directory) {
  RecommenderRun run = load_recommender(directory);
  return {std::move(run.model), run.recommendation.positions_from_end, std::move(run.log.data)};
}

}  // namespace

struct Recommender::State {
  Serving serving;
};

Recommender::Recommender(const std::string& run_directory) : state_(new State{load(run_directory)}) {}
Recommender::~Recommender() = default;
Recommender::Recommender(Recommender&&) noexcept = default;
Recommender& Recommender::operator=(Recommender&&) noexcept = default;

const std::vector<std::string>& Recommender::items() const { return state_->serving.catalogue().items().names(); }
const std::vector<std::string>& Recommender::users() const { return state_->serving.catalogue().users().names(); }
bool Recommender::has_item(std::string_view item) const { return state_->serving.catalogue().items().find(item) >= 0; }
bool Recommender::has_user(std::string_view user) const { return state_->serving.catalogue().users().find(user) >= 0; }
int64_t Recommender::max_length() const { return state_->serving.max_length(); }

std::vector<std::string> Recommender::history(std::string_view user) const {
  const Catalogue& catalogue = state_->serving.catalogue();
  const int32_t id = catalogue.users().find(user);
  if (id < 0) fail("recommend: {} is none of the {} users of the run", excerpt(user), users().size());
  std::vector<std::string> names;
  for (const int32_t item : catalogue.events_of(id)) names.push_back(items()[static_cast<size_t>(item)]);
  return names;
}

Recommendations Recommender::recommend(const std::vector<std::string>& history, const RecommendOptions& options) const {
  return std::move(state_->serving.recommend({&history, 1}, options).front());
}

std::vector<Recommendations> Recommender::recommend_all(const std::vector<std::vector<std::string>>& histories,
                                                        const RecommendOptions& options) const {
  return state_->serving.recommend(histories, options);
}

}  // namespace qkv
