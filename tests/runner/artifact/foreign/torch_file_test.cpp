#include "runner/artifact/foreign/torch_file.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "runner/artifact/tensor_set.h"
#include "runner/artifact/torch_reader.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "tests/support/cost.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

std::string bytes_of(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Words of pickle.
std::string name(const std::string& module, const std::string& of_it) { return "c" + module + "\n" + of_it + "\n"; }
std::string text(const std::string& value) { return "X" + bytes_of(value.size(), 4) + value; }
std::string integer(std::int64_t value) { return "\x8a\x08" + bytes_of(static_cast<std::uint64_t>(value), 8); }
std::string pickled(const std::string& body) { return "\x80\x02" + body + "."; }

std::string tuple(const std::vector<std::int64_t>& values) {
  std::string all = "(";
  for (const std::int64_t value : values) all += integer(value);
  return all + "t";
}

struct Part {
  std::string key = "0";
  std::string type = "FloatStorage";
  std::int64_t elements = 4;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {4}, strides = {1};
};

std::string tensor(const Part& part) {
  return name("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") + name("torch", part.type) +
         text(part.key) + text("cpu") + integer(part.elements) + "tQ" + integer(part.offset) + tuple(part.shape) +
         tuple(part.strides) + "\x89" + name("collections", "OrderedDict") + ")RtR";
}

/// A state dict with the tensor `w`.
std::string state_with(const Part& part) { return pickled("}" + text("w") + tensor(part) + "s"); }

struct Record {
  std::string name, content;
  std::uint64_t method = 0, flags = 0;
  std::string local_name = {};    ///< in its own header, when another
  std::uint64_t claimed = ~0ULL;  ///< bytes, by the directory
  std::uint64_t header = ~0ULL;   ///< of its place, by the directory
};

/// A zip archive; with `wide` all that can be is in zip64's fields.
std::string zip(const std::vector<Record>& records, bool wide = false) {
  std::string file, directory;
  for (const Record& record : records) {
    const std::uint64_t header = record.header != ~0ULL ? record.header : file.size();
    const std::uint64_t size = record.claimed != ~0ULL ? record.claimed : record.content.size();
    const std::string& local = record.local_name.empty() ? record.name : record.local_name;
    const std::string fixed = bytes_of(record.flags, 2) + bytes_of(record.method, 2) + bytes_of(0, 8);
    file += "PK\x03\x04" + bytes_of(20, 2) + fixed + bytes_of(size, 4) + bytes_of(size, 4) + bytes_of(local.size(), 2) +
            bytes_of(0, 2) + local + record.content;
    const std::string extra =
        wide ? bytes_of(1, 2) + bytes_of(24, 2) + bytes_of(size, 8) + bytes_of(size, 8) + bytes_of(header, 8) : "";
    const std::uint64_t shown = wide ? 0xFFFFFFFF : size;
    directory += "PK\x01\x02" + bytes_of(20, 2) + bytes_of(20, 2) + fixed + bytes_of(shown, 4) + bytes_of(shown, 4) +
                 bytes_of(record.name.size(), 2) + bytes_of(extra.size(), 2) + bytes_of(0, 10) +
                 bytes_of(wide ? 0xFFFFFFFF : header, 4) + record.name + extra;
  }
  const std::size_t begin = file.size();
  file += directory;
  if (wide) {
    const std::size_t end = file.size();
    file += "PK\x06\x06" + bytes_of(44, 8) + bytes_of(0, 12) + bytes_of(records.size(), 8) +
            bytes_of(records.size(), 8) + bytes_of(directory.size(), 8) + bytes_of(begin, 8);
    file += "PK\x06\x07" + bytes_of(0, 4) + bytes_of(end, 8) + bytes_of(1, 4);
  }
  file += "PK\x05\x06" + bytes_of(0, 4) + bytes_of(wide ? 0xFFFF : records.size(), 2) +
          bytes_of(wide ? 0xFFFF : records.size(), 2) + bytes_of(wide ? 0xFFFFFFFF : directory.size(), 4) +
          bytes_of(wide ? 0xFFFFFFFF : begin, 4) + bytes_of(0, 2);
  return file;
}

std::string archive(const std::string& pickle, const std::string& data = std::string(16, 'x')) {
  return zip({{"m/data.pkl", pickle}, {"m/data/0", data}});
}

/// The older format, up to its storages.
std::string stream(const std::string& state, const std::string& keys, const std::string& storages = "") {
  return pickled(std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12)) + pickled("M\xe9\x03") +
         pickled("}" + text("little_endian") + "\x88s") + state + pickled(keys) + storages;
}

std::string answer(const std::string& file) {
  try {
    parse_torch_file(file, "F");
    return "";
  } catch (const core::RunError& error) {
    return error.what();
  }
}

std::string made(const std::string& file) {
  return tests::source_dir() + "/tests/runner/artifact/foreign/files/" + file;
}

template <typename T>
std::vector<T> values(const SafetensorsReader& reader, const std::string& wanted) {
  const TensorBytes* bytes = reader.find(wanted);
  REQUIRE(bytes != nullptr);
  std::vector<T> read(static_cast<std::size_t>(bytes->bytes) / sizeof(T));
  std::memcpy(read.data(), bytes->data, static_cast<std::size_t>(bytes->bytes));
  return read;
}

TEST_CASE("files that torch.save wrote are read in all of their forms", "[artifact][torch_file]") {
  // files/make.py says what is in them.
  for (const char* file : {"archive.pt", "stream.bin", "protocol_4.pt"}) {
    INFO(file);
    const auto reader = open_tensors(made(file)).value();
    CHECK(reader->metadata().empty());
    CHECK(reader->tensors().size() == 18);
    CHECK(reader->find("f32")->shape == std::vector<std::int64_t>{3, 4});
    CHECK(reader->find("f32")->dtype == "F32");
    CHECK(values<float>(*reader, "f32") == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(reader->find("transposed")->shape == std::vector<std::int64_t>{4, 3});
    CHECK(values<float>(*reader, "transposed") == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    CHECK(values<float>(*reader, "part") == std::vector<float>{5, 6, 7, 8});
    CHECK(values<float>(*reader, "every_second") == std::vector<float>{0, 2, 4, 6, 8, 10});
    CHECK(reader->find("block")->shape == std::vector<std::int64_t>{4, 2, 3});
    CHECK(values<std::int64_t>(*reader, "block") == std::vector<std::int64_t>{0,  4,  8,  12, 16, 20, 1,  5,
                                                                              9,  13, 17, 21, 2,  6,  10, 14,
                                                                              18, 22, 3,  7,  11, 15, 19, 23});
    CHECK(reader->find("scalar")->shape.empty());
    CHECK(values<float>(*reader, "scalar") == std::vector<float>{2.5f});
    CHECK(reader->find("empty")->shape == std::vector<std::int64_t>{0, 5});
    CHECK(values<float>(*reader, "repeated") == std::vector<float>{7, 7, 7});
    CHECK(values<float>(*reader, "parameter") == std::vector<float>{1, -1});
    const std::pair<const char*, const char*> types[] = {{"float64", "F64"}, {"float16", "F16"}, {"bfloat16", "BF16"},
                                                         {"int64", "I64"},   {"int32", "I32"},   {"int16", "I16"},
                                                         {"int8", "I8"},     {"uint8", "U8"},    {"bool", "BOOL"}};
    for (const auto& [tensor_name, word] : types) CHECK(reader->find(tensor_name)->dtype == word);
    CHECK(values<double>(*reader, "float64") == std::vector<double>{0, 1, 3});
    CHECK(values<std::uint16_t>(*reader, "bfloat16") == std::vector<std::uint16_t>{0, 0x3F80, 0x4040});
    CHECK(values<std::int16_t>(*reader, "int16") == std::vector<std::int16_t>{0, 1, 3});
    CHECK(values<std::uint8_t>(*reader, "bool") == std::vector<std::uint8_t>{0, 1, 1});
  }
}

TEST_CASE("types without a storage of their own are read", "[artifact][torch_file]") {
  const auto reader = open_tensors(made("typed.pt")).value();
  CHECK(reader->find("u16")->dtype == "U16");
  CHECK(values<std::uint16_t>(*reader, "u16") == std::vector<std::uint16_t>{1, 65535});
  CHECK(reader->find("f8")->dtype == "F8_E4M3");
  CHECK(values<std::uint8_t>(*reader, "f8") == std::vector<std::uint8_t>{0x38, 0xC0});
}

TEST_CASE("a state dict below a key is taken, and the key is said", "[artifact][torch_file]") {
  const auto reader = open_tensors(made("below_model.pt")).value();
  CHECK(reader->metadata() == std::vector<std::pair<std::string, std::string>>{{kStateDictKey, "model"}});
  CHECK(reader->tensors().size() == 5);
  CHECK(values<std::int64_t>(*reader, "num_batches_tracked") == std::vector<std::int64_t>{0});
  for (const char* key : {"state_dict", "model", "model_state_dict", "module"}) {
    const std::string root = pickled("}" + text(key) + "}" + text("w") + tensor({}) + "ss");
    CHECK(parse_torch_file(archive(root), "F").key == key);
  }
}

TEST_CASE("zip64 is read as zip is", "[artifact][torch_file]") {
  for (const bool wide : {false, true}) {
    const std::string file = zip({{"m/data.pkl", state_with({})}, {"m/data/0", "0123456789abcdef"}}, wide);
    const TorchTensors read = parse_torch_file(file, "F");
    REQUIRE(read.tensors.size() == 1);
    CHECK(file.substr(static_cast<std::size_t>(read.tensors[0].begin), 16) == "0123456789abcdef");
  }
}

TEST_CASE("shards of either kind are read by their index", "[artifact][torch_file]") {
  const TempDir dir;
  const auto write = [&](const std::string& file, const std::string& content) {
    std::ofstream(dir / file, std::ios::binary) << content;
  };
  write("one.bin", archive(state_with({})));
  write("two.bin", archive(pickled("}" + text("v") + tensor({}) + "s")));
  write("pytorch_model.bin.index.json", R"({"metadata": {}, "weight_map": {"w": "one.bin", "v": "two.bin"}})");
  const std::string found = find_tensor_set(dir.path()).value();
  CHECK(found == dir / "pytorch_model.bin.index.json");
  CHECK(open_tensors(found).value()->tensors().size() == 2);
  CHECK(files_of_set(found).value() == std::vector<std::string>{found, dir / "one.bin", dir / "two.bin"});
  write("pytorch_model.bin", archive(state_with({})));
  CHECK(find_tensor_set(dir.path()).value() == dir / "pytorch_model.bin");
}

TEST_CASE("what is no data is refused by its name, and nothing of it runs", "[artifact][torch_file]") {
  const std::string of = "F: m/data.pkl: holds a Python object ";
  const std::string not_data = ", which is not data; nothing of it ran";
  CHECK(answer(archive(pickled(name("os", "system") + "(" + text("true") + "tR"))) == of + "os.system" + not_data);
  CHECK(answer(archive("\x80\x04" + text("builtins") + text("eval") + "\x93.")) == of + "builtins.eval" + not_data);
  CHECK(answer(archive(pickled("(ios\nsystem\n"))) == of + "os.system" + not_data);
  CHECK(answer(archive(pickled(name("torch", "load") + ")R"))) == of + "torch.load" + not_data);
  CHECK(answer(archive(pickled(name("a\x1b[2J", "b")))) == of + "a\\x1b[2J.b" + not_data);
  const auto module = open_tensors(made("module.pt"));
  REQUIRE_FALSE(module);
  CHECK(module.failure().message ==
        made("module.pt") + ": module/data.pkl: holds a Python object torch.nn.modules.linear.Linear" + not_data);
  CHECK(module.failure().hint == "write the state dict alone: torch.save(model.state_dict(), FILE)");
  const auto optimizer = open_tensors(made("optimizer.pt"));
  REQUIRE_FALSE(optimizer);
  CHECK(optimizer.failure().message == made("optimizer.pt") +
                                           " is not a PyTorch file: it has no tensors, nor has a state_dict, model, "
                                           "model_state_dict or module in it; it has state, param_groups");
}

TEST_CASE("a hostile file is refused with the reason", "[artifact][torch_file]") {
  struct Case {
    const char* name;
    std::string file;
    std::string reason;
  };
  const std::string none = "F is not a PyTorch file: ";
  const std::string in = "F: m/data.pkl: ";
  const std::string good = state_with({});
  const std::size_t directory = zip({{"m/data.pkl", good}}).rfind("PK\x01\x02");
  const Case cases[] = {
      {"empty", "", none + "it is empty"},
      {"other text", "hello", none + "it begins as neither of torch.save's formats does"},
      {"Git LFS", "version https://git-lfs.github.com/spec/v1\n",
       none + "it is a pointer of Git LFS; run `git lfs pull`"},
      {"no directory", archive(good).substr(0, 100), none + "it has no zip directory, as if it were cut off"},
      {"directory beyond the end",
       "PK\x03\x04PK\x05\x06" + bytes_of(0, 8) + bytes_of(1 << 20, 4) + bytes_of(4, 4) + bytes_of(0, 2),
       none + "its zip directory is at 4 and 1048576 bytes long, its end is at 4"},
      {"fewer entries than said",
       "PK\x03\x04PK\x05\x06" + bytes_of(0, 4) + bytes_of(9, 2) + bytes_of(9, 2) + bytes_of(0, 4) + bytes_of(4, 4) +
           bytes_of(0, 2),
       none + "its zip directory ends before its last entry"},
      {"no pickle", zip({{"m/data/0", "x"}}), none + "it is a zip archive without data.pkl"},
      {"two pickles", zip({{"a/data.pkl", "."}, {"b/data.pkl", "."}}), none + "it has both a/data.pkl and b/data.pkl"},
      {"a name twice", zip({{"m/data.pkl", good}, {"m/data.pkl", good}}), none + "its entry m/data.pkl appears twice"},
      {"compressed", zip({{"m/data.pkl", good, 8}}),
       none + "its entry m/data.pkl is compressed (method 8), and torch.save compresses nothing"},
      {"encrypted", zip({{"m/data.pkl", good, 0, 1}}), none + "its entry m/data.pkl is encrypted"},
      {"upwards", zip({{"m/data.pkl", good}, {"m/../../x", "x"}}), none + "it has an entry named \"m/../../x\""},
      {"absolute", zip({{"/x", "x"}}), none + "it has an entry named \"/x\""},
      {"longer than the file", zip({{"m/data.pkl", good, 0, 0, "", 1 << 20}}),
       none + "its entry m/data.pkl is 1048576 bytes long from 40 on, the zip directory begins at " +
           std::to_string(directory)},
      {"in the directory", zip({{"m/data.pkl", good, 0, 0, "", ~0ULL, 1 << 20}}),
       none + "its entry m/data.pkl begins at 1048576, the zip directory at " + std::to_string(directory)},
      {"no header", zip({{"m/data.pkl", good, 0, 0, "", ~0ULL, 3}}),
       none + "its entry m/data.pkl has no header where it should be"},
      {"other name in its header", zip({{"m/data.pkl", good, 0, 0, "m/data.pk2"}}),
       none + "its entry m/data.pkl has another name in its own header"},
      {"overlap", zip({{"a", std::string(99, 'x'), 0, 0, "", 140}, {"m/data.pkl", good}}),
       none + "its entries a and m/data.pkl overlap"},
      {"big-endian", zip({{"m/data.pkl", good}, {"m/byteorder", "big"}}), none + "its byteorder is not \"little\""},
      {"no storage", zip({{"m/data.pkl", good}}), none + "it lacks the storage m/data/0"},
      {"short storage", archive(good, "xxxxxxxxxxxxxxx"), none + "its storage 0 has 15 bytes, too few for 4 elements"},
      {"a storage upwards", archive(state_with({"../data.pkl"})), none + "it lacks the storage m/data/../data.pkl"},
      {"beyond the storage", archive(state_with({.offset = 1})),
       none + "its tensor w reaches element 4 of the storage 0, which has 4"},
      {"steps beyond it", archive(state_with({.strides = {1LL << 40}})),
       none + "its tensor w reaches element 3298534883328 of the storage 0, which has 4"},
      {"overflowing shape", archive(state_with({.shape = {1LL << 40, 1LL << 40}, .strides = {0, 0}})),
       none + "the shape of tensor w overflows"},
      {"overflowing strides", archive(state_with({.shape = {4}, .strides = {1LL << 62}})),
       none + "the shape of tensor w overflows"},
      {"overflowing storage", archive(state_with({.elements = 1LL << 62})),
       none + "its storage 0 has 16 bytes, too few for 4611686018427387904 elements"},
      {"negative size", archive(state_with({.shape = {-1}})),
       in + "a tensor whose shape holds what is not a count (byte 165 of the pickle)"},
      {"negative stride", archive(state_with({.strides = {-1}})),
       in + "a tensor whose strides holds what is not a count (byte 165 of the pickle)"},
      {"stride missing", archive(state_with({.strides = {}})),
       in + "a tensor with other than one stride an axis (byte 155 of the pickle)"},
      {"ends too early", archive(good.substr(0, good.size() - 1)),
       in + "ends too early (byte " + std::to_string(good.size() - 1) + " of the pickle)"},
      {"long text", archive(pickled("X\xff\xff\xff\x7f")),
       in + "an entry of 2147483647 bytes, and 1 are left (byte 2 of the pickle)"},
      {"very long text", archive("\x80\x04\x8d" + bytes_of(~0ULL, 8) + "."),
       in + "an entry of 18446744073709551615 bytes, and 1 are left (byte 2 of the pickle)"},
      {"protocol", archive("\x80\x09."), in + "pickle protocol 9 (byte 0 of the pickle)"},
      {"unknown operation", archive(pickled("I1\n")),
       in + "the pickle operation 0x49, which a state dict does not need (byte 2 of the pickle)"},
      {"nothing to pop", archive(pickled("0")), in + "takes a value that is not there (byte 2 of the pickle)"},
      {"popping a mark", archive(pickled("(0")), in + "takes a value that is not there (byte 3 of the pickle)"},
      {"no mark", archive(pickled("t")), in + "looks for a mark that is not there (byte 2 of the pickle)"},
      {"items of a number", archive(pickled("K\x01(NNu")),
       in + "changes something that is not a dict (byte 7 of the pickle)"},
      {"key without a value", archive(pickled("}(Nu")), in + "a key without a value (byte 5 of the pickle)"},
      {"unknown memory", archive(pickled("h\x07")),
       in + "asks for value 7, which was not remembered (byte 2 of the pickle)"},
      {"far memory", archive(pickled("Nr\xff\xff\xff\xff")),
       in + "remembers a value as 4294967295, far from the last (byte 3 of the pickle)"},
      {"a call of a storage type", archive(pickled(name("torch", "FloatStorage") + ")R")),
       in + "torch.FloatStorage with arguments that a state dict does not give it (byte 23 of the pickle)"},
      {"a list", archive(pickled("]")), none + "it holds no dict of tensors"},
      {"an empty dict", archive(pickled("}")), none + "it holds an empty dict"},
      {"a name twice in the dict", archive(pickled("}" + text("w") + tensor({}) + "s" + text("w") + tensor({}) + "s")),
       none + "it has two tensors named w"},
      {"a number as name", archive(pickled("}K\x01" + tensor({}) + "s")),
       none + "it has a tensor whose name is not text"},
      {"stream without storages", stream(good, "](" + text("0") + "e"),
       none + "its storage 0 is beyond the end of the file"},
      {"stream that lacks one", stream(good, "]"), none + "it lacks the storage 0"},
      {"stream that is cut off", stream(good, "](" + text("0") + "e", bytes_of(4, 8) + "xxxx"),
       none + "its storage 0 has 4 elements of 4 bytes, and the file ends after 4"},
      {"stream with a huge length", stream(good, "](" + text("0") + "e", bytes_of(~0ULL, 8)),
       none + "its storage 0 has 18446744073709551615 elements of 4 bytes, and the file ends after 0"},
      {"stream with a storage of none", stream(good, "](" + text("1") + "e"),
       none + "its storage 1 belongs to no tensor"},
      {"stream cut in the state dict", stream(good, "]").substr(0, 100),
       "F: its state dict: an entry of 7 bytes, and 6 are left (byte 44 of the pickle)"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    tests::check_cost_of_refusal([&] { CHECK(answer(c.file) == c.reason); });
  }
  CHECK(answer(archive(good)) == "");
  CHECK(answer(stream(good, "](" + text("0") + "e", bytes_of(4, 8) + std::string(16, 'x'))) == "");
}

TEST_CASE("a file that would grow in memory is refused before it does", "[artifact][torch_file]") {
  constexpr std::size_t kMany = 30'000'000;
  const std::string in = "F: m/data.pkl: ";
  const std::string too_many = in + "holds more values than a state dict has";
  struct Case {
    const char* name;
    std::function<std::string()> pickle;
    std::string reason;
  };
  const Case cases[] = {
      {"values", [] { return "(" + std::string(kMany, 'N') + "t"; }, too_many},
      {"dicts", [] { return "(" + std::string(kMany, '}') + "t"; }, too_many},
      {"dicts that are dropped", [] { return repeated("}0", kMany / 2); }, too_many},
      {"values that are dropped", [] { return repeated("N0", kMany / 2); },
       in + "takes more operations than a state dict does"},
      {"marks", [] { return std::string(kMany, '('); }, in + "nests deeper than a state dict does"},
      {"lists in lists", [] { return std::string(1'000'000, ']') + std::string(999'999, 'a'); }, too_many},
      {"tuples in tuples", [] { return "N" + std::string(kMany, '\x85'); }, too_many},
      {"memory", [] { return "N" + std::string(kMany, '\x94'); }, too_many},
      // 2^1000000 values, if they were unfolded.
      {"doubled a million times", [] { return "N" + repeated("\x94h" + std::string(1, '\0') + "\x86", 1'000'000); },
       too_many},
      {"one tensor under many names",
       [] {
         std::string all = "}" + tensor({}) +
                           "\x94"
                           "0(";
         for (int i = 0; i < 60'000; ++i) all += text(std::to_string(i)) + "h" + std::string(1, '\0');
         return all + "u";
       },
       "F is not a PyTorch file: it has more than 50000 tensors"},
      {"too long", [] { return "B" + bytes_of(70 << 20, 4) + std::string(70 << 20, 'x'); },
       in + "an entry of 73400320 bytes, and 67108857 are left"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string file = archive("\x80\x04" + c.pickle() + ".");
    std::string reason;
    tests::check_cost_of_refusal([&] { reason = answer(file); });
    CHECK(reason.substr(0, c.reason.size()) == c.reason);
  }
}

TEST_CASE("rows of a repeated tensor do not grow beyond the file", "[artifact][torch_file]") {
  const TempDir dir;
  std::ofstream(dir / "a.pt", std::ios::binary) << archive(state_with({.shape = {1LL << 40}, .strides = {0}}));
  CHECK(open_torch_file(dir / "a.pt").failure().message ==
        dir / "a.pt: its tensor w lies in steps, and rows of it would take more than the file");
}

TEST_CASE("a file that ends anywhere is refused", "[artifact][torch_file]") {
  for (const char* file : {"archive.pt", "stream.bin"}) {
    const std::string whole = core::read_file(made(file), 1 << 20).value();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      if (answer(whole.substr(0, bytes)).empty()) FAIL(file << " is read when cut after " << bytes << " bytes");
    }
  }
}

}  // namespace
}  // namespace runner::artifact
