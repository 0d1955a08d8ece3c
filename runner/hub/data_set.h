#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/hub/cache.h"
#include "runner/hub/client.h"
#include "runner/hub/fetch.h"

namespace runner::hub {

/// What is asked of a data set that is named by its repository.
struct DataRequest {
  Name name;                            ///< of a data set, without a file
  std::string subset = {};              ///< "": its default one
  std::string split = {};               ///< "": one of `usual`
  std::vector<std::string> usual = {};  ///< the first of them that there is; empty: all splits
  std::string type = {};                ///< of the data set that reads the files; "": any
};

/// What it comes to.
struct DataSet {
  std::string name;  ///< of the repository, with its commit
  std::string subset;
  std::vector<std::string> splits = {};
  std::vector<Located> files = {};  ///< of all splits, those of one in the order of their names
  bool is_partial = false;          ///< only the beginning of a split was converted
};

/// A request that the data set cannot meet, and what of it is wrong.
class DataError : public HubError {
 public:
  enum class About { kPath, kSubset, kSplit };
  DataError(About about, const std::string& message, const std::string& hint)
      : HubError(message, hint, core::kExitUsage), about_(about) {}
  About about() const { return about_; }

 private:
  About about_;
};

/// Looks only at the cache. Nothing when it lacks something of it. DataError.
std::optional<DataSet> locate(const DataRequest& request, const Settings& settings);

/// Brings the files into the cache: those that `load_dataset` would read, by the card, else by their names, else those
/// that the Hub has converted to Parquet. Connects as fetch() of a model does. HubError or RunError says what to do.
DataSet fetch(const DataRequest& request, const Settings& settings, const FetchWatch& watch);

}  // namespace runner::hub
