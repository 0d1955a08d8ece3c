#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runner/hub/cache.h"
#include "runner/hub/client.h"

namespace runner::hub {

/// One file of a snapshot that is to be in the cache.
struct Download {
  Name name;
  std::string commit, file;
  FileInfo info;
};

/// How a download reports. Both may be empty.
struct DownloadWatch {
  std::function<void(std::int64_t bytes)> at;             ///< this many bytes of the file are here
  std::function<void(const std::string& message)> notes;  ///< waits and retries
};

/// Bytes of it that are in the cache already, whole or as `*.incomplete`.
std::int64_t bytes_present(const Cache& cache, const FileInfo& info);

/// Downloads the blob if the cache lacks it, checks it, and puts it in its place; resumes what an earlier one left. At
/// most one process does so at a time, the others wait. HubError; RunError with kExitResumable for a full disk, where
/// the part that is there is kept.
void download(Client& client, const Cache& cache, const Download& wanted, const DownloadWatch& watch);

}  // namespace runner::hub
