// Calls of models with random options, texts, tokens and histories. The models are as small as they can be.
#include <exception>

#include "fuzz/tiny_runs.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/generator.h"
#include "qkv/recommender.h"
#include "qkv/serving.h"
#include "qkv/translator.h"
#include "tests/properties/random_arguments.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {
namespace {

// The runs of all models, made once.
const std::string& tiny_run(const std::string& name) {
  static const TempDir directory;
  static const std::vector<std::string> runs = fuzz::make_tiny_runs(directory.path());
  static std::string path;
  return path = directory / name;
}

template <class Options>
Options random_options(Arguments& a, const std::vector<std::string>& small = {}) {
  Options options;
  visit_fields(options, RandomFields(a, small, 12));
  return options;
}

std::vector<int32_t> random_tokens(Arguments& a) {
  std::vector<int32_t> tokens(to_size(a.up_to(20)));
  for (int32_t& token : tokens) token = static_cast<int32_t>(a.one_in(30) ? a.absurd_integer() : a.up_to(255));
  return tokens;
}

std::vector<Target> random_targets(Arguments& a) {
  std::vector<Target> targets(to_size(a.up_to(3)));
  for (Target& target : targets) {
    if (a.one_in(2))
      target = a.text();
    else
      target = a.texts(4);
  }
  return targets;
}

TEST(RandomCalls, OfTranslatorsSucceedOrThrow) {
  const Translator translator(tiny_run("mt"));
  make_calls(calls(1500), [&](Arguments& a) {
    const auto options = random_options<TranslateOptions>(a, {"max_length", "min_length", "beam", "n_best"});
    const std::vector<std::string> lines = a.texts(3);
    switch (a.up_to(5)) {
      case 0:
        translator.score(lines, random_targets(a), options);
        break;
      case 1:
        translator.encode(lines, options);
        break;
      case 2:
        translator.logits(lines, random_targets(a), options);
        break;
      case 3:
        translator.attend(a.text(), a.text(), options);
        break;
      case 4:
        translator.tokenize(a.text());
        break;
      default:
        translator.translate(lines, options, a.one_in(3) ? a.texts(3) : std::vector<std::string>());
    }
  });
}

TEST(RandomCalls, OfGeneratorsSucceedOrThrow) {
  const Generator generator(tiny_run("lm"), 1 << 16);
  make_calls(calls(1500), [&](Arguments& a) {
    auto options = random_options<GenerateOptions>(a, {"max_tokens"});
    options.max_tokens = std::min<int64_t>(options.max_tokens, 8);
    switch (a.up_to(5)) {
      case 0:
        generator.score(random_tokens(a), a.one_in(3) ? a.size(9) : 1);
        break;
      case 1:
        generator.decode(random_tokens(a));
        break;
      case 2:
        generator.attend(a.text(), a.one_in(3) ? a.size(9) : 1);
        break;
      case 3:
        generator.token(a.text());
        generator.encode(a.text(), a.one_in(2));
        break;
      case 4:
        generator.generate(a.text(), options);
        break;
      default:
        generator.generate_all(a.texts(3), options);
    }
  });
}

TEST(RandomCalls, OfRecommendersSucceedOrThrow) {
  const Recommender recommender(tiny_run("rec"));
  const std::vector<std::string>& items = recommender.items();
  make_calls(calls(1500), [&](Arguments& a) {
    const auto options = random_options<RecommendOptions>(a);
    std::vector<std::string> history(to_size(a.up_to(9)));
    for (std::string& item : history) item = a.one_in(9) ? a.text() : a.one_of(items);
    std::vector<int64_t> times(a.one_in(3) ? to_size(a.up_to(9)) : 0);
    for (int64_t& time : times) time = a.size(100);
    switch (a.up_to(4)) {
      case 0:
        recommender.similar(a.one_in(4) ? a.text() : a.one_of(items), options);
        break;
      case 1:
        recommender.basket(history);
        break;
      case 2:
        recommender.history(a.text());
        break;
      case 3:
        recommender.recommend_all(
            {history, a.texts(2)}, options,
            a.one_in(4) ? std::vector<std::vector<int64_t>>{times} : std::vector<std::vector<int64_t>>());
        break;
      default:
        recommender.recommend(history, options, times);
    }
  });
}

TEST(RandomCalls, OfEmbeddersSucceedOrThrow) {
  for (const char* run : {"enc", "mt", "lm"}) {
    const Embedder embedder(tiny_run(run));
    make_calls(calls(500), [&](Arguments& a) {
      const auto options = random_options<EmbedOptions>(a);
      switch (a.up_to(2)) {
        case 0:
          embedder.tokens(a.texts(3), options);
          break;
        case 1:
          embedder.attend(a.text(), options);
          break;
        default:
          embedder.embed(a.texts(3), options);
      }
    });
  }
}

// A loop with texts that are added, paused and cancelled in any order.
template <class Loop, class Prepare>
void drive(Loop& loop, Arguments& a, Prepare&& prepare) {
  typename Loop::Events events;
  events.on_done = [](auto&&) {};
  events.on_error = [](std::exception_ptr) {};
  std::vector<uint64_t> texts;
  for (int64_t i = a.up_to(3); i > 0; i--) texts.push_back(loop.add(prepare(), events));
  for (int64_t i = a.up_to(12); i > 0; i--) {
    loop.step();
    const uint64_t text = texts.empty() || a.one_in(5) ? a.random().next() : a.one_of(texts);
    if (a.one_in(4)) loop.pause(text, a.one_in(2));
    if (a.one_in(6)) loop.cancel(text);
  }
}

TEST(RandomCalls, OfLoopsSucceedOrThrow) {
  const Translator translator(tiny_run("mt"));
  const Generator generator(tiny_run("lm"), 1 << 16);
  const auto random_limits = [](Arguments& a) {
    LoopLimits limits;
    if (a.one_in(3)) limits.rows = a.size(9);
    if (a.one_in(3)) limits.cache_bytes = a.size(1 << 16);
    return limits;
  };
  make_calls(calls(400), [&](Arguments& a) {
    TranslationLoop loop(translator, random_limits(a));
    const auto options = random_options<TranslateOptions>(a, {"max_length", "min_length", "beam", "n_best"});
    drive(loop, a, [&] { return loop.prepare({a.text()}, options); });
  });
  make_calls(calls(400), [&](Arguments& a) {
    GenerationLoop loop(generator, random_limits(a));
    auto options = random_options<GenerateOptions>(a, {"max_tokens"});
    options.max_tokens = std::min<int64_t>(options.max_tokens, 8);
    drive(loop, a,
          [&] { return a.one_in(2) ? loop.prepare(a.text(), options) : loop.prepare(random_tokens(a), options); });
  });
}

}  // namespace
}  // namespace qkv::testing
