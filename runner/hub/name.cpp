#include "runner/hub/name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "runner/core/text/utf8.h"

namespace runner::hub {
namespace {

constexpr std::string_view kScheme = "hf://", kDatasets = "datasets/";
constexpr const char* kForm =
    "write hf://OWNER/NAME, hf://OWNER/NAME/FILE or hf://datasets/OWNER/NAME/FILE; @REVISION may follow NAME";
constexpr std::size_t kRepositoryMax = 96, kPartMax = 255, kPathMax = 2048;

/// What comes before the first of `ends`; it is removed from `text`, the end is not.
std::string take(std::string_view& text, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  std::string taken(text.substr(0, end));
  text.remove_prefix(end);
  return taken;
}

/// The Hub's rule for the names of owners and repositories.
bool is_repository_part(std::string_view part) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return !part.empty() && std::all_of(part.begin(), part.end(), plain) && part.front() != '-' && part.front() != '.' &&
         part.back() != '-' && part.back() != '.' && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos;
}

/// Git's rule for the names of branches and tags, in short.
bool is_revision(std::string_view revision) {
  return is_safe_path(revision) && revision.find_first_of(" ~^:?*[") == std::string_view::npos &&
         revision.find("..") == std::string_view::npos && revision.front() != '-';
}

/// `refs/pr/1` and `refs/convert/parquet` have slashes of their own; other names write theirs as %2F.
std::string take_revision(std::string_view& text) {
  for (const std::string_view special : {"refs/pr/", "refs/convert/"}) {
    if (!text.starts_with(special)) continue;
    text.remove_prefix(special.size());
    return std::string(special) + take(text, "/");
  }
  std::string revision = take(text, "/");
  for (std::size_t at;
       (at = revision.find("%2F")) != std::string::npos || (at = revision.find("%2f")) != std::string::npos;) {
    revision.replace(at, 3, "/");
  }
  return revision;
}

core::Failure wrong(const std::string& text, const std::string& why, const std::string& hint = kForm) {
  return {core::quote(text) + " names nothing on the Hugging Face Hub: " + why, hint, core::kExitUsage};
}

}  // namespace

std::string Name::text(const std::string& at_revision) const {
  std::string escaped = at_revision;
  if (!at_revision.starts_with("refs/")) {
    for (std::size_t at = 0; (at = escaped.find('/', at)) != std::string::npos;) escaped.replace(at, 1, "%2F");
  }
  return std::string(kScheme) + (is_dataset ? std::string(kDatasets) : "") + repository() +
         (at_revision == "main" ? "" : "@" + escaped) + (file.empty() ? "" : "/" + file);
}

bool is_name(std::string_view text) { return text.starts_with(kScheme); }

std::string meant_name(const std::string& text) {
  namespace fs = std::filesystem;
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || text.find_first_of("/:", slash + 1) != std::string::npos) return "";
  std::string name = std::string(kScheme) + text;
  if (!parse_name(name)) return "";
  constexpr std::array<std::string_view, 6> kFiles = {".yaml", ".yml", ".json", ".jsonnet", ".jsonl", ".safetensors"};
  const bool is_file =
      std::any_of(kFiles.begin(), kFiles.end(), [&text](std::string_view ending) { return text.ends_with(ending); });
  std::error_code failed;
  return is_file || fs::exists(text.substr(0, slash), failed) ? "" : name;
}

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && revision.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kPathMax) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kPartMax) return false;
    begin = end + 1;
  }
  return std::none_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; });
}

core::Result<Name> parse_name(const std::string& text) {
  std::string_view rest = text;
  if (!is_name(rest)) return wrong(text, "it does not begin with hf://");
  rest.remove_prefix(kScheme.size());
  Name name;
  for (const std::string_view kind : {"models/", "datasets/", "spaces/", "buckets/"}) {
    if (!rest.starts_with(kind)) continue;
    if (kind != kDatasets && kind != "models/") return wrong(text, "only models and data sets can be read");
    name.is_dataset = kind == kDatasets;
    rest.remove_prefix(kind.size());
    break;
  }
  name.owner = take(rest, "/@");
  if (rest.empty() || rest.front() == '@') {
    return wrong(text, "the owner of the repository is not in it",
                 std::string(kForm) + (name.owner == "gpt2" ? "; GPT-2 is hf://openai-community/gpt2" : ""));
  }
  rest.remove_prefix(1);
  name.name = take(rest, "/@");
  if (!is_repository_part(name.owner) || !is_repository_part(name.name) || name.name.ends_with(".git") ||
      name.repository().size() > kRepositoryMax) {
    return wrong(text, "owner and name consist of letters, digits and single - _ . between them");
  }
  if (rest.starts_with('@')) {
    rest.remove_prefix(1);
    name.revision = take_revision(rest);
    if (!is_revision(name.revision)) return wrong(text, "the revision is not the name of a branch, tag or commit");
  }
  if (rest.empty()) return name;
  rest.remove_prefix(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty()) return name;
  name.file = rest;
  if (!is_safe_path(rest)) return wrong(text, "the file is not a plain relative path");
  if (rest.find_first_of("*?[{") != std::string_view::npos) {
    return wrong(text, "patterns are not expanded on the Hub", "name each file");
  }
  return name;
}

}  // namespace runner::hub
