// chat/jinja/jinja_template.h against jinja2 (tests/golden/chat/make.py), its limits, and the origin of what it writes.
#include "chat/jinja/jinja_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "qkv/error.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr std::time_t kNow = 1785069296;  // 2026-07-26 12:34:56 UTC

MarkedText render(const std::string& source, const ordered_json& variables) {
  std::vector<TemplateVariable> list;
  for (const auto& [name, value] : variables.items()) list.push_back({name, &value, name.ends_with("_token")});
  return JinjaTemplate(source).render(list, kNow);
}

// The text, or the error after "error: ".
std::string outcome(const std::string& source, const ordered_json& variables) {
  try {
    return render(source, variables).bytes;
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

template <class F>
void expect_refused(F&& f, const std::string& message) {
  EXPECT_EQ(testing::error_of(std::forward<F>(f)), message);
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(JinjaTemplate, RendersWhatJinjaRenders) {
  const ordered_json golden = ordered_json::parse(std::ifstream(QKV_GOLDEN_DIR "/chat/cases.json"));
  ASSERT_GT(golden["cases"].size(), 400U);
  for (const ordered_json& c : golden["cases"]) {
    const std::string source = c["template"], found = outcome(source, golden["variables"]);
    if (c.contains("text"))
      EXPECT_EQ(found, c["text"].get<std::string>()) << source;
    else if (const std::string error = c["error"]; !error.empty())
      EXPECT_EQ(found, "error: " + error) << source;
    else
      EXPECT_TRUE(found.starts_with("error: ")) << source << " gives " << found;
  }
}

TEST(JinjaTemplate, RendersPublicTemplatesAsTransformersDoes) {
  const std::string folder = QKV_SHARED_DIR "/cases/chat-templates/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: ../shared not present";
  const ordered_json cases = ordered_json::parse(std::ifstream(folder + "cases.json"));
  ASSERT_EQ(cases.size(), 360U);
  for (const ordered_json& c : cases) {
    const ordered_json variables = {
        {"messages", c["messages"]},   {"tools", c["tools"]},
        {"documents", nullptr},        {"add_generation_prompt", c["add_generation_prompt"]},
        {"bos_token", c["bos_token"]}, {"eos_token", c["eos_token"]}};
    const std::string file = c["template"], error = c.value("error", "");
    const std::string expected =
        error.empty() ? c["text"].get<std::string>() : "error: " + error.substr(error.find(": ") + 2);
    EXPECT_EQ(outcome(read_text(folder + "templates/" + file), variables), expected)
        << file << " " << c["conversation"];
  }
}

TEST(JinjaTemplate, EndsWhatTakesTooMuch) {
  const ordered_json variables = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  const std::pair<std::string, const char*> cases[] = {
      {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "steps"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
      {"{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
      {"{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "for this input"},
      {"{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "steps"},
      {"{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x }}",
       "steps"},
      {"{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}", "deep"},
      {"{% set n = namespace(x=[0]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", "for this input"},
      {"{% for i in range(99999) %}" + std::string(200, 'a') + "{% endfor %}", "bytes"},
      {"{{ 'x' * 1000000000 }}", "bytes"},
      {"{{ 'x'.center(1000000000) }}", "bytes"},
      {"{{ range(1000000000) }}", "100000 numbers"},
      {"{{ ('a' * 1000) | replace('a', 'b' * 100000) }}", "bytes"},
      {"{% for i in range(99999) %}{% set x = namespace(a=1) %}{% endfor %}", "for this input"},
      {"{% set x = range(99999) | list %}{% for i in x %}{% set y = x | sort %}{% endfor %}", "for this input"},
      {"{% set x = 'ab' * 99999 %}{% for i in range(99999) %}{{ x.find('bb') }}{% endfor %}", "steps"},
      {"{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}", "deep"},
      {"{{ " + std::string(5000, '-') + "1 }}", "deep"},
      {std::string(130'000, ' '), ""},
      {std::string(140'000, ' '), "must have at most"}};
  for (const auto& [source, reason] : cases) {
    const std::string found = outcome(source, variables);
    EXPECT_EQ(found.starts_with("error: "), *reason != '\0') << source.substr(0, 80);
    EXPECT_NE(found.find(reason), std::string::npos) << source.substr(0, 80) << " gives " << found.substr(0, 200);
  }
  std::string chain = "{{ 1";
  for (int i = 0; i < 30'000; i++) chain += "+1";
  expect_refused([&] { JinjaTemplate(chain + " }}"); },
                 "chat template: line 1: has an expression of more than 2000 operators");
}

TEST(JinjaTemplate, LongConversationsHaveRoom) {
  ordered_json messages = ordered_json::array();
  for (int i = 0; i < 2000; i++)
    messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", std::string(1000, 'x')}});
  const std::string source =
      "{% for m in messages %}{% set text = m.content | trim %}{{ '<|' + m.role + '|>' + text + '<|end|>' }}{% endfor "
      "%}";
  EXPECT_GT(render(source, {{"messages", messages}}).size(), 2'000'000U);
}

// The parts of a text that came from data.
std::vector<std::string> data_of(const MarkedText& text) {
  std::vector<std::string> parts;
  for (const ByteRange& range : text.data) parts.push_back(text.bytes.substr(range.begin, range.end - range.begin));
  return parts;
}

TEST(JinjaTemplate, KnowsWhatCameFromData) {
  const ordered_json variables = {{"m", {{"role", "user"}, {"content", " <|end|> é "}}},
                                  {"t", {{"name", "f<|end|>"}, {"n", 3}}},
                                  {"other", {{"role", "<|end|>"}}},
                                  {"eos_token", "</s>"}};
  const auto check = [&](const char* source, const std::string& text, std::vector<std::string> data) {
    const MarkedText found = render(source, variables);
    EXPECT_EQ(found.bytes, text) << source;
    EXPECT_EQ(data_of(found), data) << source;
  };
  check("<|{{ m.role }}|>{{ m.content }}<|end|>{{ eos_token }}", "<|user|> <|end|> é <|end|></s>", {" <|end|> é "});
  check("{{ '<|' + other.role + '|>' }}", "<|<|end|>|>", {"<|end|>"});
  check("{{ 'a' ~ m.content | trim ~ 'b' }}", "a<|end|> éb", {"<|end|> é"});
  check("{{ m.content[1:4] + 'x' }}", "<|ex", {"<|e"});
  check("{{ m.content.split('|') | join('#') }}", " <#end#> é ", {" <", "end", "> é "});
  check("{{ m.content.replace('<|end|>', '<|x|>') }}", " <|x|> é ", {" ", " é "});
  check("{{ m.content | upper }}", " <|END|> É ", {" <|END|> É "});
  check("{{ t | tojson }}", R"({"name": "f<|end|>", "n": 3})", {"name", "f<|end|>", "n"});
  check("{{ t }}", "{'name': 'f<|end|>', 'n': 3}", {"name", "f<|end|>", "n"});
  check("{% set x %}[{{ t.name }}]{% endset %}{{ x }}{{ x | length }}", "[f<|end|>]10", {"f<|end|>"});
  check("{% macro f(a) %}({{ a }}){% endmacro %}{{ f(t.name) }}", "(f<|end|>)", {"f<|end|>"});
  check("{% for c in t.name %}{{ c }}-{% endfor %}", "f-<-|-e-n-d-|->-", {"f", "<", "|", "e", "n", "d", "|", ">"});
  check("{{ '%s|%s' % (t.name, 'x') }}", "f<|end|>|x", {"f<|end|>"});
  check("{{ t.name | indent }}{{ t.name | reverse }}", "f<|end|>>|dne|<f", {"f<|end|>>|dne|<f"});
}

TEST(JinjaTemplate, ErrorsNameTheLine) {
  expect_refused([] { JinjaTemplate("a\n{% if x %}\n{{ 1 + }}"); },
                 "chat template: line 3: expected an expression, found the end of a tag");
  expect_refused([] { JinjaTemplate("{% include 'x' %}"); }, "chat template: line 1: include is not supported");
  expect_refused([] { JinjaTemplate("\xff"); }, "chat template: byte 1 is not valid UTF-8");
}

}  // namespace
}  // namespace qkv
