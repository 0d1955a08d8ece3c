#include "runner/cli/group/examples.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecipeBytesMax = 1 << 20;
constexpr const char* kFirst = "quickstart.yaml";

/// The text of a comment's line without its sign; nothing where the comment ends.
std::optional<std::string_view> comment_text(std::string_view line) {
  for (const std::string_view sign : {"#", "//"}) {
    if (line.starts_with(sign)) return core::trimmed(line.substr(sign.size()));
  }
  return std::nullopt;
}

std::string first_sentence(const std::string& recipe) {
  std::istringstream lines(recipe);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const auto comment = comment_text(line);
    if (!comment) break;
    if (comment->starts_with("yaml-language-server:")) continue;
    text += (text.empty() ? "" : " ") + std::string(*comment);
  }
  const std::size_t end = std::min(text.find(". "), text.find(": "));
  if (end != std::string::npos) text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<std::string> examples_or_fail(Session& session) {
  const fs::path prefix = fs::path(core::own_program()).parent_path().parent_path();
  std::error_code ignored;
  for (const fs::path& folder :
       {prefix / "share" / "roux" / "recipes", prefix.parent_path().parent_path() / "recipes"}) {
    if (fs::exists(folder / kFirst, ignored)) return folder.string();
  }
  session.fail("the recipes that come with roux are not in " + (prefix / "share" / "roux" / "recipes").string(),
               "reinstall roux", core::kExitFailed);
  return std::nullopt;
}

std::vector<Example> examples_in(const std::string& folder) {
  std::vector<Example> found;
  for (const std::string& file : files_below(folder)) {
    if (file != kFirst && !file.starts_with("examples/") && !file.starts_with("finetune/")) continue;
    if (!file.ends_with(".yaml") && !file.ends_with(".jsonnet")) continue;
    const auto text = core::read_file((fs::path(folder) / file).string(), kRecipeBytesMax);
    found.push_back({file, text ? first_sentence(text.value()) : ""});
  }
  return found;
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ended;
  for (fs::recursive_directory_iterator at(folder, ended), end; !ended && at != end; at.increment(ended)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) found.push_back(at->path().lexically_relative(folder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace runner::cli
