#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

#include "components/data/data.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/log.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

namespace fs = std::filesystem;

using runner::core::quote;
using tokenizer::Tokenizer;

constexpr std::array kFiles = {"tokenizer.json", "vocab.json", "tokenizer.model"};

bool has_tokenizer(const std::string& folder) {
  std::error_code failed;
  return std::any_of(kFiles.begin(), kFiles.end(),
                     [&](const char* file) { return fs::is_regular_file(fs::path(folder) / file, failed); });
}

/// The first id that means another token; "" where all agree.
std::string other_token(const Tokenizer& recipe, const Tokenizer& teacher) {
  const std::int32_t both = std::min(recipe.id_limit(), teacher.id_limit());
  for (std::int32_t id = 0; id < both; ++id) {
    const auto here = recipe.token_of(id), there = teacher.token_of(id);
    if (!here || here == there || (recipe.is_special(id) && teacher.is_special(id))) continue;
    return "id " + std::to_string(id) + " is " + quote(*here) + " in the recipe's and " +
           (there ? quote(*there) : "no token") + " in the teacher's";
  }
  return "";
}

}  // namespace

void check_teacher_tokenizer(const Dataset& data, const std::string& teacher, runner::core::Diagnostics& diagnostics) {
  const std::shared_ptr<const Tokenizer> own = data.tokenizer();
  if (own == nullptr || !has_tokenizer(teacher)) return;
  const auto read = tokenizer::read_tokenizer(teacher);
  if (!read) {
    runner::core::log_warning("cannot compare the tokenizer of the teacher with the recipe's: " +
                              read.failure().message);
    return;
  }
  const std::string other = other_token(*own, *read.value());
  if (other.empty()) return;
  diagnostics.error({}, "the tokenizer of " + teacher + " is not the recipe's: " + other,
                    "name a teacher that was trained with the recipe's tokenizer, or write tokenizer: {type: file, "
                    "path: " +
                        teacher + "}");
}

}  // namespace components::data
