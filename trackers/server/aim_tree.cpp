#include "trackers/server/aim_tree.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "trackers/server/blake2b.h"

namespace trackers {
namespace {

using runner::core::Node;

// What the first byte of a value says of it.
constexpr char kNull = 0, kBool = 1, kInteger = 2, kReal = 3, kText = 4, kBytes = 5, kArray = 6, kMapping = 7,
               kObject = 15;
constexpr char kEndOfKey = '\xFE';  // in no UTF-8; a key that begins with it is a number

// What Aim salts the hash of each kind of value with.
constexpr std::int64_t kIntegerSalt = -7494597716789683807, kTextSalt = 7540324813251503183,
                       kListSalt = 2965039128708897743, kMappingSalt = -2435585119574290752;

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

std::string number_bytes(std::int64_t value) { return little_endian(static_cast<std::uint64_t>(value)); }

std::int64_t salted(std::string_view bytes, std::int64_t salt) {
  return static_cast<std::int64_t>(blake2b(bytes, static_cast<std::uint64_t>(salt)));
}

std::int64_t hash_of_list(const std::vector<std::int64_t>& hashes, std::int64_t salt) {
  std::string bytes;
  for (const std::int64_t hash : hashes) bytes += number_bytes(hash);
  return salted(bytes, salt);
}

std::int64_t hash_of_mapping(const Node& mapping) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_key;
  for (const auto& entry : mapping.entries()) {
    const std::int64_t key = aim_hash(Node::string(entry.key));
    by_key.emplace_back(key, hash_of_list({key, aim_hash(entry.value)}, kListSalt));
  }
  std::sort(by_key.begin(), by_key.end());
  std::vector<std::int64_t> hashes;
  hashes.reserve(by_key.size());
  for (const auto& [key, hash] : by_key) hashes.push_back(hash);
  return hash_of_list(hashes, kMappingSalt);
}

}  // namespace

std::string AimTree::key(std::string_view name) { return std::string(name) + kEndOfKey; }

std::string AimTree::key(std::int64_t index) {
  std::string bytes = number_bytes(index);
  std::reverse(bytes.begin(), bytes.end());
  return kEndOfKey + bytes + kEndOfKey;
}

AimTree& AimTree::add(const std::string& path, const Node& value) {
  if (value.is_mapping()) {
    if (value.entries().empty()) put(path, false, kMapping, "");
    for (const auto& entry : value.entries()) add(path + key(entry.key), entry.value);
  } else if (value.is_sequence()) {
    put(path, false, kArray, "");
    std::int64_t index = 0;
    for (const Node& item : value.items()) add(path + key(index++), item);
  } else if (value.is_string()) {
    put(path, false, kText, value.as_string());
  } else if (value.is_integer()) {
    put(path, false, kInteger, number_bytes(value.as_integer()));
  } else if (value.is_number()) {
    put(path, false, kReal, little_endian(std::bit_cast<std::uint64_t>(value.as_double())));
  } else if (value.is_bool()) {
    put(path, false, kBool, std::string(1, value.as_bool() ? '\1' : '\0'));
  } else {
    put(path, false, kNull, "");
  }
  return *this;
}

AimTree& AimTree::add_object(const std::string& path, std::string_view type) {
  put(path, false, kObject, type);
  return *this;
}

AimTree& AimTree::add_text(const std::string& path, std::string_view text) {
  put(path, true, kText, text);
  return *this;
}

AimTree& AimTree::add_bytes(const std::string& path, std::string_view bytes) {
  put(path, true, kBytes, bytes);
  return *this;
}

void AimTree::put(const std::string& path, bool is_large, char type, std::string_view content) {
  bytes_ += little_endian(static_cast<std::uint32_t>(path.size())) + path + (is_large ? '\1' : '\0');
  bytes_ += little_endian(static_cast<std::uint32_t>(content.size() + 1)) + type;
  bytes_ += content;
}

std::int64_t aim_hash(const Node& value) {
  if (value.is_mapping()) return hash_of_mapping(value);
  if (value.is_string()) return salted(value.as_string(), kTextSalt);
  if (value.is_integer()) return salted(number_bytes(value.as_integer()), kIntegerSalt);
  std::vector<std::int64_t> hashes;
  for (const Node& item : value.items()) hashes.push_back(aim_hash(item));
  return hash_of_list(hashes, kListSalt);
}

}  // namespace trackers
