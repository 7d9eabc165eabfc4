// SUN_SELECT, AUTH_NONE or AUTH_SYS, SUN_CALL and REQUEST_REPLY together are Sun RPC: their messages, byte by byte,
// against RFC 5531 §9.
#include <gtest/gtest.h>

#include <optional>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/protocols/sun_auth/sun_auth.h"
#include "netrpc/protocols/sun_call/sun_call.h"
#include "netrpc/protocols/sun_select/sun_select.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kXid = 0x0a0b0c0d;
constexpr std::uint32_t kProgram = 0x20000099;
constexpr std::uint32_t kVersion = 3;

std::string words(std::initializer_list<std::uint32_t> all) {
  std::string bytes;
  for (const std::uint32_t word : all)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(word >> shift));
  return bytes;
}

/// A program's server: echoes, refuses, keeps or drops, and notes who calls.
class SunServer final : public Protocol {
 public:
  explicit SunServer(Host& host) : Protocol(host, "server") {}
  void call_demux(Session& lower, Message request) noexcept override {
    called.push_back(lower.participants().local);
    user = {};
    user_known = control::ask(lower, user) == Errc::ok;
    if (drops) return;
    if (keeps || keeps_answered) kept.push_back(SessionRef(&lower));
    if (keeps) return;
    if (refuses == Errc::ok) return lower.reply(std::move(request));
    control::Request refuse = control::Refuse{refuses};
    EXPECT_EQ(lower.control(refuse), Errc::ok);
  }
  std::vector<Participant> called;
  control::ClaimedUser user;
  bool user_known = false;
  Errc refuses = Errc::ok;
  bool drops = false;
  bool keeps = false;           ///< Without an answer.
  bool keeps_answered = false;  ///< Beyond the answer.
  std::vector<SessionRef> kept;
};

struct SunOptions {
  std::optional<AuthSysOptions> sys{};  ///< Else AUTH_NONE.
  bool over_channel = false;            ///< Else REQUEST_REPLY.
  std::size_t channels = 8;
};

/// A client at host 0 and a server at host 1, both of all layers; the test may take the place of either.
struct SunPair {
  explicit SunPair(const SunOptions& options = {}) {
    for (std::size_t i = 0; i < 2; ++i) {
      Host& host = wire[i].host;
      if (options.over_channel)
        layers[i].push_back(make_channel(host, "channel", wire[i].end, {}));
      else
        layers[i].push_back(make_request_reply(host, "pairs", wire[i].end, {.first_xid = kXid}));
      layers[i].push_back(make_sun_call(host, "call", *layers[i].back(), {.channels = options.channels}));
      if (options.sys) {
        auto auth = make_auth_sys(host, "auth", *layers[i].back(), *options.sys);
        EXPECT_TRUE(auth) << auth.error().message();
        layers[i].push_back(std::move(auth).value());
      } else {
        layers[i].push_back(make_auth_none(host, "auth", *layers[i].back()));
      }
      layers[i].push_back(make_sun_select(host, "sun", *layers[i].back(), {.program = kProgram, .version = kVersion}));
    }
    high.emplace(wire[0].host);
    server.emplace(wire[1].host);
    enable(kVersion, 0);
  }
  ~SunPair() {
    session = {};
    server->kept.clear();
    for (auto& host : layers)
      while (!host.empty()) host.pop_back();
  }
  void enable(std::uint32_t version, std::uint32_t procedure, std::uint32_t program = kProgram) {
    ParticipantSet participants;
    participants.local.program = program;
    participants.local.version = version;
    participants.local.procedure = procedure;
    const Shepherd inside(wire[1].host.monitor());
    const Status enabled = layers[1].back()->open_enable(*server, participants);
    EXPECT_TRUE(enabled) << enabled.error().message();
  }
  void call(Transaction& one, std::string_view arguments, std::uint32_t procedure = 7, Duration timeout = {}) {
    const Shepherd inside(wire[0].host.monitor());
    ParticipantSet participants;
    participants.remote.host = PacketWire::address(1);
    participants.remote.program = kProgram;
    participants.remote.version = kVersion;
    participants.remote.procedure = procedure;
    Result<SessionRef> opened = layers[0].back()->open(*high, participants);
    ASSERT_TRUE(opened) << opened.error().message();
    session = *opened;
    session->call(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span(arguments))), one, timeout);
  }
  /// What the server's host answers to these bytes; empty: nothing.
  std::string answer(const std::string& request) {
    wire.deliver({0, PacketWire::address(1), request});
    return wire.packets.empty() ? std::string() : wire.take().bytes;
  }
  /// How a call ends at the client that is answered with these bytes behind xid and REPLY.
  Errc outcome(const std::string& reply, std::string* results = nullptr) {
    TestCall one;
    call(one, "arguments");
    const std::string xid = wire.take().bytes.substr(0, 4);
    wire.deliver({1, PacketWire::address(0), xid + words({1}) + reply});
    EXPECT_TRUE(one.done());
    if (results != nullptr) *results = one.reply;
    return one.outcome;
  }

  PacketWire wire;
  std::vector<std::unique_ptr<Protocol>> layers[2];  ///< Lower ones first.
  std::optional<SinkProtocol> high;
  std::optional<SunServer> server;
  SessionRef session;
};

TEST(SunRpcTest, a_call_and_its_reply_are_the_messages_of_the_rfc) {
  SunPair pair;
  TestCall one;
  pair.call(one, "args", 7);
  const std::string call = words({kXid, 0, 2, kProgram, kVersion, 7, 0, 0, 0, 0}) + "args";
  ASSERT_EQ(pair.wire.packets.front().bytes, call);
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.packets.front().bytes, words({kXid, 1, 0, 0, 0, 0}) + "args");
  pair.wire.deliver_next();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.reply, "args");
  ASSERT_EQ(pair.server->called.size(), 1U);
  EXPECT_EQ(pair.server->called[0].program, kProgram);
  EXPECT_EQ(pair.server->called[0].version, kVersion);
  EXPECT_EQ(pair.server->called[0].procedure, 7U);
  EXPECT_FALSE(pair.server->user_known);
}

TEST(SunRpcTest, auth_sys_sends_the_machine_and_the_user_and_the_server_is_told) {
  SunPair pair({.sys = AuthSysOptions{.machine = "a-box", .uid = 1000, .gid = 100, .gids = {4, 27}}});
  TestCall one;
  pair.call(one, "args");
  const std::string call = pair.wire.packets.front().bytes;
  ASSERT_EQ(call.size(), 24 + 8 + 36 + 8 + 4U);
  EXPECT_EQ(call.substr(24, 8), words({1, 36}));
  EXPECT_EQ(call.substr(36), words({5}) + std::string("a-box\0\0\0", 8) + words({1000, 100, 2, 4, 27, 0, 0}) + "args");
  pair.wire.deliver_all();
  EXPECT_EQ(one.outcome, Errc::ok);
  ASSERT_TRUE(pair.server->user_known);
  EXPECT_EQ(pair.server->user.uid, 1000U);
  EXPECT_EQ(pair.server->user.gid, 100U);
  EXPECT_STREQ(pair.server->user.machine.data(), "a-box");
  EXPECT_EQ(pair.wire.packets.size(), 0U);
}

TEST(SunRpcTest, what_is_not_served_is_answered_by_its_name) {
  SunPair pair;
  pair.enable(5, 1);
  pair.enable(9, 1);
  const auto asked = [&](std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
    return pair.answer(words({1, 0, 2, program, version, procedure, 0, 0, 0, 0}));
  };
  const std::string accepted = words({1, 1, 0, 0, 0});
  EXPECT_EQ(asked(kProgram + 1, kVersion, 1), accepted + words({1}));    // PROG_UNAVAIL
  EXPECT_EQ(asked(kProgram, 4, 1), accepted + words({2, kVersion, 9}));  // PROG_MISMATCH
  EXPECT_EQ(asked(kProgram, 5, 2), accepted + words({3}));               // PROC_UNAVAIL
  EXPECT_TRUE(pair.server->called.empty());
  for (const std::uint32_t version : {kVersion, 5U, 9U})  // procedure 0 does nothing
    EXPECT_EQ(asked(kProgram, version, 0), accepted + words({0}));
  EXPECT_EQ(asked(kProgram, 4, 0), accepted + words({2, kVersion, 9}));
  EXPECT_TRUE(pair.server->called.empty());
  EXPECT_EQ(asked(kProgram, 5, 1), accepted + words({0}));
  EXPECT_EQ(pair.server->called.size(), 1U);
}

TEST(SunRpcTest, a_server_refuses_arguments_procedures_and_its_own_failures) {
  SunPair pair;
  const std::pair<Errc, std::uint32_t> wanted[] = {{Errc::argument_out_of_range, 4},
                                                   {Errc::bad_procedure, 3},
                                                   {Errc::name_unknown, 1},
                                                   {Errc::call_failed, 5},
                                                   {Errc::system_error, 5}};
  for (const auto& [reason, stat] : wanted) {
    pair.server->refuses = reason;
    EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, stat}));
  }
}

TEST(SunRpcTest, another_version_of_sun_rpc_is_denied_with_the_one_there_is) {
  SunPair pair;
  EXPECT_EQ(pair.answer(words({1, 0, 3, kProgram, kVersion, 7, 0, 0, 0, 0})), words({1, 1, 1, 0, 2, 2}));
  EXPECT_TRUE(pair.server->called.empty());
}

TEST(SunRpcTest, credentials_that_are_not_welcome_are_denied_with_their_reason) {
  const auto request = [](const std::string& auth) { return words({1, 0, 2, kProgram, kVersion, 7}) + auth; };
  const auto denied = [](std::uint32_t stat) { return words({1, 1, 1, 1, stat}); };
  const std::string none = words({0, 0});
  const std::string sys = words({1, 24, 0, 1}) + std::string("m\0\0\0", 4) + words({1, 2, 0});
  {
    SunPair pair;
    EXPECT_EQ(pair.answer(request(words({6, 0}) + none)), denied(2));  // RPCSEC_GSS: AUTH_REJECTEDCRED
    EXPECT_EQ(pair.answer(request(words({0, 401}) + std::string(404, 'x') + none)), denied(1));
    EXPECT_EQ(pair.answer(request(words({0, 8, 1}))), denied(1));        // cut short
    EXPECT_EQ(pair.answer(request(none + words({0, 401}))), denied(3));  // AUTH_BADVERF
    EXPECT_EQ(pair.answer(request(none)), denied(3));
    EXPECT_TRUE(pair.server->called.empty());
    EXPECT_EQ(pair.answer(request(words({0, 400}) + std::string(400, 'x') + none)), words({1, 1, 0, 0, 0, 0}));
    EXPECT_EQ(pair.answer(request(sys + none)), words({1, 1, 0, 0, 0, 0}));  // welcome, and ignored
    EXPECT_FALSE(pair.server->user_known);
  }
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  EXPECT_EQ(pair.answer(request(none + none)), denied(5));                              // AUTH_TOOWEAK
  EXPECT_EQ(pair.answer(request(words({1, 4, 0}) + none)), denied(1));                  // a stamp and nothing more
  EXPECT_EQ(pair.answer(request(words({1, 12, 0, 256, 0}) + none)), denied(1));         // a name of more than 255 bytes
  EXPECT_EQ(pair.answer(request(words({1, 20, 0, 0, 1, 2, 17}) + none)), denied(1));    // more than 16 groups
  EXPECT_EQ(pair.answer(request(words({1, 24, 0, 0, 1, 2, 0, 9}) + none)), denied(1));  // something behind it
  EXPECT_TRUE(pair.server->called.empty());
  EXPECT_EQ(pair.answer(request(sys + none)), words({1, 1, 0, 0, 0, 0}));
  EXPECT_STREQ(pair.server->user.machine.data(), "m");
}

TEST(SunRpcTest, requests_that_are_cut_short_are_not_executed) {
  const std::string whole = words({1, 0, 2, kProgram, kVersion, 7, 0, 0, 0, 0});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SunPair pair;
    (void)pair.answer(whole.substr(0, size));
    EXPECT_TRUE(pair.server->called.empty()) << size;
  }
}

TEST(SunRpcTest, a_client_is_told_what_became_of_its_call) {
  SunPair pair;
  std::string results;
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 0}) + "results", &results), Errc::ok);
  EXPECT_EQ(results, "results");
  EXPECT_EQ(pair.outcome(words({0, 9, 5}) + std::string("short\0\0\0", 8) + words({0}) + "x", &results), Errc::ok);
  EXPECT_EQ(results, "x") << "the bytes of a verifier belong to no one else";
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 1})), Errc::name_unknown);
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 2, 1, 2})), Errc::version_mismatch);
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 3})), Errc::bad_procedure);
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 4})), Errc::argument_out_of_range);
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 5})), Errc::call_failed);
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 6})), Errc::call_failed);
  EXPECT_EQ(pair.outcome(words({1, 0, 2, 2})), Errc::not_supported);
  EXPECT_EQ(pair.outcome(words({1, 1, 5})), Errc::not_permitted);
  EXPECT_EQ(pair.outcome(words({1, 2})), Errc::call_failed);
  EXPECT_EQ(pair.outcome(words({2})), Errc::call_failed);
  for (std::size_t size = 0; size < 16; ++size)
    EXPECT_EQ(pair.outcome(words({0, 0, 0, 0}).substr(0, size)), Errc::call_failed) << size;
  EXPECT_EQ(pair.outcome(words({0, 0, 401, 0})), Errc::call_failed);
}

TEST(SunRpcTest, users_of_commands_call_the_procedures_of_the_program_in_the_options) {
  SunPair pair;
  ParticipantSet by_command;
  by_command.local.command = 12;
  by_command.remote.command = 12;
  by_command.remote.host = PacketWire::address(1);
  SunServer twelve(pair.wire[1].host);
  {
    const Shepherd inside(pair.wire[1].host.monitor());
    ASSERT_TRUE(pair.layers[1].back()->open_enable(twelve, by_command));
    EXPECT_EQ(pair.layers[1].back()->open_enable(*pair.server, by_command).code(), Errc::name_taken);
  }
  TestCall one;
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    ParticipantSet neither = by_command;
    neither.remote.command = 0;
    EXPECT_EQ(pair.layers[0].back()->open(*pair.high, neither).code(), Errc::invalid_argument);
    Result<SessionRef> opened = pair.layers[0].back()->open(*pair.high, by_command);
    ASSERT_TRUE(opened);
    pair.session = *opened;
    pair.session->call(Message(pair.wire[0].host.pool()), one, {});
  }
  pair.wire.deliver_all();
  EXPECT_EQ(one.outcome, Errc::ok);
  ASSERT_EQ(twelve.called.size(), 1U);
  EXPECT_EQ(twelve.called[0].command, 12U);
  EXPECT_EQ(twelve.called[0].program, kProgram);
  const Shepherd inside(pair.wire[1].host.monitor());
  pair.layers[1].back()->open_disable(twelve, by_command);
}

TEST(SunRpcTest, a_call_that_its_user_gives_up_leaves_its_channel_free) {
  SunPair pair;
  std::deque<TestCall> calls(20);  // more than there are channels
  for (TestCall& one : calls) pair.call(one, "x");
  EXPECT_EQ(pair.wire.packets.size(), 8U);
  pair.wire.packets.clear();  // and nobody will ever answer these
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    for (std::size_t i = 0; i + 1 < calls.size(); ++i) pair.session->cancel(calls[i]);
  }
  pair.wire.pass(1ms, 1ms);
  EXPECT_EQ(pair.wire.packets.size(), 1U);
  pair.wire.deliver_all();
  EXPECT_TRUE(calls.back().done());
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) EXPECT_FALSE(calls[i].done());
}

TEST(SunRpcTest, a_call_whose_time_is_over_leaves_its_channel_free) {
  SunPair pair({.channels = 2});
  TestCall late[2], next;
  for (TestCall& one : late) pair.call(one, "late", 7, 10ms);
  pair.call(next, "next");
  EXPECT_EQ(pair.wire.packets.size(), 2U);
  pair.wire.packets.clear();
  pair.wire.pass(11ms, 1ms);
  for (const TestCall& one : late) EXPECT_EQ(one.outcome, Errc::call_aborted);
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
}

TEST(SunRpcTest, a_server_that_keeps_an_answered_request_is_told_the_next_ones_numbers) {
  SunPair pair({.over_channel = true, .channels = 1});
  pair.server->keeps_answered = true;
  for (const std::uint32_t procedure : {7U, 8U}) {
    TestCall one;
    pair.call(one, "x", procedure);
    pair.wire.deliver_all();
    EXPECT_EQ(one.reply, "x");
    EXPECT_EQ(pair.server->called.back().procedure, procedure);
  }
}

TEST(SunRpcTest, results_too_long_for_the_layers_below_are_a_system_error) {
  SunPair pair;
  const std::string request = words({1, 0, 2, kProgram, kVersion, 7, 0, 0, 0, 0}) + std::string(3000, 'x');
  EXPECT_EQ(pair.answer(request), words({1, 1, 0, 0, 0, 0}) + std::string(3000, 'x'));
  pair.wire[1].end.maximum = 3000;
  EXPECT_EQ(pair.answer(request), words({1, 1, 0, 0, 0, 5}));
}

/// A user that gives another call up when its own has ended.
struct GivesUp final : Transaction {
  void completed(Errc outcome, Message /*reply*/) noexcept override {
    told = outcome;
    session->cancel(*other);
  }
  Session* session = nullptr;
  Transaction* other = nullptr;
  std::optional<Errc> told;
};

TEST(SunRpcTest, a_call_may_be_given_up_again_by_who_is_told_of_the_next_ones_end) {
  SunPair pair({.channels = 1});
  TestCall given_up, one, two;
  GivesUp next;
  pair.call(given_up, "given up");
  pair.call(next, "next");
  next.session = pair.session.get();
  next.other = &given_up;
  pair.wire[0].end.refuses = Errc::host_unreachable;  // the next call ends as soon as it is sent
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    pair.session->cancel(given_up);
  }
  EXPECT_FALSE(next.told) << "inside another call's cancel()";
  pair.wire.pass(1ms, 1ms);
  EXPECT_EQ(next.told, Errc::host_unreachable);
  EXPECT_FALSE(given_up.done());
  pair.wire[0].end.refuses = Errc::ok;
  pair.wire.packets.clear();
  pair.call(one, "one");
  pair.call(two, "two");
  pair.wire.deliver_all();
  EXPECT_EQ(one.reply, "one");
  EXPECT_EQ(two.reply, "two");
}

TEST(SunRpcTest, a_server_that_drops_a_request_has_failed_it_and_the_channels_stay) {
  for (const bool over_channel : {false, true}) {
    SunPair pair({.over_channel = over_channel});
    pair.server->drops = true;
    std::deque<TestCall> calls(20);
    for (TestCall& one : calls) pair.call(one, "x");
    pair.wire.deliver_all();
    for (const TestCall& one : calls) EXPECT_EQ(one.outcome, Errc::call_failed) << over_channel;
    pair.server->drops = false;
    TestCall last;
    pair.call(last, "last");
    pair.wire.deliver_all();
    EXPECT_EQ(last.reply, "last") << over_channel;
  }
}

TEST(SunRpcTest, over_channel_what_no_layer_can_read_is_answered_too) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}, .over_channel = true});
  SessionRef channel;
  ParticipantSet participants{protocol_numbers::kSunCall, {}, {}};
  participants.remote.host = PacketWire::address(1);
  for (const std::string& request : {std::string("short"), words({2, kProgram, kVersion, 7, 6, 0, 0, 0})}) {
    TestCall one;
    {
      const Shepherd inside(pair.wire[0].host.monitor());
      Result<SessionRef> opened = pair.layers[0].front()->open(*pair.high, participants);
      ASSERT_TRUE(opened);
      channel = *opened;
      channel->call(Message::copy_of(pair.wire[0].host.pool(), std::as_bytes(std::span(request))), one, {});
    }
    pair.wire.deliver_all();
    EXPECT_TRUE(one.done());
  }
  EXPECT_TRUE(pair.server->called.empty());
}

TEST(SunRpcTest, the_claimed_user_stays_that_of_its_own_request) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  pair.server->keeps = true;
  const auto request = [](std::uint32_t uid) {
    return words({uid, 0, 2, kProgram, kVersion, 7, 1, 20, 0, 0, uid, 2, 0, 0, 0});
  };
  for (const std::uint32_t uid : {11U, 12U}) EXPECT_EQ(pair.answer(request(uid)), "");
  ASSERT_EQ(pair.server->kept.size(), 2U);
  for (const std::uint32_t which : {0U, 1U}) {
    control::ClaimedUser user;
    EXPECT_EQ(control::ask(*pair.server->kept[which], user), Errc::ok);
    EXPECT_EQ(user.uid, 11 + which);
  }
}

TEST(SunRpcTest, procedure_0_is_answered_without_a_credential) {
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 0, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 1, 0, 0, 0, 0})), words({1, 1, 1, 1, 5}));
}

TEST(SunRpcTest, procedures_beyond_the_commands_are_not_there) {
  SunPair pair;  // whose server has enabled all commands of the program in the options
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 3}));
  pair.enable(kVersion, 7, kProgram + 1);
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram + 1, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 3}));
  pair.enable(kVersion, 65536 + 7, kProgram + 1);
  EXPECT_EQ(pair.answer(words({1, 0, 2, kProgram + 1, kVersion, 65536 + 7, 0, 0, 0, 0})), words({1, 1, 0, 0, 0, 0}));
}

TEST(SunRpcTest, no_layer_says_how_long_its_messages_may_be_and_asking_ends) {
  SunPair pair;
  for (const auto& layer : pair.layers[1]) {
    control::AdvertisedMaximum advertised;
    EXPECT_EQ(control::ask(*layer, advertised), Errc::not_supported) << layer->name();
  }
}

TEST(SunAuthOptions, that_make_no_credential_are_refused) {
  PacketWire wire;
  AuthSysOptions options{.machine = std::string(65, 'm')};
  EXPECT_EQ(make_auth_sys(wire[0].host, "auth", wire[0].end, options).code(), Errc::invalid_argument);
  options.machine.resize(64);
  EXPECT_TRUE(make_auth_sys(wire[0].host, "auth", wire[0].end, options));
  options.gids.assign(17, 1);
  EXPECT_EQ(make_auth_sys(wire[0].host, "auth", wire[0].end, options).code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace lrpc::netrpc
