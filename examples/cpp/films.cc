// Trains a recommender on a log and recommends to a user: films LOG TITLES RUN USER [EPOCHS]
#include <iostream>
#include <string>

#include "qkv/qkv.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: films LOG TITLES RUN USER [EPOCHS]\n";
    return 2;
  }
  const std::string log = argv[1], run = argv[3], user = argv[4];
  try {
    // Returns at once if the run is complete, and resumes it if it was stopped.
    const auto recipe =
        qkv::recommendation_recipe({.preset = "films", .values = {{"max_epochs", argc > 5 ? argv[5] : "40"}}});
    qkv::TrainingObserver observer;
    observer.on_message = [](const std::string& line) { std::cout << line << "\n"; };
    qkv::train_recommender({.data = {log}}, recipe, run, observer);

    const qkv::Recommender recommender(run);
    const qkv::Titles titles(argv[2], {}, [&](std::string_view item) { return recommender.has_item(item); });
    qkv::RecommendOptions options;
    options.top = 5;
    options.explain = true;
    const qkv::Recommendations answer = recommender.recommend(recommender.history(user), options);
    for (const qkv::Recommendation& found : answer.items) {
      std::cout << found.score << "  " << titles.title(found.item) << "\n";
      for (size_t i = 0; i < answer.read.size(); i++)
        if (found.effects[i] > 1)
          std::cout << "    +" << found.effects[i] << "  " << titles.title(answer.read[i]) << "\n";
    }
  } catch (const qkv::Error& error) {
    std::cerr << "films: " << error.what() << "\n";
    return 1;
  }
}
