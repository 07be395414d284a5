// Generation step by step: a text gets the bytes of Generator::generate, whatever comes and goes next to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"
#include "qkv/serving.h"
#include "tests/decode/language_models.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::with_threads;

std::string all_of_it(const Generation& g) {
  std::string all = fmt::format("{}|{}|", g.text, static_cast<int>(g.end));
  const auto add = [&](const auto& x) { all.append(reinterpret_cast<const char*>(&x), sizeof(x)); };
  for (const GeneratedToken& token : g.tokens) {
    all += token.text;
    add(token.log_probability);
    for (const TokenAlternative& other : token.alternatives)
      all += other.text, add(other.log_probability), add(other.end);
  }
  return all;
}

struct TestPrompt {
  std::string text;
  GenerateOptions options;
};

// Prompts with all kinds of options; some share their beginning, and some are longer than the model's 40 tokens.
std::vector<TestPrompt> test_prompts() {
  std::vector<GenerateOptions> options(10);
  for (GenerateOptions& o : options) o.max_tokens = 20;
  options[0].temperature = 0;
  options[1].temperature = 0.7, options[1].top_k = 20, options[1].alternatives = 3;
  options[2].top_p = 0.8, options[2].seed = 7;
  options[3].typical_p = 0.5, options[3].min_p = 0.01;
  options[4].repetition_penalty = 1.4, options[4].temperature = 0;
  options[5].no_repeat_ngram = 2;
  options[6].max_tokens = 70;
  options[7].max_tokens = 60, options[7].slide = false;
  options[8].max_tokens = 0;
  options[9].max_tokens = 1;
  std::vector<TestPrompt> prompts;
  for (size_t i = 0; i < 4 * options.size(); i++) {
    std::string text = i % 3 ? "The dog reads " : "";
    text += std::string(i % 7, static_cast<char>('a' + i % 5));
    if (i % 20 == 6) text += std::string(50, 'x');
    prompts.push_back({text, options[i % options.size()]});
  }
  return prompts;
}

GenerateOptions with_temperature(double temperature) {
  GenerateOptions options;
  options.max_tokens = 5;
  options.temperature = temperature;
  return options;
}

GenerateOptions not_sliding() {
  GenerateOptions options;
  options.slide = false;
  return options;
}

class GenerationLoopTest : public ::testing::Test {
 protected:
  GenerationLoopTest() : generator_(testing::make_language_run(directory_ / "run")) {
    prompts_[11].options.stop = {first_letters(11)};
    for (const TestPrompt& prompt : prompts_)
      alone_.push_back(with_threads(1, [&] { return all_of_it(generator_.generate(prompt.text, prompt.options)); }));
  }

  // Returns two bytes of a text, at which it can stop.
  std::string first_letters(size_t i) const {
    return generator_.generate(prompts_[i].text, prompts_[i].options).text.substr(3, 2);
  }

  testing::TempDir directory_;
  Generator generator_;
  std::vector<TestPrompt> prompts_ = test_prompts();
  std::vector<std::string> alone_;
};

// Adds the prompts at random steps, pauses some for a while, and adds others that are cancelled.
void generate_with_company(const Generator& generator, const std::vector<TestPrompt>& prompts, const LoopLimits& limits,
                           uint64_t seed, bool stream, std::vector<std::string>& results) {
  GenerationLoop loop(generator, limits);
  Random random(seed, Stream::test);
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  random.shuffle(order);
  std::vector<uint64_t> leaving, paused;
  std::vector<std::string> streamed(prompts.size());
  size_t next = 0, done = 0;
  results.assign(prompts.size(), "");
  for (int64_t step = 0; done < prompts.size(); step++) {
    ASSERT_LT(step, 20000);
    for (uint64_t joining = random.below(4); joining-- > 0 && next < order.size(); next++) {
      const size_t i = order[next];
      GenerationLoop::Events events;
      if (stream)
        events.on_token = [&, i](const GeneratedToken&, std::string_view text) {
          streamed[i] += text;
          return false;
        };
      events.on_done = [&, i](Generation&& g) {
        EXPECT_EQ(results[i], "");
        EXPECT_TRUE(g.text.starts_with(streamed[i]));
        results[i] = all_of_it(g);
        done++;
      };
      events.on_error = [&](std::exception_ptr error) { std::rethrow_exception(error); };
      GenerationLoop::Prepared prepared = loop.prepare(prompts[i].text, prompts[i].options);
      prepared.salt = std::string(i % 2, 's');
      const uint64_t id = loop.add(std::move(prepared), std::move(events));
      if (random.below(3) == 0) paused.push_back(id), loop.pause(id, true);
      const TestPrompt& other = prompts[random.below(prompts.size())];
      leaving.push_back(loop.add(loop.prepare(other.text, other.options), {}));
    }
    if (!leaving.empty() && random.below(2) == 0) loop.cancel(leaving.back()), leaving.pop_back();
    if (!paused.empty() && random.below(4) == 0) loop.pause(paused.back(), false), paused.pop_back();
    loop.step();
  }
}

TEST_F(GenerationLoopTest, TextGetsTheSameBytesWhateverComesAndGoes) {
  const int64_t little = 2 * 64 * 2 * 2 * (10 + 7) * 4;  // for 128 tokens: hardly three texts
  for (const int threads : {1, 2, 3})
    for (const int64_t rows : {8, 256})
      for (const bool stream : {false, true})
        for (const int64_t bytes : {little, int64_t{1} << 28}) {
          std::vector<std::string> found;
          const auto seed = static_cast<uint64_t>(threads + 10 * rows + stream + (bytes == little ? 5 : 0));
          with_threads(threads, [&] {
            generate_with_company(generator_, prompts_, {rows, bytes}, seed, stream, found);
            return 0;
          });
          for (size_t i = 0; i < prompts_.size(); i++)
            EXPECT_TRUE(found[i] == alone_[i]) << "text " << i << ", rows " << rows << ", threads " << threads;
        }
}

TEST_F(GenerationLoopTest, PrefixesAreCachedWithinASalt) {
  GenerationLoop loop(generator_);
  std::vector<int64_t> cached;
  const auto run = [&](const std::string& prompt, const std::string& salt) {
    GenerationLoop::Prepared prepared = loop.prepare(prompt, with_temperature(0));
    prepared.salt = salt;
    GenerationLoop::Events events;
    events.on_start = [&](int64_t tokens) { cached.push_back(tokens); };
    loop.add(std::move(prepared), events);
    while (loop.step()) {
    }
  };
  run("The dog reads", "a");
  run("The dog reads", "b");
  run("The dog runs", "a");
  EXPECT_EQ(cached, (std::vector<int64_t>{0, 0, 10}));  // the start token, and "The dog r"
}

TEST_F(GenerationLoopTest, CallbackMayEndItsText) {
  GenerationLoop loop(generator_);
  Generation found;
  std::string error;
  GenerationLoop::Events ends, throws;
  ends.on_token = [](const GeneratedToken&, std::string_view) { return true; };
  ends.on_done = [&](Generation&& g) { found = std::move(g); };
  throws.on_token = [](const GeneratedToken&, std::string_view) -> bool { throw Error("enough"); };
  throws.on_done = [&](Generation&&) { error = "none"; };
  throws.on_error = [&](std::exception_ptr e) { error = error_of([&] { std::rethrow_exception(e); }); };
  loop.add(loop.prepare("a"), ends);
  loop.add(loop.prepare("a"), throws);
  while (loop.step()) {
  }
  EXPECT_EQ(found.tokens.size(), 1u);
  EXPECT_EQ(found.end, GenerationEnd::stop);
  EXPECT_EQ(error, "enough");
}

TEST_F(GenerationLoopTest, CancelledAndPausedTextsGetNoEvents) {
  GenerationLoop loop(generator_, {.rows = 2});
  int events = 0;
  GenerationLoop::Events count;
  count.on_done = [&](Generation&&) { events++; };
  count.on_error = [&](std::exception_ptr) { events++; };
  std::vector<uint64_t> ids;
  for (int i = 0; i < 4; i++) ids.push_back(loop.add(loop.prepare("a"), count));
  EXPECT_TRUE(loop.step());
  for (const uint64_t id : ids) loop.cancel(id);
  while (loop.step()) {
  }
  EXPECT_EQ(events, 0);
  const uint64_t id = loop.add(loop.prepare("a"), count);
  EXPECT_TRUE(loop.step());
  loop.pause(id, true);
  EXPECT_TRUE(loop.step());
  EXPECT_FALSE(loop.step());
  loop.pause(id, false);
  while (loop.step()) {
  }
  EXPECT_EQ(events, 1);
}

TEST_F(GenerationLoopTest, ErrorsNameTheOptionOrTheLimit) {
  const GenerationLoop loop(generator_);
  EXPECT_EQ(error_of([&] { loop.prepare("a", with_temperature(-1)); }), "temperature must be at least 0 (is -1)");
  EXPECT_EQ(error_of([&] { loop.prepare(std::string(50, 'a'), not_sliding()); }),
            "prompt must have fewer than 40 tokens, the model's max_length (has 50)");
  const GenerationLoop small(generator_, {.cache_bytes = 64 * 2 * 2 * (10 + 7) * 4 - 1});
  EXPECT_EQ(error_of([&] { small.prepare("a"); }),
            "text: may need 10880 bytes of keys and values, more than cache_bytes (0)");
  EXPECT_EQ(error_of([&] { GenerationLoop(generator_, {.rows = 0}); }), "rows must be at least 1 (is 0)");
}

TEST(GenerationLoop, ModelThatGivesNoNumberFailsOneText) {
  testing::TempDir directory;
  const Generator generator(testing::make_language_run(directory / "run", 40, [](Transformer<float>& model) {
    const int64_t d = model.config().d_model;  // the positions of long texts
    std::fill_n(testing::values_of(model.parameters(), "decoder.positions.weight") + 20 * d, d,
                std::numeric_limits<float>::max());
  }));
  GenerationLoop loop(generator);
  std::vector<std::string> found(2);
  for (size_t i = 0; i < 2; i++) {
    GenerationLoop::Events events;
    events.on_done = [&, i](Generation&&) { found[i] = "done"; };
    events.on_error = [&, i](std::exception_ptr e) { found[i] = error_of([&] { std::rethrow_exception(e); }); };
    loop.add(loop.prepare(std::string(i == 0 ? 5 : 25, 'a'), with_temperature(0)), events);
  }
  while (loop.step()) {
  }
  EXPECT_EQ(found, (std::vector<std::string>{"done", "the model's output is not finite"}));
}

}  // namespace
}  // namespace qkv
