#include "components/data/record/file_errors.h"

#include "components/data/block_location.h"

namespace components::data {

RecordErrors& FileErrors::of(const RecordPlace& place) {
  if (errors_ && file_ == place.file) return *errors_;
  any_ = any();
  file_ = place.file;
  errors_.reset();
  return errors_.emplace(inputs_.diagnostics, location_of(inputs_.block, "path"), encoder_.path(place));
}

}  // namespace components::data
