// URLs, e-mail addresses, domain names, IP addresses and paths of files.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/ascii.h"
#include "decode/terms/protected_kinds.h"
#include "text/sentence_characters.h"

namespace qkv::protect {
namespace {

using WordSet = std::unordered_set<std::string_view>;

constexpr size_t kMaxScheme = 24, kMaxLocalPart = 64, kMaxDomain = 253, kMaxAddress = 64;

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return equals_ignoring_case(text.substr(0, lower.size()), lower);
}

// ---- URLs

constexpr std::string_view kOpening = "([{", kClosing = ")]}";

// Accepts letters outside ASCII, but none of a script without spaces: there the sentence may continue.
bool is_url_character(int32_t code) {
  if (code < 0x80) return code > ' ' && code != 0x7F && !is_one_of(static_cast<char>(code), "<>\"`|\\^");
  return is_word(code);
}

// Returns the end without punctuation at the end and without closing brackets that are not opened.
size_t without_punctuation(std::string_view text, size_t begin, size_t end) {
  std::array<int64_t, 3> open = {};
  for (size_t i = begin; i < end; i++) {
    if (const size_t k = kOpening.find(text[i]); k != kOpening.npos) open[k]++;
    if (const size_t k = kClosing.find(text[i]); k != kClosing.npos) open[k]--;
  }
  for (; end > begin; end--) {
    const char last = text[end - 1];
    const size_t opening = kOpening.find(last), closing = kClosing.find(last);
    if (opening != kOpening.npos) {
      open[opening]--;
    } else if (closing != kClosing.npos) {
      if (open[closing] >= 0) break;
      open[closing]++;
    } else if (!is_one_of(last, ".,;:!?'*~&")) {
      break;
    }
  }
  return end;
}

// Returns the end of the rest of a URL, which is at least a byte before `at` long.
size_t end_of_url(std::string_view text, size_t at) {
  size_t end = at;
  for (auto c = sentence::character_at(text, at); is_url_character(c.code); c = sentence::character_at(text, c.end))
    end = c.end;
  return without_punctuation(text, at, end);
}

// Returns the byte after "scheme://", "www." or "mailto:"; 0 if there is none.
size_t end_of_scheme(std::string_view text, size_t at) {
  for (const std::string_view known : {"www.", "mailto:"})
    if (starts_with_ignoring_case(text.substr(at), known)) return at + known.size();
  const auto is_scheme = [](char c) { return is_ascii_alphanumeric(c) || c == '+' || c == '-'; };
  const size_t end = skip(text, at, is_scheme, kMaxScheme);
  return end > at + 1 && text.substr(end).starts_with("://") ? end + 3 : 0;
}

size_t match_url(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_ascii_letter(text[at]) || is_word_before(text, at)) return 0;
  const size_t begin = end_of_scheme(text, at);
  if (begin == 0 || is_one_of(byte_at(text, begin), ".,;:!?*&=")) return 0;
  const size_t end = end_of_url(text, begin);
  return end > begin ? end : 0;
}

// ---- Domain names

// Top-level domains that are known without a path. Those that are words of some language, such as "in", are not here.
constexpr auto kFrequentTops = std::to_array<std::string_view>(
    {"com", "org", "net", "edu", "gov", "mil", "info", "biz", "io", "ai", "dev", "app", "de", "fr",
     "uk",  "eu",  "ch",  "ru",  "jp",  "cn",  "au",   "ca",  "nl", "pl", "cz",  "br",  "kr", "tv"});

constexpr auto kOtherTops = std::to_array<std::string_view>(
    {"ae", "ar",      "at",     "be",   "bg",    "bio",   "blog",  "by",  "cat",  "cc",   "cl",   "cloud",
     "co", "digital", "dk",     "ee",   "email", "es",    "fi",    "fm",  "gg",   "gl",   "gr",   "hk",
     "hr", "hu",      "id",     "ie",   "il",    "in",    "ir",    "is",  "it",   "kz",   "link", "live",
     "ls", "lt",      "lu",     "lv",   "ly",    "me",    "media", "mx",  "my",   "name", "news", "no",
     "nz", "one",     "online", "page", "ph",    "pro",   "pt",    "pub", "ro",   "rs",   "se",   "sg",
     "sh", "shop",    "si",     "site", "sk",    "space", "store", "su",  "tech", "th",   "to",   "top",
     "tr", "tw",      "ua",     "us",   "vn",    "wiki",  "world", "xyz", "za",   "zone"});

// A name such as example.com.
struct DomainName {
  size_t end = 0;  // 0: there is none
  size_t labels = 0;
  std::string_view top;  // the last label
};

DomainName domain_at(std::string_view text, size_t at) {
  DomainName name;
  const auto is_label = [](char c) { return is_ascii_alphanumeric(c) || c == '-'; };
  for (size_t begin = at; begin < text.size() && begin - at < kMaxDomain && is_ascii_alphanumeric(text[begin]);) {
    const size_t end = skip(text, begin, is_label, kMaxDomain);
    if (text[end - 1] == '-') break;
    name.end = end;
    name.labels++;
    name.top = text.substr(begin, end - begin);
    if (byte_at(text, end) != '.') break;
    begin = end + 1;
  }
  return name;
}

size_t end_of_port(std::string_view text, size_t at) {
  const size_t end = byte_at(text, at) == ':' ? skip(text, at + 1, is_ascii_digit, 5) : at;
  return end > at + 1 && !is_word_at(text, end) ? end : at;
}

size_t match_domain(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  if (!is_ascii_alphanumeric(text[at]) || is_word_before(text, at) || is_one_of(byte_before(text, at), ".-@/\\"))
    return 0;
  const DomainName name = domain_at(text, at);
  if (name.labels < 2 || !ends_part(text, name.end) || byte_at(text, name.end) == '@') return 0;
  static const WordSet frequent(kFrequentTops.begin(), kFrequentTops.end());
  static const WordSet other(kOtherTops.begin(), kOtherTops.end());
  const size_t port = end_of_port(text, name.end);
  const bool has_path = byte_at(text, port) == '/';
  if (!frequent.contains(name.top) && !((has_path || port > name.end) && other.contains(name.top))) return 0;
  return has_path ? end_of_url(text, port) : port;
}

size_t match_email(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  const auto is_local = [](char c) { return is_ascii_alphanumeric(c) || is_one_of(c, "._%+-"); };
  if (!is_ascii_alphanumeric(text[at]) || is_word_before(text, at) || is_local(byte_before(text, at))) return 0;
  const size_t sign = skip(text, at, is_local, kMaxLocalPart);
  if (byte_at(text, sign) != '@') return 0;
  const DomainName name = domain_at(text, sign + 1);
  const bool is_top = name.top.size() >= 2 && skip(name.top, 0, is_ascii_letter) == name.top.size();
  return name.labels >= 2 && is_top && !is_word_at(text, name.end) ? name.end : 0;
}

// ---- IP addresses

// Returns the end of four numbers up to 255; 0 if there are not code.
size_t end_of_ip4(std::string_view text, size_t at) {
  for (int part = 0; part < 4; part++) {
    const size_t end = skip(text, at, is_ascii_digit, 3);
    int value = 0;
    for (size_t i = at; i < end; i++) value = 10 * value + text[i] - '0';
    if (end == at || value > 255) return 0;
    if (part == 3) return end;
    if (byte_at(text, end) != '.') return 0;
    at = end + 1;
  }
  return 0;
}

// Returns the end of an IP address of version 6 or of a hardware address; 0 if there is none.
size_t end_of_hex_groups(std::string_view text, size_t at) {
  size_t end = skip(
      text, at, [](char c) { return is_hex_digit(c) || c == ':'; }, kMaxAddress);
  if (byte_before(text, end) == ':' && !text.substr(0, end).ends_with("::")) end--;
  const std::string_view all = text.substr(at, end - at);
  size_t groups = 0, longest = 0, shortest = kMaxAddress;
  for (size_t i = 0; i <= all.size();) {
    const size_t stop = std::min(all.find(':', i), all.size());
    groups++;
    longest = std::max(longest, stop - i);
    shortest = std::min(shortest, stop - i);
    i = stop + 1;
  }
  const bool is_short = all.find("::") != all.npos && groups >= 3 && groups <= 9 && longest > 0;
  const bool is_full = (groups == 8 && shortest > 0) || (groups == 6 && shortest == 2 && longest == 2);
  return longest <= 4 && (is_short || is_full) ? end : 0;
}

size_t match_ip_address(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  const char first = text[at];
  if ((!is_hex_digit(first) && first != ':') || is_word_before(text, at) || is_one_of(byte_before(text, at), ".:"))
    return 0;
  if (const size_t end = end_of_ip4(text, at); end > 0) {
    const size_t port = end_of_port(text, end);
    const size_t prefix = byte_at(text, end) == '/' ? skip(text, end + 1, is_ascii_digit, 2) : 0;
    const size_t last = std::max(port, prefix > end + 1 ? prefix : end);
    return ends_part(text, last) ? last : 0;
  }
  const size_t end = end_of_hex_groups(text, at);
  return end > 0 && !is_word_at(text, end) ? end : 0;
}

// ---- Paths

constexpr auto kExtensions = std::to_array<std::string_view>(
    {"7z",    "aac",   "apk",   "asm",  "avi",  "avif",  "bak",  "bash", "bat",  "bin",   "bmp",   "bz2",  "c",
     "cc",    "cfg",   "cmake", "conf", "cpp",  "cs",    "css",  "csv",  "cu",   "cxx",   "dat",   "db",   "deb",
     "diff",  "dll",   "dmg",   "doc",  "docx", "dylib", "env",  "eot",  "eps",  "epub",  "exe",   "flac", "flv",
     "gif",   "gguf",  "go",    "gz",   "h",    "h5",    "heic", "hpp",  "hs",   "htm",   "html",  "icns", "ico",
     "ini",   "ipynb", "iso",   "jar",  "java", "jpeg",  "jpg",  "js",   "json", "jsonl", "jsx",   "key",  "kt",
     "less",  "lock",  "log",   "lua",  "m4a",  "md",    "mdx",  "mjs",  "mkv",  "ml",    "mov",   "mp3",  "mp4",
     "mpeg",  "mpg",   "msi",   "npy",  "npz",  "odp",   "ods",  "odt",  "ogg",  "onnx",  "otf",   "parq", "patch",
     "pdf",   "pem",   "php",   "pkl",  "pl",   "plist", "png",  "po",   "ppt",  "pptx",  "proto", "ps1",  "psd",
     "pt",    "pth",   "py",    "rar",  "rb",   "rs",    "rst",  "rtf",  "scss", "sh",    "so",    "sql",  "sqlite",
     "srt",   "svg",   "swift", "tar",  "tex",  "tgz",   "tif",  "tiff", "toml", "ts",    "tsv",   "tsx",  "ttf",
     "txt",   "vb",    "vcf",   "vtt",  "vue",  "wasm",  "wav",  "webm", "webp", "whl",   "wma",   "wmv",  "woff",
     "woff2", "xls",   "xlsx",  "xml",  "xz",   "yaml",  "yml",  "zip",  "zst"});

bool is_separator(char c) { return c == '/' || c == '\\'; }

bool is_path_character(int32_t code) {
  return is_word(code) || (code > 0 && code < 0x80 && is_one_of(static_cast<char>(code), "._+-~@%/\\"));
}

// Returns the end of the characters of a path, without full stops and hyphens at the end.
size_t end_of_path(std::string_view text, size_t at) {
  size_t end = at;
  for (auto c = sentence::character_at(text, at); is_path_character(c.code); c = sentence::character_at(text, c.end))
    end = c.end;
  while (end > at && is_one_of(text[end - 1], ".-%~@+")) end--;
  return end;
}

// Returns the number of bytes of what begins a path that needs no extension, such as "./", "C:\" or "/".
size_t root_length(std::string_view path) {
  if (path.size() >= 3 && is_ascii_letter(path[0]) && path[1] == ':' && is_separator(path[2])) return 3;
  for (const std::string_view root : {"\\\\", "../", "..\\", "./", ".\\", "~/", "/"})
    if (path.starts_with(root)) return root.size();
  return 0;
}

struct PathParts {
  size_t separators = 0;             // with a name after them
  std::string_view name, extension;  // of the last part
};

PathParts path_parts(std::string_view path) {
  PathParts parts;
  for (size_t i = 0; i + 1 < path.size(); i++) parts.separators += is_separator(path[i]) && !is_separator(path[i + 1]);
  const size_t last = path.find_last_of("/\\");
  parts.name = last == path.npos ? path : path.substr(last + 1);
  const size_t dot = parts.name.rfind('.');
  if (dot == parts.name.npos) return parts;
  parts.extension = parts.name.substr(dot + 1);
  parts.name = parts.name.substr(0, dot);
  return parts;
}

// Whether a name has an extension that is known, in lower case or in capitals, so that "end.Next" has none.
bool has_known_extension(const PathParts& parts) {
  static const WordSet known(kExtensions.begin(), kExtensions.end());
  const std::string lower = ascii_lower(parts.extension);
  if (parts.extension != lower && skip(parts.extension, 0, is_ascii_lower) > 0) return false;
  if (std::ranges::any_of(parts.extension, is_ascii_lower) && std::ranges::any_of(parts.extension, is_ascii_upper))
    return false;
  const size_t least_name = parts.extension.size() == 1 ? 2 : 1;  // "d.h." is an abbreviation
  return known.contains(lower) && parts.name.size() >= least_name && parts.name.find("..") == parts.name.npos;
}

bool has_plausible_extension(const PathParts& parts) {
  return !parts.name.empty() && !parts.extension.empty() && parts.extension.size() <= 5 &&
         std::ranges::all_of(parts.extension, [](char c) { return is_ascii_lower(c) || is_ascii_digit(c); });
}

// Returns the end of a line number after a path, such as ":12" and ":12:5".
size_t end_of_line_number(std::string_view text, size_t at) {
  const size_t line = end_of_port(text, at);
  return line > at ? end_of_port(text, line) : at;
}

size_t match_path(const ScannedText& scanned, size_t at) {
  const std::string_view text = scanned.text();
  const char before = byte_before(text, at);
  if (is_word_before(text, at) || is_separator(before) || is_one_of(before, ".+-~@:%<$#}")) return 0;
  const size_t root = root_length(text.substr(at));
  const bool begins_name = is_word_at(text, at) || (text[at] == '.' && is_ascii_letter(byte_at(text, at + 1)));
  if (root == 0 && !begins_name) return 0;
  const size_t end = end_of_path(text, at + root);
  if (end <= at + root || !ends_part(text, end)) return 0;
  const PathParts parts = path_parts(text.substr(at, end - at));
  const bool is_rooted = root > 1 || (root == 1 && (parts.separators >= 2 || has_known_extension(parts)));
  const bool has_name = root > 0 && is_word_at(text, at + root);
  const bool is_file = has_known_extension(parts) || (parts.separators >= 2 && has_plausible_extension(parts)) ||
                       (parts.separators >= 1 && is_separator(text[end - 1]));
  if (is_rooted && (has_name || byte_at(text, at + root) == '.')) return end_of_line_number(text, end);
  return root == 0 && is_file ? end_of_line_number(text, end) : 0;
}

constexpr std::array<Kind, 5> kAddressKinds = {{{"url", match_url},
                                                {"email", match_email},
                                                {"domain", match_domain},
                                                {"ip_address", match_ip_address},
                                                {"path", match_path}}};

}  // namespace

std::span<const Kind> address_kinds() { return kAddressKinds; }

}  // namespace qkv::protect
