// Quantities with units, long numbers, dates, times, versions and telephone numbers.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "decode/terms/protected_kinds.h"
#include "text/sentence_characters.h"

namespace qkv::protect {
namespace {

constexpr std::string_view kNoBreakSpace = "\u00A0", kNarrowNoBreakSpace = "\u202F", kThinSpace = "\u2009";
constexpr size_t kMaxUnit = 16, kMaxSeparators = 32, kMaxTime = 40, kMaxHyphenated = 40, kMaxVersionSuffix = 32;

// Returns the number of bytes of the first of some strings with which a text begins; 0 if it begins with none.
template <size_t n>
size_t length_of_prefix(std::string_view text, const std::array<std::string_view, n>& strings) {
  const auto found = std::ranges::find_if(strings, [&](std::string_view s) { return text.starts_with(s); });
  return found == strings.end() ? 0 : found->size();
}

size_t length_of_space(std::string_view text) {
  constexpr std::array<std::string_view, 4> kSpaces = {" ", kNoBreakSpace, kNarrowNoBreakSpace, kThinSpace};
  return length_of_prefix(text, kSpaces);
}

// Whether a number may begin at a byte: no word and no part of a number is before it.
bool starts_number(std::string_view text, size_t at) {
  if (is_word_before(text, at)) return false;
  const char before = byte_before(text, at);
  if (is_one_of(before, ".,:/")) return at == 1 || !is_ascii_digit(text[at - 2]);
  return before != '-' || at == 1 || is_ascii_digit(text[at - 2]) || !is_word_before(text, at - 1);
}

// ---- Units

constexpr auto kUnits = std::to_array<std::string_view>(
    {"km",  "m",   "dm",  "cm",  "mm",  "µm",   "μm",   "nm",   "m²",   "m³",   "km²",  "cm²",  "cm³",  "mm²",  "m2",
     "m3",  "km2", "kg",  "g",   "mg",  "µg",   "μg",   "t",    "lb",   "lbs",  "oz",   "ft",   "yd",   "l",    "L",
     "ml",  "mL",  "cl",  "dl",  "hl",  "ms",   "µs",   "μs",   "ns",   "min",  "h",    "Hz",   "kHz",  "MHz",  "GHz",
     "THz", "W",   "kW",  "MW",  "GW",  "TW",   "Wh",   "kWh",  "MWh",  "GWh",  "TWh",  "V",    "kV",   "mV",   "mA",
     "mAh", "Ah",  "Ω",   "Ω",   "kΩ",  "kN",   "kJ",   "MJ",   "kcal", "Pa",   "hPa",  "kPa",  "MPa",  "mbar", "psi",
     "rpm", "dB",  "dBm", "°C",  "°F",  "°",    "℃",    "℉",    "%",    "‰",    "ppm",  "KB",   "kB",   "MB",   "GB",
     "TB",  "PB",  "KiB", "MiB", "GiB", "TiB",  "kbit", "Mbit", "Gbit", "kbps", "Mbps", "Gbps", "kb/s", "MB/s", "GB/s",
     "dpi", "fps", "mph", "kph", "m/s", "m/s²", "eV",   "keV",  "MeV",  "GeV",  "mol",  "mmol", "lx",   "PS",   "MP",
     "px",  "€",   "$",   "£",   "¥",   "₹",    "₽",  "₩",    "₺",    "₴",    "₿",  "¢",    "zł",   "Kč",   "kr",
     "USD", "EUR", "GBP", "JPY", "CHF", "CNY",  "AUD",  "CAD",  "NZD",  "SEK",  "NOK",  "DKK",  "PLN",  "CZK",  "HUF",
     "RUB", "BRL", "MXN", "ZAR", "KRW", "HKD",  "SGD",  "BTC",  "ETH",  "″",    "′"});

// Units that are words of some language if a space is before them.
constexpr auto kAttachedUnits =
    std::to_array<std::string_view>({"in", "mi", "ha", "s", "A", "K", "k", "J", "N", "bar", "cal", "pt", "em", "rem"});

using UnitSet = std::unordered_set<std::string_view>;

bool is_unit_character(int32_t code) {
  if (code >= 0x80)
    return sentence::is_letter(code) ? is_word(code)
                                     : code == U'′' || code == U'″' || code == U'‰' || code == U'²' || code == U'³' ||
                                           code == U'°' || sentence::is_symbol(code) || code == U'¢';
  return code >= 0 && (is_ascii_letter(static_cast<char>(code)) || is_one_of(static_cast<char>(code), "%$/23"));
}

// Whether all parts between slashes are units: "km/h", "€/kg".
bool is_unit(std::string_view unit, bool is_attached) {
  static const UnitSet spaced(kUnits.begin(), kUnits.end());
  static const UnitSet attached(kAttachedUnits.begin(), kAttachedUnits.end());
  if (spaced.contains(unit)) return true;
  if (is_attached && attached.contains(unit)) return true;
  for (size_t begin = 0; begin <= unit.size();) {
    const size_t end = std::min(unit.find('/', begin), unit.size());
    const std::string_view part = unit.substr(begin, end - begin);
    const bool is_first = begin == 0;
    if (!spaced.contains(part) && (is_first || (part != "s" && part != "ha"))) return false;
    begin = end + 1;
  }
  return true;
}

// Returns the end of the unit at a byte; 0 if there is none.
size_t end_of_unit_at(std::string_view text, size_t at, bool is_attached) {
  size_t end = at;
  for (auto c = sentence::character_at(text, at); is_unit_character(c.code) && c.end - at <= kMaxUnit;
       c = sentence::character_at(text, c.end))
    end = c.end;
  while (end > at && text[end - 1] == '/') end--;
  if (end == at || !is_unit(text.substr(at, end - at), is_attached) || !ends_part(text, end)) return 0;
  constexpr std::array<std::string_view, 2> kApostrophes = {"'", "’"};  // "10 l'eau"
  const size_t apostrophe = length_of_prefix(text.substr(end), kApostrophes);
  return apostrophe > 0 && is_word_at(text, end + apostrophe) ? 0 : end;
}

// Returns the end of the unit after a number, after a space or without; 0 if there is none.
size_t end_of_unit(std::string_view text, size_t at) {
  const size_t space = length_of_space(text.substr(at));
  return end_of_unit_at(text, at + space, space == 0);
}

// ---- Numbers

struct NumberText {
  size_t end = 0;          // 0: there is none
  bool is_marked = false;  // has a decimal or group separator, or at least five digits
};

// Whether exactly three digits are at a byte.
bool is_group(std::string_view text, size_t at) { return skip(text, at, is_ascii_digit, 4) == at + 3; }

// Returns the number of bytes of a separator at a byte between digits; 0 if there is none.
size_t length_of_separator(std::string_view text, size_t at) {
  if (is_one_of(byte_at(text, at), ".,")) return is_ascii_digit(byte_at(text, at + 1)) ? 1 : 0;
  constexpr std::array<std::string_view, 5> kGrouping = {"'", "’", kNoBreakSpace, kNarrowNoBreakSpace, kThinSpace};
  const size_t length = length_of_prefix(text.substr(at), kGrouping);
  return length > 0 && is_group(text, at + length) ? length : 0;
}

// Returns the end of groups of three digits that spaces separate, if there are two of them, or the number is one of a
// quantity.
size_t end_of_spaced_groups(std::string_view text, size_t at, bool has_currency) {
  size_t groups = 0, end = at;
  while (groups < kMaxUnit && byte_at(text, end) == ' ' && is_group(text, end + 1)) {
    end += 4;
    groups++;
  }
  const bool has_decimals = is_one_of(byte_at(text, end), ".,") && is_ascii_digit(byte_at(text, end + 1));
  return groups >= 2 || (groups == 1 && (has_currency || has_decimals || end_of_unit(text, end) > 0)) ? end : at;
}

NumberText number_at(std::string_view text, size_t at, bool has_currency = false) {
  size_t end = skip(text, at, is_ascii_digit);
  if (end == at) return {};
  bool is_marked = end - at >= 5;
  if (end - at <= 3) {
    const size_t grouped = end_of_spaced_groups(text, end, has_currency);
    is_marked = is_marked || grouped > end;
    end = grouped;
  }
  for (size_t count = 0; count < kMaxSeparators && length_of_separator(text, end) > 0; count++) {
    end = skip(text, end + length_of_separator(text, end), is_ascii_digit);
    is_marked = true;
  }
  if (is_one_of(byte_at(text, end), "eE")) {
    const size_t exponent = end + (is_one_of(byte_at(text, end + 1), "+-") ? 2 : 1);
    const size_t last = skip(text, exponent, is_ascii_digit, 4);
    if (last > exponent && is_marked) end = last;
  }
  return {end, is_marked};
}

// ---- Quantities

constexpr auto kCurrencyPrefixes =
    std::to_array<std::string_view>({"US$", "CA$", "AU$", "NZ$", "HK$", "NT$", "A$",  "C$",  "R$",  "S$",  "$",
                                     "€",   "£",   "¥",   "₹",   "₽", "₩",   "₺",   "₴",   "₿", "USD", "EUR",
                                     "GBP", "JPY", "CHF", "CNY", "AUD", "CAD", "INR", "SEK", "NOK", "DKK", "PLN"});
constexpr std::array<std::string_view, 5> kSigns = {"+", "-", "−", "±", "–"};

// Returns the byte after a currency and the space after it; `at` if there is none.
size_t skip_currency(std::string_view text, size_t at) {
  const size_t length = length_of_prefix(text.substr(at), kCurrencyPrefixes);
  return length == 0 ? at : at + length + length_of_space(text.substr(at + length));
}

// Returns the end of a magnitude after an amount, as in "$5M"; `at` if there is none.
size_t skip_magnitude(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 6> kMagnitudes = {"bn", "k", "K", "m", "M", "B"};
  const size_t end = at + length_of_prefix(text.substr(at), kMagnitudes);
  return is_word_at(text, end) ? at : end;
}

// Returns the end of "–20" after "10" if a unit is after both; 0 if there is none.
size_t end_of_range(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 2> kDashes = {"-", "–"};
  const size_t dash = length_of_prefix(text.substr(at), kDashes);
  const NumberText last = dash == 0 ? NumberText() : number_at(text, at + dash);
  return last.end == 0 ? 0 : end_of_unit(text, last.end);
}

// Whether an "s" is of seconds, not of a decade.
bool is_decade(std::string_view number, std::string_view unit) {
  return unit == "s" && number.find_first_of(".,") == number.npos;
}

size_t match_quantity(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!starts_number(text, at)) return 0;
  const size_t sign = at + length_of_prefix(text.substr(at), kSigns);
  const size_t begin = skip_currency(text, sign);
  const NumberText number = number_at(text, begin, begin > sign);
  if (number.end == 0) return 0;
  const size_t unit = end_of_unit(text, number.end);
  if (unit > 0 && !is_decade(text.substr(begin, number.end - begin), text.substr(number.end, unit - number.end)))
    return unit;
  if (const size_t range = end_of_range(text, number.end); range > 0) return range;
  const bool has_currency = begin > sign;
  const size_t end = has_currency ? skip_magnitude(text, number.end) : number.end;
  const bool has_sign = sign > at;
  return (has_currency || (number.is_marked && !has_sign)) && ends_part(text, end) ? end : 0;
}

// ---- Times and dates

// Matches "10:30", "10:30:15.5", "10:30am" and ratios such as "16:9".
size_t match_time(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_ascii_digit(text[at]) || !starts_number(text, at)) return 0;
  size_t end = skip(text, at, is_ascii_digit, 4), parts = 1;
  for (; parts < 3 && byte_at(text, end) == ':' && is_ascii_digit(byte_at(text, end + 1)); parts++)
    end = skip(text, end + 1, is_ascii_digit, 4);
  if (parts == 1) return 0;
  if (is_one_of(byte_at(text, end), ".,") && is_ascii_digit(byte_at(text, end + 1)))
    end = skip(text, end + 1, is_ascii_digit, 9);
  constexpr std::array<std::string_view, 4> kHalves = {"am", "pm", "AM", "PM"};
  end += length_of_prefix(text.substr(end), kHalves);
  return ends_part(text, end) ? end : 0;
}

// Returns the end of "T10:30:00Z" after a date; `at` if there is none.
size_t skip_time_of_date(std::string_view text, size_t at) {
  if (byte_at(text, at) != 'T' || !is_ascii_digit(byte_at(text, at + 1))) return at;
  const auto is_time = [](char c) { return is_ascii_digit(c) || is_one_of(c, ":.+-Z"); };
  size_t end = skip(text, at + 1, is_time, kMaxTime);
  while (is_one_of(text[end - 1], ":.+-")) end--;
  return end;
}

// Matches "2024-05-01", "5/1/2024", "2024-05-01T10:30:00Z"; those with full stops are numbers with separators.
size_t match_date(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_ascii_digit(text[at]) || !starts_number(text, at)) return 0;
  const size_t first = skip(text, at, is_ascii_digit, 5);
  const char separator = byte_at(text, first);
  if (separator != '-' && separator != '/') return 0;
  const size_t second = skip(text, first + 1, is_ascii_digit, 3);
  if (byte_at(text, second) != separator) return 0;
  const size_t third = skip(text, second + 1, is_ascii_digit, 5);
  const size_t a = first - at, b = second - first - 1, c = third - second - 1;
  const bool year_first = a == 4 && c >= 1 && c <= 2, year_last = a <= 2 && (c == 4 || (c == 2 && separator == '/'));
  if (b < 1 || b > 2 || !(year_first || year_last)) return 0;
  const size_t end = skip_time_of_date(text, third);
  return ends_part(text, end) ? end : 0;
}

// ---- Groups of digits

// Matches at least three groups with hyphens, of seven digits or more: telephone numbers and ISBN.
size_t match_hyphenated_number(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_ascii_digit(text[at]) || !starts_number(text, at)) return 0;
  if (byte_before(text, at) == '-') return 0;
  const auto is_part = [](char c) { return is_ascii_digit(c) || c == '-'; };
  size_t end = skip(text, at, is_part, kMaxHyphenated);
  while (text[end - 1] == '-') end--;
  const std::string_view number = text.substr(at, end - at);
  const auto hyphens = std::ranges::count(number, '-');
  const bool has_groups = hyphens >= 2 && number.find("--") == number.npos;
  return has_groups && std::ssize(number) - hyphens >= 7 && ends_part(text, end) ? end : 0;
}

// Returns the end of digits with spaces, hyphens, slashes, full stops and brackets between them; counts the digits.
size_t skip_phone_digits(std::string_view text, size_t at, size_t& digits) {
  constexpr size_t kMaxMarks = 2;
  size_t end = at, marks = 0;
  for (size_t i = at; i < text.size() && marks <= kMaxMarks && digits < 16; i++) {
    if (is_ascii_digit(text[i])) {
      digits++;
      marks = 0;
      end = i + 1;
    } else if (is_one_of(text[i], " -/.()")) {
      marks++;
    } else {
      break;
    }
  }
  return end;
}

// Matches "+49 30 123456", "(555) 123-4567" and "030 123456".
size_t match_phone(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  const bool is_international = text[at] == '+' && is_ascii_digit(byte_at(text, at + 1)) && text[at + 1] != '0';
  const size_t area = text[at] == '(' ? skip(text, at + 1, is_ascii_digit, 6) : 0;
  const bool has_area =
      area > at + 3 && byte_at(text, area) == ')' && is_one_of(byte_at(text, area + 1), " 0123456789");
  const size_t prefix = text[at] == '0' ? skip(text, at, is_ascii_digit, 6) : 0;
  const bool is_national =
      prefix > at + 1 && is_one_of(byte_at(text, prefix), prefix > at + 2 ? " /-" : " ");  // no "02/13/2001"
  if ((!is_international && !has_area && !is_national) || !starts_number(text, at)) return 0;
  size_t digits = 0;
  const size_t end = skip_phone_digits(text, is_national ? at : at + 1, digits);
  const size_t least = has_area ? 9 : 7;
  return digits >= least && digits <= 15 && ends_part(text, end) ? end : 0;
}

// Returns the end of "-rc1", "b2" or "+build.5" after a version; `at` if there is none.
size_t skip_version_suffix(std::string_view text, size_t at) {
  const size_t begin = at + (is_one_of(byte_at(text, at), "-+") ? 1 : 0);
  const auto is_suffix = [](char c) { return is_ascii_alphanumeric(c) || c == '.'; };
  size_t end = skip(text, begin, is_suffix, kMaxVersionSuffix);
  while (end > begin && text[end - 1] == '.') end--;
  constexpr std::array<std::string_view, 8> kSuffixes = {"alpha", "beta", "rc",       "dev",
                                                         "pre",   "post", "SNAPSHOT", "build"};
  const std::string_view suffix = text.substr(begin, end - begin);
  const bool is_short = suffix.size() == 2 && is_one_of(suffix[0], "ab") && is_ascii_digit(suffix[1]);
  return is_short || length_of_prefix(suffix, kSuffixes) > 0 ? end : at;
}

// Matches "v2", "v2.3.1", "1.2.3" and "1.2.3-rc1".
size_t match_version(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  const bool has_letter = is_one_of(text[at], "vV") && is_ascii_digit(byte_at(text, at + 1));
  if ((!has_letter && !is_ascii_digit(text[at])) || !starts_number(text, at)) return 0;
  size_t end = skip(text, has_letter ? at + 1 : at, is_ascii_digit), parts = 1;
  for (; byte_at(text, end) == '.' && is_ascii_digit(byte_at(text, end + 1)); parts++)
    end = skip(text, end + 1, is_ascii_digit);
  if (!has_letter && parts < 3) return 0;
  end = skip_version_suffix(text, end);
  return ends_part(text, end) ? end : 0;
}

constexpr std::array<Kind, 6> kNumberKinds = {{{"quantity", match_quantity},
                                               {"time", match_time},
                                               {"date", match_date},
                                               {"hyphenated_number", match_hyphenated_number},
                                               {"phone", match_phone},
                                               {"version", match_version}}};

}  // namespace

std::span<const Kind> number_kinds() { return kNumberKinds; }

}  // namespace qkv::protect
