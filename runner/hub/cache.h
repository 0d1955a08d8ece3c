#pragma once

#include <optional>
#include <string>

#include "runner/hub/answers.h"
#include "runner/hub/name.h"
#include "runner/hub/settings.h"

namespace runner::hub {

/// What the cache has of one repository, in the layout of huggingface_hub, with which it is shared:
///
///   models--OWNER--NAME/refs/REVISION            the commit of a branch or tag
///                       blobs/ETAG               a file's content; ETAG.incomplete: the beginning of one
///                       snapshots/COMMIT/FILE    a link to ../../blobs/ETAG
///                       .no_exist/COMMIT/FILE    the commit has no such file
///   .locks/models--OWNER--NAME/ETAG.lock         held while a blob is downloaded
///
/// Files of other servers lie in the same layout in roux's own cache: ETAG and COMMIT are their SHA-256. What files a
/// commit of a data set has, the ones that were not fetched, too, is in roux's own cache: huggingface_hub keeps no such
/// list.
class Cache {
 public:
  Cache(const Settings& settings, const Name& name);
  static Cache of_web_files(const Settings& settings);

  std::string folder() const { return folder_; }
  /// The variable that moves it elsewhere.
  const char* variable() const { return variable_; }
  std::string blob(const std::string& etag) const { return folder_ + "/blobs/" + etag; }
  std::string lock(const std::string& etag) const { return locks_ + "/" + etag + ".lock"; }
  std::string snapshot(const std::string& commit) const { return folder_ + "/snapshots/" + commit; }
  std::string path(const std::string& commit, const std::string& file) const { return snapshot(commit) + "/" + file; }

  /// The commit that a revision had when it was last asked for.
  std::optional<std::string> commit_of(const std::string& revision) const;
  bool has(const std::string& commit, const std::string& file) const;
  bool is_known_absent(const std::string& commit, const std::string& file) const;

  /// The files of a commit, where keep() has written them.
  std::optional<Listing> listing(const std::string& commit) const;
  void keep(const Listing& listing) const;
  /// Whether the Hub has nothing of its data set converted, as it was when the commit was listed.
  bool is_known_unconverted(const std::string& commit) const;
  void set_unconverted(const std::string& commit) const;

  /// All three do nothing where it is so already; RunError when the cache cannot be written.
  void set_commit(const std::string& revision, const std::string& commit) const;
  void set_absent(const std::string& commit, const std::string& file) const;
  void link(const std::string& commit, const std::string& file, const std::string& etag) const;

 private:
  Cache(std::string folder, std::string locks, std::string listings, const char* variable);

  std::string folder_, locks_, listings_;
  const char* variable_;
};

/// What is in the cache under a name, and the name with its commit. `path` is the snapshot's folder, or the file in it.
struct Located {
  std::string path;
  std::string pinned;
};

/// Looks only at the cache. Nothing when it has no snapshot of that revision, or not the file.
std::optional<Located> locate(const Name& name, const Settings& settings);

/// Whether a file, by whatever path or link it is named, lies where downloads do: in the Hub's cache or in that of
/// files of other servers.
bool is_downloaded(const std::string& path, const Settings& settings);

}  // namespace runner::hub
