// Encodes and decodes texts with a tokenizer, for tests/parity/tokenizers.py: what comes out, and how long it takes.
//
//   bench_tokenizers TOKENIZER TEXTS [--output FILE] [--threads N] [--rounds N] [--ids-only] [--bare]
//
// TEXTS     length (uint32) and bytes of each text
// --output  for each text: number of ids, ids (int32), offsets (two uint32 each), length and bytes of the decoded text
// --bare    without special tokens
// Prints the seconds of reading the tokenizer and of each round of encode_batch().
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/tokenizer.h"

namespace {

using components::tokenizer::Encoding;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<std::string> read_texts(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  std::uint32_t size = 0;
  while (file.read(reinterpret_cast<char*>(&size), sizeof size)) {
    texts.emplace_back(size, '\0');
    file.read(texts.back().data(), size);
  }
  return texts;
}

void put(std::string& out, std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* output = nullptr;
  std::size_t threads = 1;
  int rounds = 1;
  components::tokenizer::EncodeOptions options;
  options.with_offsets = true;
  for (int i = 3; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--ids-only") options.with_offsets = false;
    if (flag == "--bare") options.add_special_tokens = false;
    if (flag == "--output") output = argv[++i];
    if (flag == "--threads") threads = static_cast<std::size_t>(std::atoi(argv[++i]));
    if (flag == "--rounds") rounds = std::atoi(argv[++i]);
  }
  const std::vector<std::string> texts = read_texts(argv[2]);
  const double began = seconds();
  const auto tokenizer = components::tokenizer::read_tokenizer(argv[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.failure().message.c_str());
    return 1;
  }
  std::printf("read %.4f\n", seconds() - began);
  std::vector<Encoding> encodings;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    auto result = tokenizer.value()->encode_batch(texts, options, threads);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.failure().message.c_str());
      return 1;
    }
    encodings = std::move(result).value();
    std::printf("encode %.6f\n", seconds() - start);
  }
  if (output == nullptr) return 0;
  std::string out;
  for (const Encoding& encoding : encodings) {
    put(out, static_cast<std::uint32_t>(encoding.ids.size()));
    for (const std::int32_t id : encoding.ids) put(out, static_cast<std::uint32_t>(id));
    for (const auto& offsets : encoding.offsets) {
      put(out, offsets.begin);
      put(out, offsets.end);
    }
    const std::string decoded = tokenizer.value()->decode(encoding.ids, true).value();
    put(out, static_cast<std::uint32_t>(decoded.size()));
    out += decoded;
  }
  std::ofstream(output, std::ios::binary) << out;
  return 0;
}
