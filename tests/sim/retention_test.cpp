// Random lives of a folder of checkpoints: saves, bests, pins, deletions and renames by hand, damage, strangers'
// folders, resumes on new branches, clocks that jump, policies that change. After each rotation exactly that is left
// which the specification says, strangers' folders are as they were, and no fewer checkpoints verify than it says.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "runner/artifact/manifest.h"
#include "runner/artifact/retention.h"
#include "runner/core/log.h"
#include "tests/support/checkpoints.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

using runner::artifact::RetentionItem;
using runner::artifact::RetentionPolicy;

/// What the test knows of a checkpoint, from having made it.
struct Known {
  std::int64_t branch = 0, step = 0, bytes = 0;
  double trained_s = 0;
  bool pinned = false;
  bool ours = true;      ///< of this run
  bool whole = true;     ///< manifest and sizes
  bool verifies = true;  ///< every byte
};
using World = std::map<std::string, Known>;  ///< by name

// The specification, in the order of artifact/retention.h, with no thought of speed.
std::set<std::string> removed_by_specification(const World& world, const RetentionPolicy& policy) {
  std::vector<std::string> names;
  for (const auto& [name, known] : world) {
    if (known.ours && known.whole) names.push_back(name);
  }
  const auto place = [&](const std::string& name) {
    return std::tuple(world.at(name).branch, world.at(name).step, name);
  };
  std::sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  const auto is_free = [&](const std::string& name) {
    return world.at(name).pinned || (policy.keep_every > 0 && world.at(name).step % policy.keep_every == 0);
  };
  const auto is_held = [&](const std::string& name) {
    const auto& best = policy.best_steps;
    return name == names.back() || std::find(best.begin(), best.end(), world.at(name).step) != best.end();
  };
  std::set<std::string> removed;
  for (const std::string& name : names) {
    const bool old = policy.keep_age_s > 0 && policy.trained_s - world.at(name).trained_s > policy.keep_age_s;
    if ((policy.best_only || old) && !is_free(name) && !is_held(name)) removed.insert(name);
  }
  while (true) {
    std::int64_t count = 0, bytes = 0;
    std::string oldest;
    for (const std::string& name : names) {
      if (removed.contains(name) || is_free(name)) continue;
      ++count;
      bytes += world.at(name).bytes;
      if (oldest.empty() && !is_held(name)) oldest = name;
    }
    const bool fits = (policy.save_total_limit == 0 || count <= policy.save_total_limit) &&
                      (policy.keep_bytes == 0 || bytes <= policy.keep_bytes);
    if (fits || oldest.empty()) break;
    removed.insert(oldest);
  }
  const auto stays_and_verifies = [&](const auto& name) { return !removed.contains(name) && world.at(name).verifies; };
  if (std::none_of(names.begin(), names.end(), stays_and_verifies)) return {};
  return removed;
}

class Life {
 public:
  explicit Life(unsigned seed) : random_(seed) { change_policy(); }

  void live(int events) {
    for (int i = 0; i < events; ++i) {
      const int dice = below(100);
      if (dice < 45) {
        save();
        rotate(below(4) > 0);
      } else if (dice < 53) {
        pin();
      } else if (dice < 58) {
        unpin();
      } else if (dice < 64) {
        delete_by_hand();
      } else if (dice < 67) {
        rename_by_hand();
      } else if (dice < 76) {
        damage();
      } else if (dice < 82) {
        resume();
      } else if (dice < 90) {
        stranger();
      } else if (dice < 93) {
        other_runs();
      } else if (dice < 97) {
        jump_clock();
      } else {
        change_policy();
        rotate(false);
      }
      check();
    }
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string path_of(const std::string& name) const { return dir_ / name; }

  /// A name of the world, or "" when there is none.
  std::string any(bool (*wanted)(const Known&)) {
    std::vector<std::string> names;
    for (const auto& [name, known] : world_) {
      if (wanted(known)) names.push_back(name);
    }
    return names.empty() ? "" : names[static_cast<std::size_t>(below(static_cast<int>(names.size())))];
  }

  void change_policy() {
    policy_ = {};
    policy_.run_id = "mine";
    if (below(4) > 0) policy_.save_total_limit = 1 + below(4);
    if (below(3) == 0) policy_.keep_bytes = 20 + below(300);
    if (below(3) == 0) policy_.keep_age_s = 1 + below(600);
    best_count_ = 1 + static_cast<std::size_t>(below(3));
    policy_.best_only = below(6) == 0;
    if (below(3) == 0) policy_.keep_every = 100 * (1 + below(4));
  }

  /// What lies in the way of a new folder is replaced, or put aside when it is pinned or no readable one of this run.
  void make_room(const std::string& name) {
    const auto found = world_.find(name);
    const bool in_the_way = found != world_.end() || strangers_.contains(name);
    if (!in_the_way) return;
    if (found != world_.end() && found->second.ours && readable_.contains(name) && !found->second.pinned) {
      forget(name);
      return;
    }
    std::string aside;
    for (int number = 1; aside.empty() || knows(aside); ++number) aside = name + "-aside-" + std::to_string(number);
    know_as(name, aside);
  }

  bool knows(const std::string& name) const { return world_.contains(name) || strangers_.contains(name); }

  void forget(const std::string& name) {
    world_.erase(name);
    readable_.erase(name);
  }

  void know_as(const std::string& name, const std::string& other) {
    if (auto node = world_.extract(name)) {
      node.key() = other;
      world_.insert(std::move(node));
    }
    if (auto node = strangers_.extract(name)) {
      node.key() = other;
      strangers_.insert(std::move(node));
    }
    if (readable_.erase(name) > 0) readable_.insert(other);
  }

  void save() {
    if (below(6) > 0) {
      step_ += 50 * (1 + below(4));
      trained_s_ += below(200);
    }
    if (below(5) == 0) {
      policy_.best_steps.insert(policy_.best_steps.begin(), step_);
      policy_.best_steps.resize(std::min<std::size_t>(policy_.best_steps.size(), best_count_));
    }
    Known known{branch_, step_, 1 + below(60), trained_s_};
    char name[32];
    std::snprintf(name, sizeof name, "step-%06lld", static_cast<long long>(step_));
    make_room(name);
    const std::string content(static_cast<std::size_t>(known.bytes), 'x');
    saved_ = tests::save_checkpoint(
        dir_.path(), {.step = step_, .branch = branch_, .trained_s = trained_s_, .run_id = "mine"}, content, now_ms_);
    REQUIRE(fs::path(saved_).filename() == name);
    world_[name] = known;
    readable_.insert(name);
  }

  void rotate(bool saved_just_now) {
    policy_.trained_s = trained_s_;
    policy_.verified = saved_just_now ? saved_ : "";
    const std::set<std::string> expected = removed_by_specification(world_, policy_);
    std::set<std::string> removed;
    for (const std::string& path : runner::artifact::rotate(dir_.path(), policy_)) {
      removed.insert(fs::path(path).filename().string());
    }
    CHECK(removed == expected);
    for (const std::string& name : expected) forget(name);
  }

  void pin() {
    const std::string name = any([](const Known&) { return true; });
    if (name.empty()) return;
    runner::artifact::pin(path_of(name)).value();
    world_[name].pinned = true;
  }

  void unpin() {
    const std::string name = any([](const Known& known) { return known.pinned; });
    if (name.empty()) return;
    runner::artifact::unpin(path_of(name)).value();
    world_[name].pinned = false;
  }

  void delete_by_hand() {
    const std::string name = any([](const Known&) { return true; });
    if (name.empty()) return;
    fs::remove_all(path_of(name));
    forget(name);
  }

  void rename_by_hand() {
    const std::string name = any([](const Known&) { return true; });
    const std::string other = "renamed-" + std::to_string(below(1000000));
    if (name.empty() || knows(other)) return;
    fs::rename(path_of(name), path_of(other));
    know_as(name, other);
  }

  void damage() {
    const std::string name = any([](const Known& known) { return known.whole; });
    if (name.empty()) return;
    Known& known = world_[name];
    const std::string file = path_of(name) + "/trainer.json";
    known.verifies = false;
    switch (below(5)) {
      case 0:  // a flipped byte: invisible without reading
        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).put('y');
        return;
      case 1: fs::resize_file(file, static_cast<std::uintmax_t>(known.bytes - 1)); break;
      case 2: fs::remove(file); break;
      case 3: std::ofstream(path_of(name) + "/extra.bin") << "?"; break;
      default:
        std::ofstream(path_of(name) + "/manifest.json", std::ios::trunc) << "{\"format\":";
        readable_.erase(name);
        break;
    }
    known.whole = false;
  }

  void resume() {
    const std::string name = any([](const Known& known) { return known.ours && known.verifies; });
    ++branch_;
    step_ = name.empty() ? 0 : world_[name].step;
    trained_s_ = name.empty() ? 0 : world_[name].trained_s;
    policy_.best_steps.clear();
  }

  void stranger() {
    const std::string name = below(2) == 0 ? "step-" + std::to_string(100000 + 50 * below(40)) : "notes";
    if (knows(name)) return;
    switch (below(4)) {
      case 0: std::ofstream(path_of(name)) << "a file"; break;
      case 1: fs::create_directories(path_of(name) + "/empty"); break;
      case 2:
        fs::create_directory(path_of(name));
        std::ofstream(path_of(name) + "/manifest.json") << "{\"name\": \"an extension\"}";
        break;
      default:
        fs::create_directory(path_of(name));
        std::ofstream(path_of(name) + "/manifest.json")
            << "{\"format\": \"roux checkpoint\", \"format_version\": 99, \"step\": 7}";
        break;
    }
    strangers_[name] = contents(path_of(name));
  }

  void other_runs() {
    const std::string name = "from-elsewhere-" + std::to_string(below(3));
    if (knows(name)) return;
    const std::int64_t step = 100 * below(50);
    const tests::TempDir there(tests::TempDir::On::kMemory);
    const std::string path = tests::save_checkpoint(there.path(), {.step = step, .branch = 9, .run_id = "other"}, "x");
    fs::copy(path, path_of(name), fs::copy_options::recursive);
    world_[name] = Known{9, step, 1, 0, false, false};
    readable_.insert(name);
  }

  void jump_clock() { now_ms_ += 86'400'000LL * (below(20000) - 10000); }

  static std::string contents(const std::string& path) {
    if (!fs::is_directory(path)) {
      std::ostringstream text;
      text << std::ifstream(path, std::ios::binary).rdbuf();
      return text.str();
    }
    std::string all;
    for (const std::string& name : tests::names_in(path)) all += name + "=" + contents(path + "/" + name) + ";";
    return all;
  }

  void check() {
    std::vector<std::string> expected;
    for (const auto& [name, known] : world_) expected.push_back(name);
    for (const auto& [name, content] : strangers_) {
      expected.push_back(name);
      CHECK(contents(path_of(name)) == content);
    }
    std::sort(expected.begin(), expected.end());
    CHECK(tests::names_in(dir_.path()) == expected);
    for (const auto& [name, known] : world_) {
      CAPTURE(name);
      CHECK(runner::artifact::verify_checkpoint(path_of(name)).ok() == known.verifies);
    }
  }

  std::mt19937 random_;
  tests::TempDir dir_{tests::TempDir::On::kMemory};
  World world_;
  std::set<std::string> readable_;                ///< those with a manifest that reads
  std::map<std::string, std::string> strangers_;  ///< name -> content
  RetentionPolicy policy_;
  std::size_t best_count_ = 1;
  std::string saved_;
  std::int64_t branch_ = 0, step_ = 0, now_ms_ = 1'800'000'000'000;
  double trained_s_ = 0;
};

/// Thousands of warnings that a pinned folder was put aside would hide what fails.
struct Quiet {
  Quiet() {
    runner::core::LogOptions quiet = before;
    quiet.level = runner::core::LogLevel::kError;
    runner::core::configure_log(quiet);
  }
  ~Quiet() { runner::core::configure_log(before); }
  runner::core::LogOptions before = runner::core::log_options();
};

TEST_CASE("what is left of a life on disk is what the specification says", "[sim][artifact]") {
  constexpr unsigned kLives = 300;
  const Quiet quiet;
  for (unsigned seed = 1; seed <= kLives; ++seed) {
    CAPTURE(seed);
    Life(seed).live(40);
  }
}

TEST_CASE("what may go of a random set is what the specification says", "[sim][artifact]") {
  constexpr unsigned kSets = 20'000;
  for (unsigned seed = 1; seed <= kSets; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    World world;
    std::vector<RetentionItem> items;
    for (int i = below(8); i > 0; --i) {
      const auto n = static_cast<std::int64_t>(items.size());
      items.push_back({50 * (n + below(3)), 1 + below(30), static_cast<double>(below(100)), below(6) == 0});
      world["at " + std::to_string(n)] = {n, items.back().step, items.back().bytes, items.back().trained_s,
                                          items.back().pinned};
    }
    RetentionPolicy policy;
    policy.save_total_limit = below(5);
    policy.keep_bytes = below(3) == 0 ? 1 + below(80) : 0;
    policy.keep_age_s = below(3) == 0 ? 1 + below(60) : 0;
    policy.trained_s = below(120);
    policy.keep_every = below(3) == 0 ? 50 * (1 + below(3)) : 0;
    while (below(2) == 0) policy.best_steps.push_back(50 * below(9));
    policy.best_only = below(5) == 0;
    std::set<std::string> removed;
    for (const std::size_t at : runner::artifact::surplus(items, policy)) removed.insert("at " + std::to_string(at));
    CAPTURE(seed);
    CHECK(removed == removed_by_specification(world, policy));
  }
}

}  // namespace
