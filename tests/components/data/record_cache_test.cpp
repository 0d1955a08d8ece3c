#include "components/data/record/record_cache.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/platform/files.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::data::LabelKind;
using components::data::RecordCache;
using tests::build_data;
using tests::fetched;

namespace fs = std::filesystem;

namespace {

/// Caches lie below the folder while it lives.
class CacheFolder {
 public:
  CacheFolder() : before_(std::getenv("XDG_CACHE_HOME") != nullptr ? std::getenv("XDG_CACHE_HOME") : "") {
    setenv("XDG_CACHE_HOME", (fs::current_path() / "cache").c_str(), 1);
  }
  ~CacheFolder() { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  static std::vector<fs::path> files() {
    std::vector<fs::path> found;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator("cache", none)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    return found;
  }

 private:
  std::string before_;
};

std::string block(const std::string& more = "") {
  return "{type: jsonl, path: a.jsonl, on_bad_record: skip, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

/// All that a set is, and what was said of it.
std::string all_of(const std::string& text, bool labelled = false) {
  const auto built = build_data(text, {.labels = labelled ? LabelKind::kDesirable : LabelKind::kNone});
  if (built.data == nullptr) return built.messages;
  std::string all = built.messages + built.data->describe() + built.data->account().reasons;
  for (std::int64_t i = 0; i < built.data->size(); i += 97) {
    if (labelled) all += fetched(*built.data, {i}, components::kDesirable)[0] != 0.0 ? "good " : "bad ";
    for (const char* port : {components::kInput, components::kTarget}) {
      for (const double id : fetched(*built.data, {i}, port))
        all += std::to_string(static_cast<std::int64_t>(id)) + " ";
    }
  }
  return all;
}

}  // namespace

TEST_CASE("ids are kept by content, and a damaged file of them is not used", "[data][jsonl][record_cache]") {
  std::string records;
  while (records.size() < static_cast<std::size_t>(RecordCache::kWorthBytes) + 1000) {
    for (const char* label : {"true", "false"}) {
      records += R"({"prompt": ")" + std::string(3000, 'a') + R"(", "completion": "b", "system": "c", "label": )" +
                 label + "}\n{}\n";
    }
  }
  const tests::TokenizerFolder folder(records);
  const CacheFolder cache;
  const std::string first = all_of(block());
  REQUIRE(cache.files().size() == 1);
  const auto stored = fs::last_write_time(cache.files().front());
  CHECK((all_of(block()) == first));
  CHECK((all_of(block(", packing: true, max_seq_len: 2048")) != first));
  CHECK(cache.files().size() == 1);  // 2,048 is what is meant where nothing is written
  CHECK(fs::last_write_time(cache.files().front()) >= stored);

  const auto with = [&](const std::string& more) {
    const std::size_t before = cache.files().size();
    all_of(block(more));
    return cache.files().size() - before;
  };
  const std::string labelled = all_of(block(), true);
  CHECK((labelled != first));
  CHECK(cache.files().size() == 2);  // a loss that reads labels makes other sequences
  CHECK((all_of(block(), true) == labelled));
  for (const char* label : {"good", "bad"}) CHECK(labelled.find(label) != std::string::npos);
  CHECK(cache.files().size() == 2);
  CHECK(with(", loss_on: all") == 1);
  CHECK(with(", split: ':50%'") == 1);
  CHECK(with(", pad_to_multiple_of: 8") == 0);
  const std::string fields = runner::core::read_file("tokenizer_config.json", 1 << 20).value();
  folder.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>", "add_eos_token": true})");
  CHECK(with("") == 1);
  folder.write("tokenizer_config.json", fields);

  for (const fs::path& file : cache.files()) {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    damaged.put('\7');
  }
  CHECK((all_of(block()) == first));
  folder.write("a.jsonl", records.replace(records.find("aaa"), 1, "b"));  // of the same size
  CHECK((all_of(block()) != first));
  fs::remove_all("cache");
  setenv("ROUX_RECORD_CACHE", "0", 1);
  all_of(block());
  unsetenv("ROUX_RECORD_CACHE");
  CHECK(cache.files().empty());
}
