#include "runner/train/observe/key_averages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace runner::train {
namespace {

using store::MemoryPoint;
using store::ProfileRow;
using store::ProfileStep;

constexpr std::string_view kMemory = "[memory]";
constexpr std::string_view kStep = "ProfilerStep#";
constexpr std::string_view kBackwardNode = "autograd::engine::evaluate_function: ";
constexpr auto kLeftOut = std::to_array<std::string_view>(
    {"[memory]", "[OutOfMemory]", "profiler::_record_function_enter", "profiler::_record_function_enter_new",
     "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"});

bool is_left_out(std::string_view name) { return std::find(kLeftOut.begin(), kLeftOut.end(), name) != kLeftOut.end(); }

double us(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

/// Sums of allocations and frees of the CPU or the GPU, by time.
class MemoryRecords {
 public:
  MemoryRecords(const std::vector<TracedEvent>& events, bool on_gpu) {
    for (const TracedEvent& event : events) {
      if (event.name == kMemory && event.on_gpu == on_gpu) records_.push_back({event.start_ns, event.bytes});
    }
    std::stable_sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) { return a.ns < b.ns; });
    std::int64_t sum = 0;
    for (const Record& record : records_) sums_.push_back(sum += record.bytes);
    owned_.resize(records_.size() + 1);
  }

  bool empty() const { return records_.empty(); }

  /// For the records between two times, inclusive.
  std::int64_t between(std::int64_t begin_ns, std::int64_t end_ns) const {
    const auto [first, last] = range(begin_ns, end_ns);
    return first >= last ? 0 : sums_[last - 1] - (first > 0 ? sums_[first - 1] : 0);
  }
  /// Ranges covered by some event.
  void own(std::int64_t begin_ns, std::int64_t end_ns) {
    const auto [first, last] = range(begin_ns, end_ns);
    if (first < last) ++owned_[first], --owned_[last];
  }
  struct Rest {
    std::int64_t records = 0, bytes = 0;
  };
  /// Of the records outside of events.
  Rest rest() const {
    Rest rest;
    std::int64_t owners = 0;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      owners += owned_[i];
      if (owners > 0) continue;
      ++rest.records;
      rest.bytes += records_[i].bytes;
    }
    return rest;
  }

  std::int64_t peak(std::int64_t begin_ns, std::int64_t end_ns) const {
    const auto [first, last] = range(begin_ns, end_ns);
    std::int64_t most = first > 0 ? sums_[first - 1] : 0;
    for (std::size_t i = first; i < last; ++i) most = std::max(most, sums_[i]);
    return most;
  }

  /// Each interval keeps its largest sum.
  std::vector<MemoryPoint> points(std::int64_t begin_ns) const {
    std::vector<MemoryPoint> points;
    const std::size_t most = store::Profile::kMemoryPointsMax;
    const std::size_t stretch = (records_.size() + most - 1) / std::max<std::size_t>(1, most);
    for (std::size_t i = 0; i < records_.size(); i += stretch) {
      std::size_t top = i;
      for (std::size_t j = i; j < std::min(i + stretch, records_.size()); ++j) {
        if (sums_[j] > sums_[top]) top = j;
      }
      points.push_back({us(records_[top].ns - begin_ns) / 1000.0, sums_[top]});
    }
    return points;
  }

 private:
  struct Record {
    std::int64_t ns, bytes;
  };

  std::pair<std::size_t, std::size_t> range(std::int64_t begin_ns, std::int64_t end_ns) const {
    const auto first = std::lower_bound(records_.begin(), records_.end(), begin_ns,
                                        [](const Record& record, std::int64_t ns) { return record.ns < ns; });
    const auto last = std::upper_bound(first, records_.end(), end_ns,
                                       [](std::int64_t ns, const Record& record) { return ns < record.ns; });
    return {static_cast<std::size_t>(first - records_.begin()), static_cast<std::size_t>(last - records_.begin())};
  }

  std::vector<Record> records_;
  std::vector<std::int64_t> sums_;
  std::vector<int> owned_;  // changes in the number of events that cover a record
};

/// What is allocated on either side.
struct Memory {
  explicit Memory(const std::vector<TracedEvent>& events) : cpu(events, false), gpu(events, true) {}

  /// Of the device that trains.
  const MemoryRecords& of_training() const { return gpu.empty() ? cpu : gpu; }

  void add_rest(std::vector<ProfileRow>& rows) const {
    const auto on_cpu = cpu.rest(), on_gpu = gpu.rest();
    ProfileRow row{.name = std::string(kMemory), .calls = on_cpu.records + on_gpu.records};
    row.cpu_bytes = row.self_cpu_bytes = on_cpu.bytes;
    row.cuda_bytes = row.self_cuda_bytes = on_gpu.bytes;
    if (row.calls > 0) rows.push_back(std::move(row));
  }

  MemoryRecords cpu, gpu;
};

/// An event of the CPU.
struct Span {
  const TracedEvent* event;
  std::string name;      ///< steps share one
  std::uint64_t thread;  ///< a call of CUDA has that of its operation
  std::int64_t bytes = 0, gpu_bytes = 0;
  std::int64_t self_ns = 0, self_bytes = 0, self_gpu_bytes = 0;
  std::int64_t gpu_ns = 0, self_gpu_ns = 0;  ///< of kernels
  int parent = -1;
  std::vector<int> children = {};
  bool is_dropped = false;

  std::int64_t ns() const { return event->end_ns - event->start_ns; }
  bool is_async() const { return event->thread != event->end_thread; }
};

/// An operation that can start kernels.
bool starts_kernels(const TracedEvent& event) { return !event.on_gpu && event.id != 0 && event.started_by == 0; }

/// By start, the longer one first: a parent comes before its children.
std::vector<Span> spans_of(const std::vector<TracedEvent>& events, Memory& memory) {
  std::map<std::uint64_t, std::uint64_t> threads;  // of operations, by id
  for (const TracedEvent& event : events) {
    if (starts_kernels(event)) threads.emplace(event.id, event.thread);
  }
  std::vector<Span> spans;
  for (const TracedEvent& event : events) {
    if (event.on_gpu || is_left_out(event.name)) continue;
    memory.cpu.own(event.start_ns, event.end_ns);
    memory.gpu.own(event.start_ns, event.end_ns);
    const auto starter = threads.find(event.started_by);
    spans.push_back({.event = &event,
                     .name = event.name.starts_with(kStep) ? "ProfilerStep*" : event.name,
                     .thread = starter != threads.end() ? starter->second : event.thread,
                     .bytes = memory.cpu.between(event.start_ns, event.end_ns),
                     .gpu_bytes = memory.gpu.between(event.start_ns, event.end_ns)});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.event->start_ns, -a.event->end_ns) < std::tuple(b.event->start_ns, -b.event->end_ns);
  });
  return spans;
}

void find_parents(std::vector<Span>& spans) {
  std::map<std::uint64_t, std::vector<int>> open;  // by thread: events that may still contain the next one
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].is_async()) continue;
    std::vector<int>& stack = open[spans[i].thread];
    const auto holds = [&](int parent) {
      const TracedEvent& outer = *spans[static_cast<std::size_t>(parent)].event;
      return spans[i].event->start_ns < outer.end_ns && spans[i].event->end_ns <= outer.end_ns;
    };
    while (!stack.empty() && !holds(stack.back())) stack.pop_back();
    if (!stack.empty()) {
      spans[i].parent = stack.back();
      spans[static_cast<std::size_t>(stack.back())].children.push_back(static_cast<int>(i));
    }
    stack.push_back(static_cast<int>(i));
  }
}

/// An operation that only redispatches to itself.
void drop_repeated(std::vector<Span>& spans) {
  for (Span& span : spans) {
    if (span.parent < 0) continue;
    Span& parent = spans[static_cast<std::size_t>(span.parent)];
    if (parent.name != span.name || parent.children.size() != 1) continue;
    // Parents come first, so the parent is one that is kept.
    parent.children = std::move(span.children);
    for (const int child : parent.children) spans[static_cast<std::size_t>(child)].parent = span.parent;
    parent.self_gpu_ns += span.self_gpu_ns;
    span.children.clear();
    span.is_dropped = true;
  }
}

/// Each kernel to its operation.
void find_kernels(std::vector<Span>& spans, const std::vector<TracedEvent>& events) {
  std::map<std::uint64_t, Span*> operations;
  for (Span& span : spans) {
    if (starts_kernels(*span.event) && !span.is_async()) operations.emplace(span.event->id, &span);
  }
  for (const TracedEvent& event : events) {
    if (!event.on_gpu || is_left_out(event.name)) continue;
    const auto found = operations.find(event.started_by);
    if (found != operations.end()) found->second->self_gpu_ns += event.end_ns - event.start_ns;
  }
}

void find_own_share(std::vector<Span>& spans) {
  for (Span& span : spans) {
    if (span.is_async()) continue;
    span.self_ns = span.ns();
    span.self_bytes = span.bytes;
    span.self_gpu_bytes = span.gpu_bytes;
    for (const int child : span.children) {
      span.self_ns -= spans[static_cast<std::size_t>(child)].ns();
      span.self_bytes -= spans[static_cast<std::size_t>(child)].bytes;
      span.self_gpu_bytes -= spans[static_cast<std::size_t>(child)].gpu_bytes;
    }
  }
  // Children come after their parent.
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    span->gpu_ns = span->self_gpu_ns;
    for (const int child : span->children) span->gpu_ns += spans[static_cast<std::size_t>(child)].gpu_ns;
  }
}

/// All events of the CPU with what is theirs.
std::vector<Span> tree_of(const std::vector<TracedEvent>& events, Memory& memory) {
  std::vector<Span> spans = spans_of(events, memory);
  find_parents(spans);
  find_kernels(spans, events);
  drop_repeated(spans);
  find_own_share(spans);
  return spans;
}

std::vector<ProfileRow> rows_of(const std::vector<Span>& spans, const std::vector<TracedEvent>& events) {
  std::vector<ProfileRow> rows;
  std::map<std::tuple<std::string, std::string, bool>, std::size_t> where;
  std::map<std::string, std::size_t> kernels;
  for (const Span& span : spans) {
    if (span.is_dropped) continue;
    const TracedEvent& event = *span.event;
    const auto [found, fresh] = where.emplace(std::tuple(span.name, event.shapes, event.is_range), rows.size());
    if (fresh) rows.push_back({.name = span.name, .shapes = event.shapes, .is_range = event.is_range});
    ProfileRow& row = rows[found->second];
    ++row.calls;
    row.cpu_us += us(span.ns());
    row.self_cpu_us += us(span.self_ns);
    row.cpu_bytes += span.bytes;
    row.self_cpu_bytes += span.self_bytes;
    row.cuda_us += us(span.gpu_ns);
    row.self_cuda_us += us(span.self_gpu_ns);
    row.cuda_bytes += span.gpu_bytes;
    row.self_cuda_bytes += span.self_gpu_bytes;
    row.flops += event.flops;
  }
  for (const TracedEvent& event : events) {
    if (!event.on_gpu || is_left_out(event.name)) continue;
    const auto [found, fresh] = kernels.emplace(event.name, rows.size());
    if (fresh) rows.push_back({.name = event.name, .is_kernel = true});
    ProfileRow& row = rows[found->second];
    ++row.calls;
    row.cuda_us += us(event.end_ns - event.start_ns);
    row.self_cuda_us = row.cuda_us;
  }
  return rows;
}

std::string stacks_of(const std::vector<Span>& spans) {
  std::vector<std::string> paths(spans.size());
  std::map<std::string, std::int64_t> found;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    if (span.is_dropped || span.is_async()) continue;
    std::string name = span.name;
    for (char& c : name) {
      if (c == ' ' || c == ';' || c == '\t' || c == '\n') c = '_';
    }
    paths[i] = span.parent < 0 ? name : paths[static_cast<std::size_t>(span.parent)] + ";" + name;
    found[paths[i]] += span.self_ns;
  }
  std::string text;
  for (const auto& [path, ns] : found) {
    const auto whole_us = static_cast<std::int64_t>(std::llround(us(ns)));
    if (whole_us > 0) text += path + " " + std::to_string(whole_us) + "\n";
  }
  return text;
}

}  // namespace

KeyAverages key_averages(const std::vector<TracedEvent>& events) {
  Memory memory(events);
  const std::vector<Span> spans = tree_of(events, memory);
  KeyAverages averages;
  averages.rows = rows_of(spans, events);
  memory.add_rest(averages.rows);
  for (const Span& span : spans) {
    if (!span.event->name.starts_with(kStep)) continue;
    averages.steps.push_back({std::strtoll(span.event->name.c_str() + kStep.size(), nullptr, 10), us(span.ns()),
                              memory.of_training().peak(span.event->start_ns, span.event->end_ns)});
  }
  averages.memory = memory.of_training().points(spans.empty() ? 0 : spans.front().event->start_ns);
  averages.stacks = stacks_of(spans);
  return averages;
}

std::vector<store::ProfileBlock> block_averages(const std::vector<TracedEvent>& events,
                                                const std::vector<std::string>& names,
                                                const std::vector<BlockPass>& passes) {
  std::vector<store::ProfileBlock> blocks;
  std::map<std::string_view, std::size_t> where;
  for (const std::string& name : names) {
    where.emplace(name, blocks.size());
    blocks.push_back({.name = name});
  }
  std::vector<BlockPass> sorted = passes;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto block_of = [&sorted](std::int64_t sequence) -> const BlockPass* {
    auto after = std::upper_bound(sorted.begin(), sorted.end(), sequence,
                                  [](std::int64_t value, const BlockPass& pass) { return value < pass.first; });
    // A block without nodes begins where the next one does.
    while (after != sorted.begin()) {
      --after;
      if (sequence < after->end) return &*after;
      if (after->end > after->first) break;
    }
    return nullptr;
  };
  Memory memory(events);
  for (const Span& span : tree_of(events, memory)) {
    const TracedEvent& event = *span.event;
    if (event.is_range) {
      const auto found = where.find(event.name);
      if (found == where.end()) continue;
      store::ProfileBlock& block = blocks[found->second];
      ++block.calls;
      block.forward_us += us(span.ns());
      block.forward_cuda_us += us(span.gpu_ns);
      block.kept_bytes += memory.of_training().between(event.start_ns, event.end_ns);
    } else if (event.sequence >= 0 && event.name.starts_with(kBackwardNode)) {
      if (const BlockPass* pass = block_of(event.sequence)) {
        store::ProfileBlock& block = blocks[pass->block];
        block.backward_us += us(span.ns());
        block.backward_cuda_us += us(span.gpu_ns);
      }
    }
  }
  return blocks;
}

}  // namespace runner::train
