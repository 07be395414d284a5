// The attention page: any text is harmless, and in a browser its script computes the same numbers as the library.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/attention_map.h"
#include "tests/support/attention_sample.h"

namespace qkv {
namespace {

const std::vector<std::string> page_source = {"▁The", "▁trans", "form", "er", "▁</script>", "<!--", "</s>"};
const std::vector<std::string> page_target = {"<s>", "▁Der", "▁Trans", "former", "▁שלום", "."};

AttentionMap hostile_map() {
  AttentionMap map = testing::sample_map(page_source, page_target, 2, 3);
  map.source = "</script><script>alert(\"1\")</script><!-- <img src=x onerror='x()'> & &lt; \xF0\x9F\x98\x80 שלום \\";
  map.target = "\xE2\x80\xA8 \"';`${1}";
  return map;
}

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  pclose(pipe);
  return output;
}

// Runs `script` after the page's own script in a headless browser and returns the object that it leaves in `result`;
// "errors" lists errors on the page. Returns null if there is no working browser.
nlohmann::json run_in_browser(std::string page, const std::string& script) {
  page.insert(page.find("<main>"),
              "<script>const errors = []; addEventListener('error', e => errors.push(e.message));"
              "</script>");
  page.insert(page.rfind("</body>"), "<script>const result = {};" + script +
                                         "</script><script>document.body.append(element('pre', {textContent: "
                                         "'@@' + JSON.stringify({errors, ...result}) + '@@'}));</script>");
  const std::string path = ::testing::TempDir() + "qkv-attention-page.html";
  std::ofstream(path) << page;
  const std::string dom = output_of(
      "browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) && timeout 60 "
      "\"$browser\" --headless --no-sandbox --disable-gpu --dump-dom \"file://" +
      path + "\" 2>/dev/null");
  std::remove(path.c_str());
  if (dom.empty()) return nullptr;
  const size_t begin = dom.rfind("<pre>@@") + 7, end = dom.rfind("@@</pre>");
  if (end == dom.npos) return {{"errors", {"the page's script did not reach its end"}}};
  return nlohmann::json::parse(dom.substr(begin, end - begin));
}

int count(const std::string& text, const std::string& pattern) {
  int found = 0;
  for (size_t at = text.find(pattern); at != text.npos; at = text.find(pattern, at + 1)) found++;
  return found;
}

TEST(AttentionPage, TextCannotEscapeTheData) {
  const std::string page = attention_to_html(hostile_map());
  EXPECT_EQ(count(page, "<script"), 2);
  EXPECT_EQ(count(page, "</script"), 2);
  EXPECT_EQ(count(page, "<!--"), 0);
  EXPECT_EQ(count(page, "<img"), 0);
}

TEST(AttentionPage, ContainsStyleDataAndScriptOnce) {
  AttentionMap map = hostile_map();
  map.source = "{{style}} {{data}} {{script}}";
  const std::string page = attention_to_html(map);
  EXPECT_EQ(count(page, "\n:root {"), 1);
  EXPECT_EQ(count(page, "\n'use strict';\n"), 1);
  EXPECT_EQ(count(page, "{{"), 3);  // the placeholders are replaced in the template, not in the text
  EXPECT_EQ(count(page, map.source), 1);
}

TEST(AttentionPage, NeedsNoNetwork) {
  const std::string page = attention_to_html(hostile_map());
  EXPECT_EQ(page.find("http:"), page.npos);
  EXPECT_EQ(page.find("https:"), page.npos);
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
}

TEST(AttentionPage, ShowsTheWeightsAndWordsOfTheLibrary) {
  const AttentionMap map = hostile_map();
  const nlohmann::json result = run_in_browser(attention_to_html(map), R"js(
    const press = (id, key) => $(id).dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    const bytes = text => [...new TextEncoder().encode(text)];
    result.source = bytes($('source').textContent);
    result.target = bytes($('target').textContent);
    result.first = [...chosen()];
    press('tabs', 'ArrowLeft');
    result.causal = [...chosen()];
    press('map', 'ArrowRight');
    result.readout = bytes($('readout').textContent);
    press('tabs', 'ArrowRight');
    press('grid', 'ArrowUp');
    press('grid', 'ArrowDown');
    press('grid', 'ArrowRight');
    result.name = $('name').textContent;
    result.pieces = [...chosen()];
    $('words').click();
    result.words = [...chosen()];
    result.rows = $('rows').children.length;
    result.columns = $('columns').children.length;
    press('grid', 'ArrowRight');
    press('grid', 'ArrowRight');
    result.mean = [...chosen()];
  )js");
  if (result.is_null()) GTEST_SKIP() << "skipped: no Chromium that runs";
  ASSERT_EQ(result["errors"], nlohmann::json::array());

  const auto text = [&](const char* name) {
    const auto bytes = result[name].get<std::vector<uint8_t>>();
    return std::string(bytes.begin(), bytes.end());
  };
  const auto expect_near = [&](const char* name, const std::vector<float>& expected, double tolerance) {
    const auto found = result[name].get<std::vector<double>>();
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); i++) EXPECT_NEAR(found[i], expected[i], tolerance) << name << " " << i;
  };
  const double step = 0.5 / 65535 + 0x1p-23;  // a weight has 16 bits in the page, and is a float32
  EXPECT_EQ(text("source"), map.source);
  EXPECT_EQ(text("target"), map.target);
  expect_near("first", map.kinds[2].layers.back()[0].weights, step);  // as in the terminal
  expect_near("causal", map.kinds[1].layers.back()[0].weights, step);
  EXPECT_TRUE(text("readout").starts_with("former → ")) << text("readout");
  EXPECT_EQ(result["name"], "Layer 2, head 2");
  expect_near("pieces", map.kinds[2].layers[1][1].weights, step);

  const AttentionKind words = merge_words(map).kinds[2];
  EXPECT_EQ(result["rows"], words.rows.size());
  EXPECT_EQ(result["columns"], words.columns.size());
  expect_near("words", words.layers[1][1].weights, 3 * step);  // a word has at most 3 pieces
  std::vector<float> mean(words.layers[1][0].weights.size());
  for (const AttentionHead& head : words.layers[1])
    for (size_t i = 0; i < mean.size(); i++) mean[i] += head.weights[i] / 3;
  expect_near("mean", mean, 3 * step);
}

}  // namespace
}  // namespace qkv
