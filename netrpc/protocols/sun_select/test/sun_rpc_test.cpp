// SUN_SELECT, AUTH_NONE or AUTH_SYS, SUN_CALL and REQUEST_REPLY together are Sun RPC: their messages, byte by byte,
// compared with RFC 5531 §9.
#include "netrpc/protocols/sun_select/test/sun_pair.h"

namespace lrpc::netrpc::sun_test {
namespace {

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
    EXPECT_EQ(pair.answer(request(sys + none)), words({1, 1, 0, 0, 0, 0}));  // accepted; its contents are ignored
    EXPECT_FALSE(pair.server->user_known);
  }
  SunPair pair({.sys = AuthSysOptions{.machine = "x"}});
  EXPECT_EQ(pair.answer(request(none + none)), denied(5));                              // AUTH_TOOWEAK
  EXPECT_EQ(pair.answer(request(words({1, 4, 0}) + none)), denied(1));                  // only a stamp
  EXPECT_EQ(pair.answer(request(words({1, 12, 0, 256, 0}) + none)), denied(1));         // a name of more than 255 bytes
  EXPECT_EQ(pair.answer(request(words({1, 20, 0, 0, 1, 2, 17}) + none)), denied(1));    // more than 16 groups
  EXPECT_EQ(pair.answer(request(words({1, 24, 0, 0, 1, 2, 0, 9}) + none)), denied(1));  // bytes after the end
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
  EXPECT_EQ(pair.outcome(words({0, 0, 0, 2, 1, 2}), &results), Errc::version_mismatch);
  EXPECT_EQ(results, words({1, 2})) << "the versions that are there";
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
}  // namespace lrpc::netrpc::sun_test
