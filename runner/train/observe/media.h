#pragma once

#include <cstdint>
#include <string>

#include "components/callback/callback.h"
#include "runner/store/run_writer.h"

namespace runner::train {

/// Tables and pictures of a run: files in its folder `media`, recorded in run.db. They are not fsynced, since no step
/// should wait for that, and a run is worth more than a picture: a failed write is reported once and out.
class Media {
 public:
  explicit Media(store::RunWriter& run) : run_(run) {}

  void add(std::int64_t step, const std::string& name, const components::callback::Table& table);
  void add(std::int64_t step, const std::string& name, const std::string& caption, const core::Canvas& image);

 private:
  /// `kind`: of the artefact.
  void write(const char* kind, std::int64_t step, const std::string& name, const char* ending,
             const std::string& content, core::Node data);
  std::string new_path(std::int64_t step, const std::string& name, const char* ending);

  store::RunWriter& run_;
  std::int64_t step_ = -1, branch_ = -1, of_step_ = 0;  ///< number of files of the current step
  bool told_ = false;
};

}  // namespace runner::train
