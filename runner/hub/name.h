#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::hub {

/// What `hf://[datasets/]OWNER/NAME[@REVISION][/FILE]` names: a repository of the Hugging Face Hub, or a file of one.
struct Name {
  bool is_dataset = false;
  std::string owner, name;
  std::string revision = "main";  ///< branch, tag or commit
  std::string file;               ///< below the repository; "" for the whole

  /// `OWNER/NAME`.
  std::string repository() const { return owner + "/" + name; }
  /// As a recipe writes it, at this revision; `main` is left out.
  std::string text(const std::string& at_revision) const;
  std::string text() const { return text(revision); }
};

/// Whether a value of a recipe or of the command line begins with `hf://`.
bool is_name(std::string_view text);

/// `hf://OWNER/NAME` for a text `OWNER/NAME` of which nothing is on the disk: as other programs name a repository of
/// the Hub. "" for another text.
std::string meant_name(const std::string& text);

/// The Failure says what is wrong with it and how a name is written.
core::Result<Name> parse_name(const std::string& text);

/// 40 hex digits.
bool is_commit(std::string_view revision);

/// Whether a file of a repository may have this name on this machine: a relative path without empty parts, `.` and
/// `..`, control characters and backslashes, with parts of at most 255 bytes.
bool is_safe_path(std::string_view path);

}  // namespace runner::hub
