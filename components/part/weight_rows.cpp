#include "components/part/weight_rows.h"

namespace components::part {

at::Tensor WeightRows::make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  const at::Tensor whole = whole_.make(name, shape, init);
  kept_.push_back({name, rows_(whole).clone()});
  const c10::Storage& storage = whole.storage();
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, whole.device()));
  storage.set_nbytes(0);
  return whole;
}

at::Tensor WeightRows::make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  return whole_.make_buffer(name, shape, init);
}

}  // namespace components::part
