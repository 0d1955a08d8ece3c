#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The file format of llama.cpp, version 3: values by key, a table of tensors, their data. All numbers are
// little-endian.

namespace runner::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr const char* kEnding = ".gguf";
inline constexpr std::int64_t kAlignment = 32;  ///< bytes, where no `general.alignment` says otherwise

enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// How the elements of a tensor lie in the file, by ggml's numbers.
enum class TensorType : std::uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kBf16 = 30 };

/// A word of `--type`: what the matrices of a file are, and llama.cpp's number for that (`general.file_type`).
struct FileType {
  const char* word;
  TensorType type;
  std::uint32_t number;
};
const std::vector<FileType>& file_types();
/// `f32, f16, bf16, q8_0 or q4_0`.
std::string file_type_words();
/// Null for another word.
const FileType* find_file_type(std::string_view word);

/// What ggml calls a type that files of others may have: `Q4_K`; its number where it has no name here.
std::string type_name(std::uint32_t type);
bool is_known(std::uint32_t type);

/// Rows are whole blocks of that size.
struct BlockSize {
  std::int64_t elements, bytes;
};
BlockSize block_size(TensorType type);
inline std::int64_t row_bytes(TensorType type, std::int64_t columns) {
  return columns / block_size(type).elements * block_size(type).bytes;
}

}  // namespace runner::gguf
