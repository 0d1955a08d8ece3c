#include "runner/cli/hub/weight_headers.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/hub/cache.h"
#include "runner/hub/client.h"
#include "runner/hub/download.h"
#include "runner/hub/model_files.h"
#include "runner/hub/web_file.h"
#include "runner/pretrained/config.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHeaderBytesMax = 32 << 20;
constexpr std::size_t kIndexBytesMax = 32 << 20, kShardsMax = 1000;

/// Writes `start`, and nothing up to the length. False where the disk or a limit does not allow that.
bool write_start(const std::string& path, const std::string& start, std::int64_t length) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<rlim_t>(length) > limit.rlim_cur) return false;
  core::write_file_atomic(path, start).value();
  return truncate(path.c_str(), length) == 0;
}

/// False when the server knows no ranges. RunError when it is no safetensors file.
bool fetch_header(hub::RemoteFile& file, const std::string& path) {
  const auto start = hub::read_part(file, 0, artifact::kHeaderLengthBytes);
  if (!start) return false;
  const std::int64_t bytes = artifact::safetensors_header_bytes(start->content, start->whole_bytes, file.title());
  if (bytes > kHeaderBytesMax) return false;
  const auto header = hub::read_part(file, artifact::kHeaderLengthBytes, bytes);
  return header && header->whole_bytes == start->whole_bytes &&
         write_start(path, start->content + header->content, start->whole_bytes);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }
/// Without the slash; "" for a file at the top.
std::string folder_of(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

/// Headers of a model of the Hub, whose settings are in the cache.
class HubHeaders {
 public:
  HubHeaders(const hub::Name& name, const hub::Settings& settings, std::string folder)
      : name_(name), client_(settings, [](double) {}), cache_(settings, name), folder_(std::move(folder)) {}

  /// The file or index that was written; nothing when they cannot be had.
  std::optional<std::string> fetch() {
    const hub::Listing listing = client_.list(name_, /*attempts=*/1);
    commit_ = listing.commit;
    const std::string file = name_.file.empty() ? weights_of(listing.files) : name_.file;
    if (file.empty()) return std::nullopt;
    const std::string written = folder_ + "/" + last_part(file);
    if (!(hub::is_index(file) ? fetch_shards(file, written) : fetch_one(file))) return std::nullopt;
    link_config(folder_of(file));
    return written;
  }
  const std::string& commit() const { return commit_; }

 private:
  static std::string weights_of(const std::vector<std::string>& files) {
    for (const std::string& file : hub::files_of(hub::Part::kAll, files)) {
      if (file == artifact::kModelFile || file == std::string(artifact::kModelFile) + artifact::kIndexEnding) {
        return file;
      }
    }
    return "";
  }

  bool fetch_one(const std::string& file) {
    if (!file.ends_with(artifact::kSafetensorsEnding)) return false;
    hub::HubFile remote(client_, name_, commit_, file, {});
    return fetch_header(remote, folder_ + "/" + last_part(file));
  }

  bool fetch_shards(const std::string& index, const std::string& written) {
    hub::HubFile remote(client_, name_, commit_, index, {});
    const auto content = hub::read_whole(remote, kIndexBytesMax);
    const auto shards = content ? hub::shards_of(index, *content) : std::nullopt;
    if (!shards || shards->size() > kShardsMax) return false;
    core::write_file_atomic(written, *content).value();
    // An index names files beside it; in others its reader finds the fault.
    return std::all_of(shards->begin(), shards->end(), [&](const std::string& shard) { return fetch_one(shard); });
  }

  /// It says by whose names the weights are matched.
  void link_config(const std::string& folder) const {
    const std::string beside = cache_.snapshot(commit_) + (folder.empty() ? "" : "/" + folder);
    std::error_code failed;
    const std::string config = pretrained::config_of_folder(beside);
    if (config.empty()) return;
    fs::create_symlink(fs::absolute(config, failed), folder_ + "/" + pretrained::kConfigFile, failed);
  }

  const hub::Name& name_;
  hub::Client client_;
  hub::Cache cache_;
  std::string folder_, commit_;
};

}  // namespace

WeightHeaders::WeightHeaders() {
  std::error_code failed;
  folder_ = (fs::temp_directory_path(failed) / "roux-headers-XXXXXX").string();
  if (failed || mkdtemp(folder_.data()) == nullptr) throw core::RunError("cannot create a folder " + folder_);
}

WeightHeaders::~WeightHeaders() {
  std::error_code failed;
  fs::remove_all(folder_, failed);
}

std::unique_ptr<WeightHeaders> WeightHeaders::fetch(const std::string& text, std::optional<core::Failure>& why) {
  try {
    const hub::Settings settings = hub::read_settings().value();
    if (settings.offline) return nullptr;
    std::unique_ptr<WeightHeaders> headers(new WeightHeaders());
    if (hub::is_web_file(text)) {
      const hub::WebFile file = hub::parse_web_file(text).value();
      headers->path_ = headers->folder_ + "/" + file.file();
      headers->base_ = file.url.substr(0, file.url.rfind('/', file.url.find('?')));
      const bool is_known = file.file().ends_with(artifact::kSafetensorsEnding);
      return is_known && fetch_header(*hub::remote_file(file), headers->path_) ? std::move(headers) : nullptr;
    }
    const hub::Name name = hub::parse_name(text).value();
    HubHeaders of_hub(name, settings, headers->folder_);
    const auto written = of_hub.fetch();
    if (!written) return nullptr;
    headers->path_ = name.file.empty() ? headers->folder_ : *written;
    headers->base_ = folder_of(name.text(of_hub.commit()) + (name.file.empty() ? "/" : ""));
    return headers;
  } catch (const core::RunError& error) {
    why = core::Failure{error.what(), error.hint()};
    return nullptr;
  }
}

std::string WeightHeaders::with_names(std::string message) const {
  for (std::size_t at = 0; (at = message.find(folder_, at)) != std::string::npos; at += base_.size()) {
    message.replace(at, folder_.size(), base_);
  }
  return message;
}

}  // namespace runner::cli
