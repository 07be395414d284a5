// The table of architectures: what is derived from it agrees with it.
#include <gtest/gtest.h>

#include <set>

#include "convert/architecture.h"
#include "core/fail.h"
#include "qkv/import.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

TEST(Architectures, HaveDistinctTypesAndEveryPart) {
  std::set<std::string> types;
  for (const Architecture* a : all_architectures()) {
    SCOPED_TRACE(a->name);
    EXPECT_FALSE(a->model_types.empty() || a->model_class.empty());
    EXPECT_TRUE(a->fields && a->tensors && a->text);
    for (const std::string& type : a->model_types) {
      EXPECT_TRUE(types.insert(type).second) << type;
      EXPECT_EQ(find_architecture(type), a);
    }
  }
  EXPECT_EQ(find_architecture("mamba"), nullptr);
}

// The row of docs/import.md for a model class.
std::string row_of(const TransformersModel& model) {
  return fmt::format("| {} | `{}` | `{}` | {} |\n", model.name, fmt::join(model.model_types, "`, `"), model.model_class,
                     model.exported ? "yes" : "no");
}

TEST(Architectures, AreListedInTheDocumentation) {
  const std::string page = testing::slurp(QKV_GOLDEN_DIR "/../../docs/import.md");
  std::string rows;
  for (const TransformersModel& model : transformers_models()) rows += row_of(model);
  EXPECT_NE(page.find("|---|---|---|---|\n" + rows + "\n"), std::string::npos) << "docs/import.md must have the table\n"
                                                                               << rows;
}

TEST(Architectures, ExportedOnesAreListedInTheDocumentation) {
  const std::string page = testing::slurp(QKV_GOLDEN_DIR "/../../docs/export.md");
  for (const TransformersModel& model : transformers_models())
    EXPECT_EQ(page.find(fmt::format(" | `{}` | ", model.model_types.front())) != std::string::npos, model.exported)
        << model.name;
}

}  // namespace
}  // namespace qkv
