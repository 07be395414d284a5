// Recommender, with the GIL free while the model works.
#include "qkv/recommender.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>

#include "bindings.h"
#include "options.h"

namespace nb = nanobind;

namespace qkv::python {
namespace {

using Histories = std::vector<std::vector<std::string>>;
using Times = std::vector<std::vector<std::optional<int64_t>>>;

constexpr std::ptrdiff_t kPart = 256;  // histories between checks for signals

void make_recommender(Recommender* recommender, const std::string& run, const std::string& catalogue,
                      const std::string& item_column, const std::string& new_items, const std::string& before,
                      const nb::dict& placement) {
  const auto place = options_of<Placement>(placement, "Recommender");
  const nb::gil_scoped_release release;
  new (recommender) Recommender(run, {catalogue, item_column, new_items, before}, place);
}

std::vector<int64_t> known_times(const std::vector<std::optional<int64_t>>& times) {
  std::vector<int64_t> known;
  for (const std::optional<int64_t>& time : times) known.push_back(time.value_or(kNoTime));
  return known;
}

// Recommends for each history. times: one list for each history.
std::vector<Recommendations> recommend_all(const Recommender& recommender, const Histories& histories,
                                           const Times& times, const nb::dict& values) {
  const RecommendOptions options = options_of<RecommendOptions>(values, "recommend");
  const nb::gil_scoped_release release;
  std::vector<Recommendations> answers;
  for (auto begin = histories.begin(); begin != histories.end();) {
    const auto end = begin + std::min(kPart, histories.end() - begin);
    std::vector<std::vector<int64_t>> part;
    for (auto history = begin; history != end; history++)
      part.push_back(known_times(times[static_cast<size_t>(history - histories.begin())]));
    std::ranges::move(recommender.recommend_all({begin, end}, options, part), std::back_inserter(answers));
    begin = end;
    handle_signals();
  }
  return answers;
}

Recommendations similar(const Recommender& recommender, std::string_view item, const nb::dict& values) {
  const RecommendOptions options = options_of<RecommendOptions>(values, "similar");
  const nb::gil_scoped_release release;
  return recommender.similar(item, options);
}

std::vector<std::optional<int64_t>> times(const Recommender& recommender, std::string_view user) {
  std::vector<std::optional<int64_t>> times;
  for (const int64_t time : recommender.times(user))
    times.push_back(time == kNoTime ? std::nullopt : std::optional(time));
  return times;
}

HiddenStates states_of(const Recommender& recommender, const std::vector<std::string>& history,
                       const std::vector<std::optional<int64_t>>& times) {
  return recommender.hidden(history, known_times(times));
}

}  // namespace

void bind_recommender(nb::module_& m) {
  nb::class_<Recommendation>(m, "Recommendation")
      .def_ro("item", &Recommendation::item)
      .def_ro("score", &Recommendation::score)
      .def_ro("effects", &Recommendation::effects);
  nb::class_<Recommendations>(m, "Recommendations")
      .def_ro("items", &Recommendations::items)
      .def_ro("popular", &Recommendations::popular)
      .def_ro("read", &Recommendations::read)
      .def_ro("unknown", &Recommendations::unknown)
      .def_ro("unknown_listed", &Recommendations::unknown_listed);
  nb::class_<Recommender>(m, "Recommender")
      .def("__init__", make_recommender)
      .def("messages", &Recommender::messages)
      .def("items", &Recommender::items)
      .def("users", &Recommender::users)
      .def("has_item", &Recommender::has_item)
      .def("has_user", &Recommender::has_user)
      .def("history", &Recommender::history)
      .def("times", times)
      .def("max_length", &Recommender::max_length)
      .def("recommend_all", recommend_all)
      .def("basket", &Recommender::basket)
      .def("similar", similar)
      .def("hidden", states_of, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace qkv::python
