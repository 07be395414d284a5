// Generator, with the GIL free while the model works.
#include "qkv/generator.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "options.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

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
      .def(nb::init<const std::string&, int64_t>(), Free())
      .def("generate", generate, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("score", score)
      .def("attend", &Generator::attend, Free());
}

}  // namespace qkv::python
