// Bodies of requests to the models of fuzz/tiny_runs.h.
#include <fmt/format.h>

#include "fuzz/seeds.h"

namespace qkv::fuzz {
namespace {

namespace fs = std::filesystem;

void translations(const fs::path& directory) {
  Seeds seeds(directory, "server_translate");
  seeds.add(R"({"text": ["the dog", "a book"], "prefix": ["", "a"], "beam": 3, "n_best": 2, "alignment": true,
    "attention": true, "word_scores": true, "replace_unknown": true, "length_penalty": 0.5, "stream": true})");
  seeds.add(R"({"text": "the cat", "sampling": true, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "seed": 7,
    "max_length": 6, "beam": 1, "stream": true, "model": "mt", "repetition_penalty": 1.2, "no_repeat_ngram": 2})");
  seeds.add(R"({"text": "the dog sees", "target": "a man", "words": true, "generate": 2})");
  seeds.add(R"({"q": "the <b>dog</b>", "source": "en", "target": "de", "format": "html", "alternatives": 2})");
  seeds.add(R"({"q": ["a cat", "caf\u00e9"], "source": "auto", "target": "de", "format": "text", "api_key": ""})");
  seeds.add(R"({"q": "a", "source": "a language whose name is cut \u00e9\u00e9\u00e9", "target": "de"})");
  seeds.add("q=the+dog%20sees&source=en&target=de&format=text&alternatives=1");
  for (const char* refused :
       {R"({"text": "a", "max_length": 100})", R"({"text": ["a", "b"], "prefix": ["x"]})",
        R"({"q": "a", "source": "xx", "target": "de"})", R"({"q": "a", "source": "de", "target": "en"})",
        R"({"q": "a", "source": "en", "target": "en"})",
        R"({"q": ["a", "a", "a", "a", "a", "a", "a", "a", "a"], "source": "en", "target": "de"})"})
    seeds.add(refused);
}

void completions(const fs::path& directory) {
  Seeds seeds(directory, "server_completions");
  seeds.add(R"({"prompt": "a dog", "max_tokens": 4, "temperature": 0.8, "top_p": 0.9, "n": 2, "seed": 3, "logprobs": 2,
    "stop": ["b", "cd"], "stream": true, "stream_options": {"include_usage": true}, "model": "lm"})");
  seeds.add(R"({"prompt": [[1, 2, 255], [3]], "max_tokens": 3, "echo": true, "top_k": 4, "min_p": 0.1,
    "repetition_penalty": 1.5, "presence_penalty": 0, "logit_bias": {}, "best_of": 1, "slide": true})");
  seeds.add(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text",
    "text": "\u00e9"}]}], "max_completion_tokens": 2, "logprobs": true, "top_logprobs": 2, "slide": true})");
  seeds.add(R"({"messages": [{"role": "user", "content": ""}], "stream": true, "max_tokens": 3, "n": 3, "tools": [],
    "slide": true})");
  seeds.add(
      R"({"messages": [{"role": "system", "content": "ab"}, {"role": "user", "content": "a"}, {"role": "assistant",
    "content": "b"}, {"role": "user", "content": "c"}], "max_tokens": 2, "slide": true, "logprobs": true,
    "stream": true})");
  for (const char* flag : {"false", "true"})
    seeds.add(fmt::format(R"({{"prompt": "ab", "echo": true, "logprobs": 1, "max_tokens": 2, "stream": {}}})", flag));
  for (const char* refused :
       {R"({"prompt": "a", "logit_bias": {"1": 2}})", R"({"prompt": "a", "tools": [1]})",
        R"({"prompt": "a", "response_format": {"type": "json_object"}})", R"({"prompt": ["a", "b"], "n": 6})",
        R"({"prompt": "a text of more than sixteen bytes", "echo": true, "logprobs": 1, "slide": true})"})
    seeds.add(refused);
}

void embeddings(const fs::path& directory) {
  Seeds seeds(directory, "server_embeddings");
  seeds.add(R"({"input": ["the dog", "a book"], "encoding_format": "base64", "dimensions": 4, "model": "enc"})");
  seeds.add(R"({"input": "a man", "encoding_format": "float", "user": "x"})");
  seeds.add(R"({"inputs": ["the cat", "a"], "normalize": false, "truncate": false})");
  seeds.add(R"({"inputs": "a book"})");
  seeds.add(R"({"inputs": ["a", "a", "a", "a", "a", "a", "a", "a", "a"]})");
  seeds.add(R"({"inputs": "the cat sees the dog reads a book sees the cat", "truncate": false})");
  seeds.add(R"({"input": "a", "encoding_format": "hex"})");
}

void recommendations(const fs::path& directory) {
  Seeds seeds(directory, "server_gorse");
  seeds.add(R"([{"FeedbackType": "like", "UserId": "ann", "ItemId": "i3", "Timestamp": "2024-05-01T10:30:00Z",
    "Value": 4.5}, {"FeedbackType": "read", "UserId": "bob", "ItemId": "i1", "Timestamp": "2024-05-01T10:30:01Z"}])");
  seeds.add(R"([{"UserId": "eve", "ItemId": "i5"}])");
  seeds.add(R"(bob,{"history": ["i1", "i2"], "top": 3, "explain": true, "exclude_seen": false})");
  seeds.add(R"([{"history": ["i1", ["i5", "i2"]], "deny": ["i0"], "id": 1}, {"similar": "i3", "diversity": 0.5}])");
  seeds.add(R"({"user": "ann", "history": [], "times": [], "allow": ["i4", "i5"], "top": 2})");
  seeds.add(R"([{"FeedbackType": "like", "UserId": "[{", "ItemId": "i3", "Timestamp": "2024-05-01T10:30:00Z"}])");
  seeds.add(R"([{"model": "rec", "history": ["i1"]}])");
  seeds.add(R"({"history": ["i1"], "top": 100000})");
  seeds.add("[{},{},{},{},{},{},{},{},{}]");
}

}  // namespace

void server_seeds(const fs::path& directory) {
  for (const auto write : {translations, completions, embeddings, recommendations}) write(directory);
}

}  // namespace qkv::fuzz
