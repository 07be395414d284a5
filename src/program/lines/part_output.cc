#include "program/lines/part_output.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <system_error>

#include "qkv/error.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kBuffer = size_t{1} << 16;

// Calls f, and turns its Error into OutputFailure.
template <class F>
decltype(auto) writing(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw OutputFailure(in_one_line(error.what()));
  }
}

std::string temporary_path(const std::string& folder, const std::string& name) {
  std::random_device random;
  const uint64_t token = random() | uint64_t{random()} << 32;
  return fmt::format("{}/.{}{}{:0{}x}", folder, name, kTemporary, token, kTokenDigits);
}

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string_view output_of_temporary(std::string_view name) {
  const size_t end = name.rfind(kTemporary);
  if (!name.starts_with('.') || end == std::string_view::npos || end == 0) return "";
  return is_token(name.substr(end + kTemporary.size())) ? name.substr(1, end - 1) : "";
}

PartOutput::PartOutput(const std::string& folder, const std::string& name)
    : path_(folder + "/" + name), file_(writing([&] { return AtomicFile(path_, temporary_path(folder, name)); })) {}

void PartOutput::flush() {
  writing([&] { file_.write(buffer_); });
  buffer_.clear();
}

void PartOutput::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBuffer) flush();
}

void PartOutput::overwrite(std::string_view bytes) {
  flush();
  writing([&] { file_.overwrite(bytes); });
}

void PartOutput::commit() {
  flush();
  try {
    file_.commit();
  } catch (const Error& failed) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path_, error)) throw OutputFailure(in_one_line(failed.what()));
  }
}

}  // namespace qkv
