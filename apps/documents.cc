// Documents of qkv translate: a file, or all files of a folder with a known format.
#include "documents.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "commands.h"
#include "count_line.h"
#include "program/documents/document_files.h"
#include "program/lines/jobs.h"
#include "program/lines/parts.h"
#include "qkv/error.h"
#include "signals.h"

namespace {

namespace fs = std::filesystem;

// Notes on a document, and the line of its progress.
class DocumentProgress {
 public:
  DocumentProgress(std::string name, qkv::TranslateOptions& options) : name_(std::move(name)), line_("texts", name_) {
    options.on_note = [this](const std::string& note) { notes_.add(note); };
    options.on_progress = [this](int64_t done) {
      line_.add(done);
      stop_if_interrupted();
    };
  }
  DocumentProgress(const DocumentProgress&) = delete;
  DocumentProgress& operator=(const DocumentProgress&) = delete;

  void end(int64_t texts) {
    notes_.finish();
    line_.clear();
    print_error("{}: {} texts translated\n", name_, texts);
  }

 private:
  void report(const std::string& text) {
    line_.clear();
    print_error("qkv: {}: {}\n", name_, text);
  }

  const std::string name_;
  CountLine line_;
  qkv::FewNotes notes_{[this](const std::string& note) { report(note); }};
};

// The translation of each document.
struct DocumentWork {
  const qkv::PivotTranslator& translator;
  const std::vector<qkv::TranslateOptions>& options;
  const qkv::DocumentOptions& document;
  UntranslatedReport& report;
};

void translate_one(const DocumentWork& work, const std::string& path, const std::string& out) {
  const auto& [translator, given, document, report] = work;
  const std::string name = input_name(path);
  std::vector<qkv::TranslateOptions> options = given;
  DocumentProgress progress(name, options.front());
  report.listen(options.front(), name);
  if (path != "-" && out != "-") {
    progress.end(qkv::translate_document_file(translator, path, out, options, document));
    return;
  }
  std::string bytes = read_input(path);
  const qkv::TranslatedDocument translated =
      qkv::translate_document(translator, name, std::move(bytes), options, document);
  if (out == "-") {
    print_out(translated.bytes);
    flush_out();
  } else {
    write_text_file(out, translated.bytes);
  }
  progress.end(translated.parts);
}

void translate_folder(const DocumentWork& work, const std::string& folder, const std::string& out) {
  qkv::check_apart(folder, out, "documents", "translations");
  const qkv::FolderDocuments found = qkv::documents_in(folder);
  size_t written = 0, present = 0, failed = 0;
  for (const std::string& name : found.documents) {
    stop_if_interrupted();
    const fs::path to = fs::path(out) / name;
    std::error_code unreadable;
    if (fs::is_regular_file(to, unreadable)) {
      present++;
      continue;
    }
    try {
      fs::create_directories(to.parent_path());
      translate_one(work, (fs::path(folder) / name).string(), to.string());
      written++;
    } catch (const qkv::Error& error) {
      print_error("qkv: {}\n", error.what());
      failed++;
    } catch (const fs::filesystem_error& error) {
      print_error("qkv: {}: cannot be created: {}\n", to.parent_path().string(), error.code().message());
      failed++;
    }
  }
  print_error("{} documents: {} written, {} present, {} failed; {} files of other formats left out\n",
              found.documents.size(), written, present, failed, found.others.size());
  work.report.commit();
  if (failed > 0) throw qkv::Error(fmt::format("{} of {} documents failed", failed, found.documents.size()));
}

std::string format_names() {
  std::string names;
  for (const qkv::DocumentInfo& format : qkv::known_document_formats())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.format);
  return names;
}

}  // namespace

void add_documents_options(CLI::App& command, DocumentsOptions& options, const std::vector<std::string>& others) {
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    return command.add_option(name, value, help)->group("Documents");
  };
  CLI::Option* path =
      add("--document", options.path,
          "Document whose text is translated into --out, or folder of documents; all else in it stays. - is "
          "standard input")
          ->type_name("FILE|FOLDER");
  add("--document-format", options.document.format, "Format, if not by the end of the name: " + format_names())
      ->type_name("NAME")
      ->needs(path);
  add("--columns", options.document.columns, "Columns of a CSV file to translate: names in its first line, or numbers")
      ->type_name("NAME,…")
      ->delimiter(',')
      ->needs(path);
  const auto set_languages = [&options](const std::string& languages) {
    qkv::set_document_languages(options.document, languages);
  };
  command
      .add_option_function<std::string>("--document-languages", set_languages,
                                        "Languages of the document, for TMX and XLIFF files that do not name them")
      ->group("Documents")
      ->type_name("SOURCE-TARGET")
      ->needs(path);
  options.path_option = path;
  CLI::Option* out = command.get_option("--out");
  out->remove_needs(command.get_option("--in"));
  out->description(out->get_description() + "; with --document the translated document, or folder of them")
      ->type_name("FOLDER|FILE");
  for (const std::string& other : others) path->excludes(command.get_option(other));
}

void translate_documents(const qkv::PivotTranslator& translator, const DocumentsOptions& options,
                         const std::string& out, std::vector<qkv::TranslateOptions> translate,
                         UntranslatedReport& report) {
  listen_for_interrupts();
  translator.translate(std::vector<std::string>(), translate);  // checks the options
  const DocumentWork work{translator, translate, options.document, report};
  std::error_code error;
  if (options.path != "-" && fs::is_directory(options.path, error)) {
    if (out == "-" || !options.document.format.empty())
      throw qkv::Error(fmt::format("{}: a folder requires a folder as --out, and no --document-format", options.path));
    return translate_folder(work, options.path, out);
  }
  translate_one(work, options.path, out);
  report.commit();
}
