#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "runner/core/build_info.h"
#include "tests/support/process/process.h"

namespace tests {

/// A copy of the program in `folder` that takes itself for one of other sources: the hash of its own is a text in
/// libroux_base.so. Returns where it lies.
inline std::string other_build(const std::filesystem::path& folder) {
  const std::filesystem::path program = roux_program(), libraries = program.parent_path().parent_path() / "lib";
  for (const char* name : {"bin", "lib"}) std::filesystem::create_directory(folder / name);
  std::filesystem::copy_file(program, folder / "bin/roux");
  std::filesystem::create_symlink(libraries / "libroux_engine.so", folder / "lib/libroux_engine.so");
  std::ostringstream base;
  base << std::ifstream(libraries / "libroux_base.so", std::ios::binary).rdbuf();
  std::string bytes = base.str();
  const std::string own = runner::core::source_hash();
  for (std::size_t at = bytes.find(own); at != std::string::npos; at = bytes.find(own, at)) {
    bytes.replace(at, own.size(), std::string(own.size(), '0'));
  }
  std::ofstream(folder / "lib/libroux_base.so", std::ios::binary) << bytes;
  return (folder / "bin/roux").string();
}

}  // namespace tests
