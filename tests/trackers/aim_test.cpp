#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/core/picture/base64.h"
#include "tests/support/process/http_server.h"
#include "tests/trackers/followed_run.h"
#include "trackers/server/aim_tree.h"
#include "trackers/server/blake2b.h"

namespace {

using runner::core::Node;
using tests::HttpReply;
using tests::HttpRequest;
using tracker_tests::FollowedRun;
using trackers::aim_hash;
using trackers::AimTree;

Node json(const std::string& text) { return runner::core::parse_json(text).value(); }

std::string block(const tests::HttpServer& server) { return R"({"type": "aim", "repo": ")" + server.url() + "\"}"; }

const std::string kVersion = R"({"version": "3.29.1"})";
const std::string kForgotten =
    R"({"exception": {"module_name": "aim", "class_name": "UnauthorizedRequestError", "message": "of none"}})";

}  // namespace

TEST_CASE("a step and a context have the hashes that Aim gives them", "[trackers][aim]") {
  CHECK(aim_hash(Node::integer(0)) == 487590686800389010);
  CHECK(aim_hash(Node::integer(1)) == 6813614137041369426);
  CHECK(aim_hash(Node::integer(2)) == -901861262945818715);
  CHECK(aim_hash(Node::integer(-1)) == -2031535777419256979);
  CHECK(aim_hash(Node::string("abc")) == -8171830736593126806);
  CHECK(aim_hash(json("{}")) == -4504863053055089774);
  CHECK(aim_hash(json(R"({"subset": "train"})")) == -8686149688933388395);
  // Python's hashlib.blake2b(digest_size=8, salt=7 in 8 bytes): a block that is full, and one more byte.
  CHECK(trackers::blake2b(std::string(128, 'a'), 7) == 0x41c0f9febf573139);
  CHECK(trackers::blake2b(std::string(129, 'a'), 7) == 0xd2a013eb184f6a25);
}

TEST_CASE("a value is written as Aim's own client writes it", "[trackers][aim]") {
  const auto packed = [](const std::string& text) {
    return runner::core::base64(AimTree().add("", json(text)).bytes());
  };
  CHECK(packed(R"({"a": {"b": 1}, "e": {}, "l": [1, "x"], "le": []})") ==
        "BAAAAGH+Yv4ACQAAAAIBAAAAAAAAAAIAAABl/gABAAAABwIAAABs/gABAAAABgwAAABs/v4AAAAAAAAAAP4ACQAAAAIBAAAAAAAA"
        "AAwAAABs/v4AAAAAAAAAAf4AAgAAAAR4AwAAAGxl/gABAAAABg==");
  CHECK(packed(R"([["p", -3], 0.5, null, true])") ==
        "AAAAAAABAAAABgoAAAD+AAAAAAAAAAD+AAEAAAAGFAAAAP4AAAAAAAAAAP7+AAAAAAAAAAD+AAIAAAAEcBQAAAD+AAAAAAAAAAD+"
        "/gAAAAAAAAAB/gAJAAAAAv3/////////CgAAAP4AAAAAAAAAAf4ACQAAAAMAAAAAAADgPwoAAAD+AAAAAAAAAAL+AAEAAAAACgAA"
        "AP4AAAAAAAAAA/4AAgAAAAEB");
  AimTree tree;
  tree.add_object("", "aim.text").add_text(AimTree::key("data"), "é");
  CHECK(runner::core::base64(tree.bytes()) == "AAAAAAAJAAAAD2FpbS50ZXh0BQAAAGRhdGH+AQMAAAAEw6k=");
}

TEST_CASE("a server that is none of Aim's pauses the tracker", "[trackers][aim]") {
  FollowedRun f;
  const tests::HttpServer server([](const HttpRequest&) { return HttpReply{404, "no such page"}; });
  f.log(1, 0.5);
  f.commit();
  const auto result = f.follow(block(server), true);
  CHECK(result.problem.find("is not an Aim server") != std::string::npos);
  CHECK(f.meanwhile.waited_ms.empty());
}

TEST_CASE("a server that lost what was sent gets it once more", "[trackers][aim]") {
  runner::core::configure_log({runner::core::LogLevel::kError});
  FollowedRun f;
  int connects = 0, updates = 0;
  const tests::HttpServer server([&](const HttpRequest& request) {
    if (request.path.starts_with("/client/get-version/")) return HttpReply{200, kVersion};
    if (request.path.starts_with("/client/connect/")) ++connects;
    const bool is_update = request.body.find(R"("method_name":"update")") != std::string::npos;
    return is_update && ++updates == 1 ? HttpReply{400, kForgotten} : HttpReply{200, "null"};
  });
  f.log(1, 0.5);
  f.commit();
  f.writer->finish(runner::store::RunStatus::kFinished, "");
  f.meanwhile.next = [] { return true; };
  const auto result = f.follow(block(server), true);
  runner::core::configure_log({});
  CHECK(result.problem.empty());
  CHECK(connects == 2);
  CHECK(updates == 1 + 5);  // values, epochs, times, steps, key figures
}
