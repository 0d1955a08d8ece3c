#pragma once

#include <string>

#include "runner/artifact/io/io.h"
#include "runner/core/platform/files.h"

namespace runner::artifact {

/// A file that a user names, written under another name until it is complete. Links are followed; a device or a pipe
/// gets the content at the end, and keeps its name. Without publish() nothing is left of it.
class OutputDraft {
 public:
  /// Nothing is made yet. RunError: a folder, links in a circle.
  OutputDraft(Io& io, const std::string& path);
  ~OutputDraft();
  OutputDraft(const OutputDraft&) = delete;
  OutputDraft& operator=(const OutputDraft&) = delete;

  /// Where to write; nothing is there.
  const std::string& path() const { return draft_; }
  /// The file, whole and closed, gets its name. RunError as Io says.
  void publish();

 private:
  void copy_in_place() const;

  Io& io_;
  core::OutputTarget target_;
  std::string draft_;
};

}  // namespace runner::artifact
