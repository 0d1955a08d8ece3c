#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process/http_server.h"

namespace hub_tests {

/// Answers as the Hugging Face Hub does, as far as roux asks: large files are redirected to a storage of another
/// origin. The real client asks the same questions in tests/parity/hub.py.
class HubStandIn {
 public:
  struct File {
    std::string content;
    bool is_large = false;  ///< of Git LFS: its ETag is a SHA-256, and it is in the storage
  };
  struct Commit {
    std::map<std::string, File> files;
  };
  struct Asked {
    std::string method, path, authorization, range;
    bool of_storage = false;
  };

  std::string url() const { return server_.url(); }
  std::string storage_url() const { return storage_.url(); }

  /// `OWNER/NAME` or `datasets/OWNER/NAME`, then by commit.
  std::map<std::string, std::map<std::string, Commit>> repositories;
  std::map<std::string, std::map<std::string, std::string>> revisions;  ///< by repository: names of commits
  /// Changes the answer to a request; may be empty.
  std::function<std::optional<tests::HttpReply>(const Asked&, const tests::HttpReply& usual)> fault;
  std::vector<Asked> asked;

  /// The requests for a file's bytes.
  std::size_t downloads() const;

 private:
  tests::HttpReply handle(const tests::HttpRequest& request, bool of_storage);
  tests::HttpReply answer(const tests::HttpRequest& request, bool of_storage) const;
  tests::HttpReply list(const std::string& repository, const std::string& revision) const;
  tests::HttpReply resolve(const std::string& path, const tests::HttpRequest& request) const;

  tests::HttpServer server_{[this](const tests::HttpRequest& request) { return handle(request, false); }};
  tests::HttpServer storage_{[this](const tests::HttpRequest& request) { return handle(request, true); }};
  std::mutex mutex_;
};

/// The bytes that `Range: bytes=N-` or `bytes=N-M` asks for, or all.
tests::HttpReply part_of(const std::string& content, const std::string& range);

/// git's SHA-1 of a blob.
std::string git_hash(const std::string& content);

}  // namespace hub_tests
