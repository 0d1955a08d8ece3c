#include "runner/artifact/provenance/git_state.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/core/platform/process.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// A repository of its own, whatever the person's configuration says.
class Repository {
 public:
  Repository() { git({"init", "--quiet", "--initial-branch=main"}); }

  void git(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {"git", "-C", dir_.path(), "-c", "user.name=a", "-c", "user.email=a@b"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    core::Process process(command);
    for (std::string line; process.read_line(line, 60'000) == core::Process::Read::kLine;) UNSCOPED_INFO(line);
    REQUIRE(process.wait() == 0);
  }
  void commit(const std::string& name, const std::string& text) const {
    write(dir_ / name, text);
    git({"add", name});
    git({"commit", "--quiet", "--no-gpg-sign", "--message", name});
  }
  std::string operator/(const std::string& name) const { return dir_ / name; }
  GitState state(std::int64_t diff_bytes_max = 1 << 20) const {
    return read_git_state({dir_.path(), diff_bytes_max}, stop_);
  }

 private:
  TempDir dir_;
  std::atomic<bool> stop_{false};
};

}  // namespace

TEST_CASE("nothing that a repository's own configuration names is run", "[artifact][code]") {
  const Repository repository;
  repository.commit("model.txt", "one\n");
  repository.commit("other.txt", "one\n");
  const std::string ran = repository / "ran", program = repository / "program";
  write(program, "#!/bin/sh\necho \"$0\" >> '" + ran + "'\nexec cat\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::filesystem::create_directories(repository / ".git/hooks");
  std::filesystem::copy_file(program, repository / ".git/hooks/post-index-change");
  write(repository / ".git/info/attributes", "model.txt filter=evil diff=evil\nother.txt filter=a=b\n");
  for (const char* key : {"core.fsmonitor", "core.sshCommand", "diff.external", "diff.evil.textconv",
                          "diff.evil.command", "filter.evil.clean", "filter.evil.process", "filter.a=b.clean"}) {
    repository.git({"config", key, program});
  }
  repository.git({"config", "filter.evil.required", "true"});
  write(repository / "model.txt", "two\n");
  write(repository / "other.txt", "two\n");
  std::filesystem::remove(ran);
  const GitState state = repository.state();
  CHECK(state.note.empty());
  CHECK(state.changed == 2);
  CHECK(state.diff.find("+two") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(ran));
}

TEST_CASE("the commit, and what differs from it, are what git says", "[artifact][code]") {
  const Repository repository;
  CHECK(repository.state().commit.empty());
  repository.commit("model.txt", "one\n");
  repository.git({"remote", "add", "origin", "https://name:password@example.org/project.git"});
  const GitState clean = repository.state();
  CHECK(clean.note.empty());
  CHECK(clean.commit.size() == 40);
  CHECK(clean.branch == "main");
  CHECK(clean.remote == "https://example.org/project.git");
  CHECK(clean.changed == 0);
  CHECK(clean.diff.empty());

  write(repository / "model.txt", "two\n");
  write(repository / "new file.txt", "three\n");
  const GitState dirty = repository.state();
  CHECK(dirty.commit == clean.commit);
  CHECK(dirty.changed == 1);
  CHECK(dirty.untracked == std::vector<std::string>{"new file.txt"});
  CHECK(dirty.diff.ends_with("@@ -1 +1 @@\n-one\n+two\n"));
  CHECK_FALSE(dirty.diff_is_cut);
}

TEST_CASE("a long diff is cut at whole lines, and says so", "[artifact][code]") {
  const Repository repository;
  repository.commit("model.txt", "one\n");
  std::string text;
  for (int line = 0; line < 1000; ++line) text += "a line of its own\n";
  write(repository / "model.txt", text);
  const GitState state = repository.state(1000);
  CHECK(state.diff.size() <= 1000);
  CHECK(state.diff.ends_with("line of its own\n"));
  CHECK(state.diff_is_cut);
  CHECK(state.note == "the diff is truncated: it is longer than capture.diff_limit");
  CHECK(repository.state(0).diff.empty());
}

TEST_CASE("where git can say nothing, the reason is written down", "[artifact][code]") {
  const TempDir dir;
  std::atomic<bool> stop{false};
  CHECK(read_git_state({dir.path(), 1000, "a-git-that-is-not-there"}, stop).note == "git is not installed");
  const GitState none = read_git_state({dir / "missing"}, stop);
  CHECK(none.commit.empty());
  CHECK(none.note.starts_with("fatal: "));
}

}  // namespace runner::artifact
