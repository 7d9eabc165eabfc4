// Clients that know nothing of Sun RPC call a server on another machine. rpcgen generated that server from their
// interface.
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "conformance.client.h"
#include "heavy.client.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "shop.client.h"
#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

#ifndef LRPC_SUN_SERVER
TEST(SunRpcServers, are_called) {
  GTEST_SKIP() << "rpcsvc-proto or libtirpc-dev was not installed when this was built";
}
#else

constexpr const char* kName = "shop@10.7.0.2";

/// The server runs on `there`, which runs nothing of lrpc.
class SunRpcServers : public TwoMachines {
 protected:
  void start_netd(const std::string& import) {
    share_key();
    here->start_with_keys({"--sun-import", import});
  }
  [[nodiscard]] Process start_shop(const std::string& transport = "udp", const std::string& version = "3") const {
    return there->start({LRPC_SUN_SERVER, transport, "20490", version});
  }
  /// Starts the server and an rpcbind that knows it, in namespaces of their own. When the server at port 20490 ends,
  /// one at port 20491 follows. All end with the returned process.
  [[nodiscard]] Process start_with_rpcbind() const {
    const std::string serve = "; " LRPC_SUN_SERVER " udp ";
    return there->start({"/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c",
                         "mount -t tmpfs none /run && { " LRPC_RPCBIND " -f & } && until " LRPC_RPCINFO
                         " -T udp 127.0.0.1 100000 4 >/dev/null 2>&1; do sleep 0.05; done" +
                             serve + "20490 3 register" + serve + "20491 3 register >/dev/null; true"});
  }
  /// Repeats the import while the server does not answer.
  [[nodiscard]] Result<Shop::Client> import_shop(ImportOptions options = {}, const char* name = kName) const {
    options.nameserver = here->socket();
    Result<Shop::Client> client = Errc::remote_unavailable;
    (void)eventually([&] {
      client = Shop::Client::import(name, options);
      return client.code() != Errc::remote_unavailable;
    });
    return client;
  }
  void expect_refused(Errc code, const std::string& text) const {
    const auto client = import_shop();
    EXPECT_EQ(client.code(), code);
    if (!client) expect_said(client.error().message(), text);
  }
};

Shop::Item item() {
  return {.name = "abcdefgh",
          .colour = Shop::Colour::Green,
          .corners = {{{1, 0.5F}, {-2, 1.5F}}},
          .flags = {{true, false, true}},
          .block = {{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{255}}},
          .share = 30,
          .code = Shop::Wide::First};
}

/// Calls every procedure of the interface once, with values at the bounds of each type.
void expect_every_type(Shop::Client& shop) {
  EXPECT_TRUE(shop.Null());
  const auto numbers = shop.Integers(-128, 255, 32767, 0, std::numeric_limits<std::int32_t>::min(), 1,
                                     std::numeric_limits<std::int64_t>::max(), 5);
  ASSERT_TRUE(numbers) << numbers.error().message();
  EXPECT_EQ(numbers->a2, 127);
  EXPECT_EQ(numbers->b2, 0);
  EXPECT_EQ(numbers->c2, -32768);
  EXPECT_EQ(numbers->d2, 65535);
  EXPECT_EQ(numbers->e2, std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(numbers->f2, 0xffff'fffeU);
  EXPECT_EQ(numbers->g2, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(numbers->h2, ~std::uint64_t{5});

  const auto reals = shop.Reals(1.25F, -1e300, false, std::byte{7});
  ASSERT_TRUE(reals) << reals.error().message();
  EXPECT_EQ(reals->a2, -1.25F);
  EXPECT_EQ(reals->b2, 1e300);
  EXPECT_TRUE(reals->c2);
  EXPECT_EQ(reals->d2, std::byte{248});

  Shop::Item turned = item();
  ASSERT_TRUE(shop.Turn(turned));
  EXPECT_EQ(turned.name.view(), "hgfedcba");
  EXPECT_EQ(turned.colour, Shop::Colour::Blue);
  EXPECT_EQ(turned.corners[0].x, 2);
  EXPECT_EQ(turned.corners[1].y, -0.5F);
  EXPECT_EQ(turned.flags, (std::array{false, true, false}));
  EXPECT_EQ(turned.block[0], std::byte{255});
  EXPECT_EQ(turned.share, 70);
  EXPECT_EQ(turned.code, Shop::Wide::Last);

  const auto joined = shop.Join(std::string(2000, 'a'), std::string(1999, 'b'));
  ASSERT_TRUE(joined) << joined.error().message();
  EXPECT_EQ(joined->str(), std::string(2000, 'a') + std::string(1999, 'b'));
  EXPECT_EQ(shop.Join("", "")->str(), "");

  std::vector<std::byte> memory(6000);
  Buffer filled(memory);
  ASSERT_TRUE(shop.Fill(6000, 9, filled));
  EXPECT_EQ(filled.size(), 6000U);
  EXPECT_EQ(memory[5999], std::byte{9});
  ASSERT_TRUE(shop.Fill(0, 9, filled));
  EXPECT_EQ(filled.size(), 0U);

  memory[0] = std::byte{1};
  Buffer reversed(memory);
  ASSERT_TRUE(reversed.resize(6000));
  ASSERT_TRUE(shop.Reverse(reversed));
  EXPECT_EQ(reversed.size(), 6000U);
  EXPECT_EQ(memory[5999], std::byte{1});
  EXPECT_EQ(memory[0], std::byte{9});

  EXPECT_EQ(shop.Buy(7).value(), 21U);
  const auto too_much = shop.Buy(101);
  ASSERT_NE(too_much.raised<Shop::TooMuch>(), nullptr) << too_much.error().message();
  EXPECT_EQ(too_much.raised<Shop::TooMuch>()->limit, 100U);
  EXPECT_EQ(too_much.raised<Shop::TooMuch>()->what.view(), "bread");
  EXPECT_NE(shop.Buy(13).raised<Shop::Closed>(), nullptr);

  ASSERT_TRUE(shop.Note(42));
  EXPECT_TRUE(eventually([&] { return shop.Noted().value() == 42; }));
}

TEST_F(SunRpcServers, take_and_return_every_type_of_an_unchanged_client) {
  const Process server = start_shop();
  start_netd("shop@10.7.0.2:20490=0x20000097");
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  expect_every_type(*shop);
}

TEST_F(SunRpcServers, are_called_over_tcp) {
  const Process server = start_shop("tcp");
  start_netd("shop@10.7.0.2:20490=0x20000097,tcp");
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  expect_every_type(*shop);
}

TEST_F(SunRpcServers, are_called_by_a_netd_that_serves_sun_rpc_itself) {
  const Process server = start_shop();
  share_key();
  here->start_with_keys({"--sun-import", "shop@10.7.0.2:20490=0x20000097", "--sun", "other=0x20000096"});
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  EXPECT_EQ(shop->Buy(7).value(), 21U);
}

TEST_F(SunRpcServers, of_the_same_machine_are_called) {
  const Process server = here->start({LRPC_SUN_SERVER, "udp", "20490", "3"});
  start_netd("shop@127.0.0.1:20490=0x20000097");
  auto shop = import_shop({}, "shop@127.0.0.1");
  ASSERT_TRUE(shop) << shop.error().message();
  EXPECT_EQ(shop->Buy(7).value(), 21U);
}

TEST_F(SunRpcServers, that_refuse_or_garble_fail_the_call_with_a_text_and_the_next_one_goes_on) {
  const Process server = start_shop();
  start_netd("shop@10.7.0.2:20490=0x20000097/3");
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  using enum Shop::Failure;
  struct {
    Shop::Failure how;
    Errc code;
    const char* text;
  } const kinds[] = {
      {ProgUnavail, Errc::call_failed, "PROG_UNAVAIL"},
      {ProgMismatch, Errc::call_failed, "in versions 4 to 6, not 3"},
      {ProcUnavail, Errc::bad_procedure, "PROC_UNAVAIL"},
      {GarbageArgs, Errc::argument_out_of_range, "GARBAGE_ARGS"},
      {SystemErr, Errc::call_failed, "SYSTEM_ERR"},
      {AuthError, Errc::not_permitted, "AUTH_ERROR"},
      {NoResults, Errc::bad_result, "not those of the declaration"},
      {TooManyResults, Errc::bad_result, "not those of the declaration"},
      {NoValue, Errc::bad_result, "not those of the declaration"},
  };
  for (const auto& kind : kinds) {
    const auto failed = shop->Fail(kind.how);
    EXPECT_EQ(failed.code(), kind.code) << kind.text;
    if (!failed) expect_said(failed.error().message(), kind.text);
    EXPECT_EQ(shop->Buy(7).value(), 21U);
  }
  EXPECT_EQ(shop->Rate(100).value(), 100);
  EXPECT_EQ(shop->Rate(101).code(), Errc::bad_result);
  Shop::Item wrong = item();
  wrong.share = 101;
  EXPECT_EQ(shop->Turn(wrong).code(), Errc::argument_out_of_range);
}

TEST_F(SunRpcServers, that_say_nothing_are_waited_for_until_the_deadline_or_the_cancellation) {
  const Process server = start_shop();
  share_key();
  // Two calls at a time. Each may last longer than this test: others proceed only if cancelled and expired calls end.
  const std::string import = "shop@10.7.0.2:20490=0x20000097";
  here->start_changed("--keys " + here->file("keys") + " --sun-import " + import,
                      {{"REQUEST_REPLY over sun_udp", "REQUEST_REPLY(give_up = 3600s) over sun_udp"},
                       {"SUN_CALL(channels = 288) over pairs;", "SUN_CALL(channels = 2) over pairs;"}},
                      {"--sun-import", import});
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  {
    const CallScope scope(std::chrono::milliseconds(50));
    EXPECT_EQ(shop->Fail(Shop::Failure::Silence).code(), Errc::call_aborted);
  }
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t before = shop->Noted().value();
    Cancellation cancellation;
    std::thread other([&] {
      const CallScope scope(cancellation);
      EXPECT_EQ(shop->Fail(Shop::Failure::Silence).code(), Errc::call_cancelled);
    });
    EXPECT_TRUE(eventually([&] { return shop->Noted().value() != before; }));
    cancellation.cancel();
    other.join();
  }
  EXPECT_EQ(shop->Buy(7).value(), 21U);
}

TEST_F(SunRpcServers, are_called_again_by_the_same_binding_when_they_were_started_again) {
  Process server = start_shop();
  start_netd("shop@10.7.0.2:20490=0x20000097");
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  server.kill_and_wait();
  server = start_shop();
  EXPECT_EQ(shop->Buy(7).value(), 21U);
}

TEST_F(SunRpcServers, are_asked_for_the_version_of_the_interface_when_they_are_imported) {
  const Process server = start_shop("udp", "4");
  start_netd("shop@10.7.0.2:20490=0x20000097");
  expect_refused(Errc::version_mismatch, "the program is there in versions 4 to 4, not 3");
}

TEST_F(SunRpcServers, of_another_version_than_the_interface_are_not_asked) {
  start_netd("shop@10.7.0.2:20490=0x20000097/2");
  expect_refused(Errc::version_mismatch, "is version 2 of a Sun RPC program, and the interface Shop 3");
}

TEST_F(SunRpcServers, without_the_program_are_name_unknown) {
  const Process server = start_shop();
  start_netd("shop@10.7.0.2:20490=0x20000001");
  expect_refused(Errc::name_unknown, "PROG_UNAVAIL");
}

TEST_F(SunRpcServers, that_do_not_answer_cannot_be_imported) {
  start_netd("shop@10.7.0.2:20490=0x20000097");
  const auto client = Shop::Client::import(kName, {.nameserver = here->socket()});
  EXPECT_EQ(client.code(), Errc::remote_unavailable);
  if (client) return;
  expect_said(client.error().message(), "host '10.7.0.2'");
  expect_said(client.error().message(), "does not answer");  // within the time of the import, or of its request
}

TEST_F(SunRpcServers, are_called_with_arguments_only_that_a_datagram_carries_in_xdr) {
  const Process server = start_shop("tcp");
  share_key();
  here->start_with_keys({"--sun-import", "udp@10.7.0.2:20490=0x20000097", "tcp@10.7.0.2:20490=0x20000097,tcp"});
  const auto heavy = [&](const std::string& name) {
    return Heavy::Client::import(name + "@10.7.0.2", {.nameserver = here->socket()});
  };
  const auto refused = heavy("udp");
  EXPECT_EQ(refused.code(), Errc::message_too_long);
  if (!refused) {
    expect_said(refused.error().message(), "procedure Heavy.Put: its arguments may take 65536 bytes in XDR");
    expect_said(refused.error().message(), " too many");
  }
  EXPECT_TRUE(eventually([&] { return heavy("tcp").has_value(); }));
}

TEST_F(SunRpcServers, are_not_called_by_interfaces_with_handles) {
  share_key();
  here->start_with_keys({"--sun-import", "conformance@10.7.0.2:20490=0x20000098"});
  const auto client = import();
  EXPECT_EQ(client.code(), Errc::not_supported);
  if (!client) expect_said(client.error().message(), "procedure Open: a handle belongs to one binding");
}

TEST_F(SunRpcServers, are_found_by_rpcbind_also_when_they_have_another_port_later) {
  if (::access(LRPC_RPCBIND, X_OK) != 0 || ::access(LRPC_RPCINFO, X_OK) != 0)
    GTEST_SKIP() << "rpcbind is not installed";
  const Process servers = start_with_rpcbind();
  start_netd("shop@10.7.0.2=0x20000097");
  auto shop = import_shop();
  ASSERT_TRUE(shop) << shop.error().message();
  EXPECT_EQ(shop->Buy(7).value(), 21U);
  {
    const CallScope scope(std::chrono::milliseconds(200));
    EXPECT_EQ(shop->Fail(Shop::Failure::Death).code(), Errc::call_aborted);
  }
  EXPECT_TRUE(eventually([&] {
    const CallScope scope(std::chrono::milliseconds(200));
    return shop->Buy(7).code() == Errc::ok;
  }));
}

TEST_F(SunRpcServers, that_rpcbind_does_not_know_are_name_unknown) {
  if (::access(LRPC_RPCBIND, X_OK) != 0 || ::access(LRPC_RPCINFO, X_OK) != 0)
    GTEST_SKIP() << "rpcbind is not installed";
  const Process servers = start_with_rpcbind();
  start_netd("shop@10.7.0.2=0x20000001");
  expect_refused(Errc::name_unknown, "rpcbind does not know the Sun RPC program 0x20000001");
}

#endif

}  // namespace
}  // namespace lrpc::netd::test
