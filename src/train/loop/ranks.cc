#include "train/loop/ranks.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "core/system/host_name.h"
#include "core/system/isa.h"
#include "core/system/limits.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "qkv/system.h"
#include "ranks/collectives.h"
#include "ranks/launcher.h"
#include "train/loop/private_directory.h"

namespace qkv {
namespace {

constexpr int64_t kFilePart = int64_t{1} << 20;  // bytes of a file in one message

// Returns the parts for an exchange of one message per rank.
std::vector<ByteParts> parts_of(std::vector<MessageBytes>& messages) {
  std::vector<ByteParts> parts;
  for (MessageBytes& message : messages) parts.push_back({std::span<std::byte>(message)});
  return parts;
}

// Returns the files of a run that training starts from, without those that training writes.
std::vector<std::string> files_to_send(const RunDirectory& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run.root())) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    if (entry.is_regular_file() && path != run.model() && path != run.metrics() && path != run.adapter_weights() &&
        name.find(".tmp-") == std::string::npos)
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Returns the ranks, or null if there is one.
std::unique_ptr<Ranks> join(const RankOptions& options) {
  if (options.distributed == Distributed::off) return nullptr;
  Launch launch = find_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (options.distributed == Distributed::automatic) {
    if (launch.ranks == 1) return nullptr;
  } else if (const std::string kind(names_of(options.distributed)[to_size(options.distributed)]); launch.kind != kind) {
    launch = {kind, "", 0};
  }
  const qkv_transport& transport = load_transport(transport_path(launch.kind));
  return std::make_unique<Ranks>(transport, launch.ranks, launch.variable, options);
}

// Each rank reads the text itself.
void check_texts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    if (text == "-" || (std::filesystem::exists(text) && !std::filesystem::is_regular_file(text)))
      fail("{}: must be a regular file, because each rank reads it", text == "-" ? "standard input (-)" : text);
}

bool train_rank(Ranks& ranks, const std::string& out, const TrainingObserver& observer,
                const std::vector<std::string>& texts, const TrainOnRank& train) {
  // The answer counts after the first step. The question says that this process must not end without the others.
  if (observer.should_stop) observer.should_stop();
  if (ranks.is_first()) {
    check_texts(texts);
    return train(out, observer, &ranks);
  }
  const PrivateDirectory directory;
  const RunDirectory run(directory.path());
  make_directory(run.checkpoints());
  ranks.receive_run(run);
  TrainingObserver silent;
  silent.should_stop = observer.should_stop;
  return train(run.root(), silent, &ranks);
}

}  // namespace

Ranks::Ranks(const qkv_transport& transport, int expected, const std::string& source, const RankOptions& options)
    : communicator_(transport, expected, source, {options.timeout, options.on_abort}) {
  try {
    meet();
  } catch (const ReportedElsewhere&) {
    throw;
  } catch (const Error& error) {
    if (communicator_.fail(error.what())) throw ReportedElsewhere(error.what());
    throw;
  }
}

// Calls read(), and names the rank whose message is invalid.
template <class Read>
auto Ranks::read_from(int from, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail("{}: {}", communicator_.label(from), error.what());
  }
}

void Ranks::meet() {
  std::vector<MessageBytes> messages(to_size(size()));
  const std::string program = version();  // and the instruction set
  messages[to_size(rank())] = write_hello({program.substr(0, program.find(" (")), active_isa(), host_name(), threads(),
                                           allowed_processors(), machine_processors()});
  share_all(communicator_, parts_of(messages));
  std::vector<Hello> hellos;
  std::vector<std::string> hosts;
  for (int r = 0; r < size(); r++) {
    hellos.push_back(read_from(r, [&] { return read_hello(messages[to_size(r)]); }));
    hosts.push_back(hellos.back().host);
  }
  hellos_ = std::move(hellos);
  communicator_.set_hosts(std::move(hosts));
  if (!is_first()) return;
  const Hello& first = hellos_.front();
  for (int r = 1; r < size(); r++) {
    const Hello& other = hellos_[to_size(r)];
    if (other.version != first.version)
      fail("rank {} ({}): is {}, rank 0 ({}) is {}; all ranks must run the same program", r, other.host, other.version,
           first.host, first.version);
    if (other.isa != first.isa)
      fail("rank {} ({}): uses the instruction set {}, rank 0 ({}) {}; set QKV_ISA to one that all machines have", r,
           other.host, other.isa, first.host, first.isa);
  }
}

std::string Ranks::summary() const {
  std::set<std::string> hosts;
  std::set<int32_t> counts;
  for (const Hello& hello : hellos_) {
    hosts.insert(hello.host);
    counts.insert(hello.threads);
  }
  const std::string with = counts.size() == 1
                               ? fmt::format("{} thread{} each", *counts.begin(), *counts.begin() == 1 ? "" : "s")
                               : fmt::format("{} to {} threads", *counts.begin(), *counts.rbegin());
  return fmt::format("ranks: {} on {} host{}, with {}", size(), hosts.size(), hosts.size() == 1 ? "" : "s", with);
}

void Ranks::check_shards(int64_t shards) const {
  if (shards < size())
    fail("training: shards must be at least {}, the number of ranks (is {}): each rank computes some of them", size(),
         shards);
}

void Ranks::send_run(const RunDirectory& run) {
  const auto send = [&](std::span<const std::byte> bytes) {
    broadcast(communicator_, {{const_cast<std::byte*>(bytes.data()), bytes.size()}});
  };
  for (const std::string& name : files_to_send(run)) {
    const MappedFile file(run.root() + "/" + name);
    send(write_file_header({name, std::ssize(file.bytes())}));
    for (size_t at = 0; at < file.bytes().size(); at += to_size(kFilePart))
      send(file.bytes().subspan(at, std::min(to_size(kFilePart), file.bytes().size() - at)));
  }
  send(write_file_header({}));
}

void Ranks::receive_run(const RunDirectory& run) {
  std::vector<std::byte> part;
  for (;;) {
    MessageBytes message;
    broadcast(communicator_, {std::span<std::byte>(message)});
    const FileHeader header = read_from(0, [&] { return read_file_header(message); });
    if (header.name.empty()) return;
    const std::string path = run.root() + "/" + header.name;
    const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) fail_file(path, "cannot be written");
    for (int64_t at = 0; at < header.size; at += kFilePart) {
      part.resize(to_size(std::min(kFilePart, header.size - at)));
      broadcast(communicator_, {std::span(part)});
      if (!write_all(file.get(), part)) fail_file(path, "cannot be written");
    }
  }
}

void Ranks::agree(const std::string& what, const std::string& value, const std::string& advice) {
  std::vector<MessageBytes> messages(to_size(size()));
  messages[to_size(rank())] = write_value(value);
  collect(communicator_, parts_of(messages));
  if (!is_first()) return;
  for (int r = 1; r < size(); r++)
    if (const std::string other = read_from(r, [&] { return read_value(messages[to_size(r)]); }); other != value)
      fail("rank {} ({}): has {} rank 0 ({}): {}, rank 0 has {}; {}", r, hellos_[to_size(r)].host, what,
           hellos_.front().host, other, value, advice);
}

void Ranks::command(Command command, int64_t step) {
  MessageBytes message = write_command(command, step);
  broadcast(communicator_, {std::span<std::byte>(message)});
}

Command Ranks::next_command(int64_t step) {
  MessageBytes message;
  broadcast(communicator_, {std::span<std::byte>(message)});
  return read_from(0, [&] { return read_command(message, step); });
}

std::string unused_processors(const std::vector<Hello>& ranks) {
  std::map<std::string, int64_t> threads;  // by host
  for (const Hello& rank : ranks) threads[rank.host] += rank.threads;
  const auto is_bound = [&](const Hello& r) { return r.allowed < r.processors && threads[r.host] < r.processors; };
  const auto bound = std::ranges::find_if(ranks, is_bound);
  if (bound == ranks.end()) return "";
  return fmt::format(
      "rank {} ({}): is bound to {} of the {} processors of its machine; to use all, start the job by mpirun --bind-to "
      "none, or srun --cpus-per-task",
      bound - ranks.begin(), bound->host, bound->allowed, bound->processors);
}

bool train_on_ranks(const RankOptions& options, const std::string& out, const TrainingObserver& observer,
                    const std::vector<std::string>& texts, const TrainOnRank& train) {
  return run_on_ranks(options, [&](Ranks* ranks) {
    return ranks ? train_rank(*ranks, out, observer, texts, train) : train(out, observer, nullptr);
  });
}

bool run_on_ranks(const RankOptions& options, FunctionRef<bool(Ranks* ranks)> work) {
  std::unique_ptr<Ranks> ranks;
  try {
    ranks = join(options);
    const bool ended = work(ranks.get());
    if (ranks) ranks->communicator().leave();
    return ended;
  } catch (const ReportedElsewhere&) {
    return false;
  } catch (const std::exception& error) {
    if (ranks && ranks->communicator().fail(error.what())) return false;
    throw;
  }
}

}  // namespace qkv
