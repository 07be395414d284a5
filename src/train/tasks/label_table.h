// The labels of a file of labelled texts: which there are, how a text has them, and the loss that suits them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/classifier.h"
#include "qkv/classifier_training.h"

namespace qkv {

// The last column of a row: one label, any number of labels, or a number.
enum class LabelKind { one, several, number };

// Whether the loss compares the texts of a query.
inline bool compares_texts(LabelLoss loss) { return loss == LabelLoss::pairwise || loss == LabelLoss::listwise; }

// The labels of all rows, from which it follows what they are.
class LabelCounts {
 public:
  explicit LabelCounts(const LabelTrainingConfig& config) : config_(config) {}

  // Adds the field of a row. where: begins errors. Throws Error for a label that is empty, and for one that is no
  // number if the loss needs numbers.
  void add(std::string_view field, int64_t row, const std::string& where);

  // Describes the labels once all rows are added. Throws Error, beginning with the name of the file: there is only one
  // label or number, or there are too many labels.
  struct Summary {
    LabelKind kind = LabelKind::one;
    LabelLoss loss = LabelLoss::softmax;
    // In order, with the number of their rows and the first of these; of numbers none.
    std::vector<std::string> labels = {};
    std::vector<int64_t> rows = {}, first_rows = {};
    // Where most rows have numbers, some with decimals, but are read as labels because others have none: the place and
    // the text of the first other one.
    std::string not_number = "";
  };
  Summary summary(const std::string& file) const;

 private:
  struct Label {
    int64_t rows = 0, first_row = 0;
  };

  void add_number(std::optional<double> number, std::string_view field, const std::string& where);
  void add_label(std::string label, int64_t row);
  LabelKind kind() const;

  LabelTrainingConfig config_;
  int64_t rows_ = 0, numbers_ = 0;
  std::string not_number_ = "";  // place and text of the first field that is no number
  std::map<std::string, Label> labels_ = {};
  bool are_too_many_ = false;                                       // labels, of which some are left out
  bool has_lists_ = false;                                          // JSON arrays
  bool are_numbers_ = true, are_whole_ = true, are_shares_ = true;  // the fields: numbers, integers, from 0 to 1
  std::optional<double> first_number_ = {};
  bool differ_ = false;  // the numbers
};

// The labels that a classifier knows.
class LabelTable {
 public:
  LabelTable() = default;
  LabelTable(LabelKind kind, const LabelTrainingConfig& config, std::vector<std::string> labels);

  LabelKind kind() const { return kind_; }
  const std::vector<std::string>& labels() const { return labels_; }  // in the order of the logits
  int64_t count() const { return static_cast<int64_t>(labels_.size()); }

  // Returns the indices of the labels of a field, in ascending order. Throws Error, beginning with `where`, for a label
  // that it lacks.
  std::vector<int32_t> indices(std::string_view field, const std::string& where) const;

 private:
  LabelKind kind_ = LabelKind::one;
  std::string separator_;
  std::vector<std::string> labels_;
  std::map<std::string, int32_t> indices_;
};

// Returns the number of a field. Throws Error, beginning with `where`, for other text and for a number that is not
// finite.
double number_of(std::string_view field, const std::string& where);

// Returns how logits become scores.
ScoreFunction score_function(LabelLoss loss);

// Returns the weights of labels; empty if all are 1. rows: of each label, of `all` rows. Throws Error for an entry of
// class_weights that is not as it must be, and if all weights are 0.
std::vector<float> label_weights(const LabelTrainingConfig& config, LabelLoss loss,
                                 const std::vector<std::string>& labels, const std::vector<int64_t>& rows, int64_t all);

}  // namespace qkv
