// The three files of a log in a run directory, in turn: a log that is accepted is written and read again as the same.
// And the items that were drawn for its users.
#include "io/runs/saved_interactions.h"

#include "eval/negatives.h"
#include "fuzz/import.h"

void qkv::fuzz::fuzz_saved_interactions(std::string_view bytes) {
  static const std::string sum(64, '0');
  static const Interactions small = [] {
    Interactions data;
    data.users = {"a", "b"}, data.items = {"x", "y"};
    data.offsets = {0, 3, 5}, data.events = {0, 1, 1, 1, 0};
    return data;
  }();
  static const testing::TempDir runs;
  const MemoryFile file(bytes);
  for (const std::string name : {"interactions.safetensors", "users.json", "items.json"}) {
    const RunDirectory run(runs / name);
    if (!std::filesystem::exists(run.root())) {
      std::filesystem::create_directory(run.root());
      write_log(run, {small, sum});
      std::filesystem::remove(run.root() + "/" + name);
      std::filesystem::create_symlink(file.path(), run.root() + "/" + name);
    }
    attempt([&] {
      const Interactions data = read_log(run).data;
      for (int64_t user = 0; user < data.user_count(); user++)
        for (const int32_t item : data.of(user))
          require(item >= 0 && item < data.item_count(), "events are of items that have names");
      static const RunDirectory again(runs / "again");
      std::filesystem::create_directories(again.root());
      write_log(again, {data, sum});
      const Interactions same = read_log(again).data;
      require(same.users == data.users && same.items == data.items && same.events == data.events &&
                  same.offsets == data.offsets && same.times == data.times,
              "a log survives writing");
    });
  }
  attempt([&] {
    for (const int32_t item : load_negatives(file.path(), small, 3, sum).items)
      require(item >= 0 && item < small.item_count(), "drawn items have names");
  });
}
