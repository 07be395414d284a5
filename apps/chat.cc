// qkv chat: a conversation with a language model in the terminal.
#include "qkv/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "commands.h"
#include "default_options.h"
#include "options.h"
#include "qkv/error.h"
#include "qkv/generator.h"

namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    "/system TEXT   set the system message and begin again; without TEXT, remove it\n"
    "/reset         begin again, with the same system message\n"
    "/help          show this help\n"
    "/quit          end; so does Ctrl-D. Ctrl-C stops an answer\n";

struct ChatCommandOptions {
  std::string run, chat_template, system, variables;
  qkv::GenerateOptions generate;
  qkv::Placement placement;
};

// The effect of Ctrl-C: it stops an answer, and a second time ends the program; elsewhere it only says how to end.
enum class Interrupt { hints, stops, stopped };
std::atomic<Interrupt> interrupt = Interrupt::hints;

struct StopAnswer {};

constexpr int64_t kMaxTokens = 1024;

// Returns the options of a run's answers where none is given. An answer may be longer than a continuation.
qkv::GenerateOptions default_options(const std::string& run) {
  qkv::GenerateOptions options = qkv::default_generate_options(run);
  if (options.max_tokens == qkv::GenerateOptions().max_tokens) options.max_tokens = kMaxTokens;
  return options;
}

void on_interrupt(int number) {
  Interrupt stops = Interrupt::stops;
  if (interrupt.compare_exchange_strong(stops, Interrupt::stopped)) return;
  if (stops == Interrupt::stopped) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  constexpr std::string_view kHint = "\n/quit or Ctrl-D ends the conversation\n> ";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, kHint.data(), kHint.size());
}

// As long as the object lives, Ctrl-C stops the answer.
struct StopsAnswer {
  StopsAnswer() { interrupt = Interrupt::stops; }
  ~StopsAnswer() { interrupt = Interrupt::hints; }
  StopsAnswer(const StopsAnswer&) = delete;
  StopsAnswer& operator=(const StopsAnswer&) = delete;
};

class Conversation {
 public:
  Conversation(const qkv::Generator& generator, const ChatCommandOptions& options)
      : chat_(generator, options.chat_template), options_(options), system_(options.system) {
    chat_options_.variables = options.variables;
    reset();
  }

  void set_system(const std::string& text) {
    system_ = text;
    reset();
  }
  void reset() {
    messages_ = ordered_json::array();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
  }

  // Prints the answer to a message. A message that cannot be answered is not part of the conversation.
  void say(const std::string& text) {
    messages_.push_back({{"role", "user"}, {"content", text}});
    std::string answer;
    try {
      answer = this->answer();
    } catch (const qkv::Error&) {
      messages_.erase(messages_.size() - 1);
      throw;
    }
    messages_.push_back({{"role", "assistant"}, {"content", answer}});
  }

 private:
  std::string answer() {
    const StopsAnswer stops;
    std::string text;
    qkv::GenerateOptions options = options_.generate;
    options.on_text = [&](std::string_view piece) {
      text += piece;
      print_out(piece);
      flush_out();
      if (interrupt == Interrupt::stopped) throw StopAnswer();
    };
    qkv::GenerationEnd end = qkv::GenerationEnd::stop;
    try {
      end = chat_.answer(messages_.dump(-1, ' ', false, ordered_json::error_handler_t::replace), options, chat_options_)
                .end;
    } catch (const StopAnswer&) {
    }
    print_out("\n");
    flush_out();
    if (end == qkv::GenerationEnd::length) print_error("qkv: the answer ends at --max-tokens {}\n", options.max_tokens);
    if (end == qkv::GenerationEnd::context) print_error("qkv: the answer ends at the model's max_length\n");
    return text;
  }

  const qkv::Chat chat_;
  const ChatCommandOptions& options_;
  qkv::ChatOptions chat_options_;
  std::string system_;
  ordered_json messages_;
};

// Executes a line that begins with a slash. Returns false if it ends the conversation.
bool execute(Conversation& conversation, std::string_view line) {
  const std::string_view name = line.substr(0, line.find(' '));
  const std::string text(line.substr(std::min(line.size(), name.size() + 1)));
  if (name == "/quit") return false;
  if (name == "/system")
    conversation.set_system(text);
  else if (name == "/reset")
    conversation.reset();
  else if (name == "/help")
    print_out(kHelp);
  else
    throw qkv::Error(fmt::format("unknown command {} (/help lists them)", name));
  return true;
}

void chat(const ChatCommandOptions& options) {
  const qkv::Generator generator(options.run, qkv::Generator::kCacheBytes, options.placement);
  Conversation conversation(generator, options);
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) {
    std::signal(SIGINT, on_interrupt);  // reading continues after it
    print_out("/help lists the commands\n");
  }
  for (std::string line;;) {
    if (is_terminal) print_out("> ");
    flush_out();
    if (!std::getline(std::cin, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") == line.npos) continue;
    try {
      if (!line.starts_with('/'))
        conversation.say(line);
      else if (!execute(conversation, line))
        return;
    } catch (const qkv::Error& error) {
      if (!is_terminal) throw;
      print_error("qkv: {}\n", error.what());
    }
  }
  if (is_terminal) print_out("\n");
}

}  // namespace

void add_chat_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", "Talk to a language model");
  const auto options = std::make_shared<ChatCommandOptions>();
  options->generate.max_tokens = kMaxTokens;
  options->generate.slide = false;
  command->add_option("run", options->run, "Run directory of a language model")->required();
  command->add_option("--system", options->system, "System message");
  command->add_option("--chat-template", options->chat_template,
                      "How the model reads a conversation: chatml, llama2, llama3, mistral, zephyr, plain, or the name "
                      "of a template of the model; by default its own");
  command
      ->add_option("--chat-variables", options->variables,
                   "Further variables of the template as a JSON object, such as {\"enable_thinking\": false}")
      ->type_name("JSON");
  add_options(*command, options->generate, {"slide", "alternatives", "batch"});
  add_options(*command, options->placement);
  add_threads_option(*command);
  command->callback([options, command] {
    take_defaults(*command, options->generate, default_options(options->run));
    chat(*options);
  });
}
