// The main function of the tests. Arguments without dashes are folders whose tests run, by default all:
//   qkv_tests ops model --gtest_filter='*Gradient*'
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

namespace {

// Returns the folder of the project, or of tests/, that a source file lies in: "fuzz", "ops".
std::string folder_of(const char* file) {
  const auto path = std::filesystem::path(file).lexically_relative(QKV_SOURCE_DIR);
  const auto first = path.begin();
  return *first == "tests" ? *std::next(first) : *first;
}

// Restricts the filter to the test suites of these folders. Returns what is wrong with them, or an empty string.
std::string select(const std::set<std::string>& folders) {
  std::set<std::string> unknown = folders;
  std::string inside, outside;
  const auto* all = testing::UnitTest::GetInstance();
  for (int i = 0; i < all->total_test_suite_count(); i++) {
    const auto* suite = all->GetTestSuite(i);
    const std::string name = suite->name(), folder = folder_of(suite->GetTestInfo(0)->file());
    for (int j = 1; j < suite->total_test_count(); j++)
      if (folder_of(suite->GetTestInfo(j)->file()) != folder) return name + " is a test suite of two folders";
    unknown.erase(folder);
    std::string& list = folders.contains(folder) ? inside : outside;
    list += (list.empty() ? "" : ":") + name + ".*";
  }
  if (!unknown.empty()) return *unknown.begin() + " is no folder with tests";
  const std::string filter = GTEST_FLAG_GET(filter);
  const std::string separator = filter.find('-') == std::string::npos ? "-" : ":";
  GTEST_FLAG_SET(filter, filter == "*" ? inside : filter + separator + outside);
  return "";
}

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  const std::set<std::string> folders(arguments + 1, arguments + count);
  if (const std::string problem = folders.empty() ? "" : select(folders); !problem.empty()) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], problem.c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
