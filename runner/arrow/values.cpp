#include "runner/arrow/values.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/util/base64.h>
#include <arrow/util/float16.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <set>
#include <utility>

#include "runner/core/text/utf8.h"

namespace runner::arrow_files {
namespace {

using arrow::Array;
using arrow::Type;
using core::Node;
using core::TableLimits;

struct TooManyValues {};

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = core::utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::int64_t units_in_second(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND: return 1;
    case arrow::TimeUnit::MILLI: return 1'000;
    case arrow::TimeUnit::MICRO: return 1'000'000;
    case arrow::TimeUnit::NANO: break;
  }
  return 1'000'000'000;
}

/// Rounded down, as the days before 1970 need.
std::int64_t floor_divided(std::int64_t value, std::int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

constexpr std::int64_t kSecondsInDay = 86'400;
/// Years 1 to 9999, which ISO 8601 and Python write with four digits.
constexpr std::int64_t kDayMin = -719'162, kDayMax = 2'932'896;

template <typename... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, numbers...);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string date_text(std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return formatted("%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                   static_cast<unsigned>(date.day()));
}

/// Of a time of day; digits behind the second as Python writes them: none or six, and nine where those do not do.
std::string time_text(std::int64_t units, std::int64_t in_second) {
  const std::int64_t second = units / in_second;
  const std::int64_t nanos = units % in_second * (1'000'000'000 / in_second);
  const auto part = [](std::int64_t value) { return static_cast<int>(value); };
  std::string text = formatted("%02d:%02d:%02d", part(second / 3600), part(second / 60 % 60), part(second % 60));
  if (nanos == 0) return text;
  return text + (nanos % 1000 == 0 ? formatted(".%06d", part(nanos / 1000)) : formatted(".%09d", part(nanos)));
}

Node date_of(std::int64_t day) {
  return day < kDayMin || day > kDayMax ? Node::integer(day) : Node::string(date_text(day));
}

Node time_stamp_of(std::int64_t value, const arrow::TimestampType& type) {
  const std::int64_t in_second = units_in_second(type.unit());
  const std::int64_t day = floor_divided(floor_divided(value, in_second), kSecondsInDay);
  if (day < kDayMin || day > kDayMax) return Node::integer(value);
  // A day before a nanosecond count's least one may begin below 64 bits.
  const auto units =
      static_cast<std::int64_t>(static_cast<__int128>(value) - static_cast<__int128>(day) * kSecondsInDay * in_second);
  return Node::string(date_text(day) + "T" + time_text(units, in_second) + (type.timezone().empty() ? "" : "+00:00"));
}

Node time_of(std::int64_t value, arrow::TimeUnit::type unit) {
  const std::int64_t in_second = units_in_second(unit);
  if (value < 0 || value / in_second >= kSecondsInDay) return Node::integer(value);
  return Node::string(time_text(value, in_second));
}

/// Bytes that are no text are an object, which no reader of texts takes for one.
Node bytes_of(std::string_view bytes) {
  if (is_utf8(bytes)) return Node::string(std::string(bytes));
  Node object = Node::mapping();
  object.set("bytes", Node::string(arrow::util::base64_encode(bytes)));
  return object;
}

template <typename ArrayType>
auto at(const Array& array, std::int64_t i) {
  return static_cast<const ArrayType&>(array).GetView(i);
}

template <typename ArrayType>
Node integer_at(const Array& array, std::int64_t i) {
  const auto value = at<ArrayType>(array, i);
  if constexpr (sizeof(value) == 8 && std::is_unsigned_v<decltype(value)>) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Node::string(std::to_string(value));
    }
  }
  return Node::integer(static_cast<std::int64_t>(value));
}

template <typename ArrayType>
Node decimal_at(const Array& array, std::int64_t i) {
  return Node::string(static_cast<const ArrayType&>(array).FormatValue(i));
}

/// Values of arrays as nodes, up to TableLimits::kValuesMax of them.
class Values {
 public:
  /// Whether the value is there: neither null in its array nor what its array refers to.
  static bool has(const Array& array, std::int64_t i) {
    switch (array.type_id()) {
      case Type::NA: return false;
      case Type::EXTENSION: return has(*static_cast<const arrow::ExtensionArray&>(array).storage(), i);
      case Type::DICTIONARY: {
        const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
        return !array.IsNull(i) && has(*coded.dictionary(), coded.GetValueIndex(i));
      }
      case Type::RUN_END_ENCODED: {
        const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(array);
        return has(*runs.values(), run_of(runs, i));
      }
      case Type::SPARSE_UNION:
      case Type::DENSE_UNION: {
        const auto [child, place] = member_of(array, i);
        return has(*child, place);
      }
      default: return !array.IsNull(i);
    }
  }

  Node of(const Array& array, std::int64_t i) {
    if (++count_ > TableLimits::kValuesMax) throw TooManyValues{};
    if (!has(array, i)) return Node::null();
    switch (array.type_id()) {
      case Type::BOOL: return Node::boolean(at<arrow::BooleanArray>(array, i));
      case Type::INT8: return integer_at<arrow::Int8Array>(array, i);
      case Type::INT16: return integer_at<arrow::Int16Array>(array, i);
      case Type::INT32: return integer_at<arrow::Int32Array>(array, i);
      case Type::INT64: return integer_at<arrow::Int64Array>(array, i);
      case Type::UINT8: return integer_at<arrow::UInt8Array>(array, i);
      case Type::UINT16: return integer_at<arrow::UInt16Array>(array, i);
      case Type::UINT32: return integer_at<arrow::UInt32Array>(array, i);
      case Type::UINT64: return integer_at<arrow::UInt64Array>(array, i);
      case Type::HALF_FLOAT:
        return Node::floating(
            arrow::util::Float16::FromBits(static_cast<const arrow::HalfFloatArray&>(array).Value(i)).ToDouble());
      case Type::FLOAT: return Node::floating(at<arrow::FloatArray>(array, i));
      case Type::DOUBLE: return Node::floating(at<arrow::DoubleArray>(array, i));
      case Type::STRING: return Node::string(std::string(at<arrow::StringArray>(array, i)));
      case Type::LARGE_STRING: return Node::string(std::string(at<arrow::LargeStringArray>(array, i)));
      case Type::STRING_VIEW: return Node::string(std::string(at<arrow::StringViewArray>(array, i)));
      case Type::BINARY: return bytes_of(at<arrow::BinaryArray>(array, i));
      case Type::LARGE_BINARY: return bytes_of(at<arrow::LargeBinaryArray>(array, i));
      case Type::BINARY_VIEW: return bytes_of(at<arrow::BinaryViewArray>(array, i));
      case Type::FIXED_SIZE_BINARY: return bytes_of(at<arrow::FixedSizeBinaryArray>(array, i));
      case Type::DECIMAL32: return decimal_at<arrow::Decimal32Array>(array, i);
      case Type::DECIMAL64: return decimal_at<arrow::Decimal64Array>(array, i);
      case Type::DECIMAL128: return decimal_at<arrow::Decimal128Array>(array, i);
      case Type::DECIMAL256: return decimal_at<arrow::Decimal256Array>(array, i);
      case Type::DATE32: return date_of(at<arrow::Date32Array>(array, i));
      case Type::DATE64: return date_of(floor_divided(at<arrow::Date64Array>(array, i), kSecondsInDay * 1'000));
      case Type::TIMESTAMP:
        return time_stamp_of(at<arrow::TimestampArray>(array, i),
                             static_cast<const arrow::TimestampType&>(*array.type()));
      case Type::TIME32:
        return time_of(at<arrow::Time32Array>(array, i), static_cast<const arrow::TimeType&>(*array.type()).unit());
      case Type::TIME64:
        return time_of(at<arrow::Time64Array>(array, i), static_cast<const arrow::TimeType&>(*array.type()).unit());
      case Type::DURATION: {
        const auto unit = static_cast<const arrow::DurationType&>(*array.type()).unit();
        return Node::floating(static_cast<double>(at<arrow::DurationArray>(array, i)) /
                              static_cast<double>(units_in_second(unit)));
      }
      case Type::STRUCT: return mapping(static_cast<const arrow::StructArray&>(array), i);
      case Type::MAP: return pairs(static_cast<const arrow::MapArray&>(array), i);
      case Type::LIST: return list<arrow::ListArray>(array, i);
      case Type::LARGE_LIST: return list<arrow::LargeListArray>(array, i);
      case Type::LIST_VIEW: return list<arrow::ListViewArray>(array, i);
      case Type::LARGE_LIST_VIEW: return list<arrow::LargeListViewArray>(array, i);
      case Type::FIXED_SIZE_LIST: return list<arrow::FixedSizeListArray>(array, i);
      case Type::EXTENSION: return inner(*static_cast<const arrow::ExtensionArray&>(array).storage(), i);
      case Type::DICTIONARY: {
        const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
        return inner(*coded.dictionary(), coded.GetValueIndex(i));
      }
      case Type::RUN_END_ENCODED: {
        const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(array);
        return inner(*runs.values(), run_of(runs, i));
      }
      case Type::SPARSE_UNION:
      case Type::DENSE_UNION: {
        const auto [child, place] = member_of(array, i);
        return inner(*child, place);
      }
      default: {  // intervals
        const auto scalar = array.GetScalar(i);
        return scalar.ok() ? Node::string((*scalar)->ToString()) : Node::null();
      }
    }
  }

 private:
  /// The same value, which counts once.
  Node inner(const Array& array, std::int64_t i) {
    --count_;
    return of(array, i);
  }

  static std::int64_t run_of(const arrow::RunEndEncodedArray& runs, std::int64_t i) {
    const Array& ends = *runs.run_ends();
    const std::int64_t place = i + runs.offset();
    const auto end_of = [&ends](std::int64_t run) -> std::int64_t {
      switch (ends.type_id()) {
        case Type::INT16: return at<arrow::Int16Array>(ends, run);
        case Type::INT32: return at<arrow::Int32Array>(ends, run);
        default: return at<arrow::Int64Array>(ends, run);
      }
    };
    std::int64_t low = 0, high = ends.length() - 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (end_of(middle) > place)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  static std::pair<std::shared_ptr<Array>, std::int64_t> member_of(const Array& array, std::int64_t i) {
    const auto& either = static_cast<const arrow::UnionArray&>(array);
    const std::shared_ptr<Array> child = either.field(either.child_id(i));
    if (array.type_id() == Type::SPARSE_UNION) return {child, i};
    return {child, static_cast<const arrow::DenseUnionArray&>(array).value_offset(i)};
  }

  template <typename ListType>
  Node list(const Array& array, std::int64_t i) {
    const auto& lists = static_cast<const ListType&>(array);
    return items(*lists.values(), lists.value_offset(i), lists.value_length(i));
  }

  Node items(const Array& values, std::int64_t begin, std::int64_t length) {
    std::vector<Node> nodes;
    for (std::int64_t i = begin; i < begin + length; ++i) nodes.push_back(of(values, i));
    return Node::sequence(std::move(nodes));
  }

  Node pairs(const arrow::MapArray& map, std::int64_t i) {
    std::vector<Node> nodes;
    const std::int64_t begin = map.value_offset(i), end = begin + map.value_length(i);
    for (std::int64_t at = begin; at < end; ++at) {
      nodes.push_back(Node::sequence({of(*map.keys(), at), of(*map.items(), at)}));
    }
    return Node::sequence(std::move(nodes));
  }

  Node mapping(const arrow::StructArray& fields, std::int64_t i) {
    Node node = Node::mapping();
    const auto& type = static_cast<const arrow::StructType&>(*fields.type());
    for (int field = 0; field < type.num_fields(); ++field) {
      const std::shared_ptr<Array> values = fields.field(field);
      if (has(*values, i)) node.set(type.field(field)->name(), of(*values, i));
    }
    return node;
  }

  std::int64_t count_ = 0;
};

class Rows final : public core::TableRows {
 public:
  Rows(std::shared_ptr<arrow::RecordBatch> batch, std::int64_t first) : batch_(std::move(batch)), first_(first) {
    for (int i = 0; i < batch_->num_columns(); ++i) columns_.push_back(batch_->column(i));
  }

  std::int64_t first() const override { return first_; }
  std::int64_t size() const override { return batch_->num_rows(); }

  core::Result<Node> record(std::int64_t i) const override {
    Values values;
    Node node = Node::mapping();
    try {
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        if (!Values::has(*columns_[column], i)) continue;
        node.set(batch_->schema()->field(static_cast<int>(column))->name(), values.of(*columns_[column], i));
      }
    } catch (const TooManyValues&) {
      return core::Failure{"has more than " + std::to_string(TableLimits::kValuesMax) + " values", ""};
    }
    return node;
  }

  std::optional<std::string_view> text(std::int64_t i) const override {
    const Array* array = columns_.front().get();
    if (!Values::has(*array, i)) return std::nullopt;
    if (array->type_id() == Type::DICTIONARY) {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(*array);
      i = coded.GetValueIndex(i);
      array = coded.dictionary().get();
    }
    switch (array->type_id()) {
      case Type::STRING: return at<arrow::StringArray>(*array, i);
      case Type::LARGE_STRING: return at<arrow::LargeStringArray>(*array, i);
      default: return at<arrow::StringViewArray>(*array, i);
    }
  }

 private:
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<std::shared_ptr<Array>> columns_;
  std::int64_t first_;
};

bool is_text(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW: return true;
    case Type::DICTIONARY: {
      const arrow::DataType& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
      return values.id() != Type::DICTIONARY && is_text(values);
    }
    default: return false;
  }
}

bool is_deeper(const arrow::DataType& type, int depth) {
  if (depth == 0) return true;
  if (type.id() == Type::DICTIONARY) {
    return is_deeper(*static_cast<const arrow::DictionaryType&>(type).value_type(), depth - 1);
  }
  if (type.id() == Type::EXTENSION) {
    return is_deeper(*static_cast<const arrow::ExtensionType&>(type).storage_type(), depth - 1);
  }
  for (const auto& field : type.fields()) {
    if (is_deeper(*field->type(), depth - 1)) return true;
  }
  return false;
}

}  // namespace

core::Result<std::vector<core::TableColumn>> columns_of(const arrow::Schema& schema) {
  if (schema.num_fields() == 0) return core::Failure{"has no column", ""};
  std::vector<core::TableColumn> columns;
  std::set<std::string> names;
  for (const auto& field : schema.fields()) {
    if (!names.insert(field->name()).second) {
      return core::Failure{"has two columns \"" + field->name() + "\"", "give each column a name of its own"};
    }
    if (is_deeper(*field->type(), TableLimits::kDepthMax)) {
      return core::Failure{"column \"" + field->name() + "\" is nested more than " +
                               std::to_string(TableLimits::kDepthMax) + " levels deep",
                           "leave the column out"};
    }
    columns.push_back({field->name(), field->type()->ToString(), is_text(*field->type())});
  }
  return columns;
}

std::unique_ptr<core::TableRows> rows_of(std::shared_ptr<arrow::RecordBatch> batch, std::int64_t first) {
  return std::make_unique<Rows>(std::move(batch), first);
}

}  // namespace runner::arrow_files
