#include "text/tokenizer_json/regex.h"

#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {

// Not in the unnamed namespace, because a member of Regex::Program has instructions.
namespace regex {

enum class Op { character, split, jump, look, begin, end, line_begin, line_end, boundary, no_boundary, match };

struct Instruction {
  Op op = Op::match;
  int32_t set = -1;                      // of character and look
  int32_t next = -1, other = -1;         // where to continue; a split prefers `next`
  bool behind = false, negated = false;  // of look
};

}  // namespace regex

namespace {

using regex::Instruction;
using regex::Op;

constexpr size_t kMaxInstructions = 4096, kMaxExpression = 4096, kMaxSets = 256;
constexpr int kMaxRepeats = 1000, kMaxRegexDepth = 32;

using Set = icu::UnicodeSet;

Set named_set(const char* pattern) {
  UErrorCode status = U_ZERO_ERROR;
  Set set(icu::UnicodeString::fromUTF8(pattern), status);
  if (U_FAILURE(status)) set.clear();
  return set;
}

// As Oniguruma has it, which the library tokenizers uses: of the numbers that are no digits only those of Latin-1.
const Set& word_set() {
  static const Set set = named_set("[[:Alphabetic:][:M:][:Nd:][:Pc:]\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE]");
  return set;
}
const Set& space_set() {
  static const Set set = named_set("[:White_Space:]");
  return set;
}

// A part of an expression: instructions whose open ends go to what follows.
using Code = std::vector<Instruction>;  // places are relative to the first; the end is the size

class RegexParser {
 public:
  RegexParser(std::string_view expression, const std::string& where, std::vector<Set>& sets)
      : text_(expression), where_(where), sets_(sets) {}

  Code parse() {
    Code code = alternatives(0, false);
    if (place_ < text_.size()) wrong("a ) without (");
    code.push_back({.op = Op::match});
    return code;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    fail("{}: the regular expression {} is not supported: {}, at byte {}", where_, excerpt(text_), what, place_ + 1);
  }
  bool done() const { return place_ >= text_.size(); }
  bool take(std::string_view what) {
    if (!text_.substr(place_).starts_with(what)) return false;
    place_ += what.size();
    return true;
  }
  UChar32 character() {
    if (done()) wrong("it ends too early");
    UChar32 c;
    auto i = static_cast<int64_t>(place_);
    U8_NEXT_OR_FFFD(text_.data(), i, static_cast<int64_t>(text_.size()), c);
    place_ = to_size(i);
    return c;
  }

  static void append(Code& code, const Code& more) {
    const auto offset = static_cast<int32_t>(code.size());
    for (Instruction i : more) {
      if (i.next >= 0) i.next += offset;
      if (i.other >= 0) i.other += offset;
      code.push_back(i);
    }
  }
  void check_size(const Code& code) const {
    if (code.size() > kMaxInstructions) wrong("it is too large");
  }

  // The first of the alternatives that leads to a match is preferred.
  Code alternatives(int depth, bool any_case) {
    if (depth > kMaxRegexDepth) wrong("too many groups within each other");
    std::vector<Code> all = {sequence(depth, any_case)};
    while (take("|")) all.push_back(sequence(depth, any_case));
    Code code = std::move(all.back());
    for (size_t i = all.size() - 1; i-- > 0;) {
      Code both = {{.op = Op::split, .next = 1, .other = static_cast<int32_t>(all[i].size()) + 2}};
      append(both, all[i]);
      both.push_back({.op = Op::jump, .next = static_cast<int32_t>(all[i].size() + code.size()) + 2});
      append(both, code);
      check_size(both);
      code = std::move(both);
    }
    return code;
  }

  Code sequence(int depth, bool any_case) {
    Code code;
    while (!done() && text_[place_] != '|' && text_[place_] != ')') {
      append(code, repeated(atom(depth, any_case)));
      check_size(code);
    }
    return code;
  }

  Code repeated(Code once) {
    int least = 1, most = 1;
    bool unbounded = false;
    if (take("*")) {
      least = 0, unbounded = true;
    } else if (take("+")) {
      unbounded = true;
    } else if (take("?")) {
      least = 0;
    } else if (!done() && text_[place_] == '{' && place_ + 1 < text_.size() &&
               (is_digit(place_ + 1) || text_[place_ + 1] == ',')) {
      place_++;
      least = text_[place_] == ',' ? 0 : number();
      most = least;
      if (take(",")) {
        unbounded = !done() && text_[place_] == '}';
        if (!unbounded) most = number();
      }
      if (!take("}") || most < least) wrong("a wrong number of repetitions");
    } else {
      return once;
    }
    const bool lazy = take("?");
    if (!done() && text_[place_] == '+') wrong("a possessive repetition");
    if (!done() && (text_[place_] == '*' || text_[place_] == '?')) wrong("a repetition of a repetition");
    return repeat(once, least, most, unbounded, lazy);
  }
  bool is_digit(size_t place) const { return place < text_.size() && text_[place] >= '0' && text_[place] <= '9'; }
  int number() {
    int value = 0;
    if (!is_digit(place_)) wrong("a wrong number of repetitions");
    for (; is_digit(place_); place_++) {
      value = 10 * value + text_[place_] - '0';
      if (value > kMaxRepeats) wrong("too many repetitions");
    }
    return value;
  }
  Code repeat(const Code& once, int least, int most, bool unbounded, bool lazy) const {
    const auto n = static_cast<int32_t>(once.size());
    if ((to_size(std::max(least, most)) + 1) * (once.size() + 2) > kMaxInstructions) wrong("it is too large");
    Code code;
    for (int i = 0; i < least; i++) append(code, once);
    const auto choice = [&](int32_t on, int32_t past) {
      return Instruction{.op = Op::split, .next = lazy ? past : on, .other = lazy ? on : past};
    };
    if (unbounded) {
      Code loop = {choice(1, n + 2)};
      append(loop, once);
      loop.push_back({.op = Op::jump, .next = 0});
      append(code, loop);
      return code;
    }
    Code optional;  // (x(x(x)?)?)?
    for (int i = least; i < most; i++) {
      Code more = {choice(1, n + static_cast<int32_t>(optional.size()) + 1)};
      append(more, once);
      append(more, optional);
      optional = std::move(more);
    }
    append(code, optional);
    return code;
  }

  Code of_set(Set set, bool any_case) {
    if (any_case) set.closeOver(USET_CASE_INSENSITIVE);
    set.removeAllStrings();
    set.freeze();
    if (sets_.size() == kMaxSets) wrong("it is too large");
    sets_.push_back(std::move(set));
    return {{.op = Op::character, .set = static_cast<int32_t>(sets_.size()) - 1, .next = 1}};
  }
  static Code of(Op op) { return {{.op = op, .next = 1}}; }

  Code atom(int depth, bool any_case) {
    if (take("(")) return group(depth, any_case);
    if (take("[")) return of_set(char_class(0), any_case);
    if (take(".")) return of_set(Set(0, 0x10FFFF).remove('\n'), false);
    if (take("^")) return of(Op::line_begin);
    if (take("$")) return of(Op::line_end);
    if (take("\\A")) return of(Op::begin);
    if (take("\\z")) return of(Op::end);
    if (take("\\b")) return of(Op::boundary);
    if (take("\\B")) return of(Op::no_boundary);
    if (take("\\")) return of_set(escaped(), any_case);
    if (const char c = text_[place_]; c == '*' || c == '+' || c == '?') wrong("a repetition of nothing");
    const UChar32 c = character();
    return of_set(Set(c, c), any_case);
  }

  Code group(int depth, bool any_case) {
    bool look = false, behind = false, negated = false;
    if (take("?")) {
      if (take(":")) {
      } else if (take("i:")) {
        any_case = true;
      } else {
        look = true;
        behind = take("<");
        negated = take("!");
        if (!negated && !take("=")) wrong("a group of a kind that is not known");
      }
    }
    Code code = alternatives(depth + 1, any_case);
    if (!take(")")) wrong("a ( without )");
    if (!look) return code;
    if (code.size() != 1 || code[0].op != Op::character) wrong("a look around at more than a character");
    return {{.op = Op::look, .set = code[0].set, .next = 1, .behind = behind, .negated = negated}};
  }

  // Behind a backslash.
  Set escaped() {
    const UChar32 c = character();
    const auto control = [](UChar32 code) { return Set(code, code); };
    switch (c) {
      case 's':
        return space_set();
      case 'S':
        return Set(space_set()).complement();
      case 'd':
        return named_set("[:Nd:]");
      case 'D':
        return named_set("[:^Nd:]");
      case 'w':
        return word_set();
      case 'W':
        return Set(word_set()).complement();
      case 'h':
        return named_set("[0-9A-Fa-f]");
      case 'p':
      case 'P':
        return property(c == 'P');
      case 'n':
        return control('\n');
      case 'r':
        return control('\r');
      case 't':
        return control('\t');
      case 'f':
        return control('\f');
      case 'v':
        return control('\v');
      case 'a':
        return control(7);
      case 'e':
        return control(0x1B);
      case 'x':
        return hexadecimal(take("{") ? -1 : 2);
      case 'u':
        return hexadecimal(4);
      default:
        if (c < 0x80 && u_isalnum(c)) wrong(fmt::format("\\{}", static_cast<char>(c)));
        return Set(c, c);
    }
  }
  Set hexadecimal(int digits) {  // -1: up to a brace
    UChar32 code = 0;
    int count = 0;
    for (; !done() && u_digit(static_cast<unsigned char>(text_[place_]), 16) >= 0 && count != digits && count < 8;
         count++)
      code = 16 * code + u_digit(static_cast<unsigned char>(text_[place_++]), 16);
    if (count == 0 || (digits < 0 && !take("}")) || code > 0x10FFFF || code < 0) wrong("a wrong code point");
    return Set(code, code);
  }
  Set property(bool complement) {
    std::string name;
    if (!take("{")) wrong("a property without braces");
    if (take("^")) complement = !complement;
    while (!done() && text_[place_] != '}') name += text_[place_++];
    if (!take("}")) wrong("a property without its end");
    if (name.empty() ||
        !std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == ' '; }))
      wrong("a property with a wrong name");
    UErrorCode status = U_ZERO_ERROR;
    Set set(icu::UnicodeString::fromUTF8("[:" + name + ":]"), status);
    if (U_FAILURE(status)) wrong("a property that is not known");
    if (complement) set.complement();
    return set;
  }

  // Behind [.
  Set char_class(int depth) {
    if (depth > kMaxRegexDepth) wrong("too many classes within each other");
    const bool complement = take("^");
    Set all, part;
    bool intersect = false, first = true;
    const auto finish = [&] {
      if (intersect)
        all.retainAll(part);
      else
        all = part;
      part.clear();
    };
    for (;; first = false) {
      if (done()) wrong("a class without its end");
      if (!first && take("]")) break;
      if (take("&&")) {
        finish();
        intersect = true;
      } else if (text_.substr(place_).starts_with("[:")) {
        wrong("a class with a name");
      } else if (take("[")) {
        part.addAll(char_class(depth + 1));
      } else {
        range(part);
      }
    }
    finish();
    if (complement) all.complement();
    return all;
  }
  void range(Set& set) {
    const bool escape = take("\\");
    const Set low = escape ? escaped() : one();
    const bool is_range = place_ + 1 < text_.size() && text_[place_] == '-' && text_[place_ + 1] != ']';
    if (!is_range) {
      set.addAll(low);
      return;
    }
    place_++;
    const Set high = take("\\") ? escaped() : one();
    if (low.size() != 1 || high.size() != 1 || high.charAt(0) < low.charAt(0)) wrong("a wrong range");
    set.add(low.charAt(0), high.charAt(0));
  }
  Set one() {
    const UChar32 c = character();
    return Set(c, c);
  }

  std::string_view text_;
  const std::string& where_;
  std::vector<Set>& sets_;
  size_t place_ = 0;
};

// The character at a place of a text, or before it; −1 where there is none.
UChar32 code_at(std::string_view text, size_t place, size_t* end = nullptr) {
  if (place >= text.size()) return -1;
  UChar32 c;
  auto i = static_cast<int64_t>(place);
  U8_NEXT_OR_FFFD(text.data(), i, static_cast<int64_t>(text.size()), c);
  if (end) *end = to_size(i);
  return c;
}
UChar32 code_before(std::string_view text, size_t place) {
  if (place == 0) return -1;
  const std::string_view near = text.substr(0, place).substr(place - std::min<size_t>(place, 4));
  auto i = static_cast<int32_t>(near.size());
  UChar32 c;
  U8_PREV_OR_FFFD(near.data(), 0, i, c);
  return c;
}

}  // namespace

struct Regex::Program {
  Code code;
  std::vector<Set> sets;
  std::string where, shown;  // in errors

  bool holds(const Instruction& i, std::string_view text, size_t place) const {
    const UChar32 before = code_before(text, place), after = code_at(text, place);
    const auto is_word = [](UChar32 c) { return c >= 0 && word_set().contains(c); };
    switch (i.op) {
      case Op::begin:
        return before < 0;
      case Op::end:
        return after < 0;
      case Op::line_begin:
        return before < 0 || (before == '\n' && after >= 0);
      case Op::line_end:
        return after < 0 || after == '\n';
      case Op::boundary:
        return is_word(before) != is_word(after);
      case Op::no_boundary:
        return is_word(before) == is_word(after);
      default: {
        const UChar32 c = i.behind ? before : after;
        return (c >= 0 && sets[to_size(i.set)].contains(c)) != i.negated;
      }
    }
  }
};

namespace {

struct Thread {
  int32_t instruction;
  size_t begin;
};

}  // namespace

Regex::Regex(std::string_view expression, const std::string& where) {
  if (expression.empty() || expression.size() > kMaxExpression)
    fail("{}: a regular expression must have 1 to {} bytes (has {})", where, kMaxExpression, expression.size());
  auto program = std::make_shared<Program>();
  program->where = where;
  program->shown = excerpt(expression);
  program->code = RegexParser(expression, where, program->sets).parse();
  program_ = std::move(program);
}

size_t Regex::size() const { return program_->code.size(); }

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t begin, uint64_t& work,
                                                     uint64_t most_work) const {
  const Code& code = program_->code;
  std::vector<Thread> now, next;                                              // the first has the highest priority
  std::vector<size_t> seen(code.size(), std::numeric_limits<size_t>::max());  // where an instruction was added last
  std::vector<int32_t> open;
  std::optional<std::pair<size_t, size_t>> match;
  const auto add = [&](std::vector<Thread>& to, int32_t start, size_t from, size_t place) {
    open.assign(1, start);
    while (!open.empty()) {
      const int32_t at = open.back();
      open.pop_back();
      if (seen[to_size(at)] == place) continue;
      seen[to_size(at)] = place;
      work++;
      const Instruction& i = code[to_size(at)];
      if (i.op == Op::character || i.op == Op::match) {
        to.push_back({at, from});
      } else if (i.op == Op::split) {
        open.push_back(i.other);
        open.push_back(i.next);
      } else if (i.op == Op::jump || program_->holds(i, text, place)) {
        open.push_back(i.next);
      }
    }
  };
  for (size_t place = begin;;) {
    if (!match) add(now, 0, place, place);
    if (now.empty() && (match || place >= text.size())) return match;
    if (work > most_work)
      fail("{}: the regular expression {} takes too long on a text of {} bytes", program_->where, program_->shown,
           text.size());
    size_t end = text.size();
    const UChar32 c = code_at(text, place, &end);
    for (const Thread& thread : now) {
      const Instruction& i = code[to_size(thread.instruction)];
      if (i.op == Op::match) {
        match = {thread.begin, place};
        break;  // what has a lower priority
      }
      if (c >= 0 && program_->sets[to_size(i.set)].contains(c)) add(next, i.next, thread.begin, end);
    }
    now.swap(next);
    next.clear();
    if (place >= text.size()) return match;
    place = end;
  }
}

}  // namespace qkv
