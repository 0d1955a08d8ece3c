// What a run's store takes and gives, for tests/bench. One JSON line each.
//   bench_store burst N        the loop's view of N scalars, one a call, and how long until all of them are on disk
//   bench_store fill RUN N     the same into a run that is there, as a resume at step 0 would continue it
//   bench_store feed RUN       reads a run as trackers do, and once more after going back to the middle of it
//   bench_store index DIR N    N runs of 50 parameters and 20 metrics, an hour old

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/feed/feed.h"
#include "runner/store/run_reader.h"
#include "runner/store/run_writer.h"

// The allocator of the program, as runner/cli/main.cpp sets it.
extern "C" {
__attribute__((visibility("default"))) const char* malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,lg_extent_max_active_fit:40";
}

namespace {

namespace fs = std::filesystem;
namespace store = runner::store;
using runner::core::Node;

constexpr int kParameters = 50, kMetrics = 20;

double seconds_since(std::int64_t begin_ns) {
  return static_cast<double>(runner::core::system_clock().monotonic_ns() - begin_ns) * 1e-9;
}

double peak_rss_mb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

std::int64_t stored_points(const std::string& run_dir) {
  const store::Database database(store::run_db_path(run_dir), store::Database::Mode::kRead);
  store::Statement count = database.prepare("SELECT count(*) FROM metrics");
  return count.step() ? count.integer(0) : 0;
}

/// A loop that does nothing but log.
void pour(store::RunWriter& run, std::int64_t points) {
  const store::MetricId id = run.metric("loss");
  const std::string run_dir = run.run_dir();
  const std::int64_t first = run.last_row();
  const std::int64_t begin_ns = runner::core::system_clock().monotonic_ns();
  for (std::int64_t step = 1; step <= points; ++step) {
    const store::MetricValue value{id, 0.5 * static_cast<double>(step)};
    run.log(step, {&value, 1});
  }
  const double loop_s = seconds_since(begin_ns);
  const std::int64_t waited = run.points_waited();
  run.finish(store::RunStatus::kFinished, "all is logged");
  const double all_s = seconds_since(begin_ns);
  const double rate = static_cast<double>(points);
  std::printf(
      "{\"points\": %lld, \"loop_points_per_s\": %.0f, \"points_per_s\": %.0f, \"waited\": %lld, "
      "\"stored\": %lld, \"peak_rss_mb\": %.1f}\n",
      static_cast<long long>(points), rate / loop_s, rate / all_s, static_cast<long long>(waited),
      static_cast<long long>(stored_points(run_dir) - first), peak_rss_mb());
}

store::NewRun new_run(const std::string& output_dir) {
  store::NewRun run;
  run.output_dir = output_dir;
  run.run_name = "bench";
  run.resolved_json = "{}";
  return run;
}

void burst(std::int64_t points) {
  std::string folder = (fs::temp_directory_path() / "roux-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw runner::core::RunError("cannot create " + folder);
  pour(*store::RunWriter::create(new_run(folder), runner::core::system_clock()).value(), points);
  fs::remove_all(folder);
}

void fill(const std::string& run_dir, std::int64_t points) {
  store::ResumePoint point;
  point.run_dir = run_dir;
  pour(*store::RunWriter::resume(point, runner::core::system_clock()).value(), points);
}

/// Everything that a feed gives from here on.
std::int64_t read_to_end(store::Feed& feed, store::Cursor cursor) {
  constexpr std::int64_t kPointsMax = 65'536;
  std::int64_t points = 0;
  for (;;) {
    const store::FeedBatch batch = feed.next(cursor, kPointsMax);
    if (batch.empty()) return points;
    points += static_cast<std::int64_t>(batch.points.size());
    cursor = batch.end;
  }
}

void feed(const std::string& run_dir) {
  store::Feed feed(run_dir);
  const std::int64_t begin_ns = runner::core::system_clock().monotonic_ns();
  const std::int64_t points = read_to_end(feed, {});
  const double seconds = seconds_since(begin_ns);
  const double peak_mb = peak_rss_mb();
  // As a tracker that is told everything again: all up to the last row is repeated.
  store::Cursor again;
  again.rows.metrics = stored_points(run_dir);
  again.branch = -1;
  const std::int64_t replayed = read_to_end(feed, again);
  std::printf(
      "{\"points\": %lld, \"points_per_s\": %.0f, \"replayed\": %lld, \"peak_rss_mb\": %.1f, "
      "\"replay_peak_rss_mb\": %.1f}\n",
      static_cast<long long>(points), static_cast<double>(points) / seconds, static_cast<long long>(replayed), peak_mb,
      peak_rss_mb());
}

/// The same for each run, but for what an update can change later.
std::string first_run(const std::string& output_dir) {
  Node resolved = Node::mapping(), optimizer = Node::mapping(), vars = Node::mapping();
  optimizer.set("type", Node::string("adamw"));
  optimizer.set("lr", Node::floating(0.001));
  for (int i = 2; i < kParameters; ++i) vars.set("parameter_" + std::to_string(i), Node::integer(i));
  resolved.set("optimizer", std::move(optimizer));
  resolved.set("vars", std::move(vars));
  store::NewRun run = new_run(output_dir);
  run.resolved_json = runner::core::to_json(resolved);
  const auto writer = store::RunWriter::create(run, runner::core::system_clock()).value();
  std::vector<store::MetricValue> values;
  for (int i = 0; i < kMetrics; ++i) {
    values.push_back({writer->metric(i == 0 ? "val/loss" : "metric_" + std::to_string(i)), 0.1 * i});
  }
  for (std::int64_t step = 10; step <= 100; step += 10) writer->log(step, values);
  writer->finish(store::RunStatus::kFinished, "max_steps 100");
  return writer->run_dir();
}

std::string id_of(std::string first, int number) {
  for (int digit = 1; digit <= 3; ++digit, number /= 32) {
    first[first.size() - static_cast<std::size_t>(digit)] = "0123456789abcdefghjkmnpqrstvwxyz"[number % 32];
  }
  return first;
}

void make_old(const std::string& path) {
  timespec times[2] = {};
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= 3600;
  times[1] = times[0];
  utimensat(AT_FDCWD, path.c_str(), times, 0);
}

void replace_in_file(const std::string& path, const std::string& what, const std::string& with) {
  std::FILE* file = std::fopen(path.c_str(), "r+");
  std::string text(64 << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  text.replace(text.find(what), what.size(), with);
  std::rewind(file);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

void index(const std::string& output_dir, int runs) {
  const fs::path first = first_run(output_dir);
  const std::string folder = first.filename();
  const std::string first_id = folder.substr(folder.rfind('-') + 1);
  for (int i = 0; i < runs; ++i) {
    const std::string id = id_of(first_id, i);
    const fs::path copy = fs::path(output_dir) / ("bench-" + id);
    if (copy != first) {
      fs::create_directory(copy);
      for (const char* file : {"run.db", "annotations.db", "resolved.json"}) fs::copy_file(first / file, copy / file);
      char rate[16];
      std::snprintf(rate, sizeof rate, "0.%03d", i % 1000);
      replace_in_file(copy / "resolved.json", "0.001", rate);
      store::Database database(copy / "run.db", store::Database::Mode::kWrite);
      database.execute("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN");
      database.prepare("UPDATE info SET value = ? WHERE key = 'id'").bind(1, id).run();
      database.prepare("UPDATE metrics SET value = ? WHERE series = 0").bind(1, 0.0005 * i).run();
      database.execute("COMMIT");
    }
    for (const char* file : {"/run.db", "/annotations.db", ""}) make_old(copy.string() + file);
  }
  std::printf("{\"runs\": %d}\n", runs);
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i) { return std::atoll(words[i].c_str()); };
  if (words.size() == 2 && words[0] == "burst") return burst(number(1)), 0;
  if (words.size() == 3 && words[0] == "fill") return fill(words[1], number(2)), 0;
  if (words.size() == 2 && words[0] == "feed") return feed(words[1]), 0;
  if (words.size() == 3 && words[0] == "index") return index(words[1], static_cast<int>(number(2))), 0;
  std::fprintf(stderr, "usage: bench_store burst N | fill RUN N | feed RUN | index DIR N\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
