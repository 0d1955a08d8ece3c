#include "runner/pretrained/dtype.h"

namespace runner::pretrained {
namespace {

struct Name {
  const char *word, *name;
};
constexpr Name kNames[] = {{"F32", "float32"}, {"BF16", "bfloat16"}, {"F16", "float16"}, {"F64", "float64"}};

}  // namespace

std::string dtype_name(const std::string& word) {
  for (const Name& known : kNames) {
    if (word == known.word) return known.name;
  }
  return "float32";
}

std::string dtype_word(const std::string& name) {
  for (const Name& known : kNames) {
    if (name == known.name) return known.word;
  }
  return "";
}

}  // namespace runner::pretrained
