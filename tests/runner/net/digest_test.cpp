#include "runner/net/digest.h"

#include <catch2/catch.hpp>

namespace {

using runner::net::Digest;

std::string digest_of(Digest::Kind kind, const std::string& bytes, std::size_t piece) {
  Digest digest(kind);
  for (std::size_t at = 0; at < bytes.size(); at += piece) digest.add(std::string_view(bytes).substr(at, piece));
  return digest.hex();
}

}  // namespace

TEST_CASE("checksums have their published values, whatever the pieces", "[net]") {
  // FIPS 180-4, examples; git hash-object of an empty file.
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (const std::size_t piece : {1UL, 7UL, 63UL, 64UL, 65UL, 1000UL}) {
    CHECK(digest_of(Digest::Kind::kSha1, "abc", piece) == "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK(digest_of(Digest::Kind::kSha1, two_blocks, piece) == "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    CHECK(digest_of(Digest::Kind::kSha256, two_blocks, piece) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest_of(Digest::Kind::kSha1, std::string("blob 0\0", 7), piece) ==
          "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  }
  CHECK(digest_of(Digest::Kind::kSha1, std::string(1'000'000, 'a'), 4096) ==
        "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
