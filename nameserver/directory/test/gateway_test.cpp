// A gateway that is no etcd, or one that is out of order: every request ends, with an error that says so.
#include "gateway.h"

#include <gtest/gtest.h>

#include <new>

#include "etcd/base64.h"
#include "etcd/etcd.h"
#include "etcd/published_name.h"
#include "publish/local_names.h"

namespace lrpc::directory::test {
namespace {

using std::chrono::milliseconds;

EtcdOptions options_of(std::vector<std::string> urls, milliseconds timeout = milliseconds(30'000)) {
  EtcdOptions options;
  options.endpoints = std::move(urls);
  options.timeout = timeout;
  return options;
}

Errc outcome_of(const std::string& said) {
  const Gateway gateway([&](const Gateway::Request&) { return said; });
  Etcd etcd(options_of({gateway.url()}));
  return etcd.range("/lrpc/", 10).code();
}

const std::string kNothingFound = answer(200, R"({"header":{"revision":"3"}})");

TEST(HostileGateway, an_answer_of_etcd_is_taken) { EXPECT_EQ(outcome_of(kNothingFound), Errc::ok); }

TEST(HostileGateway, what_is_no_json_is_a_bad_message) {
  for (const char* const body : {"", "x", "{", "[]", "null", "<html></html>", R"({"header":{},"kvs":[{"key":"!"}]})"})
    EXPECT_EQ(outcome_of(answer(200, body)), Errc::bad_message) << body;
}

TEST(HostileGateway, an_answer_that_is_too_long_is_not_read_to_its_end) {
  EXPECT_EQ(outcome_of(answer(200, std::string((3 << 20) + 1, ' '))), Errc::limit_reached);
  EXPECT_EQ(outcome_of(answer(200, std::string(3 << 20, '['))), Errc::bad_message) << "and one that is deep ends";
}

TEST(HostileGateway, an_answer_may_have_all_names_of_a_machine_however_long_they_are) {
  const std::string prefix = "/" + std::string(199, 'p');  // no configuration has a longer one
  const std::string name(shim::kMaxNameLength, 'x');
  std::string keys;
  for (std::size_t i = 0; i < LocalNames::kMost; ++i)
    keys += (i == 0 ? "\"" : ",\"") + to_base64(key_of(prefix, name, 0x0aff'ffff)) + '"';
  std::string attached = answer(200, R"({"ID":"7","TTL":"30","keys":[)" + keys + "]}");
  const Gateway gateway([&](const Gateway::Request&) { return attached; });
  Etcd etcd(options_of({gateway.url()}));
  EXPECT_EQ(etcd.attached(7).value(), LocalNames::kMost);
}

TEST(HostileGateway, a_server_that_is_out_of_order_is_unavailable) {
  EXPECT_EQ(outcome_of(answer(500, "")), Errc::remote_unavailable);
  EXPECT_EQ(outcome_of(answer(503, R"({"error":"etcdserver: no leader","code":14})")), Errc::remote_unavailable);
  EXPECT_EQ(outcome_of(""), Errc::remote_unavailable) << "closes the connection";
  EXPECT_EQ(outcome_of("what is this\r\n\r\n"), Errc::remote_unavailable) << "no HTTP";
}

TEST(HostileGateway, a_redirection_is_not_followed) {
  const Gateway other([](const Gateway::Request&) { return kNothingFound; });
  EXPECT_NE(outcome_of("HTTP/1.1 307 x\r\nLocation: " + other.url() + "/v3/kv/range\r\nContent-Length: 0\r\n\r\n"),
            Errc::ok);
  EXPECT_EQ(other.requests(), 0);
}

TEST(HostileGateway, a_server_that_is_silent_is_waited_for_no_longer_than_the_timeout) {
  const Gateway silent(
      [](const Gateway::Request&) { return Gateway::kThenNothing + std::string("HTTP/1.1 200 x\r\n"); });
  Etcd etcd(options_of({silent.url()}, milliseconds(50)));
  EXPECT_EQ(etcd.range("/lrpc/", 10).code(), Errc::remote_unavailable);
}

TEST(HostileGateway, a_watch_ends_with_a_line_that_is_too_long_or_makes_no_sense) {
  const std::string head = "HTTP/1.1 200 x\r\n\r\n";
  const auto watched = [&](const std::string& lines) {
    const Gateway gateway([&](const Gateway::Request&) { return Gateway::kThenNothing + head + lines; });
    Etcd etcd(options_of({gateway.url()}));
    const std::atomic<bool> stop = false;
    return etcd
        .watch(
            "/lrpc/", 1, milliseconds(60'000), [](const Changes& changes) { return changes.changes.empty(); }, stop)
        .code();
  };
  EXPECT_EQ(watched(std::string((3 << 20) + 1, 'x')), Errc::limit_reached);
  EXPECT_EQ(watched("x\n"), Errc::bad_message);
  EXPECT_EQ(watched("{\"result\":{\"canceled\":true}}\n"), Errc::remote_unavailable);
  EXPECT_EQ(watched("{\"result\":{}}\n\n{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ==\"}}]}}\n"), Errc::ok);
}

TEST(HostileGateway, a_watch_for_which_there_is_no_memory_throws_and_does_not_say_that_the_answer_is_too_long) {
  const Gateway gateway([&](const Gateway::Request&) {
    return Gateway::kThenNothing + std::string("HTTP/1.1 200 x\r\n\r\n{\"result\":{}}\n");
  });
  Etcd etcd(options_of({gateway.url()}));
  const std::atomic<bool> stop = false;
  const auto without_memory = [](const Changes&) -> bool { throw std::bad_alloc(); };
  EXPECT_THROW((void)etcd.watch("/lrpc/", 1, milliseconds(60'000), without_memory, stop), std::bad_alloc);
}

TEST(HostileGateway, a_watch_ends_when_it_is_told_to_stop) {
  const Gateway gateway(
      [&](const Gateway::Request&) { return std::string(Gateway::kThenNothing) + "HTTP/1.1 200 x\r\n\r\n"; });
  Etcd etcd(options_of({gateway.url()}));
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(etcd.watch(
      "/lrpc/", 1, milliseconds(600'000), [](const Changes&) { return true; }, stop));
}

TEST(SeveralEndpoints, the_next_one_is_asked_when_one_does_not_answer_and_stays_the_first) {
  const Gateway broken([](const Gateway::Request&) { return answer(503, ""); });
  const Gateway sound([](const Gateway::Request&) { return kNothingFound; });
  Etcd etcd(options_of({broken.url(), sound.url()}));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(etcd.range("/lrpc/", 10));
  EXPECT_EQ(broken.requests(), 1);
  EXPECT_EQ(sound.requests(), 5);
  EXPECT_EQ(etcd.unanswered(), 1U);
}

TEST(SeveralEndpoints, a_watch_goes_on_at_the_next_one_from_the_last_change) {
  const auto event = [](const char* key, int revision) {
    return R"({"result":{"events":[{"kv":{"key":")" + std::string(key) + R"(","mod_revision":")" +
           std::to_string(revision) + "\"}}]}}\n";
  };
  const Gateway ends([&](const Gateway::Request&) { return answer(200, event("YQ==", 7)); });
  std::string asked;
  const Gateway sound([&](const Gateway::Request& request) {
    asked = request.body;
    return Gateway::kThenNothing + std::string("HTTP/1.1 200 x\r\n\r\n") + event("Yg==", 8);
  });
  Etcd etcd(options_of({ends.url(), sound.url()}));
  const std::atomic<bool> stop = false;
  std::string seen;
  EXPECT_TRUE(etcd.watch(
      "/lrpc/", 3, milliseconds(600'000),
      [&](const Changes& changes) {
        for (const Change& one : changes.changes) seen += one.key;
        return seen.size() < 2;
      },
      stop));
  EXPECT_EQ(seen, "ab");
  EXPECT_EQ(asked, watch_request("/lrpc/", 8));
}

constexpr const char* kWritten = "HTTP/1.1 200 x\r\n\r\n{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ==\"}}]}}\n";
/// A watch whose token is not right, in the words of etcd 3.4.
constexpr const char* kCanceled =
    "HTTP/1.1 200 x\r\n\r\n{\"result\":{\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,\"cancel_reason\":"
    "\"rpc error: code = Unauthenticated desc = etcdserver: invalid auth token\"}}\n";

/// A gateway with users: hands out tokens t1, t2, ... and takes the last one only.
struct Guarded {
  std::atomic<int> tokens{0};
  std::atomic<int> valid{0};
  std::atomic<bool> refuses_all{false};
  Gateway gateway{[this](const Gateway::Request& request) {
    if (request.path == "/v3/auth/authenticate") {
      if (request.body != R"({"name":"lrpc","password":"se\"cret"})")
        return answer(400, R"({"error":"etcdserver: authentication failed, invalid user ID or password","code":3})");
      valid = ++tokens;
      return answer(200, "{\"token\":\"t" + std::to_string(valid) + "\"}");
    }
    const bool is_right = !refuses_all && request.token == "t" + std::to_string(valid);
    if (request.path == "/v3/watch") return Gateway::kThenNothing + std::string(is_right ? kWritten : kCanceled);
    return is_right ? kNothingFound : answer(401, R"({"error":"etcdserver: invalid auth token","code":16})");
  }};
  [[nodiscard]] EtcdOptions options(const std::string& password) const {
    EtcdOptions options = options_of({gateway.url()});
    options.user = "lrpc";
    options.password = password;
    return options;
  }
};

TEST(Tokens, are_asked_for_once_and_again_when_they_have_expired) {
  Guarded guarded;
  Etcd etcd(guarded.options("se\"cret"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(etcd.range("/lrpc/", 10));
  EXPECT_EQ(guarded.tokens, 1);
  guarded.valid = 99;
  EXPECT_TRUE(etcd.range("/lrpc/", 10));
  EXPECT_EQ(guarded.tokens, 2);
}

TEST(Tokens, that_have_expired_are_renewed_by_a_watch_once) {
  Guarded guarded;
  Etcd etcd(guarded.options("se\"cret"));
  EXPECT_TRUE(etcd.range("/lrpc/", 10));
  const std::atomic<bool> stop = false;
  const auto watch = [&] {
    return etcd.watch(
        "/lrpc/", 1, milliseconds(240'000), [](const Changes& changes) { return changes.changes.empty(); }, stop);
  };
  guarded.valid = 99;
  const Status watched = watch();
  EXPECT_TRUE(watched) << watched.error().message();
  EXPECT_EQ(guarded.tokens, 2);
  guarded.refuses_all = true;
  EXPECT_EQ(watch().code(), Errc::not_permitted);
  EXPECT_EQ(guarded.tokens, 3);
}

TEST(Tokens, are_asked_for_once_by_requests_that_come_together) {
  Guarded guarded;
  Etcd etcd(guarded.options("se\"cret"));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * Etcd::kMostConnections; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(etcd.range("/lrpc/", 10)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded.tokens, 1);
}

TEST(Tokens, a_wrong_password_is_not_permitted) {
  Guarded guarded;
  Etcd etcd(guarded.options("wrong"));
  EXPECT_EQ(etcd.range("/lrpc/", 10).code(), Errc::not_permitted);
}

TEST(Tokens, a_server_that_refuses_every_token_is_asked_twice_and_no_more) {
  const Gateway gateway([](const Gateway::Request& request) {
    if (request.path == "/v3/auth/authenticate") return answer(200, R"({"token":"t"})");
    return answer(401, "");
  });
  EtcdOptions options = options_of({gateway.url()});
  options.user = "lrpc";
  options.password = "p";
  Etcd etcd(options);
  EXPECT_EQ(etcd.range("/lrpc/", 10).code(), Errc::not_permitted);
  EXPECT_EQ(gateway.requests(), 4);
}

}  // namespace
}  // namespace lrpc::directory::test
