#include <filesystem>

#include "components/tokenizer/pipeline.h"
#include "components/tokenizer/sentencepiece.h"
#include "components/tokenizer/settings.h"
#include "components/tokenizer/tokenizer.h"
#include "components/tokenizer/tokenizer_file.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/parallel.h"

namespace components::tokenizer {
namespace {

namespace fs = std::filesystem;
using runner::core::RunError;

constexpr std::int64_t kBytesMax = 512 << 20;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string content_of(const fs::path& path) { return runner::core::read_file(path.string(), kBytesMax).value(); }

using Read = std::shared_ptr<Tokenizer>;

Read read_json(const fs::path& path) {
  const std::string name = path.string();
  return make_pipeline(read_tokenizer_json(content_of(path), name), read_settings(path.parent_path().string()),
                       {name, "tokenizer.json", "", {}});
}

Read read_vocab_and_merges(const fs::path& vocab) {
  const fs::path merges = vocab.parent_path() / "merges.txt";
  if (!is_file(merges)) throw RunError(vocab.string() + ": there is no merges.txt beside it");
  return make_byte_level_pipeline(
      read_vocab_json(content_of(vocab), vocab.string()), read_merges_txt(content_of(merges), merges.string()),
      read_settings(vocab.parent_path().string()), {vocab.string(), "vocab.json with merges.txt", "", {}});
}

Read read_vocab_lines(const fs::path& path) {
  const std::string name = path.string();
  return make_bert_pipeline(read_vocab_txt(content_of(path), name), read_settings(path.parent_path().string()),
                            {name, "vocab.txt", "", {}});
}

Read read_model(const fs::path& path) {
  const std::string name = path.string();
  return make_sentencepiece(read_sentencepiece_model(content_of(path), name),
                            read_settings(path.parent_path().string()), {name, "SentencePiece", "", {}});
}

Read read_folder(const fs::path& folder) {
  if (is_file(folder / "tokenizer.json")) return read_json(folder / "tokenizer.json");
  if (is_file(folder / "vocab.json")) return read_vocab_and_merges(folder / "vocab.json");
  if (is_file(folder / "tokenizer.model")) return read_model(folder / "tokenizer.model");
  if (is_file(folder / "vocab.txt")) return read_vocab_lines(folder / "vocab.txt");
  throw RunError(folder.string() + ": there is no tokenizer in this folder",
                 "it needs a tokenizer.json, a vocab.json with merges.txt, a tokenizer.model, or a vocab.txt");
}

Read read(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw RunError(path.string() + ": there is no such file or folder");
  if (fs::is_directory(path, error)) return read_folder(path);
  const std::string name = path.filename().string();
  if (name == "merges.txt") return read_vocab_and_merges(path.parent_path() / "vocab.json");
  if (name == "vocab.json") return read_vocab_and_merges(path);
  if (path.extension() == ".model") return read_model(path);
  if (path.extension() == ".txt") return read_vocab_lines(path);
  return read_json(path);
}

}  // namespace

runner::core::Result<std::shared_ptr<Tokenizer>> read_tokenizer(const std::string& path) {
  return runner::core::attempt([&] { return read(path); });
}

void Tokenizer::choose(const Choices& choices) {
  settings_.add_special_tokens = choices.add_special_tokens;
  settings_.padding_side = choices.padding_side;
  if (choices.truncation_side) settings_.truncation_side = *choices.truncation_side;
  if (choices.pad) special_.pad = choices.pad;
}

runner::core::Result<std::vector<Encoding>> Tokenizer::encode_batch(std::span<const std::string> texts,
                                                                    const EncodeOptions& options,
                                                                    std::size_t threads) const {
  // Some neighbours at a time: a short text takes less time than it takes to fetch its number.
  constexpr std::size_t kTogether = 16;
  std::vector<Encoding> encodings(texts.size());
  return runner::core::attempt([&] {
    runner::core::in_parallel((texts.size() + kTogether - 1) / kTogether, threads, [&](std::size_t part) {
      for (std::size_t i = part * kTogether; i < std::min(texts.size(), (part + 1) * kTogether); ++i) {
        auto encoding = encode(texts[i], options);
        if (!encoding) {
          throw RunError("text " + std::to_string(i) + ": " + encoding.failure().message, encoding.failure().hint);
        }
        encodings[i] = std::move(encoding).value();
      }
    });
    return std::move(encodings);
  });
}

}  // namespace components::tokenizer
