#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/hub/cache.h"
#include "runner/hub/client.h"
#include "runner/hub/model_files.h"

namespace runner::hub {

/// Where a fetch is: several files, one after the other.
struct FetchProgress {
  std::string file;               ///< the present one
  std::int64_t bytes = 0;         ///< of all files, with what was here before
  std::int64_t bytes_total = 0;   ///< of all files whose sizes are known
  std::int64_t bytes_before = 0;  ///< what was here before
};

/// A file that is about to be fetched.
struct FetchFile {
  std::string file;
  std::int64_t bytes = -1;  ///< -1: the server does not say
};

struct FetchWatch {
  Wait wait;                                                   ///< before a retry, and for another process
  std::function<void(const FetchProgress&)> progress = {};     ///< often; may be empty
  std::function<void(const std::string& message)> notes = {};  ///< waits, retries, use of the cache; may be empty
  /// The files of a data set that are not here, before the first byte of one; may be empty.
  std::function<void(const std::vector<FetchFile>&)> begins = {};
};

/// Brings what `name` means into the cache: the named file, or of a model's repository the files of `part`. A whole
/// data set is brought by fetch_data_set(). Connects only if something may be missing: a branch or tag is asked for its
/// commit, a commit is not if it is here. Without a connection, what is in the cache serves if it is whole. Everything
/// is checked before it is in its place; the revision is moved last.
/// `part` of a file kTokenizer: a tokenizer's settings beside it, too.
/// HubError or RunError says what to do.
Located fetch(const Name& name, Part part, const Settings& settings, const FetchWatch& watch);

/// Whether the cache has all that fetch() would bring, as far as can be told without a connection.
bool is_fetched(const Name& name, Part part, const Settings& settings);

}  // namespace runner::hub
