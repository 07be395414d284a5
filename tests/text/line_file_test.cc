// Long text files, read by chunks.
#include "text/line_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/to_size.h"
#include "qkv/text.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;
using testing::error_if_any;
using testing::error_of;
using testing::expect_contains;
using testing::TempFile;

Lines all_of(const LineFile& file) {
  Lines lines;
  for (int64_t chunk = 0; chunk < file.chunks(); chunk++)
    for (const std::string& line : file.read(chunk)) lines.push_back(line);
  return lines;
}

void overwrite(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(LineFile, GivesTheLinesOfReadLines) {
  const std::string long_line(3 << 20, 'x');  // longer than the buffer of the scan
  for (const std::string& text : Lines{"", "\n", "\n\n", "a", "a\n", "a\r\nb\r\n\r\nc\r", "é\n\n\nü\nö",
                                       "a\n" + long_line, long_line + "\nb\n" + long_line + "\n"}) {
    const TempFile plain("plain", text), marked("marked", "\xEF\xBB\xBF" + text);
    const Lines wanted = read_lines(plain.path());
    for (const int64_t chunk : {1, 2, 3, 1000}) {
      const LineFile file(plain.path(), chunk);
      EXPECT_EQ(file.lines(), std::ssize(wanted));
      EXPECT_EQ(file.chunks(), (std::ssize(wanted) + chunk - 1) / chunk);
      EXPECT_EQ(all_of(file), wanted);
      EXPECT_EQ(all_of(LineFile(marked.path(), chunk)), text.empty() ? Lines{""} : wanted);
    }
  }
}

TEST(LineFile, ReadsChunksInAnyOrder) {
  std::string text;
  for (int i = 0; i < 100'000; i++) text += std::to_string(i) + std::string(to_size(i % 50), '-') + "\n";
  const TempFile file("text", text);
  const LineFile lines(file.path(), 1000);
  for (const int64_t chunk : {99, 3, 0, 57, 57}) {
    const Lines read = lines.read(chunk);
    ASSERT_EQ(read.size(), 1000u);
    for (size_t i = 0; i < read.size(); i++) {
      const int number = static_cast<int>(chunk) * 1000 + static_cast<int>(i);
      EXPECT_EQ(read[i], std::to_string(number) + std::string(to_size(number % 50), '-'));
    }
  }
}

TEST(LineFile, NamesTheLineOfAMistake) {
  const TempFile latin("latin", "a\nb\nc\nd\xC3\xA9\xE9\n"), cut("cut", "a\nb\xC3\nc\n");
  for (const int64_t chunk : {1, 2, 9}) {
    EXPECT_EQ(error_of([&] { LineFile(latin.path(), chunk); }),
              latin.path() +
                  ":4: byte 4 of the line is not valid UTF-8 (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" "
                  "makes it so)");
    expect_contains(error_of([&] { LineFile(cut.path(), chunk); }), cut.path() + ":2: byte 2 of the line is not valid");
  }
  std::string seen;
  const TempFile good("good", "\xEF\xBB\xBFone\r\ntwo\nthree");
  LineFile(good.path(), 2,
           [&](int64_t number, std::string_view line) { seen += std::to_string(number) + std::string(line) + ";"; });
  EXPECT_EQ(seen, "1one;2two;3three;");
}

TEST(LineFile, RefusesLinesThatChangedAndFilesThatShrank) {
  const TempFile file("text", "one\ntwo\nthree\nfour\nfive\n");
  const LineFile lines(file.path(), 2);
  const auto error_at = [&](int64_t chunk) { return error_of([&] { lines.read(chunk); }); };
  overwrite(file.path(), "one\ntwo\nthree\nfour\nfive\nsix\n");
  EXPECT_EQ(lines.read(2), Lines{"five"});
  overwrite(file.path(), "one\ntwo\nthreE\nfour\nfive\n");
  EXPECT_EQ(lines.read(0), (Lines{"one", "two"}));
  EXPECT_EQ(error_at(1), file.path() + ": lines 3 to 4 have changed since they were first read");
  overwrite(file.path(), "one\n");
  EXPECT_EQ(error_at(0), file.path() + ": lines 1 to 2 have changed since they were first read");
  EXPECT_EQ(error_at(2), file.path() + ": lines 5 to 5 have changed since they were first read");
}

TEST(LineFile, KeepsReadingAFileThatWasReplaced) {
  const TempFile file("text", "one\ntwo\n"), other("other", "three\n");
  const LineFile lines(file.path(), 1);
  std::filesystem::rename(other.path(), file.path());
  EXPECT_EQ(all_of(lines), (Lines{"one", "two"}));
}

TEST(LineFile, DistinguishesContents) {
  std::vector<uint64_t> hashes;
  for (const char* text : {"", "a\n", "b\n", "a", "a\n\n", "a\nb\n", "b\na\n", "12345678\n", "12345678", "a\r\n"}) {
    const TempFile file("text", text);
    hashes.push_back(LineFile(file.path(), 1).hash());
    EXPECT_EQ(LineFile(file.path(), 1).hash(), hashes.back());
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::adjacent_find(hashes.begin(), hashes.end()), hashes.end());
}

TEST(LineFile, CopiesAPipe) {
  const TempFile place("pipe", "");
  const std::string path = place.path() + ".fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { overwrite(path, "one\ntwo\nthree\n"); });
  const LineFile lines(path, 2);
  writer.join();
  std::filesystem::remove(path);
  EXPECT_EQ(lines.read(1), Lines{"three"});
  EXPECT_EQ(lines.read(0), (Lines{"one", "two"}));
}

TEST(LineFile, RefusesAFolderAndWhatIsNotThere) {
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(error_of([&] { LineFile(folder, 1); }), folder + ": cannot be read: Is a directory");
  EXPECT_EQ(error_of([&] { LineFile("no/such", 1); }), "no/such: cannot be opened: No such file or directory");
}

std::string gzip_of(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&stream, text.size()) + 64, '\0'), input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

TEST(LineFile, ReadsGzipAsItsText) {
  std::string text;
  for (int i = 0; i < 20'000; i++) text += "line " + std::to_string(i) + " é\n";
  const std::string zeros(900'000, '0');  // of a kilobyte, so that the text comes in many buffers at the end
  for (const std::string& whole : {text, std::string("a\nb"), std::string(), zeros}) {
    const TempFile plain("plain", whole), packed("packed", gzip_of(whole)),
        members("members", gzip_of(whole) + gzip_of("x\n") + gzip_of(""));
    EXPECT_EQ(all_of(LineFile(packed.path(), 100)), all_of(LineFile(plain.path(), 100)));
    EXPECT_EQ(LineFile(packed.path(), 100).hash(), LineFile(plain.path(), 100).hash());
    const TempFile both("both", whole + "x\n");
    EXPECT_EQ(all_of(LineFile(members.path(), 7)), all_of(LineFile(both.path(), 7)));
  }
}

TEST(LineFile, RefusesDamagedAndHostileGzip) {
  const auto error = [](const std::string& bytes) {
    const TempFile file("packed", bytes);
    return error_of([&] { LineFile(file.path(), 100); });
  };
  std::string text;
  for (int i = 0; i < 20'000; i++) text += "line " + std::to_string(i) + "\n";
  const std::string packed = gzip_of(text);
  for (const size_t size : {size_t{2}, size_t{9}, packed.size() / 2, packed.size() - 1})
    expect_contains(error(packed.substr(0, size)), "packed: the gzip data ends too early");
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // the checksum
  expect_contains(error(damaged), "packed: damaged gzip data (incorrect data check)");
  expect_contains(error(packed + "more"), "packed: damaged gzip data (incorrect header check)");
  expect_contains(error(gzip_of(std::string(8 << 20, 'x'))),
                  "packed: expands to more than 256 times its size; unpack it with gunzip to use it anyway");
  expect_contains(error(gzip_of("\xFF\xFE")), "packed:1: byte 1 of the line is not valid UTF-8");
}

// One frame with a checksum, and a window of 2^bits bytes, as of a stream whose size is not known.
std::string zstd_of(const std::string& text, int bits = 20) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, bits);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string bytes(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
  while (in.pos < in.size) ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue);
  while (ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  bytes.resize(out.pos);
  return bytes;
}

TEST(LineFile, ReadsZstdAsItsText) {
  const std::string skipped("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);  // pzstd puts such a frame first
  std::string text;
  for (int i = 0; i < 20'000; i++) text += "line " + std::to_string(i) + " é\n";
  for (const std::string& whole : {text, std::string("a\nb"), std::string(), std::string(900'000, '0')}) {
    const TempFile plain("plain", whole), packed("packed", zstd_of(whole)), wide("wide", zstd_of(whole, 23)),
        frames("frames", skipped + zstd_of(whole) + skipped + zstd_of("x\n") + zstd_of(""));
    for (const TempFile* file : {&packed, &wide}) {
      EXPECT_EQ(all_of(LineFile(file->path(), 100)), all_of(LineFile(plain.path(), 100)));
      EXPECT_EQ(LineFile(file->path(), 100).hash(), LineFile(plain.path(), 100).hash());
    }
    const TempFile both("both", whole + "x\n");
    EXPECT_EQ(all_of(LineFile(frames.path(), 7)), all_of(LineFile(both.path(), 7)));
  }
}

TEST(LineFile, RefusesDamagedAndHostileZstd) {
  const auto error = [](const std::string& bytes) {
    const TempFile file("packed", bytes);
    return error_of([&] { LineFile(file.path(), 100); });
  };
  std::string text;
  for (int i = 0; i < 20'000; i++) text += "line " + std::to_string(i) + "\n";
  const std::string packed = zstd_of(text);
  for (const size_t size : {size_t{4}, size_t{9}, packed.size() / 2, packed.size() - 1})
    expect_contains(error(packed.substr(0, size)), "packed: the zstd data ends too early");
  std::string damaged = packed;
  damaged[packed.size() - 2] ^= 1;  // the checksum
  expect_contains(error(damaged), "packed: damaged zstd data (Restored data doesn't match checksum)");
  expect_contains(error(packed + "more"), "packed: damaged zstd data (Unknown frame descriptor)");
  expect_contains(error(zstd_of(std::string(8 << 20, 'x'))),
                  "packed: expands to more than 256 times its size; unpack it with unzstd to use it anyway");
  std::string large;  // of more than 28 KiB compressed, so that it may hold 8 MiB of text
  for (uint32_t i = 0; i < 20'000; i++) large += std::to_string(i * 2'654'435'761U) + "\n";
  EXPECT_EQ(error_if_any([&] { LineFile(TempFile("wide", zstd_of(large, 24)).path(), 100); }), "");
  expect_contains(error(zstd_of("a line\n", 24)),
                  "packed: needs more than 8 MiB to decompress; unpack it with unzstd to use it anyway");
  expect_contains(error(zstd_of("\xFF\xFE")), "packed:1: byte 1 of the line is not valid UTF-8");
}

}  // namespace
}  // namespace qkv
