#include "count_line.h"

#include <utility>

#include "commands.h"

CountLine::CountLine(std::string unit, std::string name, bool is_shown)
    : unit_(std::move(unit)), before_(name.empty() ? "" : std::move(name) + ": "), is_shown_(is_shown) {}

void CountLine::add(int64_t more) {
  done_ += more;
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  print_error("\r{}{} {}, {:.1f} per second\033[K", before_, done_, unit_, static_cast<double>(done_) / seconds);
  is_drawn_ = true;
}

void CountLine::clear() {
  if (is_drawn_) print_error("\r\033[K");
  is_drawn_ = false;
}
