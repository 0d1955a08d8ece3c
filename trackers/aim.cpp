#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generated/tracker/aim.h"  // Config; declares make()
#include "runner/core/log.h"
#include "runner/net/digest.h"
#include "trackers/io/numbers.h"
#include "trackers/io/png.h"
#include "trackers/server/aim_server.h"
#include "trackers/server/aim_tree.h"
#include "trackers/tracker.h"

namespace trackers::aim {
namespace {

using runner::net::sha256;

using runner::core::Node;
using Remedy = TrackerError::Remedy;

constexpr std::size_t kPointsMax = 4096;     // request size, below one megabyte
constexpr const char* kVersions = "3.29.";   // with which this was tried
constexpr std::size_t kHashCharacters = 24;  // as Aim's own hashes of runs
constexpr NumberWords kWords = {"nan", "inf", "-inf"};
constexpr std::int64_t kScalars = 2, kObjects = 1;  // how Aim finds a step: by its hash, or as it is

// What a run holds in the server; named so there.
constexpr const char *kRepo = "repo", *kLock = "lock", *kMeta = "meta", *kSeries = "series", *kProgress = "progress",
                     *kProperties = "properties";

using Path = std::vector<Node>;

Node text(std::string value) { return Node::string(std::move(value)); }
Node number(std::int64_t value) { return Node::integer(value); }
Node seconds(std::int64_t time_ms) { return Node::floating(static_cast<double>(time_ms) / 1000); }

Node mapping(std::initializer_list<std::pair<const char*, Node>> entries) {
  Node node = Node::mapping();
  for (const auto& [key, value] : entries) node.set(key, value);
  return node;
}

AimTree arguments(std::vector<Node> items) { return AimTree().add("", Node::sequence(std::move(items))); }

Path operator+(Path path, const Path& below) {
  path.insert(path.end(), below.begin(), below.end());
  return path;
}

/// `aim://HOST:PORT` as an address for HTTP.
std::string url_of(const std::string& repo) {
  constexpr std::string_view kScheme = "aim://";
  std::string url = repo.starts_with(kScheme) ? "http://" + repo.substr(kScheme.size()) : repo;
  while (url.ends_with("/")) url.pop_back();
  return url;
}

/// Aim shows what is called so among the machine's figures.
std::string name_of(const Point& point) {
  constexpr std::string_view kMachine = "system/";
  if (!point.is_system_metric || !point.name->starts_with(kMachine)) return *point.name;
  return "__system__" + point.name->substr(kMachine.size());
}

/// The key figures of a metric, which Aim keeps beside its points.
struct Extent {
  std::int64_t last_step;
  std::optional<double> least, most;  // nothing before the first number

  Node node() const {
    Node figures = Node::sequence({number(last_step)});
    if (!least) return figures;
    return Node::sequence({number(last_step), text(number_text(*least, kWords)), text(number_text(*most, kWords))});
  }
  static Extent of(const Node& node) {
    const auto& figures = node.items();
    Extent extent{figures.front().as_integer(), {}, {}};
    if (figures.size() < 3) return extent;
    extent.least = std::strtod(figures[1].as_string().c_str(), nullptr);
    extent.most = std::strtod(figures[2].as_string().c_str(), nullptr);
    return extent;
  }
};

class Aim final : public Tracker {
 public:
  Aim(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    run_ = run;
    hash_ = sha256(run.id + "/" + name_).substr(0, kHashCharacters);
    server_.reset();
    extents_.clear();
    known_.clear();
    last_time_ms_ = run.created_ms;
    if (!state.is_mapping()) {
      open();
      forget();
      describe();
      return;
    }
    last_time_ms_ = state.find("last_time_ms")->as_integer();
    for (const auto& entry : state.find("metrics")->entries()) extents_[entry.key] = Extent::of(entry.value);
    open();
  }

  // A point is keyed by its step, so repeats are stored once; but points beyond the new end would stay.
  bool restarts_after_rewind() const override { return true; }

  std::size_t points_max() const override { return kPointsMax; }

  void log(std::span<const Point> points) override {
    open();
    std::map<std::string, std::vector<const Point*>> by_name;
    for (const Point& point : points) by_name[name_of(point)].push_back(&point);
    for (const auto& [name, of_one] : by_name) log_metric(name, of_one);
  }

  void log_text(const Text& said) override {
    put("aim.text", "texts", said,
        [&said](AimTree& tree, const std::string& at) { tree.add_text(at + AimTree::key("data"), said.text); });
  }

  void log_image(const Image& image) override {
    const Png png = read_png(image.path);
    put("aim.image", "images", image, [&image, &png](AimTree& tree, const std::string& at) {
      tree.add(at, mapping({{"format", text("png")},
                            {"width", number(png.width)},
                            {"height", number(png.height)},
                            {"caption", text(image.caption)}}));
      tree.add_bytes(at + AimTree::key("data"), png.bytes);
    });
  }

  void flush(bool) override {}  // everything sent has arrived

  Node state() const override {
    Node metrics = Node::mapping();
    for (const auto& [name, extent] : extents_) metrics.set(name, extent.node());
    return mapping({{"last_time_ms", number(last_time_ms_)}, {"metrics", metrics}});
  }

  void finish(const End& end) override {
    open();
    if (end.ending != Ending::kOpen) {
      set(kMeta, ours() + Path{text("end_time")}, seconds(end.time_ms > 0 ? end.time_ms : last_time_ms_));
      set_attribute({text("roux"), text("status")}, text(std::string(to_text(end.ending))));
    }
    for (const char* resource : {kProgress, kProperties, kSeries, kMeta, kLock, kRepo}) server_->close(held(resource));
    server_->disconnect();
    server_.reset();
  }

 private:
  /// As a client of Aim's begins to write a run: in this order, or the server refuses the lock.
  void open() {
    if (server_) return;
    HttpOptions options;
    options.timeout_s = config_.request_timeout;
    options.verify_tls = !config_.insecure_tls;
    options.ca_file = config_.server_cert_path.value_or("");
    options.client_certificate = config_.client_cert_path.value_or("");
    AimServer& server = server_.emplace(url_of(config_.repo), options, hash_);
    check_version(server);
    server.connect();
    const auto tree = [this](const char* name) {
      return mapping({{"name", text(name)},
                      {"sub", text(hash_)},
                      {"read_only", Node::boolean(false)},
                      {"index", Node::boolean(false)},
                      {"timeout", Node::null()}});
    };
    server.open(held(kRepo), "Repo", Node::mapping());
    server.open(held(kLock), "Lock", mapping({{"run_hash", text(hash_)}}));
    // Forced: a dead process of ours may still hold it. Two live ones write the same points.
    server.call(held(kLock), "lock", arguments({Node::boolean(true)}));
    server.open(held(kMeta), "TreeView", tree("meta"));
    server.open(held(kProgress), "RunHeartbeat", mapping({{"run_hash", text(hash_)}}));
    server.open(
        held(kProperties), "StructuredRun",
        mapping(
            {{"hash_", text(hash_)}, {"read_only", Node::boolean(false)}, {"created_at", seconds(run_.created_ms)}}));
    server.open(held(kSeries), "TreeView", tree("seqs"));
    set(kMeta, ours() + Path{text("end_time")}, Node::null());
  }

  void check_version(AimServer& server) {
    const std::string version = server.version();
    if (version.starts_with(kVersions) || std::exchange(told_version_, true)) return;
    runner::core::log_warning(server.who() + " is Aim " + version + ", and roux speaks as " + kVersions +
                              "x does; check that it shows the run correctly");
  }

  /// Unknown leftovers of an earlier start.
  void forget() {
    remove(kMeta, ours());
    remove(kSeries, {text("seqs"), text("v2"), text("chunks"), text(hash_)});
    remove(kSeries, {text("seqs"), text("chunks"), text(hash_)});
  }

  void describe() {
    set(kMeta, ours() + Path{text("end_time")}, Node::null());
    set_attribute({text("hparams")}, run_.config);
    std::vector<Node> words;
    for (const std::string& word : run_.command_line) words.push_back(text(word));
    set_attribute({text("roux")}, mapping({{"run_id", text(run_.id)}, {"command_line", Node::sequence(words)}}));
    set_property("experiment", config_.experiment.value_or(run_.project));
    set_property("name", config_.run_name.value_or(run_.name));
    if (config_.description) set_property("description", *config_.description);
    for (const auto& tags : {run_.tags, config_.tags}) {
      for (const std::string& tag : tags) server_->call(held(kProperties), "add_tag", arguments({text(tag)}));
    }
  }

  void log_metric(const std::string& name, const std::vector<const Point*>& points) {
    const Node context = Node::mapping();
    const Path series = {text("seqs"), text("v2"), text("chunks"), text(hash_), number(aim_hash(context)), text(name)};
    const Path about = begin_series(series, context, name, "float", "metric", kScalars);
    auto [at, is_new] = extents_.try_emplace(name, Extent{points.front()->step, {}, {}});
    Extent& extent = at->second;
    std::vector<Node> values, steps, times, epochs, figures;
    const auto pair = [](Node key, Node value) { return Node::sequence({std::move(key), std::move(value)}); };
    if (is_new) {
      figures.push_back(pair(text("first"), Node::floating(points.front()->value)));
      figures.push_back(pair(text("first_step"), number(points.front()->step)));
    }
    for (const Point* point : points) {
      const Node key = number(aim_hash(number(point->step)));
      values.push_back(pair(key, Node::floating(point->value)));
      steps.push_back(pair(key, number(point->step)));
      times.push_back(pair(key, seconds(point->time_ms)));
      epochs.push_back(pair(key, Node::null()));
      last_time_ms_ = std::max(last_time_ms_, point->time_ms);
      if (!std::isnan(point->value)) {
        extent.least = std::min(extent.least.value_or(point->value), point->value);
        extent.most = std::max(extent.most.value_or(point->value), point->value);
      }
    }
    update(kSeries, series + Path{text("val")}, values);
    update(kSeries, series + Path{text("epoch")}, epochs);
    update(kSeries, series + Path{text("time")}, times);
    update(kSeries, series + Path{text("step")}, steps);
    const Point& last = *points.back();
    if (last.step >= extent.last_step) {
      extent.last_step = last.step;
      figures.push_back(pair(text("last"), Node::floating(last.value)));
      figures.push_back(pair(text("last_step"), number(last.step)));
    }
    if (extent.least) {
      figures.push_back(pair(text("min"), Node::floating(*extent.least)));
      figures.push_back(pair(text("max"), Node::floating(*extent.most)));
    }
    update(kMeta, about, figures);
  }

  /// A text or picture. It has its own context: Aim identifies series by name and context, regardless of content.
  template <typename Thing, typename Fill>
  void put(const char* type, const char* kind, const Thing& thing, Fill fill) {
    open();
    const Node context = mapping({{"kind", text(kind)}});
    const Path series = {text("seqs"), text("chunks"), text(hash_), number(aim_hash(context)), text(thing.name)};
    const Path about = begin_series(series, context, thing.name, type, kind, kObjects);
    AimTree tree = arguments({Node::sequence(series + Path{text("val"), number(thing.step)})});
    const std::string at = AimTree::key(1);
    tree.add_object(at, type);
    fill(tree, at);
    server_->call(held(kSeries), "__setitem__", tree);
    set(kSeries, series + Path{text("epoch"), number(thing.step)}, Node::null());
    set(kSeries, series + Path{text("time"), number(thing.step)}, seconds(thing.time_ms));
    set(kMeta, about + Path{text("last_step")}, number(thing.step));
    last_time_ms_ = std::max(last_time_ms_, thing.time_ms);
  }

  /// Once per start: no effect if the series is known. Returns the location of its aggregates.
  Path begin_series(const Path& series, const Node& context, const std::string& name, const char* type,
                    const char* kind, std::int64_t version) {
    const Node context_hash = number(aim_hash(context));
    Path about = ours() + Path{text("traces"), context_hash, text(name)};
    if (!known_.insert(std::string(kind) + "/" + name).second) return about;
    for (const char* part : {"step", "val", "epoch", "time"}) {
      if (version == kObjects && part == std::string_view("step")) continue;
      server_->call(held(kSeries), "make_array", arguments({Node::sequence(series + Path{text(part)})}));
    }
    set(kMeta, {text("meta"), text("contexts"), context_hash}, context);
    set(kMeta, ours() + Path{text("contexts"), context_hash}, context);
    set(kMeta, {text("meta"), text("traces_types"), text(type), context_hash, text(name)}, number(1));
    set(kMeta, ours() + Path{text("typed_traces"), text(kind), context_hash, text(name)}, number(1));
    set(kMeta, about + Path{text("dtype")}, text(type));
    set(kMeta, about + Path{text("version")}, number(version));
    return about;
  }

  Path ours() const { return {text("meta"), text("chunks"), text(hash_)}; }
  std::string held(const char* resource) const { return hash_ + "-" + resource; }

  /// In the run, and where the server looks up what all runs have.
  void set_attribute(const Path& path, const Node& value) {
    set(kMeta, ours() + Path{text("attrs")} + path, value);
    set(kMeta, Path{text("meta"), text("attrs")} + path, value);
  }

  void set_property(const std::string& name, const std::string& value) {
    server_->call(held(kProperties), name + ".setter", arguments({text(value)}));
  }

  void set(const char* tree, const Path& path, const Node& value) {
    server_->call(held(tree), "__setitem__", arguments({Node::sequence(path), value}));
  }

  void update(const char* tree, const Path& path, const std::vector<Node>& pairs) {
    server_->call(held(tree), "update", arguments({Node::sequence(path), Node::sequence(pairs)}));
  }

  void remove(const char* tree, const Path& path) {
    server_->call(held(tree), "__delitem__", arguments({Node::sequence(path)}));
  }

  const Config config_;
  const std::string name_;
  Run run_;
  std::string hash_;  // of the run, there
  std::optional<AimServer> server_;
  std::map<std::string, Extent> extents_;  // of metrics
  std::set<std::string> known_;            // series sent to the server since the start
  std::int64_t last_time_ms_ = 0;
  bool told_version_ = false;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Aim>(config, inputs.name);
}

}  // namespace trackers::aim
