#include "runner/cli/hub/fetching.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/hub/web_file.h"
#include "runner/resolve/data_set_values.h"
#include "runner/resolve/hub_values.h"
#include "runner/terminal/live_lines.h"

namespace runner::cli {
namespace {

constexpr double kBytesForRest = 1e6;  // before that a remaining time would be a guess
constexpr std::size_t kFilesShownMax = 20;
constexpr std::int64_t kDrawEvery_ns = 200'000'000, kLineEvery_ns = 5'000'000'000;

/// Bytes, rate and remaining time: a line that is redrawn, or from time to time a new one.
class FetchLine {
 public:
  explicit FetchLine(bool quiet) : quiet_(quiet) {
    if (!quiet && terminal::LiveLines::size_of(STDERR_FILENO)) lines_.emplace(STDERR_FILENO);
  }
  ~FetchLine() { clear(); }
  FetchLine(const FetchLine&) = delete;
  FetchLine& operator=(const FetchLine&) = delete;

  void show(const hub::FetchProgress& progress) {
    const std::int64_t now_ns = core::system_clock().monotonic_ns();
    if (last_ns_ == 0) start_ns_ = last_ns_ = now_ns;  // questions before the first byte say nothing of the rate
    if (quiet_ || now_ns - last_ns_ < (lines_ ? kDrawEvery_ns : kLineEvery_ns)) return;
    last_ns_ = now_ns;
    const std::string text = line(progress, static_cast<double>(now_ns - start_ns_) * 1e-9);
    if (lines_) {
      lines_->draw({text});
    } else {
      core::log_info(text);
    }
  }

  void clear() {
    if (lines_) lines_->clear();
  }

 private:
  static std::string line(const hub::FetchProgress& progress, double seconds) {
    const auto received = static_cast<double>(progress.bytes - progress.bytes_before);
    const double rate = seconds > 0 ? received / seconds : 0;
    std::string text =
        "fetching " + core::escape_for_terminal(progress.file) + "  " + core::format_bytes(progress.bytes);
    if (progress.bytes_total > 0) text += " of " + core::format_bytes(progress.bytes_total);
    if (rate > 0) text += "  " + core::format_bytes(static_cast<std::int64_t>(rate)) + "/s";
    const auto rest = static_cast<double>(progress.bytes_total - progress.bytes);
    if (received >= kBytesForRest && rest > 0) text += "  " + core::format_duration(rest / rate) + " left";
    return text;
  }

  bool quiet_;
  std::optional<terminal::LiveLines> lines_;
  std::int64_t start_ns_ = 0, last_ns_ = 0;
};

/// Whether the model is what `init_from` says: the recipe has none, or one without its configuration.
bool takes_model(const core::Node& recipe) {
  const core::Node* model = recipe.find("model");
  if (model == nullptr || model->is_null()) return true;
  if (!model->is_mapping()) return model->is_string() && model->as_string() == "transformers";
  const core::Node *type = model->find("type"), *config = model->find("config");
  return type != nullptr && type->is_string() && type->as_string() == "transformers" &&
         (config == nullptr || config->is_null());
}

bool is_needed(const resolve::HubValue& value, HubUse use, const core::Node& recipe) {
  const std::string& text = value.value->as_string();
  if (hub::is_web_file(text)) {  // of an index an error of the validation
    const auto file = hub::parse_web_file(text);
    return file && (use == HubUse::kAll || !value.is_weights) &&
           !(value.is_weights && hub::is_index(file.value().file()));
  }
  const auto parsed = hub::parse_name(text);  // a Failure where it was located already
  if (!parsed) return false;
  const hub::Name& name = parsed.value();
  if (value.is_data && name.file.empty()) return false;  // a model, an error of the validation
  return use == HubUse::kAll || !value.is_weights || (name.file.empty() && takes_model(recipe));
}

/// What is about to be fetched: how much there is of it, and the first files.
void tell(const std::vector<hub::FetchFile>& files) {
  std::int64_t bytes = 0;
  for (const hub::FetchFile& file : files) bytes += std::max<std::int64_t>(file.bytes, 0);
  core::log_info("fetching " + core::counted_large(static_cast<std::int64_t>(files.size()), "file", "files") + ", " +
                 core::format_bytes(bytes));
  for (std::size_t i = 0; i < std::min(files.size(), kFilesShownMax); ++i) {
    core::log_info("  " + core::escape_for_terminal(files[i].file) + "  " +
                   (files[i].bytes < 0 ? "of unknown size" : core::format_bytes(files[i].bytes)));
  }
  if (files.size() > kFilesShownMax) {
    core::log_info("  and " + core::with_commas(static_cast<std::int64_t>(files.size() - kFilesShownMax)) + " more");
  }
}

hub::FetchWatch watch_with(FetchLine& line, bool quiet) {
  hub::FetchWatch watch;
  watch.wait = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  watch.progress = [&line](const hub::FetchProgress& progress) { line.show(progress); };
  watch.notes = [&line](const std::string& message) {
    line.clear();
    core::log_warning(core::escape_for_terminal(message));
  };
  if (!quiet) watch.begins = tell;
  return watch;
}

/// Returns 0, or the exit status after an error.
int fetch_set_of_recipe(const resolve::DataSetValue& value, bool quiet, core::Diagnostics& diagnostics) {
  const auto request = resolve::request_of(value);
  if (!request) return 0;  // an error of the validation
  try {
    fetch_data_set(request.value(), quiet);
    return 0;
  } catch (const hub::DataError& error) {
    diagnostics.error(resolve::place_of(value, error.about()).location(), error.what(), error.hint());
    return error.exit_code();
  } catch (const core::RunError& error) {
    diagnostics.error(resolve::place_of(value, hub::DataError::About::kPath).location(), error.what(), error.hint());
    return error.exit_code();
  }
}

}  // namespace

hub::DataSet fetch_data_set(const hub::DataRequest& request, bool quiet) {
  FetchLine line(quiet);
  return hub::fetch(request, hub::read_settings().value(), watch_with(line, quiet));
}

core::Result<hub::Located> fetch_named(const std::string& text, hub::Part part, bool quiet) {
  return core::attempt([&] {
    FetchLine line(quiet);
    const hub::FetchWatch watch = watch_with(line, quiet);
    const hub::Settings settings = hub::read_settings().value();
    if (hub::is_web_file(text)) return hub::fetch(hub::parse_web_file(text).value(), settings, watch);
    return hub::fetch(hub::parse_name(text).value(), part, settings, watch);
  });
}

int fetch_of_recipe(core::Node recipe, HubUse use, bool quiet, core::Diagnostics& diagnostics) {
  int status = 0;
  if (use == HubUse::kCache) return status;
  for (const resolve::HubValue& value : resolve::hub_values(recipe)) {
    if (!is_needed(value, use, recipe)) continue;
    const bool without_weights = value.is_weights && use != HubUse::kAll;
    const auto got = fetch_named(value.value->as_string(), without_weights ? hub::Part::kSettings : value.part, quiet);
    if (got) continue;
    diagnostics.error(value.value->location(), got.failure().message, got.failure().hint);
    status = got.failure().exit_code;
  }
  if (use == HubUse::kPlan) return status;
  for (const resolve::DataSetValue& value : resolve::data_set_values(recipe)) {
    if (const int failed = fetch_set_of_recipe(value, quiet, diagnostics); failed != 0) status = failed;
  }
  return status;
}

}  // namespace runner::cli
