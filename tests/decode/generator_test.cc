// qkv::Generator: several texts at once, the cache between calls, and token reports.
#include "qkv/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/profile.h"
#include "tests/decode/language_models.h"
#include "tests/support/errors.h"
#include "tests/support/generate_options.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::generate_with;
using testing::greedy;

// Returns the number of tokens that the model reads during f: the rows of the products that compute queries, keys and
// values, [N, 24] to 2 heads of widths 10, 10 and 7.
template <class F>
int64_t tokens_read(F&& f) {
  const Profile profile;
  f();
  int64_t tokens = 0;
  for (const auto& [name, entry] : profile.entries())
    if (name.starts_with("row linear ") && name.ends_with(" × 24 × 54"))
      tokens += entry.calls * std::stoll(name.substr(11)) / 2;  // two layers
  return tokens;
}

bool same(const Generation& a, const Generation& b) {
  const auto equal = [](const GeneratedToken& x, const GeneratedToken& y) {
    return x.text == y.text && x.log_probability == y.log_probability;
  };
  return a.text == b.text && a.end == b.end && std::ranges::equal(a.tokens, b.tokens, equal);
}

GenerateOptions tokens(int64_t count) {
  return generate_with([&](GenerateOptions& o) { o.max_tokens = count; });
}

class GeneratorTest : public ::testing::Test {
 protected:
  static testing::TempDir& directory() {
    static testing::TempDir directory;
    return directory;
  }
  static const std::string& run() {
    static const std::string run = testing::make_language_run(directory() / "run");
    return run;
  }
  const std::vector<std::string> prompts_ = {
      "a long beginning, one", "", "a long beginning, two", "x", "x", "a long beg"};
};

TEST_F(GeneratorTest, BatchedTextsMatchSingleTextsAndArriveInOrder) {
  for (const int threads : {1, 3})
    testing::with_threads(threads, [&] {
      const Generator generator(run());
      for (const int64_t batch : {1, 2, 3, 8}) {
        GenerateOptions options;
        options.max_tokens = 30;
        options.stop = {"e", "\xA0"};
        options.batch = batch;
        std::vector<std::string> streamed(1);
        options.on_text = [&](std::string_view text) { streamed.back() += text; };
        std::vector<size_t> done;
        const auto found = generator.generate_all(prompts_, options, [&](size_t i, const Generation& text) {
          done.push_back(i);
          EXPECT_EQ(streamed.back(), text.text);
          streamed.emplace_back();
        });
        EXPECT_EQ(done, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
        options.on_text = {};
        for (size_t i = 0; i < prompts_.size(); i++)
          EXPECT_TRUE(same(found[i], Generator(run(), 0).generate(prompts_[i], options))) << batch << ", " << i;
      }
      return 0;
    });
  EXPECT_TRUE(Generator(run()).generate_all({}).empty());
}

TEST_F(GeneratorTest, SharedPrefixIsReadOnce) {
  const Generator generator(run());
  const std::vector<std::string> prompts = {"abcdefghij12", "abcdefghij345", "abcdefghij"};
  const GenerateOptions options = greedy(1);
  // The start token and ten shared letters, the rest of two texts, and the last letter of the third.
  EXPECT_EQ(tokens_read([&] { generator.generate_all(prompts, options); }), 1 + 10 + 2 + 3 + 1);
  EXPECT_EQ(tokens_read([&] { generator.generate("abcdefghij12345", options); }), 3);
  EXPECT_EQ(tokens_read([&] { generator.generate("abcdefghij12345", options); }), 1);
  EXPECT_EQ(tokens_read([&] { Generator(run()).generate("abcdefghij12345", options); }), 16);
}

TEST_F(GeneratorTest, GrowingChatReadsOnlyNewTokens) {
  const GenerateOptions options = tokens(4);
  std::string chat = "hello";
  const Generator generator(run()), forgets(run(), 0);
  int64_t known = 0;
  for (int turn = 0; turn < 3; turn++) {
    Generation found;
    const int64_t length = 1 + std::ssize(chat);
    EXPECT_EQ(tokens_read([&] { found = generator.generate(chat, options); }), length - known + 3);
    EXPECT_EQ(tokens_read([&] { EXPECT_TRUE(same(forgets.generate(chat, options), found)); }), length + 3);
    known = length + 3;  // the last generated token has not been read
    chat += found.tokens[0].text + found.tokens[1].text + found.tokens[2].text + found.tokens[3].text + "you";
  }
}

TEST_F(GeneratorTest, ConcurrentCallsMatchASingleThread) {
  const Generator generator(run());
  const GenerateOptions options = tokens(20);
  std::vector<Generation> found(prompts_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < prompts_.size(); i++)
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 3; repeat++) found[i] = generator.generate(prompts_[i], options);
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < prompts_.size(); i++)
    EXPECT_TRUE(same(found[i], Generator(run()).generate(prompts_[i], options)));
}

TEST_F(GeneratorTest, GeneratorSurvivesACallbackException) {
  const Generator generator(run());
  GenerateOptions options = tokens(10);
  const Generation wanted = generator.generate("abc", options);
  int calls = 0;
  options.on_text = [&](std::string_view) {
    if (++calls == 3) throw Error("enough");
  };
  EXPECT_EQ(error_of([&] { generator.generate("abc", options); }), "enough");
  options.on_text = {};
  EXPECT_TRUE(same(generator.generate("abc", options), wanted));
}

TEST_F(GeneratorTest, AlternativesAreTheMostProbableTokens) {
  const Generator generator(run());
  GenerateOptions options = greedy(8);
  options.alternatives = 257;
  for (const GeneratedToken& token : generator.generate("abc", options).tokens) {
    ASSERT_EQ(token.alternatives.size(), 257u);
    EXPECT_EQ(token.alternatives.front().text, token.text);
    EXPECT_EQ(token.alternatives.front().log_probability, token.log_probability);
    EXPECT_TRUE(std::ranges::is_sorted(token.alternatives, std::greater<>(), &TokenAlternative::log_probability));
    double sum = 0;
    for (const TokenAlternative& other : token.alternatives) sum += std::exp(other.log_probability);
    EXPECT_NEAR(sum, 1, 257 * 0x1p-22);  // each is rounded after a logarithm with an error of a few units
    EXPECT_EQ(std::ranges::count(token.alternatives, true, &TokenAlternative::end), 1);
  }
  options = tokens(8);
  options.repetition_penalty = 3;
  options.alternatives = 2;
  const auto drawn = generator.generate("abc", options);
  for (const GeneratedToken& token : drawn.tokens) EXPECT_EQ(token.alternatives.size(), 2u);
  EXPECT_TRUE(generator.generate("abc", tokens(1)).tokens.front().alternatives.empty());
}

TEST(TokensToText, PrintsOneLinePerTokenWithAlternatives) {
  const double third = std::log(1.0 / 3), none = std::log(1e-5);
  Generation text;
  text.tokens = {{" the", third, {{" a", std::log(0.5)}, {"\n", third}, {"", none, true}}}, {"\xE2", 0, {}}};
  EXPECT_EQ(tokens_to_text(text),
            "    p  token         the most probable\n"
            "0.333  ▁the          ▁a 0.500  ⏎ 0.333  <end> 0.000\n"
            "1.000  <0xE2>\n");
}

TEST_F(GeneratorTest, AttendCoversTheTextAndItsContinuation) {
  const Generator generator(run());
  const Generation more = generator.generate("a b\n", greedy(5));
  const AttentionMap map = generator.attend("a b\n", 5);
  EXPECT_EQ(map.source, "a b\n");
  EXPECT_EQ(map.target, more.text);
  ASSERT_EQ(map.kinds.size(), 1u);
  const AttentionKind& decoder = map.kinds.front();
  EXPECT_EQ(decoder.name, "decoder");
  EXPECT_TRUE(decoder.causal);
  ASSERT_EQ(decoder.rows.size(), 5 + more.tokens.size());
  EXPECT_EQ(std::vector(decoder.rows.begin(), decoder.rows.begin() + 5),
            (std::vector<std::string>{"<s>", "a", "▁", "b", "⏎"}));
  EXPECT_EQ(decoder.columns, decoder.rows);
  ASSERT_EQ(decoder.layers.size(), 2u);
  EXPECT_EQ(decoder.layers.front().size(), 2u);
  EXPECT_EQ(generator.attend("").kinds.front().rows, std::vector<std::string>{"<s>"});
}

TEST_F(GeneratorTest, ScoresTokensAsItGeneratesThem) {
  const Generator generator(run());
  const std::string prompt = "a b\n";
  const Generation more = generator.generate(prompt, generate_with([](GenerateOptions& o) {
                                               o.max_tokens = 6;
                                               o.temperature = 0;
                                               o.alternatives = 3;
                                             }));
  const std::vector<GeneratedToken> scored =
      generator.score(generator.with_start(generator.encode(prompt + more.text)), 3);
  ASSERT_EQ(scored.size(), 5 + more.tokens.size());
  EXPECT_TRUE(std::isnan(scored.front().log_probability));
  EXPECT_TRUE(scored.front().alternatives.empty());
  EXPECT_EQ(scored[1].text, "a");
  EXPECT_LT(scored[1].log_probability, 0);
  for (size_t i = 0; i < more.tokens.size(); i++) {
    const GeneratedToken &a = scored[5 + i], &b = more.tokens[i];
    EXPECT_EQ(a.text, b.text);
    EXPECT_NEAR(a.log_probability, b.log_probability, 1e-5);
    ASSERT_EQ(a.alternatives.size(), 3u);
    for (size_t k = 0; k < 3; k++) {
      EXPECT_EQ(a.alternatives[k].text, b.alternatives[k].text);
      EXPECT_NEAR(a.alternatives[k].log_probability, b.alternatives[k].log_probability, 1e-5);
    }
  }
}

TEST_F(GeneratorTest, ScoresAsManyTokensAsItReads) {
  const Generator generator(run());
  EXPECT_TRUE(generator.score({}).empty());
  EXPECT_EQ(generator.score(generator.encode("x")).size(), 1u);
  const auto count = static_cast<size_t>(generator.max_length());
  const std::vector<int32_t> longest(count + 1, generator.encode("x").front());
  EXPECT_LT(generator.score(longest).back().log_probability, 0);
  const std::vector<int32_t> longer(count + 2, longest.front());
  for (const int32_t token : {-1, 1 << 20, std::numeric_limits<int32_t>::min()}) {
    const std::string error = error_of([&] { generator.score({longest.front(), token}); });
    EXPECT_TRUE(error.starts_with("tokens must be from 0 to ") && error.ends_with(fmt::format(" (one is {})", token)))
        << error;
  }
  EXPECT_EQ(error_of([&] { generator.score(longer); }),
            fmt::format("tokens must be at most {} (are {})", count + 1, count + 2));
}

TEST_F(GeneratorTest, ErrorsNameTheInvalidValue) {
  const Generator generator(run());
  const auto error_with = [&](auto&& change) {
    return error_of([&] { generator.generate("", generate_with(change)); });
  };
  EXPECT_EQ(error_with([](GenerateOptions& o) { o.alternatives = -1; }),
            "alternatives must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_with([](GenerateOptions& o) { o.batch = 0; }), "batch must be at least 1 (is 0)");
  EXPECT_EQ(error_with([](GenerateOptions& o) { o.temperature = -1; }), "temperature must be at least 0 (is -1)");
  EXPECT_EQ(error_with([](GenerateOptions& o) { o.stop = {"a", ""}; }), "stop: a text is empty");
  EXPECT_EQ(error_of([&] { generator.attend(std::string(40, 'x')); }),
            "text must have at most 40 tokens, the start token included (has 41)");
  EXPECT_EQ(error_of([&] { generator.attend("x", -1); }), "max_tokens must be at least 0 (is -1)");
  EXPECT_EQ(error_of([&] { Generator other(run(), -1); }), "cache_bytes must be at least 0 (is -1)");
  EXPECT_TRUE(holds_language_model(run()));
  EXPECT_FALSE(holds_language_model(directory() / "nothing"));
}

}  // namespace
}  // namespace qkv
