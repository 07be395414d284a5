// The request tests of llhttp (../shared/cases/http): what is taken here, llhttp takes as the same requests, and the
// verdict of each case is that of llhttp_verdicts.txt, whose lines are FILE, number of the case, status (0: accepted)
// and number of requests. With QKV_WRITE_VERDICTS=1 the test writes that file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/serve/read_requests.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

const std::filesystem::path kCases = std::filesystem::path(QKV_SHARED_DIR) / "cases/http/request";

struct LlhttpCase {
  std::string bytes, log;
  bool is_lenient = false;
};

// Writes out the notation of llhttp's documentation: lines end with CRLF, and a backslash escapes.
std::string bytes_of(std::string block) {
  if (block.ends_with('\n')) block.pop_back();
  block = std::regex_replace(block, std::regex("\\\\\n"), "");
  std::string bytes;
  for (size_t i = 0; i < block.size(); i++) {
    const std::string_view rest = std::string_view(block).substr(i);
    if (block[i] == '\n') {
      bytes += "\r\n";
    } else if (rest.starts_with("\\x") && rest.size() >= 4) {
      bytes += static_cast<char>(std::stoi(block.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else if (const size_t escape = std::string_view("rntf").find(rest.size() > 1 ? rest[1] : '-');
               block[i] == '\\' && escape != std::string_view::npos) {
      bytes += "\r\n\t\f"[escape];
      i++;
    } else {
      bytes += block[i];
    }
  }
  return bytes;
}

// Returns the block of this kind in a text.
std::string block_of(const std::string& text, const std::string& kind) {
  const size_t begin = text.find("```" + kind + "\n") + kind.size() + 4;
  return text.substr(begin, text.find("\n```", begin) + 1 - begin);
}

std::vector<LlhttpCase> cases_of(const std::filesystem::path& path) {
  const std::string text = testing::slurp(path), mark = "<!-- meta=";
  std::vector<LlhttpCase> cases;
  for (size_t at = text.find(mark); at != text.npos;) {
    const size_t next = text.find(mark, at + 1);
    const std::string part = text.substr(at, next - at), meta = part.substr(0, part.find("-->"));
    cases.push_back({bytes_of(block_of(part, "http")), block_of(part, "log"), meta.find("lenient") != meta.npos});
    at = next;
  }
  return cases;
}

// Requests of HTTP/1.1 need a host, which most cases lack.
std::string with_host(const std::string& bytes) {
  const size_t end = bytes.find("HTTP/1.1\r\n");
  if (end == bytes.npos || std::regex_search(bytes, std::regex("\nHost *:", std::regex::icase))) return bytes;
  return bytes.substr(0, end + 10) + "Host: a\r\n" + bytes.substr(end + 10);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) found++;
  return found;
}

TEST(Llhttp, TakesWhatIsTakenHere) {
  if (!std::filesystem::exists(kCases)) GTEST_SKIP() << "no ../shared";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kCases)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::string verdicts;
  size_t number = 0;
  for (const std::filesystem::path& file : files)
    for (int in_file = 0; const LlhttpCase& c : cases_of(file)) {
      in_file++, number++;
      const testing::ReadRequests read = testing::read_all(with_host(c.bytes), 1 << 20);
      verdicts += file.stem().string() + " " + std::to_string(in_file) + " " + std::to_string(read.status) + " " +
                  std::to_string(read.requests.size()) + "\n";
      if (!c.is_lenient) {
        EXPECT_LE(read.requests.size(), count(c.log, "message complete")) << file << " " << in_file << "\n" << c.bytes;
      }
    }
  EXPECT_EQ(number, 166u);
  const std::string path = std::string(QKV_GOLDEN_DIR) + "/../serve/llhttp_verdicts.txt";
  if (std::getenv("QKV_WRITE_VERDICTS")) testing::spill(path, verdicts);
  EXPECT_EQ(verdicts, testing::slurp(path));
}

}  // namespace
}  // namespace qkv
