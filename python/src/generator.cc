// Generator, with the GIL free while the model works.
#include "qkv/generator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "options.h"
#include "qkv/chat.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

void make_generator(Generator* generator, const std::string& run, int64_t cache_bytes, const nb::dict& placement) {
  const auto place = options_of<Placement>(placement, "Generator");
  const nb::gil_scoped_release release;
  new (generator) Generator(run, cache_bytes, place);
}

// Generates texts. on_text receives bytes, which may end within a character. Handles signals after each token.
std::vector<Generation> generate(const Generator& generator, const std::vector<std::string>& prompts,
                                 const nb::dict& values, const nb::object& on_text, const nb::object& on_done) {
  GenerateOptions options = options_of<GenerateOptions>(values, "generate");
  options.on_text = [&](std::string_view text) {
    handle_signals();
    const nb::gil_scoped_acquire gil;
    if (!on_text.is_none()) on_text(nb::bytes(text.data(), text.size()));
  };
  const auto done = [&](size_t prompt, const Generation& text) {
    const nb::gil_scoped_acquire gil;
    if (!on_done.is_none()) on_done(prompt, nb::cast(text));
  };
  const nb::gil_scoped_release release;
  return generator.generate_all(prompts, options, done);
}

// Scores texts.
std::vector<TextScore> score(const Generator& generator, const std::vector<std::string>& texts,
                             const nb::dict& values) {
  const ScoreOptions options = options_of<ScoreOptions>(values, "score");
  const nb::gil_scoped_release release;
  return generator.score_all(texts, options);
}

AttentionMap attend_text(const Generator& generator, const std::string& text, int64_t more,
                         const nb::dict& attribution) {
  const AttributionOptions options = options_of<AttributionOptions>(attribution, "attend");
  const nb::gil_scoped_release release;
  return generator.attend(text, more, options);
}

Patching patch_text(const Generator& generator, const std::string& clean, const std::string& corrupted,
                    const nb::dict& values) {
  const PatchOptions options = options_of<PatchOptions>(values, "patch");
  const nb::gil_scoped_release release;
  return generator.patch(clean, corrupted, options);
}

// The parts of a conversation as JSON, and the flags of ChatOptions.
ChatOptions chat_options(const nb::dict& values) {
  const auto text = [&](const char* name) { return nb::cast<std::string>(values[name]); };
  return {text("tools"), text("documents"), text("variables"), nb::cast<bool>(values["add_generation_prompt"]),
          nb::cast<bool>(values["continue_final_message"])};
}

std::string chat_text(const Generator& generator, const std::string& chat_template, const std::string& messages,
                      const nb::dict& chat) {
  return Chat(generator, chat_template).text(messages, chat_options(chat));
}

// Generates an answer. on_text is called as by generate.
Generation chat(const Generator& generator, const std::string& chat_template, const std::string& messages,
                const nb::dict& chat, const nb::dict& values, const nb::object& on_text) {
  const ChatOptions chat_values = chat_options(chat);
  GenerateOptions options = options_of<GenerateOptions>(values, "chat");
  options.on_text = [&](std::string_view text) {
    handle_signals();
    const nb::gil_scoped_acquire gil;
    if (!on_text.is_none()) on_text(nb::bytes(text.data(), text.size()));
  };
  const nb::gil_scoped_release release;
  return Chat(generator, chat_template).answer(messages, options, chat_values);
}

}  // namespace

nb::str text_of(std::string_view bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

void bind_generator(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TokenAlternative>(m, "TokenAlternative")
      .def_prop_ro("text", [](const TokenAlternative& t) { return text_of(t.text); })
      .def_ro("log_probability", &TokenAlternative::log_probability)
      .def_ro("end", &TokenAlternative::end);
  nb::class_<GeneratedToken>(m, "GeneratedToken")
      .def_prop_ro("text", [](const GeneratedToken& t) { return text_of(t.text); })
      .def_ro("log_probability", &GeneratedToken::log_probability)
      .def_ro("alternatives", &GeneratedToken::alternatives);
  nb::class_<Generation>(m, "Generation")
      .def_prop_ro("text", [](const Generation& g) { return text_of(g.text); })
      .def_ro("tokens", &Generation::tokens)
      .def_prop_ro("end", [](const Generation& g) { return text_of(names_of(g.end)[static_cast<size_t>(g.end)]); });
  nb::class_<TextScore>(m, "TextScore")
      .def_ro("tokens", &TextScore::tokens)
      .def_ro("log_probability", &TextScore::log_probability)
      .def_ro("scored", &TextScore::scored)
      .def_prop_ro("perplexity", &TextScore::perplexity);
  nb::class_<Generator>(m, "Generator")
      .def("__init__", make_generator)
      .def("generate", generate, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("score", score)
      .def("chat", chat, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("chat_text", chat_text)
      .def("hidden", &Generator::hidden, Free())
      .def("lens", &Generator::lens, Free())
      .def("patch", patch_text)
      .def("attend", attend_text);
}

}  // namespace qkv::python
