#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"

namespace runner::pretrained {

/// The file by which a folder tells that roux wrote it. No other program reads it.
inline constexpr const char* kMarkFile = ".roux.json";

struct FolderMark {
  bool is_draft = false;                   ///< the folder is being written
  std::vector<artifact::FileEntry> files;  ///< all but the mark; a name may be FOLDER/FILE
};

std::string mark_text(const FolderMark& mark);
/// Nothing when the folder has none that this version reads.
std::optional<FolderMark> read_mark(const std::string& folder);

/// Names in the folder that are not of its mark, sorted; those of folders end with `/`. With `by_content` also listed
/// files whose content is another one. RunError when it cannot be read.
std::vector<std::string> foreign_to(const FolderMark& mark, const std::string& folder, bool by_content);

/// Removes what the mark lists, at last the mark, and the folder unless something else is left in it.
void remove_marked(artifact::Io& io, const FolderMark& mark, const std::string& folder);

}  // namespace runner::pretrained
