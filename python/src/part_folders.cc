// PartFolders, with the GIL free while the model works.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "options.h"
#include "qkv/jobs.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

using Lines = std::vector<std::string>;

// The state, the error, and notes on lines that were truncated or split.
using Report = std::tuple<std::string, nb::object, Lines>;

// Does a part, and handles signals from time to time. Names are bytes, as in the file system.
Report run(const PartFolders& folders, const nb::bytes& name, const PartWork& work) {
  Lines notes;
  PartReport report;
  {
    const std::string own(name.c_str(), name.size());
    const nb::gil_scoped_release release;
    report = folders.run(own, [&](LineReader& lines, LineOutput& output) {
      output.note = [&](const std::string& note) { notes.push_back(lines.name() + ": " + note); };
      output.progress = [](int64_t) { handle_signals(); };
      work(lines, output);
    });
  }
  return {std::string(names_of(report.state)[static_cast<size_t>(report.state)]), text_of(report.error), notes};
}

Report translate_part(const PartFolders& folders, const nb::bytes& name, const Translator& translator,
                 const nb::dict& values, bool json) {
  auto options = options_of<TranslateOptions>(values, "translate");
  if (json) options.alignment = true;
  translator.translate(Lines(), options);  // checks the options
  return run(folders, name, [&](LineReader& lines, const LineOutput& output) {
    const auto read = [&](SourceLine& line, bool wait) { return lines.next(line.text, wait); };
    translate_lines(translator, read, options, form_of(options, json), output);
  });
}

Report embed(const PartFolders& folders, const nb::bytes& name, const Embedder& embedder, const nb::dict& values,
             const std::string& form) {
  const auto options = options_of<EmbedOptions>(values, "embed");
  embedder.embed({}, options);  // checks the options
  const VectorForm given = form == "npy" ? VectorForm::npy : form == "json" ? VectorForm::json : VectorForm::text;
  return run(folders, name, [&](LineReader& lines, const LineOutput& output) {
    embed_lines(embedder, lines, options, given, output);
  });
}

Report recommend(const PartFolders& folders, const nb::bytes& name, const Recommender& recommender,
                 const nb::dict& values) {
  const auto options = std::make_shared<RecommendOptions>(options_of<RecommendOptions>(values, "recommend"));
  recommender.check(*options);
  const Titles titles([&](std::string_view item) { return recommender.has_item(item); });
  return run(folders, name, [&](LineReader& lines, const LineOutput& output) {
    recommend_lines(recommender, titles, lines, options, output);
  });
}

nb::list names(const PartFolders& folders, int64_t worker, int64_t workers) {
  nb::list found;
  for (const std::string& name : folders.names(worker, workers)) found.append(nb::bytes(name.data(), name.size()));
  return found;
}

void open_folders(PartFolders* self, const nb::bytes& source, const nb::bytes& target, const std::string& suffix) {
  new (self) PartFolders({source.c_str(), source.size()}, {target.c_str(), target.size()}, suffix);
}

}  // namespace

void bind_part_folders(nb::module_& m) {
  nb::class_<PartFolders>(m, "PartFolders")
      .def("__init__", open_folders)
      .def("names", names)
      .def("remove_leftovers", &PartFolders::remove_leftovers, nb::call_guard<nb::gil_scoped_release>())
      .def("translate", translate_part)
      .def("embed", embed)
      .def("recommend", recommend);
}

}  // namespace qkv::python
