#include "fuzz/seeds.h"

#include <algorithm>
#include <array>

#include "core/fields.h"
#include "eval/negatives.h"
#include "fuzz/small.h"
#include "io/runs/run_config.h"
#include "io/runs/saved_interactions.h"
#include "io/runs/translation_config.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/weights.h"
#include "program/explain/explain.h"
#include "qkv/config.h"
#include "qkv/train.h"
#include "ranks/rank_messages.h"
#include "tests/support/rewrite_tensors.h"
#include "tests/support/temp_dir.h"
#include "train/loop/checkpoint.h"

namespace qkv::fuzz {
namespace {

namespace fs = std::filesystem;

void safetensors(const fs::path& directory) {
  const std::vector<float> numbers = {1, -2, 0.5f, 3, 4, 5};
  Seeds seeds(directory, "safetensors");
  write_safetensors(seeds.path(), {});
  const NamedTensor tensors[] = {{"w", f32_tensor({2, 2}, std::span(numbers).first(4))},
                                 {"b", f32_tensor({1}, std::span(numbers).first(1))},
                                 {"half", {DType::f16, {3}, std::as_bytes(std::span(numbers)).first(6)}},
                                 {"empty", {DType::i64, {2, 0}, {}}}};
  write_safetensors(seeds.path(), tensors, {{"format", "pt"}});
}

void configurations(const fs::path& directory) {
  ModelConfig model;
  model.source_vocab = model.target_vocab = 100;
  Seeds seeds(directory, "config"), json(directory, "json");
  const RunConfig run{kRunFormat, RunKind::translator, "0.1.0", model, {}};
  RunConfig features = run;
  features.items.features = 3;
  for (const std::string& text :
       {json_from_fields(run), to_json(model), json_from_fields(TrainingConfig()), json_from_fields(features),
        std::string(R"({"heads": 2})"), std::string(R"({"format": 2, "version": "9"})")}) {
    seeds.add(text);
    json.add(text);
  }
  TranslationConfig languages;
  languages.languages = {"de", "en"};
  languages.language_tokens = {"__de__", "__en__"};
  languages.source_language = SourceLanguage::before;
  languages.target_language = TargetLanguage::first;
  languages.source_end = "</s>";
  seeds.add(json_from_fields(languages));
  seeds.add(R"({"runs": ["mt=runs/mt"], "port": 8080, "max_body": "1M", "bodies": 1, "deadline": 5, "cache": null})");
  for (const std::vector<std::string>& codes : {std::vector<std::string>{}, {"de", "de"}, {"de", ""}}) {
    languages.languages = codes;
    seeds.add(json_from_fields(languages));
  }
  languages.first = "<s>";
  seeds.add(json_from_fields(languages));
  json.add(R"([1, -2, 3.5e-7, 18446744073709551615, true, null, "\u00e9\ud83d\ude00\n", {"a": {"b": [[], {}]}}])");
}

void training(const fs::path& directory) {
  FewParameters parameters;
  const TrainingConfig config;
  const OptimizerState optimizer(config, parameters);
  Seeds states(directory, "state"), metrics(directory, "metrics"), plots(directory, "plot");
  save_state(states.path(), {1234, {5, 2, 67, {8, 9}}, 0.25, 1200, 3, {1100, 1200}}, "text", parameters, optimizer);
  Seeds messages(directory, "rank_messages");
  const auto add = [&](const auto& bytes) {
    messages.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  add(write_hello({"qkv 0.1.0", "avx2", "c3", 8}));
  add(write_file_header({"training.json", 1234}));
  add(write_value("0123456789abcdef 200"));
  add(write_command(Command::save, 0));
  add(write_part_header({3, 200}));
  std::vector<std::byte> tokens;
  for (const auto& side : {std::vector<int32_t>{2, 5, 6, 1, 4}, {1, 7, 3, 4, 5, 6}})
    append_list(side, {100, 20}, tokens);
  tokens.resize(tokens.size() + 2);  // two pairs
  add(tokens);
  std::array<std::byte, kWatchBytes> watch;
  write_watch_message({WatchKind::failure, "rank 2 (c3): text.en: cannot be opened"}, watch);
  add(watch);
  std::string many;
  for (int step = 1; step <= 520; step++) many += fmt::format("{{\"step\": {}, \"loss\": 2}}\n", step);
  plots.add(many);
  metrics.add("{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"dev\": {\"last\": {\"bleu\": 1.5}}}\n{\"step\": 3");
  plots.add(
      "{\"step\": 1, \"loss\": 2.5, \"learning_rate\": 0.1, \"tokens_per_second\": 9, \"seconds\": 1}\n"
      "{\"step\": 1, \"dev\": {\"ema\": {\"loss\": 2, \"bleu\": 1.5}}, \"best\": \"ema\", \"improved\": true}\n");
}

void weights(const fs::path& directory) {
  Transformer<float> model(small_model());
  ParameterList<float>& parameters = model.parameters();
  parameters.initialize(1);
  Seeds seeds(directory, "weights");
  save_weights(seeds.path(), parameters, parameters.values());
  quantize(parameters);
  save_quantized(seeds.path(), parameters);
  const std::string apart = seeds.path(), reshaped = seeds.path(), mixed = seeds.path();
  save_quantized(apart, parameters);
  testing::rewrite_tensors(apart, [](auto& tensors) { std::ranges::reverse(tensors); });
  save_quantized(reshaped, parameters);
  testing::rewrite_tensors(reshaped, [](auto& tensors) {
    for (testing::Tensor& tensor : tensors)
      if (tensor.dtype == DType::i8) std::ranges::reverse(tensor.shape), tensor.shape.push_back(1);
  });

  save_quantized(mixed, parameters);
  testing::rewrite_tensors(mixed, [](auto& tensors) {  // one matrix has floats
    const auto first = std::ranges::find(tensors, DType::i8, &testing::Tensor::dtype);
    first->dtype = DType::f32;
    first->bytes.resize(4 * first->bytes.size());
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == int8_scale(first->name); });
  });

  Transformer<float> wider(small_int4_model());
  wider.parameters().initialize(1);
  quantize(wider.parameters(), 4);
  save_quantized(Seeds(directory, "weights_int4").path(), wider.parameters());
}

void texts(const fs::path& directory) {
  Seeds seeds(directory, "text"), pairs(directory, "pairs");
  pairs.add("one\teins\none\teins\n\u00C3\u00A4\tb\n\xFF\tc\nd\n \te\nsame\tsame\n");
  seeds.add("one\teins\r\ntwo\tzwei\n\u00A0three \U0001F600\tdrei");
  seeds.add("\uFEFFIÉß\n\n\u2028ba\xFF\n");
}

void http(const fs::path& directory) {
  Seeds requests(directory, "http_request"), targets(directory, "http_target");
  const std::string start = "POST /v1/translate HTTP/1.1\r\nHost: localhost:8080\r\n";
  requests.add(start + "Content-Length: 4\r\nExpect: 100-continue\r\n\r\nbodyGET / HTTP/1.0\r\n\r\n");
  requests.add(start + "Transfer-Encoding: chunked\r\n\r\n3;n=\"v\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\n");
  requests.add("\r\nGET http://[::1]/x?a=1 HTTP/1.1\r\nHost: [::1]\r\nConnection: close, x\r\nX-Y:  z \r\n\r\n");
  targets.add("/api/recommend/42/?n=10&offset=%30&q=a+b%C3%A9&n");
  targets.add("HTTPS://example.org:443?x=y");
}

void forms(const fs::path& directory) {
  Seeds fields(directory, "form"), parts(directory, "multipart");
  fields.add("q=a+b%20%C3%A9&q=&source=auto&&x");
  parts.add(
      "multipart/form-data; boundary=\"B\"\n--B\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--B "
      "\r\nContent-Disposition: form-data; name=file; filename=\"\\\"a.srt\"\r\nContent-Type: text/plain; "
      "charset=utf-8\r\n\r\n1\r\n\r\n--B--\r\n");
}

void web_pages(const fs::path& directory) {
  Seeds seeds(directory, "html");
  seeds.add(
      "<!DOCTYPE html><title>A &amp; B</title><body class=x><!-- c --><p>The <b>red <i title='>'>house</i></b>, "
      "<code>f(x)</code>&nbsp;and <a href=\"u\">one<br/>more</a>.<li translate=no>x<li>two<pre>a</pre><svg/>");
  seeds.add(
      "<b>A <i>B</b> C</i> D<script><!--<script></script>--></script><textarea></textarea><span class=notranslate>");
  seeds.add(
      "<p>&#65;&#x41;&#X1F600;&#0;&#128;&#xD800;&#1114112;&amp&notit;&nosuch;&lt;b&gt;&quot;<![CDATA[x]]><?y?></p>");
  seeds.add(
      "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<i>Two dogs</i>\r\n- run\r\n\r\n2\r\n00:00:03,000 --> "
      "00:00:04,000\n");
}

void sentences(const fs::path& directory) {
  Seeds seeds(directory, "sentences");
  seeds.add("Dr.\nbzw\n\nz.B.\n");
  seeds.add(
      "Dr. J. R. Smith (U.S.) said: \"Go.\" Then he left... at 5 p.m. [1] Why? Am 3. Mai. 1. One 😀 www.x.org :-) "
      "It's.");
  seeds.add(
      "他说：“你好。”然后「走了。」と？ Τι; Բարեւ: क्या। สวัสดีครับ นอกจากนี้ «Да!» — сказал г. Иванов в 1990 г. и т. д.");
}

// 1 2, 1 3, 2 2; then two members, a long line and a word.
void gzip(const fs::path& directory) {
  Seeds seeds(directory, "gzip");
  const auto add = [&](std::initializer_list<unsigned char> bytes) {
    seeds.add(std::string(bytes.begin(), bytes.end()));
  };
  add({0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x33, 0x54, 0x30, 0xE2, 0x32,
       0x54, 0x30, 0xE6, 0x32, 0x02, 0xD2, 0x00, 0x30, 0x27, 0xA3, 0xAA, 0x0C, 0x00, 0x00, 0x00});
  add({0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xAB, 0xA8, 0x18, 0x05, 0x83, 0x09, 0x70,
       0x01, 0x00, 0xBC, 0xDD, 0xB2, 0x8C, 0x91, 0x01, 0x00, 0x00, 0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00,
       0x00, 0x02, 0x03, 0x3B, 0xBC, 0x92, 0x0B, 0x00, 0xB5, 0x1F, 0xB8, 0xF3, 0x03, 0x00, 0x00, 0x00});
}

// The same texts, in frames with checksums; before the second one a frame that is skipped.
void zstd(const fs::path& directory) {
  Seeds seeds(directory, "zstd");
  const auto add = [&](std::initializer_list<unsigned char> bytes) {
    seeds.add(std::string(bytes.begin(), bytes.end()));
  };
  add({0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0x61, 0x00, 0x00, 0x31, 0x20, 0x32, 0x0A,
       0x31, 0x20, 0x33, 0x0A, 0x32, 0x20, 0x32, 0x0A, 0xD7, 0x2F, 0x10, 0x20});
  add({0x50, 0x2A, 0x4D, 0x18, 0x02, 0x00, 0x00, 0x00, 0x61, 0x62, 0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68,
       0x4D, 0x00, 0x00, 0x10, 0x78, 0x0A, 0x01, 0x00, 0x8C, 0x2A, 0x10, 0x02, 0x64, 0xD9, 0x88, 0x97,
       0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0x19, 0x00, 0x00, 0xC3, 0xA9, 0x0A, 0x21, 0x0B, 0xCF, 0x3F});
}

void logs(const fs::path& directory) {
  Seeds seeds(directory, "interactions"), saved(directory, "saved_interactions"), requests(directory, "requests");
  seeds.add(
      "userId,movieId,rating,timestamp\n1,\"Heat, 1995\",5,964982703\n1,\"a \"\"b\"\"\",4.5,964982224.5\n2,x,3,1\n");
  seeds.add("1::2::5::978300760\n1::3::4::978300760\n2::2::4::978300762\n1::2::5::978300760\n");
  seeds.add("a|x|01.05.2024 10:30+02\na|\"y\"|2.5.2024 9:00Z\nb|x\nb|\"x|3\nb|x|02.05.2024 10:30+0200\n");
  seeds.add("a;x;4,5;1714557600\nb;x;3,0;1.7145576e9\na;y\n");
  seeds.add("a,x,20240501T103005Z\nb,x,\"Wed, 01 May 2024 10:30:05 GMT\"\n");
  seeds.add("1 1\n1 2\n1 3\n2 1\n2 2\n2 3\n3 1\n3 2\n3 3\n");
  seeds.add("a\tb\ttime\nu\ti\t2024-05-01T10:30:05.5+02:00\nu\tj\t2024-05-01\n");
  seeds.add("{\"user\": \"a\", \"item\": 5, \"ts\": 1.5}\n{\"user\": 1, \"item\": \"b\", \"ts\": \"2\"}\n");
  seeds.add(
      "{\"user\": \"a\", \"x\": [1, {\"y\": 2}], \"item\": 5}\n{\"user\": null, \"item\": 5}\n{\"user\": true, "
      "\"item\": 5}\n");
  seeds.add(
      "userId,venueId,utcTimestamp\n1,a,Tue Apr 03 18:00:09 +0000 2012\n,a,\n1,b,Tue Apr 03 18:00:10 +0000 2012\n");
  requests.add(R"({"history": ["i1", "The Matrix", 5], "times": [1, null, 60], "top": 3, "explain": true, "id": {}})");
  requests.add(
      R"({"user": "bob", "history": [], "allow": ["i4", "The Matrix"], "deny": ["i0"], "include_seen": true})");
  requests.add(
      R"({"history": ["i1", ["i5", "i2"]], "where": ["kind=a|b", "price<4", "kind!=c"], "exclude_seen": false})");
  requests.add(R"({"similar": "i3", "diversity": 0.5, "where": ["3>=1", "kind~b"], "top": 4})");
  Seeds texts(directory, "text_requests");
  texts.add(R"({"text": "A dog runs.", "pair": "An animal moves."})");
  texts.add(R"({"query": "a dog", "texts": ["A dog runs.", "Zwei Männer"], "top": 1})");
  texts.add("A dog runs.\tAn animal moves.");
  Seeds matrices(directory, "explain");
  for (const auto example : {layer_example, decoder_example, language_model_example, queries_example})
    matrices.add(explain_input_to_json(example()));
  matrices.add(R"({"X": [[1, 2]], "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2], [1]], "layer":
    {"W_1": [[1], [1]], "W_2": [[1, 1]]}})");
  matrices.add(R"({"X": [[1, 2]], "heads": []})");
  matrices.add(R"({"X": [[1, 2]], "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2], [1]], "b_Q": [1], "b_K": [[2]],
    "b_V": [3], "W_O": [[1, 2]], "b_O": [0, 1], "form": "columns", "output": {"W": [[1, 2], [3, 4]], "b": [0, 1],
    "vocabulary": ["a", "b"], "labels": ["b"], "label_smoothing": 0.1}})");
  matrices.add(R"({"X": [[1, 2]], "memory": [[3]], "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2], [1]], "W_O":
    [[1, 2]], "cross": {"W_Q": [[1], [2]], "W_K": [[1]], "W_V": [[2]], "W_O": [[1, 2]], "mask": [[null]], "scale": 2},
    "layer": {"W_1": [[1], [1]], "W_gate": [[1], [1]], "b_gate": [1], "W_2": [[1, 1]], "norm": "rms", "norm_position":
    "pre", "gamma_3": [1, 2]}, "output": {"W": [[1, 2], [3, 4]], "gamma": [1, 2], "labels": [0]}})");
  matrices.add(R"({"X": [[1, 2]], "memory": [[3, 4], [-5e-1, 0]], "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2, 1],
    [1, 2]], "mask": [[0, null]], "scale": 0.5, "dO": [[1, 2]]})");
  Interactions data;
  data.users = {"a", "b"}, data.items = {"x", "y"};
  data.offsets = {0, 3, 5}, data.events = {0, 1, 1, 1, 0}, data.times = {1, 2, 2, 3, 4};
  const testing::TempDir run;
  write_log(RunDirectory(run.path()), {data, std::string(64, '0')});
  for (const char* name : {"interactions.safetensors", "users.json", "items.json"})
    fs::copy_file(run / name, saved.path(), fs::copy_options::overwrite_existing);
  save_negatives(saved.path(), {3, {0, 1, 1, 0, 0, 1}}, std::string(64, '0'));
}

void tables(const fs::path& directory) {
  Seeds titles(directory, "titles"), features(directory, "item_features");
  for (const char* table : {"movieId,title,genres\n1,\"Matrix, The (1999)\",Action|Drama\n2,Heat (1995),Drama|Action\n",
                            "1::Heat (1995)::Drama\n2::\"Heat\" (1986)::Drama\n3::::\n", "id;name\n1;a b\n2;b a\n",
                            "1\ta|b\tc d\n2\tb|a\td, e\n"}) {
    titles.add(table);
    features.add(table);
  }
  Seeds examples(directory, "examples");
  for (const char* rows :
       {"\"A man, \"\"dancing\"\".\",A man.,5.0\n\n\"x\",,2.4\r\n", "id;b;a\n1;\"x;y\";z\n2;;w\n",
        "a fine text\t1\n\"x, y\t0", "\uFEFFtext,label\nx,y\n", "anchor\tnegative_1\tpositive\nx\ty\tz\n", "one\ntwo\n",
        "{\"sentence1\": \"x\", \"sentence2\": \"\\u00e9\", \"score\": 4.5}\n\n"
        "{\"score\": 1, \"sentence1\": \"\", \"sentence2\": \"y\"}\n",
        "{\"query\": \"x\", \"positive\": [\"y\"], \"negative\": [\"z\", true, 5]}\n",
        "{\"text\": \"x\", \"labels\": [\"a\", 1]}\n{\"text\": \"y\", \"labels\": []}\n",
        "{\"a\": \"x\", \"b\": [\"y\"]}\n"})
    examples.add(rows);
  Seeds parts(directory, "protected_parts");
  parts.add("Ac.e|\\bQ\\d+\nSee (https://a.org/x_(y)), me@b.com, /usr/bin/x, `f(x)` and C:\\d\\e.txt. Acme Q12\n");
  parts.add("\n{n, plural, one {# a} other {# b}} %1$s ${X} %(a)d <b t=\">\">&amp;</b><!-- c --> #tag @me {{ y }}\n");
  parts.add("\n-5 \u00B0C, \u20AC12.50, 1,299.99, 10 000 km, v1.2-rc1, 2024-05-01T10:30Z, +49 30 123456, RTX-4090, iPhone\n");
  Seeds word_links(directory, "word_links");
  word_links.add("The cat sat.\n# text\n1\tThe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\t_\t_\t_\t3\tnsubj:x\t_\t_\n"
                 "3\tsat\t_\t_\t_\t_\t0\troot\t_\t_\n3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n4\t.\t_\t_\t_\t_\t3\tpunct\t_\t_\n");
  word_links.add("a zum See\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2-3\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n"
                 "2\tzu\t_\t_\t_\t_\t4\tcase\t_\t_\n3\tdem\t_\t_\t_\t_\t4\tdet\t_\t_\n4\tSee\t_\t_\t_\t_\t1\tobl\t_\t_\n");
  word_links.add("a b c\n0-0 2-1 1-1\n");

  Seeds glossary(directory, "glossary");
  glossary.add("\uFEFF# animals\r\ndog | dogs\tHund|Hunde\tnote\r\nDog\tDogge\ndog\tK\u00F6ter\nNew  York\tNew York\n");
  glossary.add("stra\u00DFe\tstreet\na\\|b\\\\\tc\n\u5317\u4EAC\tBeijing\n\u304B\u3099\tga\n");
}

void chat_templates(const fs::path& directory) {
  Seeds seeds(directory, "chat_template");
  for (
      const char* source :
      {"{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m.content | trim ~ eos_token }}{% endfor %}",
       "{%- if messages[0].role == 'system' -%}{%- set s = messages[0]['content'] %}{%- set messages = messages[1:] -%}"
       "{%- elif tools is not none and not x %}{%- else -%}a{%- endif -%}{{ s if s is defined else 'b' }}",
       "{% macro f(a, b=[1, 2.5e1, 0x]) %}{{ a }}{% endmacro %}",
       "{%- macro f(t, n=1) -%}{%- if t is mapping %}{% for k, v in t.items() if k not in ('x',) %}{{ k }}: {{ f(v) }}"
       "{% if loop.last %}{% break %}{% else %}{% continue %}{% endif %}{% endfor %}{% else %}{{ t }}{% endif %}"
       "{%- endmacro -%}{{ f(tools[0], n=2) }}",
       "{% set ns = namespace(n=0, t='') %}{% for m in messages[::-1] %}{% set ns.n = ns.n + loop.index0 %}{% endfor %}"
       "{{ ns.n }}{{ -1 ** 2 // 3 % 2 / 1 * +4 - 2 <= 3 < 4 != 5 > 1 >= 0 == 0 and 1 in [1] or 'a' not in 'b' }}",
       "{{ tools | tojson(indent=2, separators=(',', ':')) }}{{ {'a': 1, \"b\\x41\\u00fc\\101\\\\\": ()}['a'] }}{{ "
       "messages }}",
       "{% set x | upper %} a {{ 1 }}{% endset %}{% filter replace('a', 'b') | trim %}{{ x }}{% endfilter %}"
       "{% with a = 1, b = 2 %}{{ a ~ b }}{% endwith %}{% generation %}g{% endgeneration %}",
       "{% macro w(x) %}<{{ caller(x) }}>{% endmacro %}{% call(v) w(1) %}{{ v }}{% endcall %}{% call w(*[2], **{}) "
       "%}{% endcall %}",
       "a\n  {#- c -#}\n {%+ if true +%}\n{% endif %}{% raw -%} {{ x }} {%- endraw %}\r\n",
       "{{ 'a,b'.split(',')[1:][0] | default('x', true) | length is divisibleby 2 }}{{ strftime_now('%Y') }}"
       "{{ raise_exception('no') if messages.0.x is defined }}{% for a, (b, c) in [] recursive %}{% endfor %}"})
    seeds.add(source);
}

}  // namespace

void write_seeds(const fs::path& directory) {
  for (const auto write :
       {safetensors, configurations, tokenizer_seeds, training, weights, texts, chat_templates, http, forms, web_pages,
        document_seeds, sentences, gzip, zstd, logs, tables, import_seeds, gguf_seeds, server_seeds})
    write(directory);
}

}  // namespace qkv::fuzz
