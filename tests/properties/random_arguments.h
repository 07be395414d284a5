// Arguments of public functions, drawn at random: most of them valid, some out of range, and some absurd.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"
#include "qkv/error.h"
#include "qkv/field.h"

namespace qkv::testing {

class Arguments {
 public:
  explicit Arguments(uint64_t seed) : random_(seed, Stream::test) {}

  bool one_in(uint64_t n) { return random_.below(n) == 0; }
  // From 0 to n.
  int64_t up_to(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n) + 1)); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(values.size())];
  }

  // A size that is usually from 1 to `most`.
  int64_t size(int64_t most) { return one_in(20) ? absurd_integer() : one_in(20) ? 0 : 1 + up_to(most - 1); }
  // An index that is usually valid for `count` elements.
  int64_t index(int64_t count) { return one_in(20) ? absurd_integer() : up_to(count) - 1; }
  int64_t absurd_integer() {
    constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
    return one_of<int64_t>({-kLargest - 1, kLargest, -1, -2, int64_t{1} << 31, -(int64_t{1} << 31), int64_t{1} << 32,
                            int64_t{1} << 62, (int64_t{1} << 62) + 1});
  }
  double real() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (one_in(8))
      return one_of<double>({std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 1e308, -1e308, 1e-320,
                             -0.0, 3e38, 1e39, -1});
    return one_in(3) ? one_of<double>({0, 0.1, 0.5, 0.9, 1, 2}) : 2 * random_.uniform();
  }
  std::string text() {
    std::string text;
    for (int64_t words = up_to(6); words > 0; words--)
      text += one_of<std::string>({"the dog ", "a", "book .", "<b>", "\xC3\xA9", "\n", "\xFF", std::string(1, '\0'),
                                   "\xE2\x80\xAE", "0", "1", "-1", "nan", "comedy=1"});
    return text;
  }
  std::vector<std::string> texts(int64_t most) {
    std::vector<std::string> all(to_size(up_to(most)));
    for (std::string& t : all) t = text();
    return all;
  }
  Random& random() { return random_; }

 private:
  Random random_;
};

// Changes some fields of a struct of options. Fields in `small` have no large values, which would be valid and slow.
class RandomFields {
 public:
  RandomFields(Arguments& arguments, std::vector<std::string> small = {}, uint64_t one_in = 4)
      : arguments_(arguments), small_(std::move(small)), one_in_(one_in) {}

  template <class T>
  void operator()(std::string_view name, T& member, const Field&) {
    if (!arguments_.one_in(one_in_)) return;
    set(name, member);
  }

 private:
  template <class T>
  void set(std::string_view name, T& member) {
    if constexpr (std::is_same_v<T, bool>) {
      member = arguments_.one_in(2);
    } else if constexpr (std::is_same_v<T, double>) {
      member = arguments_.real();
    } else if constexpr (std::is_integral_v<T>) {
      const bool is_small = std::ranges::find(small_, name) != small_.end();
      member = static_cast<T>(is_small ? arguments_.up_to(7) - 2 : arguments_.size(7));
    } else if constexpr (std::is_enum_v<T>) {
      member = static_cast<T>(arguments_.up_to(std::ssize(names_of(T())) - 1));
    } else if constexpr (std::is_same_v<T, std::string>) {
      member = arguments_.text();
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      member = arguments_.texts(3);
    } else {  // an optional
      if (arguments_.one_in(3)) return member.reset();
      member.emplace();
      set(name, *member);
    }
  }

  Arguments& arguments_;
  std::vector<std::string> small_;
  uint64_t one_in_;
};

// The number of calls: `usual`, times the environment variable QKV_CALLS.
inline int64_t calls(int64_t usual) {
  const char* factor = std::getenv("QKV_CALLS");
  return usual * std::max<int64_t>(1, factor ? std::atoll(factor) : 1);
}

// Makes calls with different arguments. Each succeeds or throws Error of one line.
template <class F>
void make_calls(int64_t count, F&& call) {
  int64_t refused = 0;
  for (int64_t i = 0; i < count; i++) {
    Arguments arguments(static_cast<uint64_t>(i));
    try {
      call(arguments);
    } catch (const Error& error) {
      refused++;
      const std::string_view message = error.what();
      ASSERT_FALSE(message.empty()) << "call " << i;
      ASSERT_EQ(message.find('\n'), std::string_view::npos) << "call " << i << ": " << message;
    } catch (const std::exception& error) {
      FAIL() << "call " << i << ": not qkv::Error: " << error.what();
    }
  }
  EXPECT_GT(refused, count / 100);          // arguments are neither all valid
  EXPECT_LT(refused, count - count / 100);  // nor all invalid
}

}  // namespace qkv::testing
