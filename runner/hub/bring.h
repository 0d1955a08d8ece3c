#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/hub/cache.h"
#include "runner/hub/client.h"
#include "runner/hub/download.h"
#include "runner/hub/fetch.h"

namespace runner::hub {

/// Brings files of a repository into the cache, one after the other, and reports how far it is. Everything is checked
/// before it is in its place. HubError or RunError says what to do.
class Bringer {
 public:
  /// All but `watch` and `client` are copied; both must outlive it.
  Bringer(Client& client, const Name& name, const Cache& cache, const FetchWatch& watch);

  /// Those that the cache lacks; they are all described, and the disk has room for them, before the first byte.
  /// `is_told`: `watch.begins` hears of them first.
  void bring(const std::string& commit, const std::vector<std::string>& files, bool is_told = false);

 private:
  void bring_file(HubFile& next);

  Client& client_;
  Name name_;
  Cache cache_;
  const FetchWatch& watch_;
  FetchProgress progress_;
};

/// What to throw where HF_HUB_OFFLINE is set and the cache lacks something of it.
HubError not_whole(const Name& name, const Cache& cache);

}  // namespace runner::hub
