#include "runner/core/platform/program_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

namespace runner::core {
namespace {

void write_program(const std::string& path, mode_t mode = 0755) {
  make_folders(std::filesystem::path(path).parent_path().string()).value();
  write_file_atomic(path, "#!/bin/sh\n").value();
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

}  // namespace

TEST_CASE("a program is found in PATH, and in the current folder by its path alone", "[core][process]") {
  const tests::TempDir folder;
  write_program(folder / "first/tool", 0644);  // not a program
  write_program(folder / "second/tool");
  write_program(folder / "third/tool");
  write_program(folder / "here");
  make_folders(folder / "first/here").value();
  const std::string path_before = std::getenv("PATH");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  // Both an empty part and `.` mean the current folder to a shell.
  ::setenv("PATH", (":.:./:second:" + (folder / "first:") + (folder / "second:") + (folder / "third:")).c_str(), 1);
  CHECK(find_program("tool") == folder / "second/tool");
  CHECK(find_program("here").empty());
  CHECK(find_program("./here") == "./here");
  CHECK(find_program("nowhere").empty());
  CHECK(find_program("").empty());
  ::unsetenv("PATH");
  CHECK(find_program("sh").ends_with("/bin/sh"));
  ::setenv("PATH", path_before.c_str(), 1);
  std::filesystem::current_path(before);
}

}  // namespace runner::core
