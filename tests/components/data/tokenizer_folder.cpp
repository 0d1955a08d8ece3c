#include "tests/components/data/tokenizer_folder.h"

#include <cstdint>

#include "runner/core/platform/files.h"
#include "tests/support/paths.h"

namespace tests {
namespace {

constexpr std::int64_t kBytesMax = 1 << 20;

std::string source_file(const std::string& path) {
  return runner::core::read_file(source_dir() + "/" + path, kBytesMax).value();
}

}  // namespace

std::string tokenizer_file(const std::string& name) { return source_file("tests/components/tokenizer/files/" + name); }

std::string example_tokenizer() { return source_file("recipes/examples/data/tokenizer.json"); }

TokenizerFolder::TokenizerFolder() : TokenizerFolder(example_tokenizer(), R"({"eos_token": "<|im_end|>"})") {}

TokenizerFolder::TokenizerFolder(const std::string& records) : TokenizerFolder() { write("a.jsonl", records); }

TokenizerFolder::TokenizerFolder(const std::string& tokenizer, const std::string& fields) {
  write("tokenizer.json", tokenizer);
  write("tokenizer_config.json", fields);
}

}  // namespace tests
