#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runner/hub/cache.h"
#include "runner/hub/client.h"

namespace runner::hub {

/// A file that a server has, how to ask for it, and how to speak of it.
class RemoteFile {
 public:
  /// Gets the status and headers of a response with content, and the content piece by piece. May throw.
  using Receive = std::function<void(const net::HttpAnswer&, std::string_view)>;

  RemoteFile(std::string name, FileInfo info) : name_(std::move(name)), info_(std::move(info)) {}
  virtual ~RemoteFile() = default;

  const std::string& name() const { return name_; }  ///< for progress
  const FileInfo& info() const { return info_; }
  virtual std::string host() const = 0;
  /// For messages, such as `"config.json" of hf://ada/tiny@COMMIT`.
  virtual std::string title() const = 0;
  /// Receives this range of it once; the response says whether it is the range (206) or the whole file (200). Returns
  /// the final response, whatever its status; NoResponse when the connection is lost.
  virtual net::HttpAnswer get(const Range& range, const Receive& receive) = 0;
  /// What to throw for a response or a lost connection that no retry may follow, or for content with another checksum.
  virtual HubError refusal(const net::HttpAnswer& answer) const = 0;
  virtual HubError unreachable(const net::NoResponse& error) const = 0;
  virtual HubError damaged(const std::string& what) const = 0;
  /// Whether content with another checksum is as the server has it, so that it is not worth another download.
  virtual bool is_intact_in_transit() const { return false; }

 private:
  std::string name_;
  FileInfo info_;
};

/// One file of a snapshot of the Hub.
class HubFile final : public RemoteFile {
 public:
  HubFile(Client& client, const Name& name, std::string commit, const std::string& file, FileInfo info);

  const std::string& commit() const { return commit_; }
  std::string host() const override;
  std::string title() const override;
  net::HttpAnswer get(const Range& range, const Receive& receive) override;
  HubError refusal(const net::HttpAnswer& answer) const override;
  HubError unreachable(const net::NoResponse& error) const override;
  HubError damaged(const std::string& what) const override;

 private:
  Client& client_;
  Name repository_;
  std::string commit_;
};

/// Bytes of a file, and how many the whole has.
struct FilePart {
  std::string content;
  std::int64_t whole_bytes = 0;
};
/// Asks once for the first `count` bytes from `from` on, and receives no more. Nothing when the server knows no ranges
/// or the file is shorter. HubError; NoResponse when the connection is lost.
std::optional<FilePart> read_part(RemoteFile& file, std::int64_t from, std::int64_t count);
/// Asks once for the whole file. Nothing when it has more than `bytes_max`. Errors as above.
std::optional<std::string> read_whole(RemoteFile& file, std::size_t bytes_max);

/// How a download reports; all but `wait` may be empty.
struct DownloadWatch {
  Wait wait;                                                   ///< before a retry, and for another process
  std::function<void(std::int64_t bytes)> at = {};             ///< this many bytes of the file are here
  std::function<void(const std::string& message)> notes = {};  ///< waits and retries
  /// The size of a file that the description did not say, before its first byte is written, and what is here of it.
  /// May throw.
  std::function<void(std::int64_t bytes, std::int64_t present)> sized = {};
  /// What the disk of a folder has left; empty: as the system says.
  std::function<std::int64_t(const std::string& folder)> free_bytes = {};
};

/// Bytes of it that are in the cache already, whole or as `*.incomplete`.
std::int64_t bytes_present(const Cache& cache, const FileInfo& info);

/// RunError with kExitResumable when the disk of the cache lacks room for this many more bytes of `what`.
void check_space(const Cache& cache, const std::string& what, std::int64_t missing);

/// Downloads the blob if the cache lacks it, checks it, and puts it in its place; resumes what an earlier one left. At
/// most one process does so at a time, the others wait. A file whose size no one says may take half of what the
/// disk has left. HubError; RunError with kExitResumable for a full disk, where the part that is there is kept.
void download(RemoteFile& wanted, const Cache& cache, const DownloadWatch& watch);

}  // namespace runner::hub
