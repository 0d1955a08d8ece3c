#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

/// Makes damaged JSON from whole: by field and value, and byte by byte.
class JsonFiles {
 public:
  JsonFiles(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next();

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  void change_fields(std::string& text);
  void damage(std::string& text);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

/// Gives it to the reader of Transformers' configurations. Aborts when one that was accepted is another one when it is
/// read again.
void read_config_text(const std::string& text);

/// Gives it to the reader of generation_config.json. Aborts when a setting that is taken is not the file's.
void read_generation_text(const std::string& text);
void remove_generation_folder();  ///< that it writes the text to

/// Gives it to the reader of adapters' configurations, and its keys to that of their tensors' names. Aborts when one
/// that was accepted is another one when it is read again.
void read_adapter_text(const std::string& text);

/// Gives it to the reader of indexes of shards. Aborts when a shard that was accepted lies in another folder.
void read_index_text(const std::string& text);

}  // namespace tests
