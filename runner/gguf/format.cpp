#include "runner/gguf/format.h"

#include <algorithm>

namespace runner::gguf {
namespace {

struct Named {
  std::uint32_t number;
  const char* name;
};

/// The names that llama.cpp prints.
constexpr Named kNames[] = {
    {0, "F32"},      {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},   {6, "Q5_0"},    {7, "Q5_1"},   {8, "Q8_0"},
    {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},  {13, "Q5_K"},   {14, "Q6_K"},  {15, "Q8_K"},
    {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
    {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"},
    {30, "BF16"},    {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
};

}  // namespace

const std::vector<FileType>& file_types() {
  static const std::vector<FileType> types = {{"f32", TensorType::kF32, 0},
                                              {"f16", TensorType::kF16, 1},
                                              {"bf16", TensorType::kBf16, 32},
                                              {"q8_0", TensorType::kQ8_0, 7},
                                              {"q4_0", TensorType::kQ4_0, 2}};
  return types;
}

std::string file_type_words() {
  std::string words;
  for (const FileType& type : file_types()) {
    if (!words.empty()) words += &type == &file_types().back() ? " or " : ", ";
    words += type.word;
  }
  return words;
}

const FileType* find_file_type(std::string_view word) {
  const auto at =
      std::find_if(file_types().begin(), file_types().end(), [&](const FileType& type) { return word == type.word; });
  return at != file_types().end() ? &*at : nullptr;
}

std::string type_name(std::uint32_t type) {
  for (const Named& named : kNames) {
    if (named.number == type) return named.name;
  }
  return "number " + std::to_string(type);
}

bool is_known(std::uint32_t type) {
  return std::any_of(file_types().begin(), file_types().end(),
                     [type](const FileType& known) { return static_cast<std::uint32_t>(known.type) == type; });
}

BlockSize block_size(TensorType type) {
  switch (type) {
    case TensorType::kF16:
    case TensorType::kBf16: return {1, 2};
    case TensorType::kQ4_0: return {32, 18};
    case TensorType::kQ8_0: return {32, 34};
    case TensorType::kF32: break;
  }
  return {1, 4};
}

}  // namespace runner::gguf
