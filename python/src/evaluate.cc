// Evaluation of runs and logs, with the GIL free. Results are JSON, as the program prints them.
#include "qkv/evaluate.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.h"
#include "options.h"
#include "qkv/interactions.h"
#include "qkv/text_evaluation.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

// Returns the protocol of a name, or for "" the default: that of the run, or "full" for logs.
RankingProtocol protocol_of(const std::string& name, const std::string& run) {
  if (!name.empty()) return RankingProtocol::named(name);
  return RankingProtocol::named(run.empty() ? "full" : protocol_of_run(run));
}

std::string evaluate(const std::string& run, const std::vector<std::string>& logs, const std::string& protocol,
                     int64_t next, int64_t users, bool validation, int64_t seed, double test_share,
                     const std::string& segments, const std::string& lists, const std::vector<std::string>& columns,
                     int64_t min_events, int64_t core, const std::string& separator, const std::string& time_format,
                     bool skip_bad_lines) {
  RankingProtocol values = protocol_of(protocol, run);
  values.next = next, values.most_users = users, values.validation = validation, values.seed = seed;
  values.test_share = test_share;
  const EvaluateOptions options{segments, lists};
  const InteractionOptions reading{.columns = columns,
                                   .min_events = min_events,
                                   .core = core,
                                   .separator = separator,
                                   .time_format = time_format,
                                   .skip_bad_lines = skip_bad_lines};
  return to_json(run.empty() ? evaluate_logs(logs, reading, values, options)
                             : evaluate_run(run, values, options));
}

std::tuple<int, int, int> event_columns(const std::vector<std::string>& names, const std::vector<std::string>& columns,
                                        const std::string& where) {
  const EventColumns found = find_event_columns(names, columns, where);
  return {found.user, found.item, found.time};
}

std::string evaluate_texts(const std::string& run, const std::string& rows, const std::vector<std::string>& columns,
                           const std::string& label_separator, bool ranking, const nb::dict& placement) {
  const TextEvaluationOptions options{.columns = columns,
                                      .label_separator = label_separator,
                                      .ranking = ranking,
                                      .placement = options_of<Placement>(placement, "evaluate_texts")};
  const nb::gil_scoped_release release;
  return to_json(qkv::evaluate_texts(run, rows, options));
}

}  // namespace

void bind_evaluate(nb::module_& m) {
  m.def("evaluate", evaluate, nb::call_guard<nb::gil_scoped_release>());
  m.def("evaluate_texts", evaluate_texts);
  m.def("find_event_columns", event_columns);
}

}  // namespace qkv::python
