#include "server_options.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "commands.h"
#include "help.h"
#include "options.h"
#include "qkv/error.h"

namespace {

std::string accepted_by(const int64_t&, const qkv::QuantityField& field) { return qkv::accepted_bytes(field); }
std::string accepted_by(const double&, const qkv::QuantityField& field) { return qkv::accepted_durations(field); }
std::string text_of(int64_t bytes) { return qkv::bytes_text(bytes); }
std::string text_of(double seconds) { return qkv::duration_text(seconds); }

// A visitor of fields that adds an option for each, also for sizes and times.
class ServerOptionAdder {
 public:
  explicit ServerOptionAdder(CLI::App& command) : command_(command), plain_(command, {"runs"}) {}

  template <class Member>
  void operator()(std::string_view name, Member& member, const qkv::Field& field) {
    plain_(name, member, field);
  }
  template <class Number>
  void operator()(std::string_view name, Number& member, const qkv::QuantityField& field) {
    const auto set = [&member, field](const std::string& text) -> std::string {
      try {
        qkv::set_quantity(member, text, field);
      } catch (const qkv::Error& error) {
        return error.what();
      }
      return "";
    };
    CLI::Option* option = command_.add_option_function<std::string>(flag_of(name), [](const std::string&) {});
    option->check(CLI::Validator(set, ""))->type_name(std::is_integral_v<Number> ? "SIZE" : "TIME");
    describe(*option, {std::string(field.help), accepted_by(member, field), text_of(member), std::string(field.group),
                       field.visibility == qkv::Visibility::common});
  }

 private:
  CLI::App& command_;
  OptionAdder plain_;
};

}  // namespace

void add_server_options(CLI::App& command, qkv::ServerOptions& options) {
  // CLI11 sets options in the order in which they are added, so the file comes first.
  const auto merge = [&options](const std::string& path) {
    qkv::merge_server_json(options, read_text_file(path), path);
  };
  command.add_option_function<std::string>("--config", merge, "JSON file with values of options, by their names")
      ->type_name("FILE");
  command.add_option("run", options.runs, "Runs to serve, each RUN or NAME=RUN")->type_name("[NAME=]RUN");
  ServerOptionAdder adder(command);
  visit_fields(options, adder);
  // A run may follow an option that can be repeated.
  for (CLI::Option* option : command.get_options())
    if (option->nonpositional()) option->allow_extra_args(false);
}
