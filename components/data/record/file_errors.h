#pragma once

#include <cstddef>
#include <optional>

#include "components/data/csv/csv_file.h"
#include "components/data/data.h"
#include "components/data/record/record_encoder.h"

namespace components::data {

/// The errors of records that are read in the order of their files: some of each file, at the key `path`.
class FileErrors {
 public:
  FileErrors(const RecordEncoder& encoder, const Inputs& inputs) : encoder_(encoder), inputs_(inputs) {}

  /// Those of the file of this record. Those of the file before it are complete.
  RecordErrors& of(const RecordPlace& place);
  bool is_in(const RecordPlace& place) const { return errors_ && file_ == place.file; }
  bool any() const { return any_ || (errors_ && errors_->any()); }

 private:
  const RecordEncoder& encoder_;
  const Inputs& inputs_;
  std::size_t file_ = 0;
  bool any_ = false;  // of the files before
  std::optional<RecordErrors> errors_;
};

}  // namespace components::data
