#include "runner/cli/generation/chat_history.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

namespace {

using runner::cli::ChatHistory;

std::string text_of(const std::string& path) { return runner::core::read_file(path, 1 << 20).value(); }

}  // namespace

TEST_CASE("what was typed is there in the next call, for its user alone", "[cli][chat]") {
  const tests::TempDir dir;
  const std::string path = dir / "state/roux/chat_history";
  ChatHistory first(path);
  CHECK(first.load().empty());
  first.add("one");
  first.add("one");
  first.add("two\nlines");
  first.add(std::string(10'000, 'x'));
  CHECK(first.problem().empty());
  CHECK(text_of(path) == "\"one\"\n\"two\\nlines\"\n");
  struct stat file = {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);

  ChatHistory second(path);
  CHECK(second.load() == std::vector<std::string>{"one", "two\nlines"});
  second.add("two\nlines");
  CHECK(text_of(path) == "\"one\"\n\"two\\nlines\"\n");
}

TEST_CASE("a long history is shortened, and what is damaged in it is left out", "[cli][chat]") {
  const tests::TempDir dir;
  const std::string path = dir / "chat_history";
  std::filesystem::create_symlink("elsewhere", path);
  {
    std::ofstream file(path);
    file << "\"cut sho\n[1]\n\n";
    for (int i = 0; i < 2001; ++i) file << '"' << i << "\"\n";
  }
  const std::vector<std::string> messages = ChatHistory(path).load();
  REQUIRE(messages.size() == 1000);
  CHECK(messages.front() == "1001");
  CHECK(messages.back() == "2000");
  CHECK(ChatHistory(path).load() == messages);
  CHECK(text_of(path).starts_with("\"1001\"\n"));
  CHECK(std::filesystem::is_symlink(path));
}

TEST_CASE("a history that cannot be kept is told, and nothing else happens", "[cli][chat]") {
  const tests::TempDir dir;
  std::ofstream(dir / "file") << "x";
  ChatHistory under_file(dir / "file/chat_history");
  CHECK(under_file.load().empty());
  under_file.add("one");
  CHECK(under_file.problem().starts_with("cannot create "));
  under_file.add("two");

  ChatHistory folder(dir.path());
  CHECK(folder.load().empty());
  CHECK_FALSE(folder.problem().empty());

  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  ChatHistory pipe(dir / "pipe");
  CHECK(pipe.load().empty());
  pipe.add("one");
  CHECK_FALSE(pipe.problem().empty());

  ChatHistory none("");
  CHECK(none.load().empty());
  none.add("one");
  CHECK(none.problem().empty());
}
