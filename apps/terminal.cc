#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

bool rewrites_lines() {
  const char *const no_color = std::getenv("NO_COLOR"), *const terminal = std::getenv("TERM");
  const bool asks_for_plain = (no_color && *no_color) || (terminal && std::string_view(terminal) == "dumb");
  return !asks_for_plain && isatty(STDERR_FILENO) == 1;
}

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string progress_bar(double fraction) {
  constexpr size_t kWidth = 20;
  const double done = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<size_t>(done * kWidth);
  return fmt::format("[{}{}] {:3.0f}%", std::string(filled, '#'), std::string(kWidth - filled, '-'), 100 * done);
}
