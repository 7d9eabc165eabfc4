// Limits of remote calls: one-way calls, principals, quotas, hostile clients and hosts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "chatty.client.h"
#include "chatty.server.h"
#include "files.types.h"
#include "length.h"
#include "lrpc/raw_binding.h"
#include "messages.h"
#include "network_path.client.h"
#include "remote_fixture.h"
#include "world.h"

namespace testing_netpath {
namespace {

/// Reports its caller's principal.
class ChattyService {
 public:
  void Note(lrpc::CallContext&, const lrpc::String<100>& text) {
    std::lock_guard lock(mutex);
    last = text;
    ++count;
  }
  Chatty::NotedResults Noted(lrpc::CallContext& call) {
    std::lock_guard lock(mutex);
    principal = call.remote() != nullptr ? std::optional(*call.remote()) : std::nullopt;
    caller = call.caller();
    return {.last = last, .count = count};
  }
  lrpc::Result<std::uint8_t> Refuse(lrpc::CallContext&, std::uint32_t times) {
    std::string text;
    for (std::uint32_t i = 0; i < times; ++i) text += "not today; ";
    return lrpc::Error{Errc::not_permitted, text};
  }
  std::int32_t Ask(lrpc::CallContext&) { return 0; }

  std::mutex mutex;
  lrpc::String<100> last;
  std::uint32_t count = 0;
  std::optional<lrpc::shim::Principal> principal;
  lrpc::shim::Credentials caller;
};
struct Answers {
  std::int32_t Question(lrpc::CallContext&) { return 42; }
};

TEST_F(TwoHosts, say_so_when_the_client_and_its_network_domain_are_of_different_versions) {
  here_->stop_broker();
  ChattyService chatty;
  lrpc::Server server({.nameserver = here_->socket()});
  // The server has another interface.
  ASSERT_TRUE(Chatty::export_to(server, std::string(lrpc::shim::kNetworkName), chatty));
  const auto client = import();
  EXPECT_EQ(client.code(), Errc::version_mismatch);
  EXPECT_EQ(client.error().message(), "lrpc-netd and this program are of different versions of lrpc");
}

TEST_F(TwoHosts, carry_the_text_of_an_error_that_a_procedure_returns) {
  ChattyService chatty;
  lrpc::Server server({.nameserver = there_->socket()});
  ASSERT_TRUE(Chatty::export_to(server, "chatty", chatty));
  auto client = Chatty::Client::import("chatty@10.0.0.2", import_options());
  ASSERT_TRUE(client) << client.error().message();
  for (const bool started : {false, true}) {
    const auto once = started ? client->start().Refuse(1).finish() : client->Refuse(1);
    EXPECT_EQ(once.code(), Errc::not_permitted);
    EXPECT_EQ(once.error().text, "not today; ");
    const std::string all = (started ? client->start().Refuse(100).finish() : client->Refuse(100)).error().text;
    EXPECT_EQ(all.size(), 102U) << "what the smallest slot has room for";
    EXPECT_TRUE(all.starts_with("not today; not today; "));
    EXPECT_EQ((started ? client->start().Refuse(0).finish() : client->Refuse(0)).error().text, "");
  }
}

TEST_F(TwoHosts, send_one_way_calls_and_say_that_there_are_no_callbacks) {
  ChattyService chatty;
  lrpc::Server server({.nameserver = there_->socket()});
  ASSERT_TRUE(Chatty::export_to(server, "chatty", chatty));
  auto client = Chatty::Client::import("chatty@10.0.0.2", import_options());
  ASSERT_TRUE(client) << client.error().message();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Note("number " + std::to_string(i)));
  EXPECT_TRUE(eventually([&] { return client->Noted().value().count == 20; }));
  Answers answers;
  lrpc::Server own({.nameserver = here_->socket()});
  EXPECT_EQ(client->serve_callbacks(own, answers).code(), Errc::not_supported);
}

/// Nothing but its calls can tell such a binding.
TEST_F(TwoHosts, revoke_a_binding_without_a_watcher_by_any_call_after_the_end_of_the_network_domain) {
  ChattyService chatty;
  lrpc::Server server({.nameserver = there_->socket()});
  ASSERT_TRUE(Chatty::export_to(server, "chatty", chatty));
  auto options = import_options();
  options.watcher = false;
  using Call = Errc (*)(Chatty::Client&);
  const std::array<Call, 3> calls{[](Chatty::Client& client) { return client.Noted().code(); },
                                  [](Chatty::Client& client) { return client.Note("nobody").code(); },
                                  [](Chatty::Client& client) { return client.start().Noted().finish().code(); }};
  std::vector<Chatty::Client> clients;
  while (clients.size() < calls.size()) clients.push_back(Chatty::Client::import("chatty@10.0.0.2", options).value());
  here_->stop_broker();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Errc end = Errc::ok;  // one-way calls go on until there is no A-stack left
    for (int sent = 0; sent < 100 && end == Errc::ok; ++sent) end = calls[i](clients[i]);
    EXPECT_TRUE(end == Errc::call_failed || end == Errc::binding_revoked) << i << ": " << lrpc::describe(end);
    EXPECT_TRUE(clients[i].binding().revoked()) << i;
  }
}

TEST_F(TwoHosts, show_procedures_the_host_and_never_the_network_domain) {
  ChattyService chatty;
  lrpc::Server server({.nameserver = there_->socket()});
  ASSERT_TRUE(Chatty::export_to(server, "chatty", chatty));
  auto remote = Chatty::Client::import("chatty@10.0.0.2", import_options());
  auto local = Chatty::Client::import("chatty", {.nameserver = there_->socket()});
  ASSERT_TRUE(remote && local);
  ASSERT_TRUE(remote->Noted());
  std::unique_lock lock(chatty.mutex);
  ASSERT_TRUE(chatty.principal);
  EXPECT_EQ(chatty.principal->host, kHere);
  EXPECT_EQ(chatty.principal->authentication, lrpc::HostAuthentication::key);
  EXPECT_EQ(chatty.principal->key, "lab");
  EXPECT_TRUE(chatty.caller == lrpc::kNobodyHere);
  lock.unlock();
  ASSERT_TRUE(local->Noted());
  lock.lock();
  EXPECT_FALSE(chatty.principal);
  EXPECT_EQ(chatty.caller.pid, getpid());
}

TEST_F(TwoHosts, let_the_clerk_decide_about_other_hosts) {
  ChattyService chatty;
  lrpc::Server server({.nameserver = there_->socket()});
  lrpc::ExportOptions local_only;
  local_only.authorise = [](const lrpc::shim::Credentials&) { return lrpc::Status(); };
  ASSERT_TRUE(Chatty::export_to(server, "local-only", chatty, local_only));
  lrpc::ExportOptions choosy = local_only;
  choosy.authorise_remote = [](const lrpc::shim::Principal& who) -> lrpc::Status {
    if (who.host == kHere) return lrpc::Error{Errc::not_permitted, "not you"};
    return {};
  };
  ASSERT_TRUE(Chatty::export_to(server, "choosy", chatty, choosy));
  const auto refused = Chatty::Client::import("local-only@10.0.0.2", import_options());
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_NE(refused.error().text.find("authorise_remote"), std::string::npos) << refused.error().text;
  const auto not_you = Chatty::Client::import("choosy@10.0.0.2", import_options());
  EXPECT_EQ(not_you.code(), Errc::not_permitted);
  EXPECT_NE(not_you.error().text.find("not you"), std::string::npos) << not_you.error().text;
}

TEST_F(TwoHosts, carry_the_calls_of_those_only_who_may_speak_for_the_machine) {
  here_->stop_broker();
  BrokerOptions closed;
  closed.authorise = [](const lrpc::shim::Credentials& client) -> lrpc::Status {
    return lrpc::Error{Errc::not_permitted, "user " + std::to_string(client.uid) + " may not"};
  };
  here_->start_broker(closed);
  const auto refused = Conformance::Client::import("files@10.0.0.2", import_options());
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_NE(refused.error().text.find("user " + std::to_string(geteuid()) + " may not"), std::string::npos)
      << refused.error().text;
}

TEST_F(TwoHosts, do_not_let_a_client_come_back_to_its_own_machine_as_another_host) {
  here_->stop_broker();
  BrokerOptions knows_itself;
  knows_itself.own_address = kHere;
  knows_itself.exported = [](std::string_view) { return true; };
  here_->start_broker(knows_itself);
  ChattyService chatty;
  lrpc::Server server({.nameserver = here_->socket()});
  ASSERT_TRUE(Chatty::export_to(server, "own", chatty));
  const auto around = Chatty::Client::import("own@10.0.0.1", import_options());
  EXPECT_EQ(around.code(), Errc::invalid_argument);
  EXPECT_NE(around.error().text.find("is this machine"), std::string::npos) << around.error().text;
}

TEST_F(TwoHosts, believe_nobody_but_the_network_domain_about_other_hosts) {
  const lrpc::shim::Principal forged{kHere, lrpc::shim::HostAuthentication::none, {}};
  const lrpc::ImportOptions options{.nameserver = there_->socket()};
  const auto claim = [&] {
    return lrpc::client::RawBinding::import("files", Conformance::kPdl.interface, forged, options).code();
  };
  const pid_t child = fork();  // this process is the network domain of `there`, its child is not
  if (child == 0) _exit(static_cast<int>(claim()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(static_cast<Errc>(WEXITSTATUS(status)), Errc::not_permitted);
  there_->stop_broker();
  // Once the nameserver has noticed that the broker is gone.
  EXPECT_TRUE(eventually([&] { return claim() == Errc::name_unknown; })) << "one that comes may be believed";
  auto raw = lrpc::client::RawBinding::import("files", Conformance::kPdl.interface, std::nullopt, options);
  EXPECT_TRUE(raw) << raw.error().message();
}

TEST_F(TwoHosts, refuse_options_of_their_broker_that_have_no_meaning) {
  struct Case {
    const char* name;
    BrokerOptions options;
  };
  const Case cases[] = {{"keepalive", {.keepalive = milliseconds(0)}},
                        {"keepalive", {.keepalive = milliseconds(-1)}},
                        {"silence", {.silence = milliseconds(0)}},
                        {"silence", {.silence = milliseconds(-1)}},
                        {"forget", {.forget = milliseconds(0)}},
                        {"forget", {.forget = milliseconds(-1)}},
                        {"max_paths", {.max_paths = 0}},
                        {"keepalive", {.keepalive = lrpc::kNoLimit}},
                        {"keepalive", {.keepalive = BrokerOptions::kSilence}}};
  for (const Case& one : cases) {
    const auto started = RemoteBroker::start(there_->wire(), one.options);
    ASSERT_EQ(started.code(), Errc::invalid_argument) << one.name;
    EXPECT_NE(started.error().message().find(std::string("BrokerOptions::") + one.name + " "), std::string::npos)
        << started.error().message();
  }
}

TEST_F(TwoHosts, keep_a_host_within_its_limits) {
  there_->stop_broker();
  auto options = there_options();
  options.max_bindings_per_host = 2;
  there_->start_broker(options);
  auto one = import();
  auto two = import();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(import().code(), Errc::limit_reached);
  two = Errc::name_unknown;
  EXPECT_TRUE(eventually([&] { return import().has_value(); }));
}

TEST_F(TwoHosts, drop_the_bindings_of_a_host_that_has_fallen_silent) {
  there_->stop_broker();
  auto options = there_options();
  options.forget = milliseconds(300);
  there_->start_broker(options);
  lrpc::Result<Conformance::Client> client = Errc::name_unknown;
  EXPECT_TRUE(eventually([&] {  // again, if this process, with both hosts, was not scheduled for that long
    client = import();
    if (!client || !client->Open(1)) return false;
    std::this_thread::sleep_for(milliseconds(450));
    return client->Null().has_value();
  })) << "keepalives keep it";
  network_.cut(kThere);  // no further keepalive arrives
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 0; }));
  auto local = Conformance::Client::import("files", {.nameserver = there_->socket()});
  ASSERT_TRUE(local);
  EXPECT_TRUE(eventually([&] { return local->LiveObjects().value() == 0; }));
}

TEST_F(TwoHosts, leave_half_of_the_paths_and_of_the_calls_to_other_users) {
  here_->stop_broker();
  BrokerOptions options;
  options.max_paths = 2;
  options.max_calls_to_host = 2;
  here_->start_broker(options);
  auto client = import();
  ASSERT_TRUE(client);
  const auto another = import();
  EXPECT_EQ(another.code(), Errc::limit_reached);
  EXPECT_NE(another.error().text.find("user"), std::string::npos) << another.error().text;
  struct Held {
    std::atomic<bool> arrived{false};
    std::atomic<bool> released{false};
  };
  const auto held = std::make_shared<Held>();  // shared, because the network uses it in calls that outlive the test
  network_.tamper([held](std::uint16_t command, std::vector<std::byte>&) {
    if (command != 2 || held->arrived.exchange(true)) return;
    while (!held->released) std::this_thread::sleep_for(milliseconds(1));
  });
  auto waiting = client->start().Null();
  EXPECT_TRUE(eventually([&] { return held->arrived.load(); }));
  EXPECT_EQ(client->Null().code(), Errc::limit_reached);
  held->released = true;
  EXPECT_TRUE(waiting.finish());
  EXPECT_TRUE(client->Null());
}

TEST_F(TwoHosts, tell_a_host_later_what_it_could_not_be_told_at_once) {
  auto client = import();
  ASSERT_TRUE(client);
  network_.cut(kThere);
  client = Errc::name_unknown;  // the client ends, and its host cannot tell the other one
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(there_->broker().statistics().bindings, 1U);
  network_.attach(kThere, &there_->broker());
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 0; })) << "long before it is silence";
}

TEST_F(TwoHosts, take_no_liberties_from_a_client_that_speaks_to_the_network_domain_itself) {
  using lrpc::netpath::NetworkPath::Client;
  using lrpc::netpath::NetworkPath::Path;
  auto network = Client::import("lrpc.network", import_options());
  auto other = Client::import("lrpc.network", import_options());
  ASSERT_TRUE(network && other);
  constexpr const auto& id = Conformance::kPdl.interface;
  const auto bind = [](Client& client, std::string_view name = "files") {
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the analyzer does not read the constant
    return client.Bind(name, "10.0.0.2", id.name, id.major, id.minor, id.hash, 0, 1, "small", 1, "small");
  };
  const auto bound = bind(*network);
  ASSERT_TRUE(bound);
  EXPECT_FALSE(bound->to_group);
  const Path path = bound->path;
  EXPECT_NE(bind(*network).raised<lrpc::netpath::NetworkPath::Refused>(), nullptr) << "one path for one binding";
  for (const char* const name : {"", "two\nlines", "files@10.0.0.2"}) {
    const auto unnamed = bind(*other, name);
    const auto* const refused = unnamed.raised<lrpc::netpath::NetworkPath::Refused>();
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(static_cast<Errc>(refused->code), Errc::invalid_argument) << name;
  }
  std::vector<std::byte> room(16'384);
  lrpc::Buffer results(room);
  EXPECT_EQ(other->Call(path, 0, 0, {}, results).code(), Errc::bad_handle);
  EXPECT_EQ(network->Call(Path{77}, 0, 0, {}, results).code(), Errc::bad_handle);
  const auto failure = [&](std::uint16_t procedure, std::size_t size) {
    const auto called = network->Call(path, procedure, 0, some_bytes(size), results);
    return called ? lrpc::client::Call::failure(called->status) : called.code();
  };
  EXPECT_EQ(failure(0, 1), Errc::argument_out_of_range) << "Null takes nothing";
  EXPECT_EQ(failure(1, 7), Errc::argument_out_of_range) << "Add takes eight bytes";
  EXPECT_EQ(failure(999, 0), Errc::bad_procedure);
  EXPECT_EQ(failure(12, 16'384), Errc::message_too_long) << "longer than a message";
  const auto sum =
      network->Call(path, 1, 0, std::array<std::byte, 8>{std::byte{40}, {}, {}, {}, std::byte{2}}, results);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->status, 0);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(room[0], std::byte{42});
}

TEST(FilesExample, fits_one_message_between_hosts) {
  for (const lrpc::ProcedureDescriptor& procedure : Files::kPdl.procedures) {
    EXPECT_LE(lrpc::shim::PackedShape::of_call(procedure).most(), 15U * 1024) << procedure.name;
    EXPECT_LE(lrpc::shim::most_returned(procedure), 15U * 1024) << procedure.name;
  }
}

TEST_F(TwoHosts, take_hostile_commands_for_what_they_are) {
  auto client = import();
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->Sum(some_bytes(100)));
  // Each byte of a CALL is changed on its way: the call fails or, if the byte is in the image, has another argument.
  // Other clients notice nothing.
  auto witness = import();
  ASSERT_TRUE(witness);
  const bool is_long = testing_lrpc::long_tests();
  const std::uint64_t seed = is_long ? 7 : testing_lrpc::test_seed();
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 engine(seed);
  std::mutex mutex;
  const auto random = [&] {
    std::lock_guard lock(mutex);
    return engine();
  };
  for (int round = 0; round < (is_long ? 300 : 75); ++round) {
    auto victim = import();
    ASSERT_TRUE(victim) << victim.error().message();
    network_.tamper([&](std::uint16_t command, std::vector<std::byte>& request) {
      if (command != 2) return;
      const auto kind = random() % 3;
      if (kind == 0) {
        request[random() % request.size()] ^= static_cast<std::byte>(1 + random() % 255);
      } else if (kind == 1) {
        request.resize(random() % request.size());
      } else {
        request.resize(request.size() + 1 + random() % 64);
      }
    });
    (void)victim->Sum(some_bytes(random() % 200));
    (void)victim->Greet("x");
    network_.tamper({});
    EXPECT_EQ(witness->Add(2, 3).value(), 5);
  }
  // And messages that are no commands at all.
  const lrpc::shim::Principal stranger{0x0a00'0063, lrpc::shim::HostAuthentication::none, {}};
  std::array<std::byte, 4096> reply;
  for (int round = 0; round < (is_long ? 3000 : 750); ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    std::size_t size = 0;
    (void)there_->broker().serve(stranger, random() % 9, static_cast<std::uint16_t>(random() % 6), bytes, reply, size);
    ASSERT_LE(size, reply.size());
  }
  EXPECT_EQ(witness->Add(2, 3).value(), 5);
}

}  // namespace
}  // namespace testing_netpath
