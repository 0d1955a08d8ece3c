#include "runner/resolve/sharding/hostfile.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::resolve {
namespace {

constexpr int kSlotsMax = 256;  // schemas/section/launch.json

/// A number of at most three digits.
std::optional<int> small_number(std::string_view text) {
  const bool digits = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (text.empty() || text.size() > 3 || !digits) return std::nullopt;
  return std::stoi(std::string(text));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.emplace_back(core::trimmed(std::string_view(text).substr(begin, end - begin)));
  }
  return parts;
}

/// One machine of a filter; the slots are those that it names, all where it names none.
std::optional<HostSlots> chosen(const std::string& part, const std::vector<HostSlots>& hosts,
                                const std::string& written, const core::Location& location,
                                core::Diagnostics& diagnostics) {
  const std::size_t colon = part.find(':');
  const std::string name(core::trimmed(std::string_view(part).substr(0, colon)));
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const auto& one) { return one.host == name; });
  if (host == hosts.end()) {
    std::vector<std::string> names;
    for (const HostSlots& one : hosts) names.push_back(one.host);
    const std::string near = core::closest(name, names);
    diagnostics.error(location, written + ": the hostfile has no machine " + core::quote(name),
                      near.empty() ? "it has " + core::joined_first(names, 8) : "did you mean " + near + "?");
    return std::nullopt;
  }
  HostSlots found{name, {}};
  if (colon == std::string::npos) {
    found.slots = host->slots;
    return found;
  }
  for (const std::string& text : split(part.substr(colon + 1), ',')) {
    const auto slot = small_number(text);
    if (!slot || std::find(host->slots.begin(), host->slots.end(), *slot) == host->slots.end()) {
      diagnostics.error(location, written + ": " + name + " has no slot " + core::quote(text),
                        "its slots are 0 to " + std::to_string(host->slots.back()));
      return std::nullopt;
    }
    found.slots.push_back(*slot);
  }
  return found;
}

}  // namespace

std::optional<std::vector<HostSlots>> read_hostfile(const std::shared_ptr<const core::Source>& file,
                                                    core::Diagnostics& diagnostics) {
  constexpr std::string_view kSlots = "slots=";
  std::vector<HostSlots> hosts;
  std::istringstream lines(file->text);
  int number = 0;
  bool holds = true;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, slots, more;
    words >> name >> slots >> more;
    if (name.empty()) continue;
    core::Location location;
    location.source = file;
    location.line = number;
    location.column = 1;
    const auto count =
        slots.starts_with(kSlots) ? small_number(std::string_view(slots).substr(kSlots.size())) : std::optional<int>();
    const bool twice = std::any_of(hosts.begin(), hosts.end(), [&](const auto& one) { return one.host == name; });
    if (!count || *count == 0 || *count > kSlotsMax || !more.empty()) {
      diagnostics.error(location, "a line of a hostfile is a machine and its slots, got " + core::quote(line),
                        "write it as worker-0 slots=4, with 1 to " + std::to_string(kSlotsMax) + " slots");
      holds = false;
    } else if (twice) {
      diagnostics.error(location, "the hostfile has the machine " + core::quote(name) + " twice",
                        "add its slots up in one line");
      holds = false;
    } else {
      hosts.push_back({name, std::vector<int>(static_cast<std::size_t>(*count))});
      std::iota(hosts.back().slots.begin(), hosts.back().slots.end(), 0);
    }
  }
  if (holds && hosts.empty()) {
    core::Location whole;
    whole.source = file;
    diagnostics.error(whole, "the hostfile names no machine", "write a line such as worker-0 slots=4 for each");
    holds = false;
  }
  return holds ? std::optional(std::move(hosts)) : std::nullopt;
}

std::optional<std::vector<HostSlots>> filtered(std::vector<HostSlots> hosts, const std::string& filter, bool includes,
                                               const std::string& written, const core::Location& location,
                                               core::Diagnostics& diagnostics) {
  std::vector<HostSlots> named;
  for (const std::string& part : split(filter, '@')) {
    auto one = chosen(part, hosts, written, location, diagnostics);
    if (!one) return std::nullopt;
    named.push_back(*std::move(one));
  }
  for (HostSlots& host : hosts) {
    std::erase_if(host.slots, [&](int slot) {
      const bool is_named = std::any_of(named.begin(), named.end(), [&](const HostSlots& one) {
        return one.host == host.host && std::find(one.slots.begin(), one.slots.end(), slot) != one.slots.end();
      });
      return is_named != includes;
    });
  }
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots.empty(); });
  if (hosts.empty()) {
    diagnostics.error(location, written + ": " + filter + " leaves no slot of the hostfile",
                      "name fewer machines or slots");
    return std::nullopt;
  }
  return hosts;
}

std::optional<std::vector<int>> common_slots(const std::vector<HostSlots>& hosts) {
  std::vector<int> most;
  for (const HostSlots& host : hosts) {
    if (host.slots.size() > most.size()) most = host.slots;
  }
  for (const HostSlots& host : hosts) {
    if (!std::equal(host.slots.begin(), host.slots.end(), most.begin())) return std::nullopt;
  }
  return most;
}

}  // namespace runner::resolve
