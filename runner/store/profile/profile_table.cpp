#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/store/profile/profile.h"

namespace runner::store {
namespace {

// The widths of torch.profiler's table.
constexpr std::size_t kColumn = 12, kNameMax = 55, kShapesMax = 80;
constexpr std::size_t kProductsShown = 5;

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string time_text(double us) {
  if (us >= 1e6) return formatted("%.3fs", us / 1e6);
  if (us >= 1e3) return formatted("%.3fms", us / 1e3);
  return formatted("%.3fus", us);
}

std::string share_text(double part, double whole) {
  return formatted("%.2f%%", whole > 0 ? part * 100.0 / whole : 0.0);
}

std::string memory_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (std::abs(size) >= 1073741824.0) return formatted("%.2f GB", size / 1073741824.0);
  if (std::abs(size) >= 1048576.0) return formatted("%.2f MB", size / 1048576.0);
  if (std::abs(size) >= 1024.0) return formatted("%.2f KB", size / 1024.0);
  return std::to_string(bytes) + " B";
}

double each(double us, const ProfileRow& row) { return row.calls > 0 ? us / static_cast<double>(row.calls) : 0.0; }

double sort_value(const ProfileRow& row, const std::string& by) {
  if (by == "self_cpu_time_total") return row.self_cpu_us;
  if (by == "cpu_time_total") return row.cpu_us;
  if (by == "cpu_time") return each(row.cpu_us, row);
  if (by == "self_cuda_time_total") return row.self_cuda_us;
  if (by == "cuda_time_total") return row.cuda_us;
  if (by == "cuda_time") return each(row.cuda_us, row);
  if (by == "self_cpu_memory_usage") return static_cast<double>(row.self_cpu_bytes);
  if (by == "cpu_memory_usage") return static_cast<double>(row.cpu_bytes);
  if (by == "self_cuda_memory_usage") return static_cast<double>(row.self_cuda_bytes);
  if (by == "cuda_memory_usage") return static_cast<double>(row.cuda_bytes);
  if (by == "flops") return static_cast<double>(row.flops);
  RUNNER_ASSERT(by == "count", "the schema and the command know the words to sort by");
  return static_cast<double>(row.calls);
}

/// One row a name, the shapes forgotten; in the order of their first one.
std::vector<ProfileRow> joined(const std::vector<ProfileRow>& rows) {
  std::vector<ProfileRow> all;
  std::map<std::tuple<std::string, bool, bool>, std::size_t> where;
  for (const ProfileRow& row : rows) {
    const auto [found, fresh] = where.emplace(std::tuple(row.name, row.is_range, row.is_kernel), all.size());
    if (fresh) all.push_back({.name = row.name, .is_range = row.is_range, .is_kernel = row.is_kernel});
    ProfileRow& sum = all[found->second];
    sum.calls += row.calls;
    sum.cpu_us += row.cpu_us;
    sum.self_cpu_us += row.self_cpu_us;
    sum.cpu_bytes += row.cpu_bytes;
    sum.self_cpu_bytes += row.self_cpu_bytes;
    sum.cuda_us += row.cuda_us;
    sum.self_cuda_us += row.self_cuda_us;
    sum.cuda_bytes += row.cuda_bytes;
    sum.self_cuda_bytes += row.self_cuda_bytes;
    sum.flops += row.flops;
  }
  return all;
}

/// Cells under titles, each column as wide as it is told or its title, to the right; torch.profiler's look.
class Grid {
 public:
  void add(std::string title, std::size_t width) {
    widths_.push_back(std::max(width, title.size()));
    titles_.push_back(std::move(title));
  }

  std::string head() const {
    std::string line;
    for (const std::size_t width : widths_) line += std::string(width, '-') + "  ";
    return line + "\n" + row(titles_) + line + "\n";
  }
  std::string foot() const {
    const std::string all = head();
    return all.substr(0, all.find('\n') + 1);
  }

  std::string row(const std::vector<std::string>& cells) const {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t blanks = widths_[i] > cells[i].size() ? widths_[i] - cells[i].size() : 0;
      line += std::string(blanks, ' ') + cells[i] + "  ";
    }
    return line + "\n";
  }

 private:
  std::vector<std::string> titles_;
  std::vector<std::size_t> widths_;
};

/// What FLOPs are divided by, and what that is called; by the smallest there is.
std::pair<double, std::string> flops_unit(const std::vector<ProfileRow>& rows) {
  double least = 0;
  for (const ProfileRow& row : rows) {
    if (row.flops > 0 && (least == 0 || static_cast<double>(row.flops) < least)) least = static_cast<double>(row.flops);
  }
  if (least == 0) return {0, ""};
  static constexpr const char* kNames[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
  const auto which = static_cast<std::size_t>(std::clamp(std::floor(std::log10(least) / 3.0), 0.0, 5.0));
  return {std::pow(10.0, 3.0 * static_cast<double>(which)), std::string("Total ") + kNames[which]};
}

std::string steps_text(const Profile& profile) {
  if (profile.steps.empty()) return "no step was recorded\n";
  std::string text = "recorded " + std::to_string(profile.steps.size()) +
                     (profile.steps.size() == 1 ? " step: " : " steps: ") + std::to_string(profile.steps.front().step);
  if (profile.steps.size() > 1) text += " to " + std::to_string(profile.steps.back().step);
  text += ", " + time_text(profile.total_us() / static_cast<double>(profile.steps.size())) + " each";
  if (profile.with_memory) {
    std::int64_t peak = 0;
    for (const ProfileStep& step : profile.steps) peak = std::max(peak, step.peak_bytes);
    text += std::string(", peak memory ") + (profile.with_cuda ? "of the GPU " : "") + memory_text(peak) +
            " above the start of a step";
  }
  return text + "\ntrace " + core::escape_for_terminal(profile.trace) + "\n";
}

std::string blocks_text(const Profile& profile) {
  if (profile.blocks.empty()) return "";
  std::size_t width = 12;
  for (const ProfileBlock& block : profile.blocks)
    width = std::max(width, core::escape_for_terminal(block.name).size() + 4);
  Grid grid;
  grid.add("Block", std::min(width, kNameMax));
  for (const char* title : {"Forward", "Forward %", "Backward", "Backward %"}) grid.add(title, kColumn);
  if (profile.with_cuda) {
    for (const char* title : {"CUDA fwd", "CUDA fwd %", "CUDA bwd", "CUDA bwd %"}) grid.add(title, kColumn);
  }
  if (profile.with_memory) grid.add("Saved / pass", kColumn);
  grid.add("# of Calls", kColumn);
  std::string text = "\n" + grid.head();
  for (const ProfileBlock& block : profile.blocks) {
    std::vector<std::string> cells = {core::escape_for_terminal(block.name), time_text(block.forward_us),
                                      share_text(block.forward_us, profile.total_us()), time_text(block.backward_us),
                                      share_text(block.backward_us, profile.total_us())};
    if (profile.with_cuda) {
      for (const double us : {block.forward_cuda_us, block.backward_cuda_us}) {
        cells.push_back(time_text(us));
        cells.push_back(share_text(us, profile.total_cuda_us()));
      }
    }
    if (profile.with_memory) cells.push_back(memory_text(block.calls > 0 ? block.kept_bytes / block.calls : 0));
    cells.push_back(std::to_string(block.calls));
    text += grid.row(cells);
  }
  return text + grid.foot();
}

std::string rate_text(double flops_per_s, const Profile& profile) {
  std::string text = core::format_count(flops_per_s) + "FLOP/s";
  if (profile.peak_flops > 0) text += formatted(", %.1f %% of the peak", flops_per_s / profile.peak_flops * 100.0);
  return text;
}

double product_us(const ProfileRow& row, const Profile& profile) {
  return profile.with_cuda ? row.self_cuda_us : row.self_cpu_us;
}

/// Achieved against what the machine can do: of the model as a whole, and of its most expensive products.
std::string roofline_text(const Profile& profile) {
  std::string text;
  const double seconds = profile.total_us() * 1e-6;
  if (profile.model_flops > 0 && seconds > 0) {
    text += "\nmodel: " + rate_text(profile.model_flops / seconds, profile) + "\n";
  }
  if (profile.with_flops) {
    std::vector<ProfileRow> products;
    for (const ProfileRow& row : joined(profile.rows)) {
      if (row.flops > 0 && product_us(row, profile) > 0) products.push_back(row);
    }
    std::stable_sort(products.begin(), products.end(), [](const auto& a, const auto& b) { return a.flops > b.flops; });
    if (products.size() > kProductsShown) products.resize(kProductsShown);
    // Sums and products of single elements have FLOPs, too, and say nothing here.
    std::erase_if(products, [least = products.empty() ? 0 : products.front().flops / 100](const ProfileRow& row) {
      return row.flops < least;
    });
    for (const ProfileRow& row : products) {
      const double us = product_us(row, profile);
      text += core::escape_for_terminal(row.name) + ": " +
              rate_text(static_cast<double>(row.flops) / (us * 1e-6), profile) + ", " +
              share_text(us, profile.total_us()) + " of the time\n";
    }
  }
  if (text.empty()) return text;
  if (profile.peak_flops > 0) {
    return text + "peak: " + core::format_count(profile.peak_flops) + "FLOP/s in " + profile.peak_of +
           " matrix products, " + (profile.with_cuda ? "by the GPU's data sheet" : "measured by `roux env --measure`") +
           "\n";
  }
  if (profile.with_cuda) return text;
  return text + "peak: not measured on this machine; run `roux env --measure`\n";
}

}  // namespace

std::string table_text(const Profile& profile, const ProfileTable& table) {
  std::vector<ProfileRow> rows = table.group_by_input_shape ? profile.rows : joined(profile.rows);
  std::stable_sort(rows.begin(), rows.end(), [&table](const ProfileRow& a, const ProfileRow& b) {
    return sort_value(a, table.sort_by) > sort_value(b, table.sort_by);
  });
  std::size_t name_width = 4, shapes_width = 4;
  double total = 0;
  const double cuda_total = profile.total_cuda_us();
  for (const ProfileRow& row : rows) {
    name_width = std::max(name_width, core::escape_for_terminal(row.name).size() + 4);
    shapes_width = std::max(shapes_width, row.shapes.size() + 4);
    total += row.self_cpu_us;
  }
  name_width = std::min(name_width, kNameMax);
  shapes_width = std::min(shapes_width, kShapesMax);
  const bool shapes = table.group_by_input_shape && profile.with_shapes;
  const auto [unit, unit_name] = flops_unit(profile.with_flops ? rows : std::vector<ProfileRow>());
  Grid grid;
  grid.add("Name", name_width);
  for (const char* title : {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
    grid.add(title, kColumn);
  if (profile.with_cuda) {
    for (const char* title : {"Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"}) grid.add(title, kColumn);
  }
  if (profile.with_memory) grid.add("CPU Mem", kColumn), grid.add("Self CPU Mem", kColumn);
  if (profile.with_memory && profile.with_cuda) grid.add("CUDA Mem", kColumn), grid.add("Self CUDA Mem", kColumn);
  grid.add("# of Calls", kColumn);
  if (shapes) grid.add("Input Shapes", shapes_width);
  if (unit > 0) grid.add(unit_name, kColumn);
  std::string text = grid.head();
  const std::size_t shown =
      table.row_limit < 0 ? rows.size() : std::min(rows.size(), static_cast<std::size_t>(table.row_limit));
  for (std::size_t i = 0; i < shown; ++i) {
    const ProfileRow& row = rows[i];
    std::string name = core::escape_for_terminal(row.name);
    if (name.size() >= kNameMax - 3) name = name.substr(0, kNameMax - 3) + "...";
    std::vector<std::string> cells = {name,
                                      share_text(row.self_cpu_us, total),
                                      time_text(row.self_cpu_us),
                                      share_text(row.cpu_us, total),
                                      time_text(row.cpu_us),
                                      time_text(each(row.cpu_us, row))};
    const auto add = [&cells](std::initializer_list<std::string> more) { cells.insert(cells.end(), more); };
    if (profile.with_cuda) {
      add({time_text(row.self_cuda_us), share_text(row.self_cuda_us, cuda_total), time_text(row.cuda_us),
           time_text(each(row.cuda_us, row))});
    }
    if (profile.with_memory) add({memory_text(row.cpu_bytes), memory_text(row.self_cpu_bytes)});
    if (profile.with_memory && profile.with_cuda) {
      add({memory_text(row.cuda_bytes), memory_text(row.self_cuda_bytes)});
    }
    cells.push_back(std::to_string(row.calls));
    if (shapes) cells.push_back(row.shapes.substr(0, shapes_width));
    if (unit > 0) cells.push_back(row.flops > 0 ? formatted("%8.3f", static_cast<double>(row.flops) / unit) : "--");
    text += grid.row(cells);
  }
  text += grid.foot();
  if (shown < rows.size()) text += "(" + std::to_string(rows.size() - shown) + " more)\n";
  text += "Self CPU time total: " + time_text(total) + "\n";
  if (profile.with_cuda) text += "Self CUDA time total: " + time_text(cuda_total) + "\n";
  return text;
}

std::string profile_text(const Profile& profile, const ProfileTable& table) {
  return steps_text(profile) + table_text(profile, table) + blocks_text(profile) + roofline_text(profile);
}

}  // namespace runner::store
