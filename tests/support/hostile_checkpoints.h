// Checkpoints of PyTorch that nobody wrote in good faith, and the errors that refuse them.
#pragma once

#include <string>
#include <vector>

#include "tests/support/torch_file.h"

namespace qkv::testing {

struct HostileCheckpoint {
  std::string name, bytes;
  std::string error;  // after "FILE: "
};

// An archive with this pickle, and a storage 0 of six floats.
inline std::string hostile_zip(const std::string& pickle) {
  return pickled::zip({{"m/data.pkl", pickle}, {"m/data/0", std::string(24, '\1')}});
}

inline std::vector<HostileCheckpoint> hostile_checkpoints() {
  using namespace pickled;
  const std::string allowed =
      " in a PyTorch checkpoint (must be a dictionary of tensors, such as state_dict() of a model)";
  std::vector<HostileCheckpoint> all;
  // Files with this value, or with opcodes, in place of the dictionary.
  const auto value = [&](const char* name, const std::string& opcodes, const std::string& error) {
    all.push_back({name, hostile_zip(file(opcodes)), error});
  };
  const auto refused_global = [&](const char* name, const char* module, const char* function) {
    value(name, call(global(module, function), {text("touch executed")}),
          "global " + std::string(module) + "." + function + " is not allowed" + allowed);
  };
  const auto refused_opcode = [&](const char* name, const std::string& opcodes, const std::string& opcode, int at) {
    value(name, opcodes,
          "opcode " + opcode + " is not allowed" + allowed + " (at byte " + std::to_string(at) + " of the pickle)");
  };
  // A dictionary with one tensor.
  const auto entry = [&](const char* name, const std::string& tensor, const std::string& error) {
    value(name, dictionary({{"w", tensor}}), error);
  };
  const std::string six = storage("0", 6), where = "tensor \"w\": ";

  refused_global("OsSystem", "os", "system");
  refused_global("PosixSystem", "posix", "system");
  refused_global("Eval", "builtins", "eval");
  refused_global("Exec", "__builtin__", "exec");
  refused_global("GetAttribute", "builtins", "getattr");
  refused_global("Popen", "subprocess", "Popen");
  refused_global("LoadFromBytes", "torch.storage", "_load_from_bytes");
  refused_global("TorchLoad", "torch", "load");
  refused_global("Dunder", "torch._utils", "_rebuild_tensor_v2.__globals__");
  value("NameWithControlCharacters", global("o\x1bs", "system"),
        "global \"o\\u001bs.system\" is not allowed" + allowed);
  value("StackGlobal", text("os") + text("system") + "\x93" + tuple({text("touch executed")}) + kReduce,
        "global os.system is not allowed" + allowed);
  value("OverlongGlobal", "c" + std::string(300, 'a') + "\nb\n",
        "a name must have at most 255 bytes (at byte 3 of the pickle)");
  value("ReduceOfACall", call(call(global("torch", "Size"), {}), {}),
        "REDUCE expects a global (is a call) (at byte 20 of the pickle)");
  value("ReduceOfAString", call(text("os.system"), {}),
        "REDUCE expects a global (is a string) (at byte 19 of the pickle)");
  value("ReduceOfAReducedDictionary", call(ordered(), {}),
        "REDUCE expects a global (is a dictionary) (at byte 33 of the pickle)");
  value("OrderedDictWithArguments", call(global("collections", "OrderedDict"), {"]"}),
        "OrderedDict must be called without arguments (at byte 31 of the pickle)");
  value("BuildSetsAttributes", ordered() + dictionary({{"__class__", kNone}}) + "b",
        "BUILD must set nothing but _metadata (at byte 49 of the pickle)");
  const std::string whole = tensor(six, 0, {6}, {1});
  value("BuildOfATensor", whole + "}b",
        "BUILD expects a dictionary (is a call) (at byte " + std::to_string(whole.size() + 4) + " of the pickle)");
  value("BuildWithATuple", ordered() + ")b", "BUILD expects a dictionary (is a tuple) (at byte 32 of the pickle)");
  refused_opcode("Inst", "(ios\nsystem\n", "INST", 3);
  refused_opcode("Object", "(" + global("torch", "Size") + "o", "OBJ", 15);
  refused_opcode("NewObject", global("torch", "Size") + ")\x81", "NEWOBJ", 15);
  refused_opcode("NewObjectWithNames", global("torch", "Size") + ")}\x92", "NEWOBJ_EX", 16);
  refused_opcode("Extension", "\x82\1", "EXT1", 2);
  refused_opcode("PersistentLine", "Pstorage\n", "PERSID", 2);
  refused_opcode("TextMemo", "]p0\n", "PUT", 3);
  refused_opcode("Duplicate", "]2", "DUP", 3);
  refused_opcode("Unknown", "\xff", "0xff", 2);
  refused_opcode("OverlongInteger", "\x8b" + number(uint32_t{0x7FFFFFFF}), "LONG4", 2);
  refused_opcode("DecimalInteger", "I" + std::string(5000, '9') + "\n", "INT", 2);
  refused_opcode("HugeBytes", "\x8e" + number(~uint64_t{0}), "BINBYTES8", 2);
  value("IntegerOfManyBytes", "\x8a\xff" + std::string(255, '\x7f'),
        "an integer must have at most 8 bytes (has 255) (at byte 259 of the pickle)");
  value("StackUnderflow", "\x87", "TUPLE3 finds too few values (at byte 3 of the pickle)");
  value("PopBelowAMark", "](" + std::string("\x85"), "TUPLE1 finds too few values (at byte 5 of the pickle)");
  value("NoMark", "]t", "TUPLE finds no MARK (at byte 4 of the pickle)");
  value("KeyWithoutValue", "}(Nu", "a key has no value (at byte 6 of the pickle)");
  value("SetItemOfAList", "]NNs", "SETITEM expects a dictionary (is a list) (at byte 6 of the pickle)");
  value("MissingMemo", "h\7", "the memo has no value 7 (at byte 4 of the pickle)");
  refused_opcode("HugeMemoNumber", "]r" + number(~uint32_t{0}) + "0", "POP", 8);
  {
    std::string bomb = "]q" + number(uint8_t{0});  // each list holds the last one ten times
    for (uint8_t i = 1; i < 100; i++) {
      bomb += "](";
      for (int n = 0; n < 10; n++) bomb += "h" + number(static_cast<uint8_t>(i - 1));
      bomb += "eq" + number(i);
    }
    value("MemoBomb", bomb, "must end with one value (at byte 2481 of the pickle)");
  }
  value("ListOfItself", "]q" + number(uint8_t{0}) + "h" + number(uint8_t{0}) + "a",
        "must be a dictionary of tensors (is a list)");
  value("DeepNesting", std::string(100000, ']') + std::string(99999, 'a'),
        "must have at most 131854 opcodes (at byte 131855 of the pickle)");
  value("ManyValues", std::string(1000000, ')'), "must have at most 134979 opcodes (at byte 134980 of the pickle)");
  value("TextBeyondTheEnd", "X" + number(uint32_t{0xFFFFFFFF}),
        "ends within 4294967295 bytes (at byte 7 of the pickle)");
  value("FrameBeyondTheEnd", "\x95" + number(~uint64_t{0}),
        "FRAME of 18446744073709551615 bytes, of which 1 are left (at byte 11 of the pickle)");
  all.push_back({"NoProtocol", hostile_zip("}."), "must begin with PROTO (at byte 0 of the pickle)"});
  all.push_back({"Protocol0", hostile_zip(std::string("\x80\0}.", 4)),
                 "PROTO must come first, with 2 to 5 (is 0) (at byte 2 of the pickle)"});
  all.push_back({"NoStop", hostile_zip(kProto + "}"), "ends within 1 bytes (at byte 3 of the pickle)"});
  all.push_back({"BytesAfterStop", hostile_zip(file("}") + "x"), "1 bytes follow the pickle in data.pkl"});
  value("ATensorAlone", whole, "must be a dictionary of tensors (is a call)");
  entry("ANumber", integer(3), "\"w\" must be a tensor (is an integer)");
  entry("ACallOfAStorageClass", call(global("torch", "FloatStorage"), {integer(1)}),
        "\"w\" must be a tensor (is a call that makes another object)");
  value("TwoTensorsOfOneName", dictionary({{"w", whole}, {"w", whole}}), where + "is twice in the dictionary");

  const std::string outside = " is outside its storage of 6 elements";
  entry("BeyondTheStorage", tensor(six, 1, {6}, {1}), where + "F32 [6]" + outside);
  entry("HugeOffset", tensor(six, INT64_MAX, {1}, {1}), where + "F32 [1]" + outside);
  entry("NegativeOffset", tensor(six, -1, {6}, {1}), where + "F32 [6] has 1 strides and offset -1");
  entry("NegativeStride", tensor(six, 5, {6}, {-1}),
        where + "sizes and strides must be integers from 0 on (one is -1)");
  entry("NegativeSize", tensor(six, 0, {-6}, {1}), where + "sizes and strides must be integers from 0 on (one is -6)");
  entry("StridesThatOverflow", tensor(six, 0, {1 << 20, 1 << 20}, {int64_t{1} << 43, int64_t{1} << 43}),
        where + "F32 [1048576, 1048576]" + outside);
  entry("HugeSizes", tensor(six, 0, {INT64_MAX, INT64_MAX}, {0, 0}),
        where + "F32 [9223372036854775807, 9223372036854775807] repeats elements of its storage of 6");
  entry("RepeatedElements", tensor(six, 0, {int64_t{1} << 40}, {0}),
        where + "F32 [1099511627776] repeats elements of its storage of 6");
  entry("MoreSizesThanStrides", tensor(six, 0, {2, 3}, {1}), where + "F32 [2, 3] has 1 strides and offset 0");
  entry("ManyDimensions", tensor(six, 0, std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1)),
        where + "sizes and strides must be tuples of at most 8 integers");
  const std::string declared = "the description of a storage is not one that torch.save writes";
  entry("StorageOfAnotherClass", tensor(storage("0", 6, "Size"), 0, {6}, {1}), declared);
  entry("StorageOfNegativeSize", tensor(storage("0", -1), 0, {0}, {1}), declared);
  entry("StorageWithoutDescription", tensor("]Q", 0, {6}, {1}), declared);
  entry("StorageBeyondTheFile", tensor(storage("0", int64_t{1} << 40), 0, {6}, {1}),
        "storage \"0\" of F32 [1099511627776] does not have this size in the file (24 bytes)");
  entry("StorageThatOverflows", tensor(storage("0", INT64_MAX), 0, {6}, {1}),
        "storage \"0\" of F32 [9223372036854775807] does not have this size in the file (24 bytes)");
  entry("StorageThatIsMissing", tensor(storage("../0", 6), 0, {6}, {1}), "storage \"../0\" is missing");
  value("StorageOfTwoTypes", dictionary({{"w", whole}, {"v", tensor(storage("0", 3, "DoubleStorage"), 0, {3}, {1})}}),
        "storage \"0\" is described in two ways");
  {
    const auto shared = [&](const char* name, const std::vector<int64_t>& strides, const char* first_refused) {
      std::vector<std::pair<std::string, std::string>> tensors;
      for (int i = 0; i < 1000; i++)
        tensors.emplace_back(std::to_string(i),
                             tensor(i == 0 ? storage("0", 1 << 18) + "q\1" : "h\1", 0, {512, 512}, strides));
      const std::string bytes =
          zip({{"m/data.pkl", file(dictionary(tensors))}, {"m/data/0", std::string(1 << 20, '\1')}});
      all.push_back({name, bytes,
                     "tensor \"" + std::string(first_refused) + "\": the tensors are too large for a file of " +
                         std::to_string(bytes.size()) + " bytes"});
    };
    shared("ManyTensorsOfOneStorage", {512, 1}, "8");
    shared("ManyCopiesOfOneStorage", {1, 512}, "1");
  }

  const std::string good = file(dictionary({{"w", whole}}));
  const Member pickle{"m/data.pkl", good}, data{"m/data/0", std::string(24, '\1')};
  const auto archive = [&](const char* name, const std::vector<Member>& members, const std::string& error) {
    all.push_back({name, zip(members), error});
  };
  Member changed = data;
  changed.size = changed.local_size = 1 << 30;
  archive("MemberBeyondTheArchive", {pickle, changed}, "\"m/data/0\" of 1073741824 bytes does not fit into the file");
  changed = data, changed.local_size = 12;
  archive("HeadersThatDisagree", {pickle, changed}, "the headers of \"m/data/0\" state different sizes");
  changed = data, changed.local_name = "m/data/1";
  archive("NamesThatDisagree", {pickle, changed}, "\"m/data/0\" has another name before its data");
  changed = data, changed.method = 8;
  archive("CompressedBomb", {pickle, changed}, "\"m/data/0\" must be stored without compression (method is 8)");
  changed = data, changed.flags = 1;
  archive("EncryptedMember", {pickle, changed}, "\"m/data/0\" must not be encrypted");
  changed = data, changed.size = changed.local_size = 0xFFFFFFFF;
  archive("NoZip64Sizes", {pickle, changed}, "\"m/data/0\" has no zip64 sizes");
  archive("MemberTwice", {pickle, data, data}, "two members are named \"m/data/0\"");
  archive("TwoPickles", {pickle, data, {"n/data.pkl", good}},
          "must hold one checkpoint (holds \"m/data.pkl\" and \"n/data.pkl\")");
  archive("TorchScript", {pickle, data, {"m/constants.pkl", ""}},
          "TorchScript is not read; expected state_dict() of the model, saved by torch.save");
  archive("BigEndian", {pickle, data, {"m/byteorder", "big"}}, "the byte order must be little");
  archive("NoPickle", {data}, "not a PyTorch checkpoint: the archive has no data.pkl");
  std::string bytes = zip({pickle, data});
  all.push_back({"NoDirectory", bytes.substr(0, bytes.size() - 1), "not a complete zip archive: has no directory"});
  bytes[bytes.size() - 12] = '\x7f';  // entries
  all.push_back({"DirectoryOfTooManyEntries", bytes,
                 "zip directory of 127 entries in 110 bytes at byte " + std::to_string(bytes.size() - 22 - 110) +
                     " does not fit into the file"});
  all.push_back({"GitLfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                 "is a pointer of Git LFS; download the file that it stands for"});
  all.push_back({"AnotherPickle", file("}"), "not a PyTorch checkpoint: must be a file that torch.save wrote"});

  // The older container.
  const std::string old_good = file(dictionary({{"w", tensor(storage("0", 6, "FloatStorage", kNone), 0, {6}, {1})}})),
                    floats = number(int64_t{6}) + std::string(24, '\1');
  const auto old = [&](const char* name, const std::string& rest, const std::string& error) {
    all.push_back({name, old_header() + rest, error});
  };
  old("OldOsSystem", file(call(global("os", "system"), {text("touch executed")})),
      "global os.system is not allowed" + allowed);
  old("OldStorageBeyondTheFile", old_good + file("](" + text("0") + "e") + number(int64_t{6}),
      "storage \"0\" of F32 [6] does not have this size in the file (0 bytes are left)");
  old("OldStorageOfAnotherSize", old_good + file("](" + text("0") + "e") + number(int64_t{1} << 40),
      "storage \"0\" must have 6 elements (has 1099511627776)");
  old("OldStorageTwice", old_good + file("](" + text("0") + text("0") + "e") + floats + floats,
      "the list of storages names \"0\", which is unknown or named twice");
  old("OldStorageMissing", old_good + file("]"), "storage \"0\" is missing");
  old("OldStorageCut", old_good + file("](" + text("0") + "e") + "1234", "ends before storage \"0\"");
  old("OldBytesAtTheEnd", old_good + file("](" + text("0") + "e") + floats + "x",
      "1 bytes at the end belong to no storage");
  old("OldViewOfAStorage",
      file(dictionary(
          {{"w", tensor(storage("0", 6, "FloatStorage", tuple({text("1"), integer(0), integer(6)})), 0, {6}, {1})}})),
      declared);
  return all;
}

}  // namespace qkv::testing
