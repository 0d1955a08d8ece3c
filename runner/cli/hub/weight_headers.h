#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runner/core/result.h"

namespace runner::cli {

/// The headers of safetensors files that are on a server: files of their length, with holes for the data, in a
/// temporary folder, which is removed with this. What reads names, types and shapes of such files reads them, too.
class WeightHeaders {
 public:
  /// Of what `init_from` names, `hf://` or a URL with a checksum. Null when they cannot be had: other formats, a server
  /// without ranges, no connection.
  /// `why`: what the server said, where that is the reason.
  static std::unique_ptr<WeightHeaders> fetch(const std::string& name, std::optional<core::Failure>& why);
  ~WeightHeaders();
  WeightHeaders(const WeightHeaders&) = delete;
  WeightHeaders& operator=(const WeightHeaders&) = delete;

  /// For `init_from`: the folder, or the file in it.
  const std::string& path() const { return path_; }
  /// A message of what read them, with the files by their names on the server.
  std::string with_names(std::string message) const;

 private:
  WeightHeaders();

  std::string folder_, path_;
  std::string base_;  ///< the folder's name on the server
};

}  // namespace runner::cli
