#include "runner/hub/cache.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"

namespace runner::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRefBytesMax = 4096;
constexpr std::int64_t kListingBytesMax = std::int64_t{1} << 30;

void make_parent(const std::string& path) { core::make_folders(fs::path(path).parent_path().string()).value(); }

/// `../../blobs/ETAG` from snapshots/COMMIT/FILE: one more `..` for each folder of FILE.
std::string link_target(const std::string& file, const std::string& etag) {
  std::string target = "../../";
  for (const char c : file) {
    if (c == '/') target += "../";
  }
  return target + "blobs/" + etag;
}

std::string folder_name(const Name& name) {
  return std::string(name.is_dataset ? "datasets" : "models") + "--" + name.owner + "--" + name.name;
}

}  // namespace

Cache::Cache(std::string folder, std::string locks, std::string listings, const char* variable)
    : folder_(std::move(folder)), locks_(std::move(locks)), listings_(std::move(listings)), variable_(variable) {}

Cache::Cache(const Settings& settings, const Name& name)
    : Cache(settings.cache + "/" + folder_name(name), settings.cache + "/.locks/" + folder_name(name),
            settings.listings + "/" + folder_name(name), "HF_HUB_CACHE") {}

Cache Cache::of_web_files(const Settings& settings) {
  return {settings.web_files, settings.web_files + "/.locks", "", "ROUX_CACHE_DIR"};
}

std::optional<Listing> Cache::listing(const std::string& commit) const {
  const auto content = core::read_file(listings_ + "/" + commit + ".json", kListingBytesMax);
  auto listing = content ? parse_listing(content.value()) : std::nullopt;
  return listing && listing->commit == commit ? std::move(listing) : std::nullopt;
}

void Cache::keep(const Listing& listing) const {
  const std::string path = listings_ + "/" + listing.commit + ".json";
  make_parent(path);
  core::write_file_atomic(path, to_json(listing)).value();
}

bool Cache::is_known_unconverted(const std::string& commit) const {
  std::error_code failed;
  return fs::is_regular_file(listings_ + "/" + commit + ".unconverted", failed);
}

void Cache::set_unconverted(const std::string& commit) const {
  const std::string path = listings_ + "/" + commit + ".unconverted";
  make_parent(path);
  core::write_file_atomic(path, "").value();
}

std::optional<std::string> Cache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  const auto content = core::read_file(folder_ + "/refs/" + revision, kRefBytesMax);
  if (!content) return std::nullopt;
  std::string commit = content.value();
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  return is_commit(commit) ? std::make_optional(commit) : std::nullopt;
}

bool Cache::has(const std::string& commit, const std::string& file) const {
  std::error_code failed;
  return fs::is_regular_file(path(commit, file), failed);
}

bool Cache::is_known_absent(const std::string& commit, const std::string& file) const {
  std::error_code failed;
  return fs::is_regular_file(folder_ + "/.no_exist/" + commit + "/" + file, failed);
}

void Cache::set_commit(const std::string& revision, const std::string& commit) const {
  if (is_commit(revision) || commit_of(revision) == commit) return;
  const std::string path = folder_ + "/refs/" + revision;
  make_parent(path);
  core::write_file_atomic(path, commit).value();
}

void Cache::set_absent(const std::string& commit, const std::string& file) const {
  if (is_known_absent(commit, file)) return;
  const std::string path = folder_ + "/.no_exist/" + commit + "/" + file;
  make_parent(path);
  core::write_file_atomic(path, "").value();
}

void Cache::link(const std::string& commit, const std::string& file, const std::string& etag) const {
  if (has(commit, file)) return;
  const std::string at = path(commit, file);
  make_parent(at);
  const std::string beside = at + ".tmp-" + std::to_string(::getpid());
  ::unlink(beside.c_str());
  if (::symlink(link_target(file, etag).c_str(), beside.c_str()) != 0 || ::rename(beside.c_str(), at.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    ::unlink(beside.c_str());
    throw core::RunError("cannot create the link " + core::escape_for_terminal(at) + ": " + reason,
                         "set " + std::string(variable_) + " to a folder on a file system with symbolic links");
  }
}

std::optional<Located> locate(const Name& name, const Settings& settings) {
  const Cache cache(settings, name);
  const auto commit = cache.commit_of(name.revision);
  if (!commit) return std::nullopt;
  std::error_code failed;
  if (name.file.empty()) {
    if (!fs::is_directory(cache.snapshot(*commit), failed)) return std::nullopt;
    return Located{cache.snapshot(*commit), name.text(*commit)};
  }
  if (!fs::exists(cache.path(*commit, name.file), failed)) return std::nullopt;
  return Located{cache.path(*commit, name.file), name.text(*commit)};
}

bool is_downloaded(const std::string& path, const Settings& settings) {
  std::error_code failed;
  const fs::path file = fs::canonical(path, failed);
  if (failed) return false;
  for (const std::string& folder : {settings.cache, settings.web_files}) {
    const fs::path place = fs::canonical(folder, failed);
    if (!failed && std::mismatch(place.begin(), place.end(), file.begin(), file.end()).first == place.end())
      return true;
  }
  return false;
}

}  // namespace runner::hub
