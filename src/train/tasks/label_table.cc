#include "train/tasks/label_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/examples/field_values.h"

namespace qkv {
namespace {

constexpr size_t kMostLabels = 65536;

// Returns the elements of a JSON array of strings, numbers and booleans; nothing for other text.
std::optional<std::vector<std::string>> find_list(std::string_view field) {
  if (!field.starts_with('[')) return {};
  const nlohmann::json list = nlohmann::json::parse(field, nullptr, false);
  if (!list.is_array()) return {};
  if (std::ranges::any_of(list, [](const nlohmann::json& value) { return value.is_structured(); })) return {};
  std::vector<std::string> labels;
  for (const nlohmann::json& value : list)
    labels.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  return labels;
}

// Returns the labels of a field, each once. separator: "" for a field that is one label.
std::vector<std::string> split_labels(std::string_view field, const std::string& separator) {
  std::vector<std::string> labels;
  if (auto list = find_list(field)) {
    labels = std::move(*list);
  } else if (separator.empty()) {
    labels.emplace_back(field);
  } else {
    for (size_t begin = 0; begin <= field.size();) {
      const size_t end = std::min(field.find(separator, begin), field.size());
      labels.emplace_back(field.substr(begin, end - begin));
      begin = end + separator.size();
    }
  }
  for (std::string& label : labels) label = without_blanks(label);
  std::erase(labels, "");
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

bool needs_numbers(LabelLoss loss) { return loss == LabelLoss::squared || compares_texts(loss); }

// Sorts by value if all are numbers.
void sort_labels(std::vector<std::string>& labels) {
  const auto is_number = [](const std::string& label) { return number_in(label).has_value(); };
  std::ranges::sort(labels);
  if (!std::ranges::all_of(labels, is_number)) return;
  std::ranges::stable_sort(labels, {}, [](const std::string& label) { return *number_in(label); });
}

}  // namespace

double number_of(std::string_view field, const std::string& where) {
  const auto number = number_in(field);
  if (!number) fail("{}: the last column must be a number (is {})", where, excerpt(field));
  return *number;
}

void LabelCounts::add(std::string_view field, int64_t row, const std::string& where) {
  rows_++;
  field = without_blanks(field);
  add_number(needs_numbers(config_.loss) ? number_of(field, where) : number_in(field), field, where);
  if (needs_numbers(config_.loss)) return;
  const bool is_list = find_list(field).has_value();
  if (is_list && config_.loss == LabelLoss::softmax)
    fail("{}: loss softmax requires one label in a row (is {})", where, excerpt(field));
  has_lists_ = has_lists_ || is_list;
  const std::vector<std::string> labels = split_labels(field, config_.label_separator);
  if (labels.empty() && !is_list && config_.label_separator.empty()) fail("{}: the label is empty", where);
  for (const std::string& label : labels) add_label(label, row);
}

void LabelCounts::add_number(std::optional<double> number, std::string_view field, const std::string& where) {
  if (are_numbers_ && !number) not_number_ = fmt::format("{}: {}", where, excerpt(field));
  are_numbers_ = are_numbers_ && number;
  if (!number) return;
  numbers_++;
  are_whole_ = are_whole_ && *number == std::trunc(*number);
  are_shares_ = are_shares_ && *number >= 0 && *number <= 1;
  differ_ = differ_ || (first_number_ && *first_number_ != *number);
  if (!first_number_) first_number_ = number;
}

void LabelCounts::add_label(std::string label, int64_t row) {
  const auto found = labels_.find(label);
  if (found != labels_.end()) {
    found->second.rows++;
  } else if (labels_.size() < kMostLabels) {
    labels_.emplace(std::move(label), Label{1, row});
  } else {
    are_too_many_ = true;
  }
}

LabelKind LabelCounts::kind() const {
  const LabelLoss loss = config_.loss;
  if (needs_numbers(loss)) return LabelKind::number;
  if (loss == LabelLoss::softmax) return LabelKind::one;
  const bool is_split = has_lists_ || !config_.label_separator.empty();
  if (loss == LabelLoss::sigmoid)
    return !is_split && are_numbers_ && are_shares_ ? LabelKind::number : LabelKind::several;
  if (is_split) return LabelKind::several;
  return are_numbers_ && !are_whole_ ? LabelKind::number : LabelKind::one;
}

LabelCounts::Summary LabelCounts::summary(const std::string& file) const {
  Summary s;
  s.kind = kind();
  s.loss = config_.loss;
  if (s.loss == LabelLoss::automatic)
    s.loss = s.kind == LabelKind::one       ? LabelLoss::softmax
             : s.kind == LabelKind::several ? LabelLoss::sigmoid
                                            : LabelLoss::squared;
  if (s.kind == LabelKind::number) {
    if (!differ_)
      fail("{}: all {} rows have the number {}; training needs different ones", file, rows_, *first_number_);
    return s;
  }
  if (are_too_many_) fail("{}: must have at most {} different labels (has more)", file, kMostLabels);
  for (const auto& [label, counted] : labels_) s.labels.push_back(label);
  sort_labels(s.labels);
  for (const std::string& label : s.labels) {
    const Label& counted = labels_.at(label);
    s.rows.push_back(counted.rows);
    s.first_rows.push_back(counted.first_row);
  }
  if (config_.loss == LabelLoss::automatic && s.kind == LabelKind::one && !are_whole_ && 2 * numbers_ > rows_)
    s.not_number = not_number_;
  if (s.labels.empty()) fail("{}: no row has a label", file);
  if (s.labels.size() == 1 && s.rows.front() == rows_)
    fail("{}: all {} rows have the label {}; training needs at least two labels", file, rows_,
         excerpt(s.labels.front()));
  return s;
}

LabelTable::LabelTable(LabelKind kind, const LabelTrainingConfig& config, std::vector<std::string> labels)
    : kind_(kind), separator_(config.label_separator), labels_(std::move(labels)) {
  for (size_t i = 0; i < labels_.size(); i++) indices_.emplace(labels_[i], static_cast<int32_t>(i));
}

std::vector<int32_t> LabelTable::indices(std::string_view field, const std::string& where) const {
  std::vector<std::string> labels;
  if (kind_ == LabelKind::one)
    labels.emplace_back(without_blanks(field));
  else
    labels = split_labels(without_blanks(field), separator_);
  std::vector<int32_t> found;
  for (const std::string& label : labels) {
    const auto place = indices_.find(label);
    if (place == indices_.end()) fail("{}: the label {} is not one of the training file", where, excerpt(label));
    found.push_back(place->second);
  }
  std::ranges::sort(found);
  return found;
}

ScoreFunction score_function(LabelLoss loss) {
  if (loss == LabelLoss::softmax) return ScoreFunction::softmax;
  return loss == LabelLoss::sigmoid ? ScoreFunction::sigmoid : ScoreFunction::none;
}

namespace {

// Labels have the same sum of weights: softmax as scikit-learn's "balanced", sigmoid for the two values of a label.
std::vector<float> balanced_weights(LabelLoss loss, const std::vector<int64_t>& rows, int64_t all) {
  std::vector<float> weights;
  for (const int64_t own : rows) {
    const auto n = static_cast<double>(all), k = static_cast<double>(own), K = static_cast<double>(rows.size());
    const double of_values = own < all ? (n - k) / k : 1;
    weights.push_back(static_cast<float>(loss == LabelLoss::sigmoid ? of_values : n / (k * K)));
  }
  return weights;
}

}  // namespace

std::vector<float> label_weights(const LabelTrainingConfig& config, LabelLoss loss,
                                 const std::vector<std::string>& labels, const std::vector<int64_t>& rows,
                                 int64_t all) {
  const std::vector<std::string>& given = config.class_weights;
  if (given.empty()) return {};
  if (rows.empty()) fail("training: class_weights must be empty for numbers (has {})", excerpt(given.front()));
  if (given == std::vector<std::string>{"balanced"}) return balanced_weights(loss, rows, all);
  std::vector<float> weights(labels.size(), 1.0f);
  for (const std::string& entry : given) {
    const size_t equals = entry.rfind('=');
    const std::string_view text(entry);
    const auto weight = equals == std::string::npos ? std::nullopt : number_in(text.substr(equals + 1));
    if (!weight || *weight < 0)
      fail("training: class_weights must be balanced or a list of LABEL=WEIGHT, with weights of at least 0 (has {})",
           excerpt(entry));
    const auto place = std::ranges::find(labels, text.substr(0, equals));
    if (place == labels.end())
      fail("training: class_weights must name labels of the training file (has {})", excerpt(text.substr(0, equals)));
    weights[to_size(place - labels.begin())] = static_cast<float>(*weight);
  }
  if (std::ranges::all_of(weights, [](float weight) { return weight == 0; }))
    fail("training: class_weights must be above 0 for one label at least (all are 0)");
  return weights;
}

}  // namespace qkv
