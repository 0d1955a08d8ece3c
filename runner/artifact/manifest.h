#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/result.h"

namespace runner::artifact {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kPinnedFile = "pinned";  ///< a file of this name in the folder: rotation leaves it alone
inline constexpr int kManifestVersion = 2;            ///< of a checkpoint whose tensors lie in pieces
inline constexpr int kWholeManifestVersion = 1;       ///< of any other
inline constexpr const char* kTrainerFile = "trainer.json";  ///< values of the training's state
inline constexpr int kTrainerVersion = 1;
inline constexpr std::int64_t kTrainerBytesMax = 256 << 20;

/// JSON text, with its own checksum: that of the text with the checksum's digits as zeros.
std::string manifest_text(const Manifest& manifest);

/// Parses it. Failures name `path`: not a manifest, a newer format version, changed or damaged, a field missing.
core::Result<Manifest> parse_manifest(std::string_view text, const std::string& path);

/// Of the folder `checkpoint`; checks the checksum of the manifest, but no files.
core::Result<Manifest> read_manifest(const std::string& checkpoint);

/// False for a name that leads out of the folder of its manifest or index, or to another file than its text.
bool is_plain_name(const std::string& name);

/// Failure when the content of a trainer.json, `state`, is of a later version than this program reads.
core::Result<void> refuse_later_trainer(const core::Node& state, const std::string& path);

}  // namespace runner::artifact
